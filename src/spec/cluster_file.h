// The parts of controller.yaml that speak of the cluster: queues, scheduling, topology. The rest of
// the file is the controller's own and not looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/queue.h"
#include "model/topology.h"
#include "spec/problem.h"

namespace muster::spec {

struct ClusterParts {
    /// `queues:`, a tree or a list of names, as in queue_file.h.
    std::vector<model::Queue> queues;
    std::optional<model::SchedulingRules> rules;  // `scheduling:`; nothing: not given.
    /// `topology:` {levels: […]} (of nodes' labels), {file: PATH, format: …, levels: […]} or
    /// {levels: […], tree: {…}}; nothing: not given.
    std::optional<model::Topology> topology;
    std::vector<std::string> notes;  // What a topology file left out knowingly.
    Problems problems;               // Not empty: use none of it.
};

/// Reads the file that `topology.file` names. `file` is for messages.
ClusterParts read_cluster_parts(std::string_view yaml, const std::string& file);

}  // namespace muster::spec
