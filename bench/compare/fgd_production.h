// The production planner on the stream of the fragmentation paper.
#pragma once

#include "simulator/reference/openb_world.h"

namespace muster::compare {

/// As reference::openb_allocation() has it: the same stream, the same order of nodes. Each pod is
/// told to the planner when it comes, and nothing of the list before.
double production_allocation(const simulator::reference::OpenbWorld& world, std::uint64_t seed);

}  // namespace muster::compare
