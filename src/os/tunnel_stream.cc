#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/streams.h"

namespace muster::os {
namespace {

constexpr std::size_t kReadSize = 32 * 1024;
constexpr std::size_t kInputMax = 4 << 20;  // Held for a process that does not read.

/// A descriptor that is written to as it takes it.
class Feed {
public:
    /// `taken`: hears of bytes that were written, or that nobody will read any more.
    Feed(EventLoop& loop, std::function<void(std::int64_t)> taken)
        : loop_(loop), taken_(std::move(taken)) {}
    ~Feed() { close(); }
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;

    void open(Fd fd) {
        fd_ = std::move(fd);
        ::fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
        write();
    }
    int get() const { return fd_.get(); }
    void put(std::string_view bytes) {
        if (closed_ || waiting_.size() + bytes.size() > kInputMax)
            return taken_(static_cast<std::int64_t>(bytes.size()));
        waiting_.append(bytes);
        write();
    }
    void end() {
        ended_ = true;
        write();
    }

private:
    void close() {
        if (watched_) loop_.forget(fd_.get());
        watched_ = false;
        fd_.reset();
        closed_ = true;
    }
    void write() {
        while (fd_ && !waiting_.empty()) {
            const ssize_t n = ::write(fd_.get(), waiting_.data(), waiting_.size());
            if (n > 0) {
                waiting_.erase(0, static_cast<std::size_t>(n));
                taken_(n);
                continue;
            }
            if (errno == EINTR) continue;
            if (errno != EAGAIN) {
                close();
                const auto left = static_cast<std::int64_t>(std::exchange(waiting_, {}).size());
                return taken_(left);
            }
            if (!watched_) {
                loop_.watch(fd_.get(), EPOLLOUT, [this](std::uint32_t) { write(); });
                watched_ = true;
            }
            return;
        }
        if (fd_ && watched_) loop_.forget(fd_.get());
        watched_ = false;
        if (fd_ && ended_ && waiting_.empty()) close();
    }

    EventLoop& loop_;
    const std::function<void(std::int64_t)> taken_;
    Fd fd_;
    std::string waiting_;
    bool watched_ = false, ended_ = false, closed_ = false;
};

class ExecStream : public Stream {
public:
    ExecStream(EventLoop& loop, const protocol::OpenTunnel& ask, StreamOut out)
        : loop_(loop), ask_(ask), out_(std::move(out)), input_(loop, [this](std::int64_t bytes) {
              if (ask_.window > 0 && !over_)
                  out_(protocol::TunnelOutput{
                      .request = ask_.request, .bytes = {}, .error = {}, .taken = bytes});
          }) {}
    ~ExecStream() override {
        for (Fd& fd : outputs_)
            if (fd && !full()) loop_.forget(fd.get());
    }

    void open(Task& task) {
        link_ = task.open_exec(ask_,
                               {.on_streams = [this](std::vector<Fd> fds) { take(std::move(fds)); },
                                .on_end =
                                    [this](int code, std::string error) {
                                        exit_code_ = code;
                                        error_ = std::move(error);
                                        ended_ = true;
                                        finish();
                                    }});
    }

    void input(const protocol::TunnelInput& input) override {
        if (input.columns != 0 && input.rows != 0 && ask_.tty && outputs_[0]) {
            const winsize size{
                .ws_row = input.rows, .ws_col = input.columns, .ws_xpixel = 0, .ws_ypixel = 0};
            ::ioctl(outputs_[0].get(), TIOCSWINSZ, &size);
        }
        if (!input.bytes.empty()) input_.put(input.bytes);
        if (input.taken > 0) taken(input.taken);
        // A terminal's end of input is a letter, not the closing of its other side.
        if (input.end && ask_.tty) input_.put("\x04");
        if (input.end && !ask_.tty) input_.end();
    }

private:
    void take(std::vector<Fd> fds) {
        if (fds.size() == 1) {
            input_.open(Fd(::fcntl(fds[0].get(), F_DUPFD_CLOEXEC, 0)));
            watch(0, std::move(fds[0]));
        } else if (fds.size() == 3) {
            input_.open(std::move(fds[0]));
            watch(0, std::move(fds[1]));
            watch(1, std::move(fds[2]));
        }
    }
    /// More is under way than the other end wants: nothing is watched, the process waits.
    bool full() const { return ask_.window > 0 && under_way_ >= ask_.window; }
    void taken(std::int64_t bytes) {
        const bool was_full = full();
        under_way_ -= bytes;
        if (!was_full || full() || over_) return;
        for (const std::size_t which : {std::size_t{0}, std::size_t{1}})
            if (outputs_[which]) listen(which);
    }
    void listen(std::size_t which) {
        loop_.watch(outputs_[which].get(), EPOLLIN, [this, which](std::uint32_t) { read(which); });
    }
    void watch(std::size_t which, Fd fd) {
        ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
        outputs_[which] = std::move(fd);
        if (!full()) listen(which);
    }
    void read(std::size_t which) {
        char buffer[kReadSize];
        Fd& fd = outputs_[which];
        for (int i = 0; i < 8 && fd; ++i) {
            const bool was_full = full();
            if (was_full && !reading_last_) return;
            const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
            if (n > 0) {
                under_way_ += n;
                if (!was_full && full())
                    for (const Fd& each : outputs_)
                        if (each) loop_.forget(each.get());
                out_(protocol::TunnelOutput{
                    .request = ask_.request,
                    .bytes = std::string(buffer, static_cast<std::size_t>(n)),
                    .is_stderr = which == 1});
                continue;
            }
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
            if (!was_full) loop_.forget(fd.get());
            fd.reset();
        }
        finish();
    }
    void finish() {
        // A process that has ended leaves its last words in the pipe; whoever it left behind
        // may hold the pipe for ever, so those words are read once and that is the end.
        if (!ended_ || over_ || reading_last_) return;
        reading_last_ = true;
        for (const std::size_t which : {std::size_t{0}, std::size_t{1}})
            if (outputs_[which]) read(which);
        over_ = true;
        out_(protocol::TunnelOutput{.request = ask_.request,
                                    .bytes = {},
                                    .end = true,
                                    .exit_code = exit_code_,
                                    .error = error_});
    }

