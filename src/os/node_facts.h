// What this node has, read from the kernel.
#pragma once

#include <string>
#include <vector>

#include "model/node.h"

namespace muster::os {

/// cpus, NUMA nodes, memory, disk (of the file system of `state_dir`) and boot_id.
void read_node_facts(model::NodeFacts& facts, const std::string& state_dir);
std::string read_boot_id();
/// CPUs that this process may use, ascending.
std::vector<int> usable_cpus();

}  // namespace muster::os
