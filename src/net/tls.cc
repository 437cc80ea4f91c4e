#include "net/tls.h"

#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace muster::net {
namespace {

template <auto Free>
struct Freer {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};
using CertPtr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;

std::string openssl_reason() {
    const unsigned long code = ERR_peek_error();
    const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
    ERR_clear_error();
    return reason == nullptr ? "" : reason;
}

Error unusable(std::string_view what, std::string_view fix) {
    return Error{.code = Code::Invalid,
                 .message = std::string(what),
                 .cause = openssl_reason(),
                 .fix = std::string(fix)};
}

int no_password(char*, int, int, void*) {
    return -1;
}

std::vector<CertPtr> read_certificates(std::string_view pem) {
    std::vector<CertPtr> certificates;
    const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)) {
        certificates.emplace_back(certificate);
    }
    ERR_clear_error();
    return certificates;
}

Status use_certificate(SSL_CTX* context, std::string_view certificate_pem,
                       std::string_view key_pem) {
    const std::vector<CertPtr> chain = read_certificates(certificate_pem);
    if (chain.empty() || SSL_CTX_use_certificate(context, chain[0].get()) != 1) {
        return unusable("the TLS certificate is not readable", "give a PEM certificate");
    }
    for (std::size_t i = 1; i < chain.size(); ++i) {
        SSL_CTX_add1_chain_cert(context, chain[i].get());
    }
    const BioPtr bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
    const KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
    if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        return unusable("the TLS key is not readable or not that of the certificate",
                        "give the unencrypted PEM key that belongs to the certificate");
    }
    return Ok{};
}

Status trust(SSL_CTX* context, std::string_view ca_pem) {
    const std::vector<CertPtr> authorities = read_certificates(ca_pem);
    if (authorities.empty()) {
        return unusable("the CA certificate is not readable", "give the CA's PEM certificate");
    }
    X509_STORE* store = SSL_CTX_get_cert_store(context);
    for (const CertPtr& authority : authorities) X509_STORE_add_cert(store, authority.get());
    return Ok{};
}

SslContextPtr new_context(const SSL_METHOD* method) {
    SslContextPtr context(SSL_CTX_new(method), SslContextFree{});
    if (!context) return context;
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    // Releasing buffers keeps an idle event stream at a few kilobytes.
    SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    return context;
}

std::string sha256_of(X509* certificate) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    std::string hex;
    if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return hex;
    for (unsigned i = 0; i < size; ++i) {
        hex.push_back("0123456789abcdef"[digest[i] >> 4]);
        hex.push_back("0123456789abcdef"[digest[i] & 15]);
    }
    return hex;
}

int pin_index() {
    static const int kIndex = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
    return kIndex;
}

/// Accepts one complaint only: the chain's own root is in no store, but it is the pinned one. The
/// signatures below it are checked as under any trusted root.
int verify_pinned(int ok, X509_STORE_CTX* store) {
    if (ok == 1) return 1;
    if (X509_STORE_CTX_get_error(store) != X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN) return 0;
    const auto* ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    const auto* pin =
        static_cast<const std::string*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), pin_index()));
    if (pin == nullptr || sha256_of(X509_STORE_CTX_get_current_cert(store)) != *pin) return 0;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
}

int choose_http1(SSL*, const unsigned char** out, unsigned char* out_size,
                 const unsigned char* offered, unsigned offered_size, void*) {
    static constexpr unsigned char kHttp1[] = "\x08http/1.1";
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(&chosen, out_size, kHttp1, sizeof kHttp1 - 1, offered,
                              offered_size) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

bool is_ip(const std::string& host) {
    unsigned char bytes[16];
    return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
           inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

void SslFree::operator()(ssl_st* ssl) const {
    SSL_free(ssl);
}
void SslContextFree::operator()(ssl_ctx_st* context) const {
    SSL_CTX_free(context);
}

Result<SslContextPtr> make_server_context(const ServerTls& tls) {
    SslContextPtr context = new_context(TLS_server_method());
    if (!context) return unusable("no TLS context could be made", "");
    MUSTER_TRY(use_certificate(context.get(), tls.certificate_pem, tls.key_pem));
    if (!tls.client_ca_pem.empty()) {
        MUSTER_TRY(trust(context.get(), tls.client_ca_pem));
        const int must = tls.require_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
        SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | must, nullptr);
    } else if (tls.require_client_certificate) {
        return Error{.code = Code::Invalid,
                     .message = "client certificates are required, but no CA for them is given",
                     .fix = "set client_ca_pem"};
    }
    static constexpr unsigned char kSession[] = "muster-http";
    SSL_CTX_set_session_id_context(context.get(), kSession, sizeof kSession - 1);
    SSL_CTX_set_alpn_select_cb(context.get(), choose_http1, nullptr);
    return context;
}

Result<SslPtr> make_server_ssl(ssl_ctx_st* context, int fd) {
    SslPtr ssl(SSL_new(context));
    if (!ssl || SSL_set_fd(ssl.get(), fd) != 1) return unusable("no TLS session could be made", "");
    SSL_set_accept_state(ssl.get());
    return ssl;
}

Result<SslContextPtr> make_client_context(const Endpoint& endpoint) {
    if (endpoint.ca_pem.empty() && endpoint.ca_sha256.empty()) {
        return Error{.code = Code::Invalid,
                     .message = "no CA is known for " + format_endpoint(endpoint),
                     .cause = "Muster's certificates are by its own CA, which must be named",
                     .fix = "run `muster login`, which stores the CA's certificate or hash"};
    }
    SslContextPtr context = new_context(TLS_client_method());
    if (!context) return unusable("no TLS context could be made", "");
    if (!endpoint.ca_pem.empty()) {
        MUSTER_TRY(trust(context.get(), endpoint.ca_pem));
        SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    } else {
        auto pin = std::make_unique<std::string>(endpoint.ca_sha256);
        SSL_CTX_set_ex_data(context.get(), pin_index(), pin.get());
        SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, verify_pinned);
        // The pin lives as long as its context.
        SSL_CTX* raw = context.get();
        context = SslContextPtr(
            raw, [holder = std::move(context),
                  owned = std::shared_ptr<std::string>(std::move(pin))](SSL_CTX*) mutable {
                holder.reset();
                owned.reset();
            });
    }
    if (!endpoint.certificate_pem.empty()) {
        MUSTER_TRY(use_certificate(context.get(), endpoint.certificate_pem, endpoint.key_pem));
    }
    return context;
}

