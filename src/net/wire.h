// A non-blocking connected socket, plain or with TLS, as four operations. Internal to net.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <sys/uio.h>

#include "net/tls.h"
#include "net/unique_fd.h"

namespace muster::net {

enum class Io : std::uint8_t {
    Done,
    WantRead,   // Would block until readable.
    WantWrite,  // Would block until writable.
    Closed,     // The other end finished.
    Failed,
};
struct IoCount {
    Io io = Io::Done;
    std::size_t bytes = 0;  // When Done.
};

class Wire {
public:
    Wire() = default;
    explicit Wire(UniqueFd fd, SslPtr ssl = nullptr) : fd_(std::move(fd)), ssl_(std::move(ssl)) {}

    /// Done at once when there is no TLS.
    Io handshake();
    IoCount read(char* into, std::size_t size);
    /// One or more of the parts, or a piece of the first. Repeat an unfinished write with the same
    /// parts.
    IoCount write(std::span<const iovec> parts);
    /// Tells the other end that nothing more comes, as far as that works without waiting.
    void finish();
    void close();

    void secure_with(SslPtr ssl) { ssl_ = std::move(ssl); }
    bool secure() const { return ssl_ != nullptr; }
    int fd() const { return fd_.get(); }
    ssl_st* ssl() const { return ssl_.get(); }
    /// Bytes that TLS holds decrypted, which the descriptor will not announce again.
    bool has_buffered() const;

private:
    Io judge(int result);

    UniqueFd fd_;
    SslPtr ssl_;
};

}  // namespace muster::net
