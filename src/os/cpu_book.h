// Which CPUs of this node are bound to which task: near its devices, and no CPU to two tasks.
//
// Pure. What is bound lies with the tasks (their launch files), so that the next agent knows it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "model/device.h"
#include "model/node.h"
#include "ports/runtime.h"

namespace muster::os {

class CpuBook {
public:
    /// `usable`: what this agent may use. CPUs that are bound already stay so.
    void set_node(std::vector<int> usable, const std::vector<model::NumaNode>& numa);

    /// So many free CPUs, ascending: of the NUMA nodes of `devices` as far as they last, in
    /// proportion to the devices there; else of as few NUMA nodes as will do. Empty, and nothing
    /// is bound, when fewer are free.
    std::vector<int> bind(const protocol::TaskKey& key, std::int64_t count,
                          const std::vector<model::Device>& devices);
    /// As an earlier agent bound them.
    void adopt(const protocol::TaskKey& key, std::vector<int> cpus);
    void release(const protocol::TaskKey& key);

    bool bound(const protocol::TaskKey& key) const { return bound_.contains(key); }
    /// For tasks that have none of their own: those that nobody bound; all when that leaves none.
    std::vector<int> floating() const;
    bool any_bound() const { return !bound_.empty(); }
    /// Changes with floating().
    std::uint64_t revision() const { return revision_; }

private:
    std::vector<int> usable_;               // Ascending.
    std::map<int, std::vector<int>> numa_;  // Usable CPUs by NUMA node; -1: of none.
    std::map<protocol::TaskKey, std::vector<int>> bound_;
    std::uint64_t revision_ = 0;
};

/// CPUs that are bound to a task: whole ones that its job asked for (0: it floats). Only where it
/// pays: with devices, on a whole node, or from two CPUs on.
std::int64_t cpus_to_bind(const protocol::StartTask& order, bool exclusive);

}  // namespace muster::os