Result<SslPtr> make_client_ssl(ssl_ctx_st* context, const Endpoint& endpoint, int fd,
                               std::string_view alpn) {
    SslPtr ssl(SSL_new(context));
    if (!ssl || SSL_set_fd(ssl.get(), fd) != 1) return unusable("no TLS session could be made", "");
    const std::string& name = endpoint.server_name.empty() ? endpoint.host : endpoint.server_name;
    if (is_ip(name)) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), name.c_str());
    } else {
        SSL_set1_host(ssl.get(), name.c_str());
        SSL_set_tlsext_host_name(ssl.get(), name.c_str());
    }
    if (!alpn.empty()) {
        const std::string offer = static_cast<char>(alpn.size()) + std::string(alpn);
        SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(offer.data()),
                            static_cast<unsigned>(offer.size()));
    }
    SSL_set_connect_state(ssl.get());
    return ssl;
}

std::string verified_peer_name(ssl_st* ssl) {
    X509* certificate = SSL_get0_peer_certificate(ssl);
    if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return "";
    const X509_NAME* subject = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0) return "";
    unsigned char* utf8 = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) return "";
    std::string name(reinterpret_cast<char*>(utf8), static_cast<std::size_t>(size));
    OPENSSL_free(utf8);
    return name.find('\0') == std::string::npos ? name : "";
}

std::string peer_certificate_pem(ssl_st* ssl, std::string_view sha256) {
    STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl);
    for (int i = 0; i < sk_X509_num(chain); ++i) {
        X509* certificate = sk_X509_value(chain, i);
        if (sha256_of(certificate) != sha256) continue;
        const BioPtr bio(BIO_new(BIO_s_mem()));
        PEM_write_bio_X509(bio.get(), certificate);
        char* data = nullptr;
        const long size = BIO_get_mem_data(bio.get(), &data);
        return std::string(data, static_cast<std::size_t>(size));
    }
    return "";
}

Error explain_handshake(ssl_st* ssl, const Endpoint& endpoint, int saved_errno) {
    Error error{.code = Code::Unavailable,
                .message = "no TLS connection to " + format_endpoint(endpoint)};
    const long verdict = SSL_get_verify_result(ssl);
    const std::string reason = openssl_reason();
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        error.code = Code::Denied;
        error.cause = "the server's certificate is not for " +
                      (endpoint.server_name.empty() ? endpoint.host : endpoint.server_name);
        error.fix = "use a name or address that the controller was started with";
    } else if (verdict == X509_V_ERR_CERT_HAS_EXPIRED) {
        error.code = Code::Denied;
        error.cause = "the server's certificate has expired";
        error.fix = "check both clocks; restarting the controller renews its certificate";
    } else if (verdict != X509_V_OK) {
        error.code = Code::Denied;
        error.cause = std::string("the server's certificate is not by the CA we were told of (") +
                      X509_verify_cert_error_string(verdict) + ")";
        error.fix = endpoint.ca_pem.empty()
                        ? "check the CA hash, or log in again if the controller's CA was replaced"
                        : "check the CA file, or log in again if the controller's CA was replaced";
    } else if (reason.find("alert") != std::string::npos) {
        error.code = Code::Denied;
        error.cause = "the server refused our certificate (" + reason + ")";
        error.fix = "use a certificate by the controller's CA that is still valid";
    } else if (reason.find("wrong version") != std::string::npos ||
               reason.find("packet length") != std::string::npos) {
        error.cause = "the other end does not speak TLS";
        error.fix = "check the port";
    } else {
        error.cause = !reason.empty()    ? reason
                      : saved_errno != 0 ? std::strerror(saved_errno)
                                         : "the server closed the connection";
        error.fix = "check that a Muster controller listens there";
    }
    return error;
}

}  // namespace muster::net
