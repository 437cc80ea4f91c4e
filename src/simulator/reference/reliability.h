// A gang that fails as a whole, writes checkpoints and begins again: the share of its time that is
// work kept, by formula and by simulation.
#pragma once

#include <cstdint>

#include "base/id.h"

namespace muster::simulator::reference {

struct GangLife {
    Duration mean_time_to_failure;  // Of the gang; failures are exponential, restarts not spared.
    Duration interval;              // Work between two checkpoints.
    Duration write;                 // A checkpoint stops the work for so long.
    Duration restart;               // From a failure until work goes on: found, started, read back.
};
/// Work kept over time, in the long run: τ ÷ (M·e^(R÷M)·(e^((τ+d)÷M) − 1)), the renewal argument
/// without approximation.
double expected_ettr(const GangLife& life);
/// The same of one run of such a length.
double simulated_ettr(const GangLife& life, Duration length, std::uint64_t seed);

}  // namespace muster::simulator::reference
