// Commands of the gang's other nodes: each connection is served by a process of its own, a fork of
// the supervisor within the task's control groups. It holds nothing of the supervisor's but the
// launch, and ends with its command, with its connection, or with the task.
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/remote.h"
#include "os/sha256.h"
#include "os/supervisor/address.h"
#include "os/supervisor/supervisor.h"

namespace muster::os {
namespace {

using remote::Kind;

constexpr std::size_t kRemotesMax = 256;
constexpr std::int64_t kHelloMs = 10'000;       // For the other end to prove itself.
constexpr std::int64_t kContainerMs = 120'000;  // For this node's container to be up.
constexpr std::int64_t kKillAfterMs = 2'000;    // SIGTERM to SIGKILL when the connection broke.
constexpr int kLookMs = 50;
constexpr std::int64_t kLastWordMs = 5'000;
constexpr std::int64_t kSlowReaderMs = 3'600'000;
constexpr std::size_t kHeldMax = 256 * 1024;
constexpr std::size_t kSecretSize = 16;

int ms_until(std::int64_t at) {
    return static_cast<int>(std::max<std::int64_t>(0, at - steady_ms()));
}

/// Exactly `size` bytes, or "".
std::string read_exactly(int fd, std::size_t size, std::int64_t until) {
    std::string bytes;
    while (bytes.size() < size) {
        pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
        if (::poll(&polled, 1, ms_until(until)) <= 0) return {};
        char buffer[256];
        const ssize_t n = ::recv(fd, buffer, std::min(sizeof buffer, size - bytes.size()), 0);
        if (n <= 0 && errno != EINTR) return {};
        if (n > 0) bytes.append(buffer, static_cast<std::size_t>(n));
    }
    return bytes;
}

bool send_all(int fd, std::string_view bytes, std::int64_t until) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n));
            continue;
        }
        pollfd polled{.fd = fd, .events = POLLOUT, .revents = 0};
        if (errno != EINTR && (errno != EAGAIN || ::poll(&polled, 1, ms_until(until)) <= 0))
            return false;
    }
    return true;
}

/// Both ends prove that they know the secret; neither says it.
bool prove(int fd, const std::string& secret, std::int64_t until) {
    const std::string ours = remote::random_bytes(remote::kNonceSize);
    if (ours.empty() || !send_all(fd, std::string(remote::kGreeting) + ours, until)) return false;
    const std::string answer = read_exactly(fd, remote::kAnswerSize, until);
    if (answer.empty()) return false;
    const std::string theirs = answer.substr(0, remote::kNonceSize);
    if (!same_secret(remote::client_proof(secret, ours, theirs),
                     std::string_view(answer).substr(remote::kNonceSize)))
        return false;
    return send_all(fd, remote::server_proof(secret, ours, theirs), until);
}

/// A started command and its connection.
class Relay {
public:
    Relay(int socket, int signals, pid_t pid, const int (&pipes)[3])
        : socket_(socket), signals_(signals), pid_(pid) {
        for (int i = 0; i < 3; ++i) ::fcntl(pipes_[i] = pipes[i], F_SETFL, O_NONBLOCK);
        ::fcntl(socket_, F_SETFL, O_NONBLOCK);
    }

    void run() {
        while (!over_) step();
    }

private:
    void step() {
        const bool room = out_.size() < kHeldMax;
        const auto wanted = [](bool in, bool out) {
            return static_cast<short>((in ? POLLIN : 0) | (out ? POLLOUT : 0));
        };
        pollfd polled[5] = {
            {.fd = signals_, .events = POLLIN, .revents = 0},
            {.fd = lost_ ? -1 : socket_,
             .events = wanted(input_.size() < kHeldMax, !out_.empty()),
             .revents = 0},
            {.fd = input_.empty() ? -1 : pipes_[0], .events = POLLOUT, .revents = 0},
            {.fd = room ? pipes_[1] : -1, .events = POLLIN, .revents = 0},
            {.fd = room ? pipes_[2] : -1, .events = POLLIN, .revents = 0}};
        if (::poll(polled, 5, kill_at_ == 0 ? -1 : kLookMs) < 0 && errno != EINTR) return lose();
        if (polled[0].revents != 0) {
            signalfd_siginfo info{};
            while (::read(signals_, &info, sizeof info) > 0) {
            }
        }
        for (const int i : {1, 2})
            if (polled[2 + i].revents != 0) (void)read_output(i);
        if (polled[1].revents != 0) {
            read_socket();
            write_socket();
        }
        write_input();
        reap();
        if (lost_) return die();
        if (ended_) finish();
    }

