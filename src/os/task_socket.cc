#include "os/task_socket.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/supervisor/log_writer.h"

namespace muster::os {
namespace {

constexpr std::size_t kConnectionsMax = 256;
constexpr std::size_t kErrorMax = 512;

}  // namespace

struct TaskSocket::Connection {
    Fd fd;
    std::string buffer;
    bool skipping = false;  // A line that is too long, up to its LF.
    bool waiting = false;   // For the answer to the line before: order is kept.
    bool stopped = false;   // Not watched while lines wait for the rate or an answer.
    bool ended = false;     // The client has said its last; what it said is still taken.
};

Result<ListeningSocket> TaskSocket::listen(int folder, const char* name, std::uint32_t uid) {
    Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listening) return system_error("make a socket", name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + name;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ::unlinkat(folder, name, 0);
    struct stat about {};
    if (::fchmod(listening.get(), 0600) != 0 ||
        ::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listening.get(), 64) != 0 ||
        ::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return system_error("listen at", name);
    if (uid != ::geteuid() &&
        ::fchownat(folder, name, uid, static_cast<gid_t>(-1), AT_SYMLINK_NOFOLLOW) != 0)
        return system_error("give to the task's user", name);
    return ListeningSocket{.fd = std::move(listening), .inode = about.st_ino, .uid = uid};
}

TaskSocket::TaskSocket(EventLoop& loop, ListeningSocket listening, OnLine on_line)
    : loop_(loop),
      listening_(std::move(listening)),
      on_line_(std::move(on_line)),
      lines_(256, 512, steady_ms()),
      others_(10, 20, steady_ms()) {
    while (Fd(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC))) {
    }
    loop_.watch(listening_.fd.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
}

TaskSocket::~TaskSocket() {
    stop();
}

void TaskSocket::stop() {
    loop_.cancel(rate_timer_);
    if (listening_.fd) loop_.forget(listening_.fd.get());
    while (!connections_.empty()) close(connections_.begin()->first);
}

ListeningSocket TaskSocket::release() {
    stop();
    return std::move(listening_);
}

void TaskSocket::accept() {
    while (true) {
        Fd fd(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd) return;
        ucred peer{};
        socklen_t size = sizeof peer;
        const bool known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                           (peer.uid == listening_.uid || peer.uid == 0);
        if (!known || connections_.size() >= kConnectionsMax) continue;
        auto connection = std::make_shared<Connection>();
        connection->fd = std::move(fd);
        const int number = connection->fd.get();
        loop_.watch(number, EPOLLIN, [this, connection](std::uint32_t) { read(*connection); });
        connections_.emplace(number, std::move(connection));
    }
}

void TaskSocket::close(int fd) {
    const auto found = connections_.find(fd);
    if (found == connections_.end()) return;
    const std::shared_ptr<Connection> kept = found->second;
    connections_.erase(found);
    if (!kept->stopped) loop_.forget(fd);
    kept->stopped = true;
    kept->fd.reset();
}

void TaskSocket::read(Connection& connection) {
    char buffer[kTaskLineMax];
    const ssize_t n = ::read(connection.fd.get(), buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        connection.ended = true;
    } else {
        connection.buffer.append(buffer, static_cast<std::size_t>(n));
    }
    take_lines(connection);
}

void TaskSocket::take_lines(Connection& connection) {
    std::size_t at = 0;
    bool rate = false;
    while (!connection.waiting) {
        const std::size_t end = connection.buffer.find('\n', at);
        if (end == std::string::npos) break;
        const std::string_view line = std::string_view(connection.buffer).substr(at, end - at);
        if (!connection.skipping && !line.empty()) {
            if (!lines_.take(steady_ms())) {
                rate = true;
                break;
            }
            if (line.size() + 1 > kTaskLineMax)
                answer(connection, "line longer than 4096 bytes");
            else
                take_line(connection, line);
        }
        connection.skipping = false;
        at = end + 1;
    }
    connection.buffer.erase(0, at);
    if (!connection.waiting && !rate && connection.buffer.size() >= kTaskLineMax) {
        if (!connection.skipping) answer(connection, "line longer than 4096 bytes");
        connection.skipping = true;
        connection.buffer.clear();
    }
    const int fd = connection.fd.get();
    const bool stop = rate || connection.waiting;
    if (stop != connection.stopped) {
        connection.stopped = stop;
        if (stop) {
            loop_.forget(fd);
        } else {
            loop_.watch(fd, EPOLLIN,
                        [this, shared = connections_.at(fd)](std::uint32_t) { read(*shared); });
        }
    }
    if (rate) pause_for_rate();
    if (connection.ended && !stop) close(fd);
}

bool TaskSocket::take_line(Connection& connection, std::string_view text) {
    auto line = parse_task_line(text);
    if (!line) {
        answer(connection, line.error().message);
        return false;
    }
    if (!std::holds_alternative<ProgressLine>(*line) && !others_.take(steady_ms())) {
        answer(connection, "rate limit of 10 lines a second; repeat later");
        return false;
    }
    connection.waiting = true;
    const int fd = connection.fd.get();
    auto inside = std::make_shared<bool>(true);
    on_line_(*std::move(line),
             [this, fd, inside, weak = std::weak_ptr(connections_.at(fd))](std::string said) {
                 const auto kept = weak.lock();
                 if (!kept || !kept->waiting) return;
                 answer(*kept, said);
                 kept->waiting = false;
                 if (!*inside) take_lines(*kept);
             });
    *inside = false;
    return true;
}

void TaskSocket::pause_for_rate() {
    if (rate_timer_ != 0) return;
    rate_timer_ = loop_.after(lines_.wait_ms(), [this] {
        rate_timer_ = 0;
        std::vector<std::shared_ptr<Connection>> all;
        for (const auto& [fd, connection] : connections_) all.push_back(connection);
        for (const auto& connection : all)
            if (connection->fd && connection->stopped && !connection->waiting)
                take_lines(*connection);
    });
}

void TaskSocket::answer(Connection& connection, const std::string& said) {
    const std::string text = said.empty() ? "ok\n" : "error " + said.substr(0, kErrorMax) + "\n";
    (void)::send(connection.fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace muster::os
