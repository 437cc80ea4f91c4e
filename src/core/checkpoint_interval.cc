#include "core/checkpoint_interval.h"

#include <algorithm>

namespace muster::core {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kWritesLeast = 10;

/// The largest whole number whose square is not above x.
std::int64_t root(__int128 x) {
    __int128 low = 0, high = __int128{1} << 62;
    while (low < high) {
        const __int128 middle = (low + high + 1) / 2;
        if (middle * middle <= x)
            low = middle;
        else
            high = middle - 1;
    }
    return static_cast<std::int64_t>(low);
}

}  // namespace

Duration mean_time_to_failure(std::int64_t nodes, const FailureCount& fleet,
                              const FailureCount& seen) {
    const std::int64_t failures = fleet.failures + seen.failures;
    if (failures <= 0 || nodes <= 0) return kDurationMax;
    const __int128 days = static_cast<__int128>(fleet.node_days) + seen.node_days;
    const __int128 ms = days * kDayMs / failures / nodes;
    return {static_cast<std::int64_t>(std::clamp<__int128>(ms, 1, kDurationMax.ms))};
}

Duration checkpoint_interval(Duration mean_time_to_failure, Duration write) {
    const std::int64_t mean = std::clamp<std::int64_t>(mean_time_to_failure.ms, 1, kDurationMax.ms);
    const std::int64_t cost =
        write.ms <= 0 ? seconds(1).ms : std::min(write.ms, kDurationMax.ms / kWritesLeast);
    const std::int64_t least = kWritesLeast * cost;
    if (cost >= 2 * mean) return {std::max(mean, least)};
    // Young's √(2dM), times 1 + ⅓√(d ÷ 2M) + d ÷ 18M, less d; the middle term comes to d ÷ 3.
    const std::int64_t young = root(__int128{2} * cost * mean);
    const auto third = static_cast<std::int64_t>(static_cast<__int128>(young) * cost / mean / 18);
    return {std::max(young + cost / 3 + third - cost, least)};
}

bool worth_telling(Duration told, Duration now) {
    const std::int64_t apart = now.ms > told.ms ? now.ms - told.ms : told.ms - now.ms;
    return apart > told.ms / 5;
}

}  // namespace muster::core
