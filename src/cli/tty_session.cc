#include "cli/tty_session.h"

#include <cerrno>
#include <optional>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/units.h"
#include "net/tty_frame.h"

namespace muster::cli {
namespace {

constexpr char kControlP = 0x10;
constexpr char kControlQ = 0x11;

class RawMode {
public:
    explicit RawMode(int fd) : fd_(fd) {
        if (::tcgetattr(fd, &before_) != 0) return;
        termios raw = before_;
        ::cfmakeraw(&raw);
        active_ = ::tcsetattr(fd, TCSADRAIN, &raw) == 0;
    }
    ~RawMode() { restore(); }
    RawMode(const RawMode&) = delete;
    RawMode& operator=(const RawMode&) = delete;
    void restore() {
        if (active_) ::tcsetattr(fd_, TCSADRAIN, &before_);
        active_ = false;
    }

private:
    int fd_;
    termios before_{};
    bool active_ = false;
};

/// Window changes, and the signals that end or are passed on.
class Signals {
public:
    Signals() {
        sigset_t set;
        sigemptyset(&set);
        for (const int each : {SIGWINCH, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, each);
        ::pthread_sigmask(SIG_BLOCK, &set, &before_);
        fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    ~Signals() {
        ::close(fd_);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    int fd() const { return fd_; }
    int next() const {
        signalfd_siginfo info{};
        return ::read(fd_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
    }

private:
    sigset_t before_{};
    int fd_;
};

class Session {
public:
    Session(App& app, net::RawPipe& pipe, const SessionOptions& options)
        : app_(app), pipe_(pipe), options_(options), input_open_(options.send_input) {}

    int run() {
        std::optional<RawMode> raw;
        if (options_.terminal) {
            raw.emplace(app_.world().in_fd);
            resize();
        }
        const Signals signals;
        while (!code_) {
            const int in_fd = app_.world().in_fd;
            pollfd fds[3] = {{pipe_.fd(), POLLIN, 0},
                             {signals.fd(), POLLIN, 0},
                             {input_open_ ? in_fd : -1, POLLIN, 0}};
            const int wait_ms = pipe_.has_buffered() ? 0 : -1;
            if (::poll(fds, 3, wait_ms) < 0 && errno != EINTR) break;
            if (fds[1].revents != 0) on_signal(signals.next());
            if (pipe_.has_buffered() || fds[0].revents != 0) from_task();
            if (!code_ && fds[2].revents != 0) from_user();
        }
        if (raw) raw->restore();
        app_.out().flush();
        if (!message_.empty()) app_.note(message_);
        return code_.value_or(exit_codes::kMusterFailed);
    }

private:
    void fail(const std::string& what) {
        if (!code_) message_ = "muster: " + what;
        code_ = code_.value_or(exit_codes::kMusterFailed);
    }
    void send(net::TtyKind kind, std::string_view bytes) {
        const Status sent = pipe_.write(net::tty_frame(kind, bytes));
        if (!sent) fail("the connection broke: " + sent.error().message);
    }
    void resize() {
        int columns = 80, rows = 24;
        if (terminal_size(app_.world().in_fd, columns, rows) ||
            terminal_size(app_.out().fd(), columns, rows))
            send(net::TtyKind::Resize, std::to_string(columns) + "x" + std::to_string(rows));
    }
    void on_signal(int number) {
        if (number == SIGWINCH) {
            if (options_.terminal) resize();
        } else if (number != 0) {
            // The task goes on (attach) or loses its other end, which the node tells it (exec).
            if (options_.signals_detach) message_ = "detached";
            code_ = 128 + number;
            pipe_.shut_down();
        }
    }
    void from_task() {
        auto read = pipe_.read_some({.timeout = {0}});
        if (!read) return fail("the connection broke: " + read.error().message);
        if (read->end == net::ReadEnd::Eof) return fail("the connection was closed");
        if (read->end != net::ReadEnd::Data) return;
        decoder_.feed(read->data);
        for (;;) {
            const auto more = decoder_.next();
            if (!more) return fail(more.error().message);
            if (!*more) break;
            const net::TtyFrame& frame = decoder_.frame();
            switch (frame.kind) {
                case net::TtyKind::Output: app_.out().write(frame.bytes); break;
                case net::TtyKind::ErrorOutput:
                    app_.out().flush();
                    app_.err().write(frame.bytes);
                    app_.err().flush();
                    break;
                case net::TtyKind::Failure: message_ = "muster: " + frame.bytes; break;
                case net::TtyKind::Exit: {
                    const auto code = parse_integer(frame.bytes, 0, 255);
                    code_ = code ? static_cast<int>(*code) : exit_codes::kMusterFailed;
                    break;
                }
                default: break;
            }
            if (code_) break;
        }
        app_.out().flush();
    }
    void from_user() {
        char bytes[16384];
        const ssize_t got = ::read(app_.world().in_fd, bytes, sizeof bytes);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (got <= 0) {
            input_open_ = false;
            send(net::TtyKind::InputEnd, "");
            return;
        }
        const std::string_view typed(bytes, static_cast<std::size_t>(got));
        if (options_.terminal && leaves(typed)) {
            message_ = "\r\ndetached";
            code_ = exit_codes::kOk;
            pipe_.shut_down();
            return;
        }
        send(net::TtyKind::Input, typed);
    }
    /// Ctrl-P then Ctrl-Q, in one read or two.
    bool leaves(std::string_view typed) {
        for (const char c : typed) {
            if (c == kControlQ && armed_) return true;
            armed_ = c == kControlP;
        }
        return false;
    }

    App& app_;
    net::RawPipe& pipe_;
    const SessionOptions& options_;
    net::TtyDecoder decoder_;
    bool input_open_;
    bool armed_ = false;
    std::optional<int> code_;
    std::string message_;
};

}  // namespace

int run_session(App& app, std::unique_ptr<net::RawPipe> pipe, const SessionOptions& options) {
    return Session(app, *pipe, options).run();
}

}  // namespace muster::cli
