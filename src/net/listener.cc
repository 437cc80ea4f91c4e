#include "net/listener.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace muster::net {
namespace {

Error cannot_listen(std::string_view where, std::string cause, std::string fix) {
    return Error{.code = Code::Unavailable,
                 .message = "cannot listen on " + std::string(where),
                 .cause = std::move(cause),
                 .fix = std::move(fix)};
}

std::string fix_for(int error) {
    switch (error) {
        case EADDRINUSE: return "stop the program that listens there, or choose another port";
        case EACCES: return "ports below 1024 and system folders need root: choose another";
        case EADDRNOTAVAIL: return "this machine has no such address: choose another";
        case ENOENT: return "make the folder first";
        default: return "";
    }
}

bool is_loopback(const sockaddr* address) {
    if (address->sa_family == AF_INET) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
        return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
    }
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

}  // namespace

Result<HostPort> split_host_port(std::string_view text) {
    const auto refusal = [&](std::string_view cause) {
        return Error{.code = Code::Invalid,
                     .message = "\"" + std::string(text) + "\" is no address",
                     .cause = std::string(cause),
                     .fix = "write host:port, for example 10.0.0.1:7070 or [::1]:7070"};
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return refusal("the port is missing");
    std::string_view host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        return refusal("an IPv6 address needs brackets");
    }
    if (host.empty()) return refusal("the host is missing");
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
        return refusal("the port is no number from 0 to 65535");
    }
    return HostPort{std::string(host), port};
}

std::string join_host_port(std::string_view host, std::uint16_t port) {
    const bool v6 = host.find(':') != std::string_view::npos;
    return (v6 ? "[" : "") + std::string(host) + (v6 ? "]:" : ":") + std::to_string(port);
}

Result<UniqueFd> listen_unix(const std::string& path, unsigned mode) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return cannot_listen(path,
                             "its path has " + std::to_string(path.size()) +
                                 " bytes; a Unix socket's has at most " +
                                 std::to_string(sizeof address.sun_path - 1),
                             "choose a shorter folder");
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    const auto* raw = reinterpret_cast<const sockaddr*>(&address);
    struct stat info {};
    if (lstat(path.c_str(), &info) == 0) {
        if (!S_ISSOCK(info.st_mode)) {
            return cannot_listen(path, "a file that is no socket is there", "choose another path");
        }
        const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (::connect(probe.get(), raw, sizeof address) == 0 || errno == EAGAIN) {
            Error error = cannot_listen(path, "another server listens there",
                                        "stop it, or choose another path");
            error.code = Code::Conflict;
            return error;
        }
        if (errno == ECONNREFUSED) ::unlink(path.c_str());
    }
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd || ::bind(fd.get(), raw, sizeof address) != 0 || ::listen(fd.get(), 4096) != 0) {
        const int error = errno;
        return cannot_listen(path, std::strerror(error), fix_for(error));
    }
    if (::chmod(path.c_str(), mode) != 0) {
        return cannot_listen(path, std::strerror(errno), "");
    }
    return fd;
}

Result<TcpListener> listen_tcp(std::string_view text) {
    MUSTER_LET(where, split_host_port(text));
    addrinfo hints{};
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(where.port);
    const int failure = ::getaddrinfo(where.host.c_str(), port.c_str(), &hints, &found);
    if (failure != 0) {
        return cannot_listen(text, ::gai_strerror(failure), "use an address of this machine");
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    TcpListener listener;
    listener.fd.reset(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    const int off = 0;
    ::setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (found->ai_family == AF_INET6) {
        ::setsockopt(listener.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (::bind(listener.fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(listener.fd.get(), 4096) != 0) {
        const int error = errno;
        return cannot_listen(text, std::strerror(error), fix_for(error));
    }
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    ::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    listener.port =
        ntohs(bound.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&bound)->sin_port
                                         : reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port);
    listener.loopback = is_loopback(reinterpret_cast<sockaddr*>(&bound));
    return listener;
}

std::string address_text(const sockaddr* address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address->sa_family == AF_INET) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
        inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
        return join_host_port(text, ntohs(v4->sin_port));
    }
    if (address->sa_family != AF_INET6) return "unix";
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, text, sizeof text);
    } else {
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    }
    return join_host_port(text, ntohs(v6->sin6_port));
}

Peer peer_of(int fd, bool is_unix) {
    Peer peer;
    if (is_unix) {
        ucred credentials{};
        socklen_t size = sizeof credentials;
        peer.address = "unix";
        if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
            peer.local = true;
            peer.uid = credentials.uid;
            peer.gid = credentials.gid;
            peer.pid = credentials.pid;
        }
        return peer;
    }
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
        peer.address = address_text(reinterpret_cast<sockaddr*>(&address));
    }
    return peer;
}

}  // namespace muster::net
