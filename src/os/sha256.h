// SHA-256 and its HMAC, for programs that link no library of others (muster-task).
#pragma once

#include <string>
#include <string_view>

namespace muster::os {

/// 32 bytes. FIPS 180-4.
std::string sha256(std::string_view bytes);
/// 32 bytes. RFC 2104.
std::string hmac_sha256(std::string_view key, std::string_view bytes);
/// In a time that tells nothing of where they differ.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace muster::os
