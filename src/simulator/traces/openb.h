// The public "openb" trace of a GPU cluster (2023): nodes and lists of pods, times not read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/traces/csv.h"

namespace muster::simulator::traces {

struct OpenbNode {
    std::string name;
    std::int64_t cpu_milli = 0, memory_mib = 0;
    std::int64_t gpus = 0;
    std::string model;  // Of its devices.
};
struct OpenbPod {
    std::string name;
    std::int64_t cpu_milli = 0, memory_mib = 0;
    std::int64_t gpus = 0;
    std::int64_t gpu_milli = 0;       // Of each; below 1000 with one alone.
    std::vector<std::string> models;  // Any of these; empty: any.
};
struct OpenbNodes {
    std::vector<OpenbNode> nodes;  // In the file's order.
    BadRows bad;
};
struct OpenbPods {
    std::vector<OpenbPod> pods;  // In the file's order.
    BadRows bad;
};
Result<OpenbNodes> read_openb_nodes(const std::string& path, const CsvOptions& options = {});
/// gpu_spec may be missing from the file: then no pod names a model.
Result<OpenbPods> read_openb_pods(const std::string& path, const CsvOptions& options = {});

}  // namespace muster::simulator::traces