    void read_socket() {
        char buffer[32 * 1024];
        const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return lose();
        if (n > 0) in_.append(buffer, static_cast<std::size_t>(n));
        take_frames();
    }
    void take_frames() {
        bool broken = false;
        while (const auto frame = remote::take_frame(in_, broken)) {
            if (frame->kind == Kind::Input) input_ += frame->bytes;
            if (frame->kind == Kind::InputEnd) input_ended_ = true;
        }
        if (broken) lose();
    }
    void write_socket() {
        while (!lost_ && !out_.empty()) {
            const ssize_t n = ::send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL);
            if (n > 0) {
                out_.erase(0, static_cast<std::size_t>(n));
                continue;
            }
            if (errno == EINTR) continue;
            if (errno != EAGAIN) lose();
            return;
        }
    }
    void write_input() {
        while (pipes_[0] >= 0 && !input_.empty()) {
            const ssize_t n = ::write(pipes_[0], input_.data(), input_.size());
            if (n > 0) {
                input_.erase(0, static_cast<std::size_t>(n));
                continue;
            }
            if (errno == EINTR) continue;
            if (errno == EAGAIN) return;
            input_ended_ = true;  // It reads no more.
            input_.clear();
        }
        if (pipes_[0] < 0) input_.clear();
        if (!input_ended_ || !input_.empty() || pipes_[0] < 0) return;
        ::close(pipes_[0]);
        pipes_[0] = -1;
    }
    bool read_output(int which) {
        char buffer[32 * 1024];
        int& fd = pipes_[which];
        const ssize_t n = fd < 0 ? -1 : ::read(fd, buffer, sizeof buffer);
        if (n > 0) {
            remote::put_frame(out_, which == 1 ? Kind::Output : Kind::Error,
                              std::string_view(buffer, static_cast<std::size_t>(n)));
            return true;
        }
        if (fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return false;
        ::close(fd);
        fd = -1;
        return false;
    }
    void reap() {
        int status = 0;
        for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
            if (pid != pid_) continue;
            ended_ = true;
            code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }

    /// The other end is gone, and nobody wants the command any more.
    void lose() {
        if (lost_) return;
        lost_ = true;
        kill_at_ = steady_ms() + kKillAfterMs;
        signal_all(SIGTERM);
    }
    void die() {
        const std::vector<GroupLaunch> none;
        if (ProcessGroup(none).processes().empty()) over_ = true;
        if (kill_at_ <= steady_ms()) signal_all(SIGKILL);
    }
    /// What the command left behind too: this process is its subreaper.
    static void signal_all(int signo) {
        const std::vector<GroupLaunch> none;
        for (const pid_t pid : ProcessGroup(none).processes()) ::kill(pid, signo);
    }

    /// What it left behind may hold the pipes for ever: what is in them now is its last word.
    void finish() {
        for (const int i : {1, 2})
            while (read_output(i)) {
            }
        remote::put_frame(out_, Kind::Exit, std::to_string(code_));
        ::fcntl(socket_, F_SETFL, 0);
        if (send_all(socket_, out_, steady_ms() + kSlowReaderMs)) {
            // Bytes that nobody read would make the kernel throw away those on their way.
            ::shutdown(socket_, SHUT_WR);
            const std::int64_t until = steady_ms() + kLastWordMs;
            while (!read_exactly(socket_, 1, until).empty()) {
            }
        }
        over_ = true;
    }

    int socket_, signals_;
    pid_t pid_;
    int pipes_[3];
    std::string in_, out_, input_;
    bool input_ended_ = false, ended_ = false, lost_ = false, over_ = false;
    std::int64_t kill_at_ = 0;
    int code_ = 0;
};

void refuse(int socket, std::string_view why) {
    std::string frame;
    remote::put_frame(frame, Kind::Refused, why);
    send_all(socket, frame, steady_ms() + kLastWordMs);
}

