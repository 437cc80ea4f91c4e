// The one-line join token of net/pki.h: MUSTER_join_ID.SECRET.CA_SHA256@host:port
#include "base/text.h"
#include "net/pki.h"

namespace muster::net {
namespace {

constexpr std::string_view kPrefix = "MUSTER_join_";
constexpr std::size_t kIdLength = 8;
constexpr std::size_t kSecretLength = 40;
constexpr std::size_t kTokenMax = 512;

bool all_base62(std::string_view text) {
    for (const char c : text) {
        const bool ok = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!ok) return false;
    }
    return true;
}

bool all_hex(std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// "" when `address` is host:port or [v6]:port with a port of 1 to 65535.
std::string complaint_about_address(std::string_view address) {
    const std::size_t colon = address.rfind(':');
    if (colon == std::string_view::npos) return "has no port";
    const std::string_view host = address.substr(0, colon);
    const std::string_view port = address.substr(colon + 1);
    if (host.empty()) return "has no host";
    const bool bracketed = host.front() == '[' && host.back() == ']' && host.size() > 2;
    if (!bracketed && host.find_first_of(":[]") != std::string_view::npos) {
        return "has an IPv6 address without brackets";
    }
    for (const char c : host) {
        if (c <= ' ' || c >= 0x7f || c == '@' || c == '/') return "has a host that is no host name";
    }
    if (port.empty() || port.size() > 5) return "has a port that is not 1 to 65535";
    int number = 0;
    for (const char c : port) {
        if (c < '0' || c > '9') return "has a port that is not 1 to 65535";
        number = number * 10 + (c - '0');
    }
    if (number < 1 || number > 65535) return "has a port that is not 1 to 65535";
    return "";
}

Error refusal(std::string cause) {
    return Error{.code = Code::Invalid,
                 .message = "the join token is not valid",
                 .cause = std::move(cause),
                 .fix =
                     "copy the whole line that `muster token create` prints on the controller; "
                     "it reads MUSTER_join_ID.SECRET.CA_SHA256@host:port"};
}

}  // namespace

JoinToken make_join_token(std::string_view ca_sha256, std::string_view address) {
    return JoinToken{.id = random_base62(kIdLength),
                     .secret = random_base62(kSecretLength),
                     .ca_sha256 = std::string(ca_sha256),
                     .address = std::string(address)};
}

std::string format_join_token(const JoinToken& token) {
    return std::string(kPrefix) + token.id + "." + token.secret + "." + token.ca_sha256 + "@" +
           token.address;
}

Result<JoinToken> parse_join_token(std::string_view text) {
    text = trim(text);
    if (text.empty()) return refusal("it is empty");
    if (text.size() > kTokenMax) {
        return refusal("it has " + std::to_string(text.size()) + " characters; at most " +
                       std::to_string(kTokenMax) + " are possible");
    }
    if (text.starts_with("MUSTER_pat_")) {
        return refusal("it is an API token (MUSTER_pat_...), which lets users in, not agents");
    }
    if (!text.starts_with(kPrefix)) return refusal("it does not start with MUSTER_join_");
    text.remove_prefix(kPrefix.size());
    const std::size_t at = text.find('@');
    if (at == std::string_view::npos) {
        return refusal("it has no @host:port at its end; it may be cut off");
    }
    const std::vector<std::string_view> parts = split(text.substr(0, at), '.');
    if (parts.size() != 3) {
        return refusal("it has " + std::to_string(parts.size()) +
                       " parts between dots before the @; 3 are needed");
    }
    if (parts[0].size() != kIdLength || !all_base62(parts[0])) {
        return refusal("its id \"" + std::string(parts[0]) + "\" is not 8 letters and digits");
    }
    if (parts[1].size() != kSecretLength || !all_base62(parts[1])) {
        return refusal("its secret has " + std::to_string(parts[1].size()) +
                       " characters where 40 letters and digits are needed");
    }
    if (parts[2].size() != 64 || !all_hex(parts[2])) {
        return refusal("its CA hash has " + std::to_string(parts[2].size()) +
                       " characters where 64 digits of 0-9a-f are needed");
    }
    const std::string_view address = text.substr(at + 1);
    if (const std::string complaint = complaint_about_address(address); !complaint.empty()) {
        return refusal("its address \"" + std::string(address) + "\" " + complaint);
    }
    return JoinToken{.id = std::string(parts[0]),
                     .secret = std::string(parts[1]),
                     .ca_sha256 = std::string(parts[2]),
                     .address = std::string(address)};
}

}  // namespace muster::net
