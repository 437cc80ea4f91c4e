// Endpoints in text, and percent-encoding.
#include "net/http_client.h"
#include "net/listener.h"

namespace muster::net {

Result<Endpoint> parse_endpoint(std::string_view text) {
    const auto refusal = [&](std::string cause) {
        return Error{.code = Code::Invalid,
                     .message = "\"" + std::string(text) + "\" is no controller address",
                     .cause = std::move(cause),
                     .fix = "write https://host:port, or unix:/path/of/socket"};
    };
    Endpoint endpoint;
    std::string_view rest = text;
    if (rest.starts_with("unix:")) {
        rest.remove_prefix(5);
        if (rest.starts_with("//")) rest.remove_prefix(2);
        if (rest.empty() || rest.front() != '/') return refusal("the path must be absolute");
        endpoint.unix_path = rest;
        endpoint.tls = false;
        return endpoint;
    }
    if (rest.starts_with("http://")) {
        rest.remove_prefix(7);
        endpoint.tls = false;
    } else if (rest.starts_with("https://")) {
        rest.remove_prefix(8);
    } else if (rest.find("://") != std::string_view::npos) {
        return refusal("its scheme is unknown");
    }
    while (rest.ends_with('/')) rest.remove_suffix(1);
    if (rest.find('/') != std::string_view::npos) return refusal("it must not have a path");
    auto where = split_host_port(rest);
    if (!where) return refusal(where.error().cause);
    if (where->port == 0) return refusal("port 0 cannot be connected to");
    endpoint.host = where->host;
    endpoint.port = where->port;
    const bool loopback =
        endpoint.host == "localhost" || endpoint.host == "::1" || endpoint.host.starts_with("127.");
    if (!endpoint.tls && !loopback) {
        return refusal("plain http:// is for this machine only: tokens would be readable");
    }
    return endpoint;
}

std::string format_endpoint(const Endpoint& endpoint) {
    if (!endpoint.unix_path.empty()) return "unix:" + endpoint.unix_path;
    return (endpoint.tls ? "https://" : "http://") + join_host_port(endpoint.host, endpoint.port);
}

std::string percent_encode(std::string_view text) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            out.push_back(c);
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out.push_back('%');
        out.push_back(kDigits[byte >> 4]);
        out.push_back(kDigits[byte & 15]);
    }
    return out;
}

}  // namespace muster::net
