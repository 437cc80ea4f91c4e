// Certificates of net/pki.h over OpenSSL 3. Every OpenSSL object has an owner here.
#include "net/pki.h"

#include <memory>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
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
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using CertPtr = std::unique_ptr<X509, Freer<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, Freer<ASN1_TIME_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using UsagePtr = std::unique_ptr<EXTENDED_KEY_USAGE, Freer<EXTENDED_KEY_USAGE_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;

constexpr std::size_t kNameMax = 64;  // X.520's bound of a common name.

/// The reason of the last failed call; empties OpenSSL's queue.
std::string openssl_reason() {
    std::string reason;
    for (unsigned long code = ERR_get_error(); code != 0; code = ERR_get_error()) {
        char text[256];
        ERR_error_string_n(code, text, sizeof text);
        if (reason.empty()) reason = text;
    }
    return reason;
}

Error internal(std::string what) {
    return Error{.code = Code::Internal, .message = std::move(what), .cause = openssl_reason()};
}
Error unreadable(std::string what, std::string fix) {
    return Error{.code = Code::Invalid,
                 .message = std::move(what),
                 .cause = openssl_reason(),
                 .fix = std::move(fix)};
}

BioPtr bio_of(std::string_view text) {
    return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}
std::string text_of(const BioPtr& bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
}
// Without one, OpenSSL asks for a password on the terminal when a key is encrypted.
int no_password(char*, int, int, void*) {
    return -1;
}

Result<KeyPtr> make_key() {
    KeyPtr key(EVP_EC_gen("P-256"));
    if (!key) return internal("a P-256 key could not be made");
    return key;
}
Result<std::string> pem_of(const KeyPtr& key) {
    const BioPtr bio(BIO_new(BIO_s_mem()));
    if (!PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                       nullptr)) {
        return internal("a private key could not be written");
    }
    return text_of(bio);
}
Result<std::string> pem_of(const CertPtr& certificate) {
    const BioPtr bio(BIO_new(BIO_s_mem()));
    if (!PEM_write_bio_X509(bio.get(), certificate.get())) {
        return internal("a certificate could not be written");
    }
    return text_of(bio);
}
Result<KeyPtr> read_key(std::string_view pem) {
    KeyPtr key(PEM_read_bio_PrivateKey(bio_of(pem).get(), nullptr, no_password, nullptr));
    if (!key) {
        return unreadable("the private key is not readable",
                          "give an unencrypted key in PEM (BEGIN PRIVATE KEY)");
    }
    return key;
}
Result<CertPtr> read_certificate(std::string_view pem) {
    CertPtr certificate(PEM_read_bio_X509(bio_of(pem).get(), nullptr, no_password, nullptr));
    if (!certificate) {
        return unreadable("the certificate is not readable",
                          "give a certificate in PEM (BEGIN CERTIFICATE)");
    }
    return certificate;
}
Result<RequestPtr> read_request(std::string_view pem) {
    RequestPtr request(PEM_read_bio_X509_REQ(bio_of(pem).get(), nullptr, no_password, nullptr));
    if (!request) {
        return unreadable("the certificate request is not readable",
                          "give a request in PEM (BEGIN CERTIFICATE REQUEST)");
    }
    const KeyPtr key(X509_REQ_get_pubkey(request.get()));
    if (!key || X509_REQ_verify(request.get(), key.get()) != 1) {
        return unreadable("the certificate request is not signed by its own key", "make a new one");
    }
    return request;
}

/// The common name, or "" when there is none or it holds a NUL.
std::string common_name(const X509_NAME* name) {
    const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    if (at < 0) return "";
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    unsigned char* utf8 = nullptr;
    const int size = ASN1_STRING_to_UTF8(&utf8, value);
    if (size < 0) return "";
    std::string text(reinterpret_cast<char*>(utf8), static_cast<std::size_t>(size));
    OPENSSL_free(utf8);
    return text.find('\0') == std::string::npos ? text : "";
}

Status check_name(std::string_view name) {
    bool ok = !name.empty() && name.size() <= kNameMax;
    for (const char c : name) ok = ok && static_cast<unsigned char>(c) >= ' ' && c != 0x7f;
    if (ok) return Ok{};
    return Error{.code = Code::Invalid,
                 .message = "the certificate name \"" + std::string(name.substr(0, kNameMax)) +
                            "\" has " + std::to_string(name.size()) + " bytes",
                 .fix = "use 1 to 64 bytes without control characters"};
}

