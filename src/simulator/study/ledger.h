// What the cluster as a whole has, holds, uses and draws, summed up over virtual time.
#pragma once

#include <cstdint>

#include "base/id.h"

namespace muster::simulator::study {

/// Counters in thousandths of devices; sums in thousandths times milliseconds, millijoules in
/// thousandths.
struct Ledger {
    using Wide = __int128;

    std::int64_t total = 0, up = 0, held = 0, useful = 0;
    std::int64_t nodes_up = 0;
    std::int64_t draw_mw = 0;  // Without cooling.
    Wide total_sum = 0, up_sum = 0, held_sum = 0, nodes_up_sum = 0, draw_sum = 0;
    Time since;

    /// Before any counter changes.
    void advance(Time now) {
        const std::int64_t ms = (now - since).ms;
        since = now;
        if (ms <= 0) return;
        total_sum += Wide{total} * ms;
        up_sum += Wide{up} * ms;
        held_sum += Wide{held} * ms;
        nodes_up_sum += Wide{nodes_up} * ms;
        draw_sum += Wide{draw_mw} * ms;
    }
};

}  // namespace muster::simulator::study