/// The first frame, and not a byte more.
std::optional<std::string> read_command(int socket, std::int64_t until) {
    std::string frame;
    bool broken = false;
    while (true) {
        if (auto whole = remote::take_frame(frame, broken)) {
            if (whole->kind != Kind::Command) return std::nullopt;
            return std::move(whole->bytes);
        }
        const std::string byte = broken ? "" : read_exactly(socket, 1, until);
        if (byte.empty()) return std::nullopt;
        frame += byte;
    }
}

}  // namespace

bool Supervisor::listen_remote() {
    remote_secret_ = remote::to_hex(remote::random_bytes(kSecretSize));
    if (remote_secret_.empty()) return false;
    SocketAddress address = socket_address(launch_.remote, 0);
    if (address.size == 0) address = socket_address("::", 0);  // A name: its addresses may change.
    for (const char* any : {"", "::", "0.0.0.0"}) {
        if (*any != '\0') address = socket_address(any, 0);
        const int family = address.storage.ss_family;
        remote_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (remote_ >= 0 && ::bind(remote_, address.get(), address.size) == 0 &&
            ::listen(remote_, 128) == 0)
            break;
        const int error = errno;
        if (remote_ >= 0) ::close(remote_);
        remote_ = -1;
        errno = error;
        // The node may be reached at an address that is not its own.
        if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) return false;
    }
    if (remote_ < 0) return false;
    socklen_t size = sizeof address.storage;
    if (::getsockname(remote_, reinterpret_cast<sockaddr*>(&address.storage), &size) != 0)
        return false;
    // The port stands at the same place in both families.
    remote_port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
    return true;
}

void Supervisor::accept_remote() {
    const int fd = ::accept4(remote_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const pid_t parent = ::getpid();
    const pid_t pid = remotes_.size() < kRemotesMax ? ::fork() : -1;
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        serve_remote(fd);
    }
    if (pid > 0) remotes_.push_back(pid);
    ::close(fd);
}

void Supervisor::serve_remote(int accepted) {
    // Nothing of the supervisor's stays open here; its lock would say that it lives.
    const int socket = ::dup2(accepted, 3);
    dir_ = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_ != 4) ::dup2(dir_, 4);
    ::close_range(5, ~0U, 0);
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    ::fcntl(4, F_SETFD, FD_CLOEXEC);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t all, child;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    const int signals = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (const GroupLaunch& group : launch_.groups_to_join) {
        if (!group.join) continue;
        const int procs = ::open((group.path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
        if (procs < 0 || ::write(procs, "0", 1) != 1) ::_exit(1);
        ::close(procs);
    }
    tune_connection(socket);
    const std::int64_t until = steady_ms() + kHelloMs;
    if (signals < 0 || !prove(socket, remote_secret_, until)) ::_exit(1);
    const auto command = read_command(socket, until);
    if (!command) ::_exit(1);
    const std::int64_t up = steady_ms() + kContainerMs;
    struct stat about {};
    while (!launch_.remote_after.empty() &&
           ::fstatat(4, launch_.remote_after.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
        if (steady_ms() > up) refuse(socket, "this node's container is not up"), ::_exit(1);
        ::usleep(20'000);
    }
    std::vector<std::string> argv = {launch_.shell};
    if (!command->empty()) argv.insert(argv.end(), {"-c", *command});
    int in[2], out[2], err[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
        refuse(socket, "cannot make pipes"), ::_exit(1);
    const Spawned spawned =
        spawn_beside({.launch = launch_,
                      .argv = argv,
                      .env = {&launch_.env, &go_env_, &launch_.ranks.front().env},
                      .stdio = {in[0], out[1], err[1]}});
    for (const int fd : {in[0], out[1], err[1]}) ::close(fd);
    if (spawned.pid < 0) refuse(socket, spawned.error), ::_exit(1);
    Relay(socket, signals, spawned.pid, {in[1], out[0], err[0]}).run();
    ::_exit(0);
}

int wait_for_end(const char* here) {
    const int fd = here == nullptr ? -1 : ::open(here, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) ::close(fd);
    sigset_t all, end;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    ::sigemptyset(&end);
    ::sigaddset(&end, SIGTERM);
    int signo = 0;
    while (::sigwait(&end, &signo) != 0 || signo != SIGTERM) {
    }
    return 128 + SIGTERM;
}

}  // namespace muster::os