    EventLoop& loop_;
    protocol::OpenTunnel ask_;
    StreamOut out_;
    Feed input_;
    Fd outputs_[2];
    std::unique_ptr<SupervisorLink> link_;
    bool ended_ = false, reading_last_ = false;
    std::int64_t under_way_ = 0;  // Bytes of output that were not said to be taken.
    int exit_code_ = 125;
    std::string error_;
};

/// Input into the task's own terminal, output from its log.
class AttachStream : public Stream {
public:
    AttachStream(EventLoop& loop, const protocol::OpenTunnel& ask, StreamOut out)
        : loop_(loop), ask_(ask), out_(std::move(out)), input_(loop, [this](std::int64_t bytes) {
              if (ask_.window > 0 && !over_)
                  out_(protocol::TunnelOutput{
                      .request = ask_.request, .bytes = {}, .error = {}, .taken = bytes});
          }) {}

    void open(Task& task) {
        task_ = &task;
        folder_ = task.folder();
        alive_ = task.alive();
        if (task.has_terminal())
            link_ = task.open_exec(ask_, {.on_streams =
                                              [this](std::vector<Fd> fds) {
                                                  if (fds.size() != 1) return;
                                                  input_.open(std::move(fds[0]));
                                                  resize(ask_.columns, ask_.rows);
                                              },
                                          .on_end = [](int, std::string) {}});
        next_ = task.has_terminal() ? -8192 : -1;
        read_on();
    }
    void input(const protocol::TunnelInput& input) override {
        resize(input.columns, input.rows);
        if (!input.bytes.empty()) input_.put(input.bytes);
        if (input.taken <= 0 || over_) return;
        under_way_ -= input.taken;
        read_on_when_taken();
    }

private:
    void resize(std::uint16_t columns, std::uint16_t rows) {
        if (columns == 0 || rows == 0 || input_.get() < 0) return;
        const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
        ::ioctl(input_.get(), TIOCSWINSZ, &size);
    }
    /// With a window, so much of the log at once as may be under way.
    void read_on() {
        const std::int64_t limit = ask_.window > 0 ? ask_.window : std::int64_t{1} << 50;
        left_ = limit;
        const protocol::ReadLog log{.request = ask_.request,
                                    .key = ask_.key,
                                    .local_rank = -1,
                                    .offset = next_,
                                    .limit = limit,
                                    .follow = true};
        log_ = read_log(loop_, *alive_ ? task_ : nullptr, folder_, log,
                        [this](protocol::AgentMessage message) {
                            on_log(std::get<protocol::LogChunk>(std::move(message)));
                        });
    }
    void read_on_when_taken() {
        if (!waits_ || under_way_ > ask_.window / 2) return;
        waits_ = false;
        // Not from within the reading that it replaces.
        loop_.post([this, here = std::weak_ptr<bool>(here_)] {
            if (here.lock()) read_on();
        });
    }
    void on_log(protocol::LogChunk chunk) {
        const auto size = static_cast<std::int64_t>(chunk.bytes.size());
        if (size > 0) {
            next_ = chunk.offset + size;
            under_way_ += size;
            left_ -= size;
            out_(protocol::TunnelOutput{.request = ask_.request, .bytes = std::move(chunk.bytes)});
        }
        if (!chunk.end || over_) return;
        if (left_ <= 0) {
            waits_ = true;
            return read_on_when_taken();
        }
        over_ = true;
        protocol::TunnelOutput last{.request = ask_.request, .bytes = {}, .end = true, .error = {}};
        if (*alive_ && task_->ended()) {
            const model::TaskEnd& end = task_->status().end;
            last.exit_code = end.signal != 0 ? 128 + end.signal : std::max(end.exit_code, 0);
        }
        out_(std::move(last));
    }

    EventLoop& loop_;
    protocol::OpenTunnel ask_;
    StreamOut out_;
    Feed input_;
    Task* task_ = nullptr;
    std::string folder_;
    std::shared_ptr<bool> alive_;
    std::int64_t next_ = -1, left_ = 0;  // Of the reading under way.
    std::int64_t under_way_ = 0;         // Bytes of output that were not said to be taken.
    bool waits_ = false;
    const std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
    std::unique_ptr<SupervisorLink> link_;
    std::shared_ptr<Stream> log_;
};

}  // namespace

std::shared_ptr<Stream> open_exec(EventLoop& loop, Task& task, const protocol::OpenTunnel& ask,
                                  StreamOut out) {
    auto stream = std::make_shared<ExecStream>(loop, ask, std::move(out));
    stream->open(task);
    return stream;
}

std::shared_ptr<Stream> open_attach(EventLoop& loop, Task& task, const protocol::OpenTunnel& ask,
                                    StreamOut out) {
    auto stream = std::make_shared<AttachStream>(loop, ask, std::move(out));
    stream->open(task);
    return stream;
}

}  // namespace muster::os
