// Where nodes stand: levels that the site names, from the top down, and each node's domains.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/node.h"

namespace muster::model {

constexpr std::size_t kTopologyLevelsMax = 8;

/// `levels` from the top ("zone", "spine", "leaf", "nvlink"); "cluster" above and "node" below are
/// implied and may not be named. A domain is known by all names from the top down to it, never by
/// a prefix of text (F9).
struct Topology {
    std::vector<std::string> levels = {"leaf"};
    /// Host name to its domain at each level ("" = in none). Empty: from the node's labels, whose
    /// keys are the levels' names.
    std::map<std::string, std::vector<std::string>> hosts;
    friend bool operator==(const Topology&, const Topology&) = default;
};

/// The node's domains, one for each level; "" where it is in none. A host that a map does not
/// name falls back to its labels.
std::vector<std::string> path_of(const Topology& topology, const NodeFacts& facts);

std::string encode(const Topology& topology);
std::optional<Topology> decode_topology(std::string_view bytes);

}  // namespace muster::model
