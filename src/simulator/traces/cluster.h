// The cluster that a study runs on, from one word of a command line: "352x8:v100,64x4:a100",
// "128x64c" (no devices), a YAML file of node groups (spec/node_list.h) or the node list of openb.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "simulator/models/energy.h"
#include "simulator/study/study.h"

namespace muster::simulator::traces {

struct PaperCluster {
    study::Cluster cluster;
    models::PowerRules power;
    std::int64_t devices = 0;
    /// Of a node; of the nodes with most, where they differ, and then `uniform` is false.
    std::int64_t devices_per_node = 0, cpus_per_node = 0;
    bool uniform = true;
    std::string words;  // "352 nodes, 2816 devices: v100".
};

/// A name with a dot in its last part, or a slash, is a file's: .csv is openb's, all else YAML.
Result<PaperCluster> read_cluster(const std::string& text);
/// Fills in what follows from the nodes: counts, sizes, words.
void describe(PaperCluster& paper);
/// Adds flat queues of these names where the cluster has none at all; "" needs none.
void add_queues(study::Cluster& cluster, const std::vector<std::string>& names);

}  // namespace muster::simulator::traces
