// One seed from the first event to the last.
#pragma once

#include <cstdint>
#include <string>

#include "simulator/tally.h"

namespace muster::swarm {

struct RunOptions {
    std::string plant;  // "" = none.
    bool verbose = false;
};
struct Outcome {
    std::string failure;  // "" = clean.
    std::uint64_t digest = 0;
    std::uint64_t steps = 0, events = 0;
    std::int64_t virtual_ms = 0;
    simulator::Tally tally;
};
Outcome run_seed(std::uint64_t seed, const RunOptions& options);

}  // namespace muster::swarm
