#include "rest/auth.h"

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "net/pki.h"

namespace muster::rest {
namespace {

constexpr Duration kNamesKept = seconds(60);
constexpr std::size_t kTokenMax = 256;

}  // namespace

std::string_view bearer_token(const net::HttpRequest& request) {
    constexpr std::string_view kScheme = "bearer ";
    const std::string_view value = request.header("authorization");
    if (value.size() <= kScheme.size() || lower(value.substr(0, kScheme.size())) != kScheme) {
        return {};
    }
    return trim(value.substr(kScheme.size()));
}

Result<Identity> Authenticator::identify(const net::HttpRequest& request, const core::View& view,
                                         Time now) {
    const std::string_view secret = bearer_token(request);
    if (!secret.empty()) return by_token(secret, view, now);
    if (!request.peer.local) {
        return numbered(
            errors::kNoCredentials, "this request needs a token",
            "it came from " + request.peer.address + " without an Authorization header");
    }
    {
        const std::lock_guard lock(mutex_);
        const auto known = names_.find(request.peer.uid);
        if (known != names_.end() && now - known->second.at > kNamesKept) names_.erase(known);
    }
    return local(request.peer.uid, view);
}

Result<Identity> Authenticator::local(std::uint32_t uid, const core::View& view) {
    std::string name;
    {
        const std::lock_guard lock(mutex_);
        const auto known = names_.find(uid);
        if (known != names_.end()) name = known->second.name;
    }
    if (name.empty()) {
        const auto found = options_.user_of_uid(uid);
        if (!found || found->empty()) {
            return numbered(errors::kUidUnknown,
                            "uid " + std::to_string(uid) + " has no user name on this machine");
        }
        name = *found;
        const std::lock_guard lock(mutex_);
        names_[uid] = {.name = name, .at = options_.now()};
    }
    const bool admin = uid == 0 || uid == options_.own_uid || is_admin(name, view);
    std::vector<std::string> groups = groups_of(name);
    return Identity{
        .caller = {.user = std::move(name), .admin = admin, .groups = std::move(groups)}};
}

/// Asked of the system at most once a minute: it may be a directory on the network.
std::vector<std::string> Authenticator::groups_of(const std::string& user) {
    const Time now = options_.now();
    {
        const std::lock_guard lock(mutex_);
        const auto known = groups_.find(user);
        if (known != groups_.end() && now - known->second.at <= kNamesKept)
            return known->second.names;
    }
    std::vector<std::string> names = options_.groups_of_user(user);
    const std::lock_guard lock(mutex_);
    groups_[user] = {.names = names, .at = now};
    return names;
}

Result<Identity> Authenticator::by_token(std::string_view secret, const core::View& view,
                                         Time now) {
    if (secret.size() > kTokenMax) {
        return numbered(errors::kTokenUnknown, "the token is longer than any token");
    }
    const std::string hash = net::sha256_hex(secret);
    const auto tokens = tokens_of(view);
    const auto at = tokens->find(hash);
    // The table's own comparison stops early; this one is what admits.
    if (at == tokens->end() || !net::equal_constant_time(at->second.hash, hash)) {
        return numbered(errors::kTokenUnknown, "the token is not known here");
    }
    const core::Token& token = at->second;
    if (token.expires <= now) {
        return numbered(errors::kTokenExpired, "token " + std::to_string(token.id) + " of " +
                                                   token.user + " expired at " +
                                                   format_time(token.expires));
    }
    return Identity{
        .caller = {.user = token.user, .admin = token.admin, .groups = groups_of(token.user)},
        .token = token.id,
        .expires = token.expires};
}

std::shared_ptr<const Authenticator::ByHash> Authenticator::tokens_of(const core::View& view) {
    const std::lock_guard lock(mutex_);
    if (by_hash_ && indexed_.same_as(view.tokens)) return by_hash_;
    auto index = std::make_shared<ByHash>();
    view.tokens.for_each([&](std::uint64_t, const core::Token& token) {
        if (token.kind == core::TokenKind::Api) index->emplace(token.hash, token);
    });
    indexed_ = view.tokens;
    by_hash_ = index;
    return index;
}

bool Authenticator::is_admin(const std::string& user, const core::View& view) {
    const std::lock_guard lock(mutex_);
    if (!users_.same_as(view.users)) {
        admins_.clear();
        view.users.for_each([&](std::uint64_t, const core::User& entry) {
            if (entry.admin) admins_.emplace(entry.name, true);
        });
        users_ = view.users;
    }
    return admins_.contains(user);
}

}  // namespace muster::rest
