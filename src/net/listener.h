// Listening sockets and addresses in text. Internal to net.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include "base/result.h"
#include "net/http.h"
#include "net/unique_fd.h"

namespace muster::net {

struct HostPort {
    std::string host;  // Without brackets.
    std::uint16_t port = 0;
};
/// "host:port", "1.2.3.4:port", "[v6]:port". Port 0 is allowed.
Result<HostPort> split_host_port(std::string_view text);
std::string join_host_port(std::string_view host, std::uint16_t port);

/// A Unix socket at `path`: a stale file there is replaced, a live server's is a Conflict.
Result<UniqueFd> listen_unix(const std::string& path, unsigned mode);

struct TcpListener {
    UniqueFd fd;
    std::uint16_t port = 0;
    bool loopback = false;
};
Result<TcpListener> listen_tcp(std::string_view address);

/// The other end of an accepted socket, as the kernel says.
Peer peer_of(int fd, bool is_unix);
std::string address_text(const sockaddr* address);

}  // namespace muster::net