Status set_name(X509_NAME* subject, std::string_view name) {
    MUSTER_TRY(check_name(name));
    if (!X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()),
                                    static_cast<int>(name.size()), -1, 0)) {
        return unreadable("the certificate name \"" + std::string(name) + "\" is not valid UTF-8",
                          "use plain letters, digits, dots and dashes");
    }
    return Ok{};
}

Status add_extension(X509* certificate, const X509* issuer, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, const_cast<X509*>(issuer), certificate, nullptr, nullptr, 0);
    const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    if (!extension || !X509_add_ext(certificate, extension.get(), -1)) {
        return internal("certificate extension " + value + " could not be added");
    }
    return Ok{};
}

/// SANs are built as values, never as text: a host with a comma cannot smuggle in another.
Status add_hosts(X509* certificate, const std::vector<std::string>& hosts) {
    if (hosts.empty()) return Ok{};
    const NamesPtr names(sk_GENERAL_NAME_new_null());
    for (const std::string& host : hosts) {
        unsigned char ip[16];
        const int ip_size = inet_pton(AF_INET, host.c_str(), ip) == 1    ? 4
                            : inet_pton(AF_INET6, host.c_str(), ip) == 1 ? 16
                                                                         : 0;
        GENERAL_NAME* name = GENERAL_NAME_new();
        if (ip_size > 0) {
            ASN1_OCTET_STRING* value = ASN1_OCTET_STRING_new();
            ASN1_OCTET_STRING_set(value, ip, ip_size);
            GENERAL_NAME_set0_value(name, GEN_IPADD, value);
        } else {
            for (const char c : host) {
                if (c <= ' ' || c >= 0x7f) {
                    GENERAL_NAME_free(name);
                    return Error{.code = Code::Invalid,
                                 .message = "host \"" + host + "\" is no DNS name",
                                 .fix = "use a DNS name or an IP address"};
                }
            }
            ASN1_IA5STRING* value = ASN1_IA5STRING_new();
            ASN1_STRING_set(value, host.data(), static_cast<int>(host.size()));
            GENERAL_NAME_set0_value(name, GEN_DNS, value);
        }
        sk_GENERAL_NAME_push(names.get(), name);
    }
    if (!X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT)) {
        return internal("the certificate's host names could not be added");
    }
    return Ok{};
}

Status set_serial(X509* certificate) {
    unsigned char bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return internal("no random serial");
    bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);  // Positive, full length.
    const NumberPtr number(BN_bin2bn(bytes, sizeof bytes, nullptr));
    if (!number || !BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate))) {
        return internal("the certificate's serial could not be set");
    }
    return Ok{};
}

Status set_validity(X509* certificate, Time not_before, Time not_after) {
    constexpr std::int64_t kCenturyMs = std::int64_t{100} * 366 * 24 * 3600 * 1000;
    if (not_after <= not_before || not_after.ms - not_before.ms > kCenturyMs) {
        return Error{.code = Code::Invalid,
                     .message =
                         "a certificate's validity must be longer than nothing and at most "
                         "100 years"};
    }
    if (!ASN1_TIME_set(X509_getm_notBefore(certificate), not_before.ms / 1000) ||
        !ASN1_TIME_set(X509_getm_notAfter(certificate), not_after.ms / 1000)) {
        return internal("the certificate's validity could not be set");
    }
    return Ok{};
}

