// Hashes and secrets of net/pki.h.
#include <cstring>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/require.h"
#include "net/pki.h"

namespace muster::net {
namespace {

std::string hex(const unsigned char* bytes, std::size_t count) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    out.reserve(count * 2);
    for (std::size_t i = 0; i < count; ++i) {
        out.push_back(kDigits[bytes[i] >> 4]);
        out.push_back(kDigits[bytes[i] & 15]);
    }
    return out;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    MUSTER_REQUIRE(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr));
    return hex(digest, size);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view bytes) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    MUSTER_REQUIRE(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                        reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest,
                        &size));
    return hex(digest, size);
}

bool equal_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_base62(std::size_t length) {
    constexpr char kAlphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    constexpr unsigned kUnbiased = 62 * 4;  // Bytes from here on would favour the first letters.
    std::string out;
    while (out.size() < length) {
        unsigned char bytes[64];
        MUSTER_REQUIRE(RAND_bytes(bytes, sizeof bytes) == 1);
        for (const unsigned char byte : bytes) {
            if (byte < kUnbiased && out.size() < length) out.push_back(kAlphabet[byte % 62]);
        }
    }
    return out;
}

std::string make_api_token() {
    return "MUSTER_pat_" + random_base62(40);
}

}  // namespace muster::net
