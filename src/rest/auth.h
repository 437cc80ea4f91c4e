// Who asks: the kernel's word on the Unix socket, a token over TLS. Nothing a
// request claims in its body, query or path is ever taken for an identity
// (F29).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "core/state.h"
#include "core/step.h"
#include "net/http.h"
#include "rest/handler.h"

namespace muster::rest {

struct Identity {
    core::Caller caller;
    std::uint64_t token = 0;  // 0: by the Unix socket.
    Time expires{};           // Of the token; kNever: does not. 0 without one.
};

/// "MUSTER_pat_..." of an `Authorization: Bearer` header; "" when there is
/// none.
std::string_view bearer_token(const net::HttpRequest& request);

class Authenticator {
public:
    explicit Authenticator(const Options& options) : options_(options) {}

    /// Unauthenticated with the reason; tokens are looked up by the SHA-256 of
    /// their secret.
    Result<Identity> identify(const net::HttpRequest& request, const core::View& view, Time now);

private:
    using ByHash = std::unordered_map<std::string, core::Token>;
    Result<Identity> local(std::uint32_t uid, const core::View& view);
    Result<Identity> by_token(std::string_view secret, const core::View& view, Time now);
    std::shared_ptr<const ByHash> tokens_of(const core::View& view);
    std::vector<std::string> groups_of(const std::string& user);
    bool is_admin(const std::string& user, const core::View& view);

    Options options_;
    std::mutex mutex_;
    struct NamedUid {
        std::string name;
        Time at;
    };
    std::unordered_map<std::uint32_t, NamedUid> names_;
    struct Groups {
        std::vector<std::string> names;
        Time at;
    };
    std::unordered_map<std::string, Groups> groups_;  // By user.
    CowTree<core::Token> indexed_;                    // The table that by_hash_ was made from.
    std::shared_ptr<const ByHash> by_hash_;
    CowTree<core::User> users_;  // The table that admins_ was made from.
    std::unordered_map<std::string, bool> admins_;
};

}  // namespace muster::rest
