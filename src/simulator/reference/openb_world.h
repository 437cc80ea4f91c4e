// The openb trace as the fragmentation paper's experiment has it: one list of pods against all
// nodes with devices, in an order that the seed draws.
#pragma once

#include <string>

#include "base/result.h"
#include "simulator/reference/packing.h"

namespace muster::simulator::reference {

struct OpenbWorld {
    std::vector<PackingNode> nodes;  // By name.
    std::vector<PackingPod> pods;    // By name.
    std::vector<TypicalPod> typical;
    std::vector<std::string> models;  // By bit.
    std::int64_t capacity = 0;        // Thousandths of a device.
};
/// `folder` is the trace's; `list` as in openb_pod_list_LIST.csv, gzipped or not.
Result<OpenbWorld> openb_world(const std::string& folder, const std::string& list);

/// What one seed makes of it.
struct OpenbStream {
    std::vector<std::size_t> order;  // Of the nodes: ties go to the first.
    std::vector<PackingPod> pods;    // As they come: 130 % of the capacity.
    Prng random;                     // For the policy.
};
OpenbStream openb_stream(const OpenbWorld& world, std::uint64_t seed);

/// Devices given away in % of all, once all pods of the seed's stream have come.
double openb_allocation(const OpenbWorld& world, PackingPolicy policy, std::uint64_t seed);

}  // namespace muster::simulator::reference
