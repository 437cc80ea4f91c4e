#include "simulator/reference/reliability.h"

#include <algorithm>
#include <cmath>

#include "base/prng.h"

namespace muster::simulator::reference {

double expected_ettr(const GangLife& life) {
    const auto mean = static_cast<double>(life.mean_time_to_failure.ms);
    const auto work = static_cast<double>(life.interval.ms);
    const auto cycle = static_cast<double>(life.interval.ms + life.write.ms);
    return work / (mean * std::exp(static_cast<double>(life.restart.ms) / mean) *
                   std::expm1(cycle / mean));
}

double simulated_ettr(const GangLife& life, Duration length, std::uint64_t seed) {
    Prng random(seed);
    const auto until_failure = [&] {
        const double u = (static_cast<double>(random.next() >> 11) + 1) * 0x1p-53;
        const double ms = -std::log(u) * static_cast<double>(life.mean_time_to_failure.ms);
        return std::max<std::int64_t>(1, std::llround(ms));
    };
    const std::int64_t cycle = std::max<std::int64_t>(1, life.interval.ms + life.write.ms);
    std::int64_t now = 0, kept = 0, unsaved = 0;
    std::int64_t failure = until_failure();
    std::int64_t works = 0;  // From then on.
    while (now < length.ms) {
        const std::int64_t end = std::min(failure, length.ms);
        const std::int64_t worked = std::max<std::int64_t>(0, end - works);
        // Whole cycles are saved; what came after the last is lost, unless the run just ends.
        kept += worked / cycle * life.interval.ms;
        unsaved = std::min(worked % cycle, life.interval.ms);
        now = end;
        if (end < failure) break;
        unsaved = 0;
        works = failure + life.restart.ms;
        failure += until_failure();
    }
    return length.ms <= 0 ? 0
                          : static_cast<double>(kept + unsaved) / static_cast<double>(length.ms);
}

}  // namespace muster::simulator::reference
