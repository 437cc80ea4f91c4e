#include "os/user.h"

#include <cerrno>

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "os/posix.h"
#include "os/supervisor/log_writer.h"

namespace muster::os {
namespace {

constexpr int kGroupsMax = 65'536;
constexpr std::int64_t kRememberMs = 10'000;
constexpr std::size_t kRememberedMax = 10'000;

UserFacts facts_of(const passwd& entry) {
    UserFacts user{.name = entry.pw_name,
                   .uid = entry.pw_uid,
                   .gid = entry.pw_gid,
                   .groups = {},
                   .home = entry.pw_dir,
                   .shell = entry.pw_shell};
    for (int size = 64; size <= kGroupsMax; size *= 4) {
        user.groups.resize(static_cast<std::size_t>(size));
        int count = size;
        if (::getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count) < 0) continue;
        user.groups.resize(static_cast<std::size_t>(count));
        break;
    }
    return user;
}

}  // namespace

Result<UserFacts> find_user(const std::string& name) {
    if (name.empty()) return own_user();
    std::vector<char> buffer(16 * 1024);
    passwd entry{};
    passwd* found = nullptr;
    const int failed = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (failed != 0) return system_error("look up user", name, failed);
    if (found == nullptr)
        return Error{.code = Code::NotFound,
                     .message = "user '" + name + "' is not known on this node",
                     .fix = "create the account on the node (or in its directory service)"};
    return facts_of(*found);
}

Result<UserFacts> UserBook::find(const std::string& name) {
    const std::int64_t now = steady_ms();
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = known_.find(name);
            known != known_.end() && known->second.until_ms > now)
            return known->second.user;
    }
    auto user = find_user(name);
    const std::lock_guard lock(mutex_);
    if (known_.size() > kRememberedMax) known_.clear();
    if (user) known_[name] = {.user = *user, .until_ms = now + kRememberMs};
    return user;
}

Result<UserFacts> own_user() {
    std::vector<char> buffer(16 * 1024);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
        found != nullptr)
        return facts_of(*found);
    // A container may run under a number that has no name.
    return UserFacts{.name = std::to_string(::geteuid()),
                     .uid = ::geteuid(),
                     .gid = ::getegid(),
                     .groups = {::getegid()},
                     .home = "/",
                     .shell = "/bin/sh"};
}

}  // namespace muster::os
