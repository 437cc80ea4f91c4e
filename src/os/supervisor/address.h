// A numeric address and a port as the kernel takes them.
#pragma once

#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace muster::os {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;  // 0: the text was no address.
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

inline SocketAddress socket_address(const std::string& text, int port) {
    SocketAddress out;
    sockaddr_in four{};
    sockaddr_in6 six{};
    if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(static_cast<std::uint16_t>(port));
        std::memcpy(&out.storage, &four, out.size = sizeof four);
    } else if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(static_cast<std::uint16_t>(port));
        std::memcpy(&out.storage, &six, out.size = sizeof six);
    }
    return out;
}

/// A node that vanishes without a word is noticed within a minute; small messages are not held.
inline void tune_connection(int fd) {
    const auto set = [fd](int level, int option, int value) {
        ::setsockopt(fd, level, option, &value, sizeof value);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
    set(IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace muster::os
