// Nodes that only exist on paper, for `muster simulate`: groups of equal ones, and what they draw.
// The other parts of the same file (queues, scheduling, topology) are cluster_file.h's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "spec/problem.h"

namespace muster::spec {

constexpr std::int64_t kPaperNodesMax = 100'000;

/// `count` equal nodes.
struct NodeGroup {
    std::int64_t count = 1;
    std::string name = "node";  // Each is this and its number, from 1, with zeros in front.
    std::string kind;           // Of its devices; "": none.
    std::int64_t devices = 0;
    Bytes device_memory;
    MilliCpu cpus{64'000};
    Bytes memory{std::int64_t{512} << 30};
    std::vector<std::pair<std::string, std::string>> labels;
    /// Level to so many consecutive nodes that share a domain of it: {leaf: 16}.
    std::vector<std::pair<std::string, std::int64_t>> blocks;
};

/// What a device of a kind draws, in watts.
struct DrawOfKind {
    std::string kind;
    std::int64_t idle_w = 60, busy_w = 400;
};
struct NodeList {
    std::vector<NodeGroup> groups;
    std::vector<DrawOfKind> draws;
    std::int64_t node_w = 300;            // A node besides its devices.
    std::int64_t pue_thousandths = 1200;  // Cooling and losses.
    Problems problems;                    // Not empty: use none of it.
};

/// `nodes:` (a list of groups) and `power:` ({h100: {idle: 70, busy: 700}, node: 300, pue: 1.2}).
/// Other keys than those and cluster_file.h's are problems.
NodeList read_node_list(std::string_view yaml, const std::string& file);

}  // namespace muster::spec
