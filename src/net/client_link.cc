#include "net/client_link.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace muster::net {
namespace {

constexpr std::size_t kReadSize = 64 * 1024;

std::int64_t monotonic_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// OpenSSL writes with write(): while this lives, a closed peer is an error and no signal. The
/// program's own SIGPIPE (of its standard output) stays as it is.
class NoSigpipe {
public:
    explicit NoSigpipe(bool wanted) : wanted_(wanted) {
        if (!wanted_) return;
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~NoSigpipe() {
        if (!wanted_) return;
        const timespec now{};
        if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoSigpipe(const NoSigpipe&) = delete;
    NoSigpipe& operator=(const NoSigpipe&) = delete;

private:
    bool wanted_;
    bool was_pending_ = false;
    sigset_t pipe_{};
    sigset_t before_{};
};

Error unreachable(const Endpoint& endpoint, int error) {
    const bool local = !endpoint.unix_path.empty();
    Error result{.code = Code::Unavailable,
                 .message = "cannot reach the controller at " + format_endpoint(endpoint)};
    switch (error) {
        case ENOENT:
            result.cause = "there is no such socket: no controller runs here";
            result.fix = "start one with `muster up`, or name the controller's address";
            break;
        case ECONNREFUSED:
            result.cause = "nothing listens there";
            result.fix = local ? "start the controller with `muster up`"
                               : "check that the controller runs, and its address and port";
            break;
        case EACCES:
        case EPERM:
            result.code = Code::Denied;
            result.cause = "you may not open the socket";
            result.fix = "ask its owner for access to the socket and its folder";
            break;
        case EHOSTUNREACH:
        case ENETUNREACH:
            result.cause = std::strerror(error);
            result.fix = "check the network and the address";
            break;
        default:
            result.cause = std::strerror(error);
            result.fix = "check that the controller runs, and its address and port";
    }
    return result;
}

Error timed_out(const std::string& name, std::string_view what) {
    return Error{.code = Code::Unavailable,
                 .message = "no answer from " + name,
                 .cause = std::string(what) + " took too long",
                 .fix = "check the network and whether the controller is overloaded"};
}
Error interrupted(const std::string& name) {
    return Error{.code = Code::Unavailable, .message = "interrupted while talking to " + name};
}

/// Of a connect in progress.
int connect_result(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

}  // namespace

Deadline::Deadline(Duration wait) {
    if (wait < kDurationMax) at_ms_ = monotonic_ms() + wait.ms;
}

int Deadline::left_ms() const {
    if (at_ms_ < 0) return -1;
    return static_cast<int>(std::clamp<std::int64_t>(at_ms_ - monotonic_ms(), 0, 1 << 30));
}

ReadEnd ClientLink::wait_for(Io io, const Deadline& deadline, int interrupt_fd) const {
    pollfd fds[2] = {{wire_.fd(), static_cast<short>(io == Io::WantWrite ? POLLOUT : POLLIN), 0},
                     {interrupt_fd, POLLIN, 0}};
    for (;;) {
        const int ready = ::poll(fds, interrupt_fd >= 0 ? 2 : 1, deadline.left_ms());
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return ReadEnd::TimedOut;
        if (interrupt_fd >= 0 && fds[1].revents != 0) return ReadEnd::Interrupted;
        return ReadEnd::Data;
    }
}

Status ClientLink::dial(const Endpoint& endpoint, const Deadline& deadline, int interrupt_fd) {
    const auto try_one = [&](int family, const sockaddr* address, socklen_t size) {
        wire_ = Wire(UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
        if (wire_.fd() < 0) return errno;
        // A full backlog of a Unix socket is EAGAIN: waited for below by trying again.
        while (::connect(wire_.fd(), address, size) != 0) {
            if (errno == EINPROGRESS) {
                const ReadEnd end = wait_for(Io::WantWrite, deadline, interrupt_fd);
                if (end == ReadEnd::Interrupted) return EINTR;
                return end == ReadEnd::Data ? connect_result(wire_.fd()) : ETIMEDOUT;
            }
            if (errno != EAGAIN || deadline.left_ms() == 0) return errno;
            const timespec moment{0, 2'000'000};
            ::nanosleep(&moment, nullptr);
        }
        return 0;
    };
    int error = 0;
    if (!endpoint.unix_path.empty()) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (endpoint.unix_path.size() >= sizeof address.sun_path) {
            return unreachable(endpoint, ENAMETOOLONG);
        }
        std::memcpy(address.sun_path, endpoint.unix_path.data(), endpoint.unix_path.size());
        error = try_one(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof address);
    } else {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;  // First without loading name services.
        addrinfo* found = nullptr;
        const std::string port = std::to_string(endpoint.port);
        int failure = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
        if (failure != 0) {
            hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
            failure = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
        }
        if (failure != 0) {
            return Error{.code = Code::Unavailable,
                         .message = "cannot reach the controller at " + format_endpoint(endpoint),
                         .cause = endpoint.host + ": " + ::gai_strerror(failure),
                         .fix = "check the controller's host name"};
        }
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
        for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
            error = try_one(a->ai_family, a->ai_addr, a->ai_addrlen);
            if (error == 0 || error == EINTR) break;
        }
        const int on = 1;
        ::setsockopt(wire_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        ::setsockopt(wire_.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    if (error == EINTR) return interrupted(name_);
    if (error == ETIMEDOUT) return timed_out(name_, "connecting");
    if (error != 0) return unreachable(endpoint, error);
    return Ok{};
}

Status ClientLink::shake_hands(const Endpoint& endpoint, const Deadline& deadline,
                               int interrupt_fd) {
    const NoSigpipe quiet(true);
    for (;;) {
        errno = 0;
        const Io io = wire_.handshake();
        if (io == Io::Done) return Ok{};
        if (io != Io::WantRead && io != Io::WantWrite) {
            return explain_handshake(wire_.ssl(), endpoint, errno);
        }
        const ReadEnd end = wait_for(io, deadline, interrupt_fd);
        if (end == ReadEnd::TimedOut) return timed_out(name_, "the TLS handshake");
        if (end == ReadEnd::Interrupted) return interrupted(name_);
    }
}

Result<std::unique_ptr<ClientLink>> ClientLink::connect(const Endpoint& endpoint,
                                                        SslContextPtr& context, Wait wait,
                                                        std::string_view alpn) {
    const Deadline deadline(wait.timeout);
    auto link = std::make_unique<ClientLink>();
    link->name_ = format_endpoint(endpoint);
    if (endpoint.tls && endpoint.unix_path.empty() && !context) {
        MUSTER_LET(made, make_client_context(endpoint));
        context = std::move(made);
    }
    MUSTER_TRY(link->dial(endpoint, deadline, wait.interrupt_fd));
    if (endpoint.tls && endpoint.unix_path.empty()) {
        const int fd = link->wire_.fd();
        MUSTER_LET(ssl, make_client_ssl(context.get(), endpoint, fd, alpn));
        link->wire_.secure_with(std::move(ssl));
        MUSTER_TRY(link->shake_hands(endpoint, deadline, wait.interrupt_fd));
    }
    return link;
}

bool ClientLink::readable_now() const {
    pollfd fd{wire_.fd(), POLLIN, 0};
    return wire_.has_buffered() || ::poll(&fd, 1, 0) > 0;
}

ReadResult ClientLink::read(std::string& into, const Deadline& deadline, int interrupt_fd) {
    const NoSigpipe quiet(wire_.secure());
    if (!scratch_) scratch_ = std::make_unique_for_overwrite<char[]>(kReadSize);
    for (;;) {
        IoCount got;
        {
            const std::lock_guard lock(mutex_);
            got = wire_.read(scratch_.get(), kReadSize);
        }
        into.append(scratch_.get(), got.bytes);
        if (got.io == Io::Done) return {ReadEnd::Data};
        if (got.io == Io::Closed || got.io == Io::Failed) return {ReadEnd::Eof};
        const ReadEnd end = wait_for(got.io, deadline, interrupt_fd);
        if (end != ReadEnd::Data) return {end};
    }
}

Status ClientLink::write_all(std::string_view bytes, const Deadline& deadline, int interrupt_fd) {
    const NoSigpipe quiet(wire_.secure());
    while (!bytes.empty()) {
        const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
        IoCount sent;
        {
            const std::lock_guard lock(mutex_);
            sent = wire_.write(std::span(&part, 1));
        }
        if (sent.io == Io::Done) {
            bytes.remove_prefix(sent.bytes);
            continue;
        }
        if (sent.io == Io::Closed || sent.io == Io::Failed) {
            return Error{.code = Code::Unavailable,
                         .message = "the connection to " + name_ + " broke",
                         .cause = "the controller closed it",
                         .fix = "try again; if it repeats, see the controller's log"};
        }
        const ReadEnd end = wait_for(sent.io, deadline, interrupt_fd);
        if (end == ReadEnd::TimedOut) return timed_out(name_, "sending");
        if (end == ReadEnd::Interrupted) return interrupted(name_);
    }
    return Ok{};
}

void ClientLink::shut_down() {
    ::shutdown(wire_.fd(), SHUT_RDWR);
}

}  // namespace muster::net
