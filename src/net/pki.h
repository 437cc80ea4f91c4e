// Muster's own certificate authority: keys on P-256, certificates, requests, hashes and tokens.
//
// Private keys never travel: an agent makes its key, sends a request, and gets a certificate back.
// Time is an argument, so that expiry can be tested; randomness is the operating system's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"

namespace muster::net {

/// A certificate with the private key that belongs to it, both PEM.
struct KeyedCertificate {
    std::string certificate_pem;
    std::string key_pem;  // PKCS#8, unencrypted: the caller stores it with mode 0600.
};

/// What a certificate may be used for.
struct CertificateUse {
    bool server = false;
    bool client = false;
    friend bool operator==(const CertificateUse&, const CertificateUse&) = default;
};

struct CertificateAsk {
    std::string name;                // CN, also the identity: 1 to 64 bytes.
    std::vector<std::string> hosts;  // DNS names and IP addresses of a server (SANs).
    CertificateUse use;
    Time not_before;
    Time not_after;  // At most 100 years on.
};

/// A self-signed CA that signs leaves only.
Result<KeyedCertificate> make_ca(std::string_view name, Time not_before, Time not_after);
/// A new key and its certificate, signed by `ca`, with a random 128-bit serial.
Result<KeyedCertificate> issue_certificate(const KeyedCertificate& ca, const CertificateAsk& ask);

struct SigningRequest {
    std::string request_pem;  // Travels.
    std::string key_pem;      // Stays.
};
Result<SigningRequest> make_signing_request(std::string_view name);
/// The name a request asks for, once its self-signature has been checked.
Result<std::string> signing_request_name(std::string_view request_pem);
/// Signs the key of a request. Name, hosts, use and validity are the signer's: the request's are
/// ignored.
Result<std::string> sign_request(const KeyedCertificate& ca, std::string_view request_pem,
                                 const CertificateAsk& ask);

struct CertificateFacts {
    std::string name;                // CN.
    std::string issuer;              // CN of the issuer.
    std::string serial;              // Hex, lower case.
    std::vector<std::string> hosts;  // DNS names and IP addresses.
    Time not_before;
    Time not_after;
    bool is_ca = false;
    CertificateUse use;
    std::string sha256;  // Of its DER, lower-case hex: what tokens and clients pin.
};
/// Of the first certificate in `pem`.
Result<CertificateFacts> certificate_facts(std::string_view pem);
/// Signed by `ca_pem` and within its validity at `now`; else Denied with the reason.
Status verify_certificate(std::string_view pem, std::string_view ca_pem, Time now);
/// The key is the certificate's own.
Status verify_key(const KeyedCertificate& keyed);
/// True once two thirds of its life are over: time to ask for the next one.
bool renewal_due(const CertificateFacts& facts, Time now);

/// Lower-case hex of SHA-256.
std::string sha256_hex(std::string_view bytes);
std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);
/// In time that depends on the lengths only.
bool equal_constant_time(std::string_view a, std::string_view b);

/// `length` characters of 0-9A-Za-z from the system's random source (5.95 bits each).
std::string random_base62(std::size_t length);

/// "MUSTER_pat_" and 40 characters: 238 bits. Only its sha256_hex is to be stored.
std::string make_api_token();

/// What an agent needs to join: where, whom to believe, and the right to.
struct JoinToken {
    std::string id;         // Public, names the token on the controller: base62, 8 characters.
    std::string secret;     // Base62, 40 characters; the controller stores its sha256_hex.
    std::string ca_sha256;  // 64 hex digits.
    std::string address;    // "host:port" of the agent link.
    friend bool operator==(const JoinToken&, const JoinToken&) = default;
};
/// A new id and secret for that CA and address.
JoinToken make_join_token(std::string_view ca_sha256, std::string_view address);
/// One line, safe in a shell: MUSTER_join_ID.SECRET.CA_SHA256@host:port
std::string format_join_token(const JoinToken& token);
Result<JoinToken> parse_join_token(std::string_view text);

}  // namespace muster::net
