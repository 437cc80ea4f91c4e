// A token bucket for each user, so that nobody's polling brings the controller
// down (F54).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/id.h"
#include "rest/handler.h"

namespace muster::rest {

class RateLimiter {
public:
    explicit RateLimiter(RateLimit limit) : limit_(limit) {}

    /// Takes 1, or tells how long to wait. A bucket may be in debt from charge().
    std::optional<Duration> take(const std::string& user, Time now);
    /// What an answer cost beyond the 1 that was taken.
    void charge(const std::string& user, std::size_t answer_bytes);

private:
    struct Bucket {
        std::int64_t thousandths = 0;
        Time at;
    };
    RateLimit limit_;
    std::mutex mutex_;
    std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace muster::rest
