#include "net/wire.h"

#include <cerrno>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

namespace muster::net {

Io Wire::judge(int result) {
    switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ: return Io::WantRead;
        case SSL_ERROR_WANT_WRITE: return Io::WantWrite;
        case SSL_ERROR_ZERO_RETURN: return Io::Closed;
        default: return Io::Failed;
    }
}

Io Wire::handshake() {
    if (!ssl_) return Io::Done;
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    return result == 1 ? Io::Done : judge(result);
}

IoCount Wire::read(char* into, std::size_t size) {
    if (ssl_) {
        std::size_t bytes = 0;
        ERR_clear_error();
        const int result = SSL_read_ex(ssl_.get(), into, size, &bytes);
        return result == 1 ? IoCount{Io::Done, bytes} : IoCount{judge(result), 0};
    }
    for (;;) {
        const ssize_t got = ::recv(fd_.get(), into, size, 0);
        if (got > 0) return {Io::Done, static_cast<std::size_t>(got)};
        if (got == 0) return {Io::Closed, 0};
        if (errno == EINTR) continue;
        return {errno == EAGAIN ? Io::WantRead : Io::Failed, 0};
    }
}

IoCount Wire::write(std::span<const iovec> parts) {
    if (ssl_) {
        std::size_t bytes = 0;
        ERR_clear_error();
        const int result = SSL_write_ex(ssl_.get(), parts[0].iov_base, parts[0].iov_len, &bytes);
        return result == 1 ? IoCount{Io::Done, bytes} : IoCount{judge(result), 0};
    }
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    for (;;) {
        const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
        if (sent >= 0) return {Io::Done, static_cast<std::size_t>(sent)};
        if (errno == EINTR) continue;
        return {errno == EAGAIN ? Io::WantWrite : Io::Failed, 0};
    }
}

void Wire::finish() {
    if (!fd_) return;
    if (ssl_ && SSL_is_init_finished(ssl_.get())) {
        ERR_clear_error();
        SSL_shutdown(ssl_.get());
    }
    ::shutdown(fd_.get(), SHUT_WR);
}

void Wire::close() {
    ssl_.reset();
    fd_.reset();
}

bool Wire::has_buffered() const {
    return ssl_ && SSL_pending(ssl_.get()) > 0;
}

}  // namespace muster::net