/// A leaf for `key`, signed by `ca`.
Result<std::string> sign_leaf(const KeyedCertificate& ca, EVP_PKEY* key,
                              const CertificateAsk& ask) {
    MUSTER_LET(ca_certificate, read_certificate(ca.certificate_pem));
    MUSTER_LET(ca_key, read_key(ca.key_pem));
    const CertPtr leaf(X509_new());
    X509* raw = leaf.get();
    if (!raw || !X509_set_version(raw, 2) || !X509_set_pubkey(raw, key) ||
        !X509_set_issuer_name(raw, X509_get_subject_name(ca_certificate.get()))) {
        return internal("a certificate could not be made");
    }
    MUSTER_TRY(set_serial(raw));
    MUSTER_TRY(set_name(X509_get_subject_name(raw), ask.name));
    MUSTER_TRY(set_validity(raw, ask.not_before, ask.not_after));
    const X509* issuer = ca_certificate.get();
    MUSTER_TRY(add_extension(raw, issuer, NID_basic_constraints, "critical,CA:FALSE"));
    MUSTER_TRY(add_extension(raw, issuer, NID_key_usage, "critical,digitalSignature"));
    std::string use = ask.use.server ? "serverAuth" : "";
    if (ask.use.client) use += use.empty() ? "clientAuth" : ",clientAuth";
    if (!use.empty()) MUSTER_TRY(add_extension(raw, issuer, NID_ext_key_usage, use));
    MUSTER_TRY(add_extension(raw, issuer, NID_subject_key_identifier, "hash"));
    MUSTER_TRY(add_extension(raw, issuer, NID_authority_key_identifier, "keyid"));
    MUSTER_TRY(add_hosts(raw, ask.hosts));
    if (!X509_sign(raw, ca_key.get(), EVP_sha256())) {
        return internal("the certificate could not be signed");
    }
    return pem_of(leaf);
}

Time time_of(const ASN1_TIME* time) {
    const TimePtr epoch(ASN1_TIME_set(nullptr, 0));
    int days = 0;
    int rest = 0;
    if (!ASN1_TIME_diff(&days, &rest, epoch.get(), time)) return Time{0};
    return Time{(std::int64_t{days} * 24 * 3600 + rest) * 1000};
}

std::vector<std::string> hosts_of(const X509* certificate) {
    std::vector<std::string> hosts;
    const NamesPtr names(static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
        int kind = 0;
        const auto* value = static_cast<const ASN1_STRING*>(
            GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind));
        const unsigned char* data = ASN1_STRING_get0_data(value);
        const int size = ASN1_STRING_length(value);
        if (kind == GEN_DNS) {
            hosts.emplace_back(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
        } else if (kind == GEN_IPADD && (size == 4 || size == 16)) {
            char text[INET6_ADDRSTRLEN];
            inet_ntop(size == 4 ? AF_INET : AF_INET6, data, text, sizeof text);
            hosts.emplace_back(text);
        }
    }
    return hosts;
}

CertificateUse use_of(const X509* certificate) {
    CertificateUse use;
    const UsagePtr usage(static_cast<EXTENDED_KEY_USAGE*>(
        X509_get_ext_d2i(certificate, NID_ext_key_usage, nullptr, nullptr)));
    for (int i = 0; usage && i < sk_ASN1_OBJECT_num(usage.get()); ++i) {
        const int nid = OBJ_obj2nid(sk_ASN1_OBJECT_value(usage.get(), i));
        use.server = use.server || nid == NID_server_auth;
        use.client = use.client || nid == NID_client_auth;
    }
    return use;
}

std::string serial_of(const X509* certificate) {
    const NumberPtr number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
    char* text = number ? BN_bn2hex(number.get()) : nullptr;
    if (text == nullptr) return "";
    std::string serial(text);
    OPENSSL_free(text);
    for (char& c : serial) c = static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    return serial;
}

std::string fingerprint_of(const X509* certificate) {
    unsigned char* der = nullptr;
    const int size = i2d_X509(certificate, &der);
    if (size < 0) return "";
    std::string hash =
        sha256_hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
    OPENSSL_free(der);
    return hash;
}

}  // namespace

