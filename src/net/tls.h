// TLS contexts over OpenSSL, without its headers: how servers present themselves and whom clients
// believe. Internal to net.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/http.h"
#include "net/http_client.h"

struct ssl_ctx_st;
struct ssl_st;

namespace muster::net {

struct SslFree {
    void operator()(ssl_st* ssl) const;
};
struct SslContextFree {
    void operator()(ssl_ctx_st* context) const;
};
using SslPtr = std::unique_ptr<ssl_st, SslFree>;
using SslContextPtr = std::shared_ptr<ssl_ctx_st>;

Result<SslContextPtr> make_server_context(const ServerTls& tls);
/// A server's half of one connection on `fd`.
Result<SslPtr> make_server_ssl(ssl_ctx_st* context, int fd);

/// For one endpoint; `alpn` "" = none offered. Needs a CA or a CA hash to believe.
Result<SslContextPtr> make_client_context(const Endpoint& endpoint);
Result<SslPtr> make_client_ssl(ssl_ctx_st* context, const Endpoint& endpoint, int fd,
                               std::string_view alpn);

/// CN of the verified certificate of the other end; "" when it showed none.
std::string verified_peer_name(ssl_st* ssl);
/// PEM of the certificate in the other end's chain with that SHA-256; "" when there is none.
std::string peer_certificate_pem(ssl_st* ssl, std::string_view sha256);
/// Why the handshake of a client failed, for a person: cause and fix.
Error explain_handshake(ssl_st* ssl, const Endpoint& endpoint, int saved_errno);

}  // namespace muster::net
