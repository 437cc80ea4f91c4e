// The user that a task runs as, as this node knows him.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::os {

struct UserFacts {
    std::string name;
    std::uint32_t uid = 0, gid = 0;
    std::vector<std::uint32_t> groups;
    std::string home, shell;
};

/// NotFound when the node has no such user; "" is the process's own.
Result<UserFacts> find_user(const std::string& name);
/// Of this process.
Result<UserFacts> own_user();

/// Remembers answers for a short while: name services are slow, and tasks come in bursts.
class UserBook {
public:
    Result<UserFacts> find(const std::string& name);

private:
    struct Known {
        UserFacts user;
        std::int64_t until_ms = 0;
    };
    std::mutex mutex_;
    std::map<std::string, Known> known_;
};

}  // namespace muster::os
