#include "rest/rate_limit.h"

#include <algorithm>

namespace muster::rest {
namespace {

constexpr std::size_t kBytesOfOne = 16 * 1024;
constexpr std::size_t kBucketsMax = 100'000;

}  // namespace

std::optional<Duration> RateLimiter::take(const std::string& user, Time now) {
    if (limit_.per_second <= 0) return std::nullopt;
    const std::lock_guard lock(mutex_);
    // Full buckets are as good as none: forgetting them bounds the table.
    if (buckets_.size() > kBucketsMax) {
        std::erase_if(buckets_, [&](const auto& entry) {
            return now - entry.second.at > seconds(limit_.burst / limit_.per_second + 1);
        });
    }
    const auto [at, is_new] =
        buckets_.try_emplace(user, Bucket{.thousandths = limit_.burst * 1000, .at = now});
    Bucket& bucket = at->second;
    // Milliseconds times requests a second is thousandths of requests.
    const std::int64_t passed = std::clamp<std::int64_t>((now - bucket.at).ms, 0, 3'600'000);
    bucket.thousandths =
        std::min(limit_.burst * 1000, bucket.thousandths + passed * limit_.per_second);
    bucket.at = now;
    if (bucket.thousandths < 1000) {
        const std::int64_t missing = 1000 - bucket.thousandths;
        return Duration{(missing + limit_.per_second - 1) / limit_.per_second};
    }
    bucket.thousandths -= 1000;
    return std::nullopt;
}

void RateLimiter::charge(const std::string& user, std::size_t answer_bytes) {
    if (limit_.per_second <= 0 || answer_bytes < kBytesOfOne) return;
    const std::lock_guard lock(mutex_);
    const auto at = buckets_.find(user);
    if (at == buckets_.end()) return;
    // Debt is bounded, so that one huge answer locks nobody out for long.
    at->second.thousandths = std::max(
        -limit_.burst * 1000,
        at->second.thousandths - static_cast<std::int64_t>(answer_bytes / kBytesOfOne) * 1000);
}

}  // namespace muster::rest
