// Where nodes stand, from the files that sites have: our own YAML tree, a table (CSV), Slurm's
// topology.conf (tree and block) and the dump of ibnetdiscover.
// What a file does not say is not guessed: every line that cannot be used is told with its place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology.h"
#include "spec/problem.h"

namespace muster::spec {

constexpr std::size_t kTopologyFileMax = std::size_t{64} << 20;

enum class TopologyFormat : std::uint8_t { Auto, Yaml, Slurm, Ib, Csv };
/// "auto", "yaml", "slurm", "ib", "csv".
std::optional<TopologyFormat> parse_topology_format(std::string_view text);
std::string_view to_text(TopologyFormat format);

struct TopologyHint {
    TopologyFormat format = TopologyFormat::Auto;
    std::vector<std::string> levels = {};  // The site's names from the top down; empty: the file's,
                                           // else the usual ones (core, spine, leaf; block).
    std::string file = {};                 // For messages only.
};

struct TopologyReading {
    model::Topology topology;  // Of what could be used.
    /// What could not, with file, line and reason; at most kProblemsMax, then how many more.
    Problems problems;
    std::int64_t bad = 0;  // All of them. Not 0: do not use the topology without a person's word.
    /// What was left out knowingly: a switch over everything, an aggregation node, a host without
    /// a name. At most kProblemsMax lines, "file:12: …".
    std::vector<std::string> notes;
    TopologyFormat format = TopologyFormat::Auto;  // What the file was read as.
};

TopologyReading read_topology(std::string_view text, const TopologyHint& hint);

/// Why these cannot be the names of levels from the top down: their number, a name, a repetition.
/// Empty: they can.
std::string level_names_error(const std::vector<std::string>& levels);

/// As our own YAML tree; reads back as `topology`.
std::string to_yaml(const model::Topology& topology);

}  // namespace muster::spec