Result<KeyedCertificate> make_ca(std::string_view name, Time not_before, Time not_after) {
    MUSTER_LET(key, make_key());
    const CertPtr certificate(X509_new());
    X509* raw = certificate.get();
    if (!raw || !X509_set_version(raw, 2) || !X509_set_pubkey(raw, key.get())) {
        return internal("a CA certificate could not be made");
    }
    MUSTER_TRY(set_serial(raw));
    MUSTER_TRY(set_name(X509_get_subject_name(raw), name));
    X509_set_issuer_name(raw, X509_get_subject_name(raw));
    MUSTER_TRY(set_validity(raw, not_before, not_after));
    MUSTER_TRY(add_extension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
    MUSTER_TRY(add_extension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign"));
    MUSTER_TRY(add_extension(raw, raw, NID_subject_key_identifier, "hash"));
    if (!X509_sign(raw, key.get(), EVP_sha256())) {
        return internal("the CA certificate could not be signed");
    }
    MUSTER_LET(certificate_pem, pem_of(certificate));
    MUSTER_LET(key_pem, pem_of(key));
    return KeyedCertificate{std::move(certificate_pem), std::move(key_pem)};
}

Result<KeyedCertificate> issue_certificate(const KeyedCertificate& ca, const CertificateAsk& ask) {
    MUSTER_LET(key, make_key());
    MUSTER_LET(certificate_pem, sign_leaf(ca, key.get(), ask));
    MUSTER_LET(key_pem, pem_of(key));
    return KeyedCertificate{std::move(certificate_pem), std::move(key_pem)};
}

Result<SigningRequest> make_signing_request(std::string_view name) {
    MUSTER_LET(key, make_key());
    const RequestPtr request(X509_REQ_new());
    if (!request || !X509_REQ_set_pubkey(request.get(), key.get())) {
        return internal("a certificate request could not be made");
    }
    MUSTER_TRY(set_name(X509_REQ_get_subject_name(request.get()), name));
    const BioPtr bio(BIO_new(BIO_s_mem()));
    if (!X509_REQ_sign(request.get(), key.get(), EVP_sha256()) ||
        !PEM_write_bio_X509_REQ(bio.get(), request.get())) {
        return internal("the certificate request could not be signed");
    }
    MUSTER_LET(key_pem, pem_of(key));
    return SigningRequest{text_of(bio), std::move(key_pem)};
}

Result<std::string> signing_request_name(std::string_view request_pem) {
    MUSTER_LET(request, read_request(request_pem));
    std::string name = common_name(X509_REQ_get_subject_name(request.get()));
    MUSTER_TRY(check_name(name));
    return name;
}

Result<std::string> sign_request(const KeyedCertificate& ca, std::string_view request_pem,
                                 const CertificateAsk& ask) {
    MUSTER_LET(request, read_request(request_pem));
    const KeyPtr key(X509_REQ_get_pubkey(request.get()));
    return sign_leaf(ca, key.get(), ask);
}

Result<CertificateFacts> certificate_facts(std::string_view pem) {
    MUSTER_LET(certificate, read_certificate(pem));
    const X509* raw = certificate.get();
    return CertificateFacts{.name = common_name(X509_get_subject_name(raw)),
                            .issuer = common_name(X509_get_issuer_name(raw)),
                            .serial = serial_of(raw),
                            .hosts = hosts_of(raw),
                            .not_before = time_of(X509_get0_notBefore(raw)),
                            .not_after = time_of(X509_get0_notAfter(raw)),
                            .is_ca = X509_check_ca(certificate.get()) == 1,
                            .use = use_of(raw),
                            .sha256 = fingerprint_of(raw)};
}

Status verify_certificate(std::string_view pem, std::string_view ca_pem, Time now) {
    MUSTER_LET(certificate, read_certificate(pem));
    MUSTER_LET(ca, read_certificate(ca_pem));
    const StorePtr store(X509_STORE_new());
    const StoreContextPtr context(X509_STORE_CTX_new());
    if (!store || !context || !X509_STORE_add_cert(store.get(), ca.get()) ||
        !X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr)) {
        return internal("the certificate could not be checked");
    }
    X509_STORE_CTX_set_time(context.get(), 0, now.ms / 1000);
    if (X509_verify_cert(context.get()) == 1) return Ok{};
    const int reason = X509_STORE_CTX_get_error(context.get());
    openssl_reason();
    return Error{.code = Code::Denied,
                 .message = "certificate \"" +
                            common_name(X509_get_subject_name(certificate.get())) +
                            "\" is not valid under CA \"" +
                            common_name(X509_get_subject_name(ca.get())) + "\"",
                 .cause = X509_verify_cert_error_string(reason)};
}

Status verify_key(const KeyedCertificate& keyed) {
    MUSTER_LET(certificate, read_certificate(keyed.certificate_pem));
    MUSTER_LET(key, read_key(keyed.key_pem));
    if (X509_check_private_key(certificate.get(), key.get()) == 1) return Ok{};
    return unreadable("the private key is not that of certificate \"" +
                          common_name(X509_get_subject_name(certificate.get())) + "\"",
                      "give the key that was made with this certificate");
}

bool renewal_due(const CertificateFacts& facts, Time now) {
    return (now - facts.not_before).ms >= (facts.not_after - facts.not_before).ms / 3 * 2;
}

}  // namespace muster::net
