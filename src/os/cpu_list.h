// Lists of CPUs as Linux writes them: "0-15,32-47".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/node.h"

namespace muster::os {

constexpr int kCpusMax = 8192;  // The kernel's own bound.

/// Ascending, each once. Refused: what is no list, and CPUs of kCpusMax or more.
Result<std::vector<int>> parse_cpu_list(std::string_view text);
std::string format_cpu_list(const std::vector<int>& cpus);

/// The NUMA nodes that have CPUs, in id order, from `root`/sys/devices/system/node. Empty: the
/// kernel does not say. `usable`: those of them that are none of these are left out; empty: all.
std::vector<model::NumaNode> read_numa(const std::string& root, const std::vector<int>& usable);

}  // namespace muster::os
