// What the topology readers share: problems by the byte, levels, hosts. Internal to the room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/reader.h"
#include "spec/topology_reader.h"

namespace muster::spec {

class TopologyBuilder {
public:
    TopologyBuilder(std::string_view text, const TopologyHint& hint)
        : source_{hint.file, false, text}, hint_(hint) {}

    std::string_view text() const { return source_.text; }
    const Source& source() const { return source_; }
    const std::vector<std::string>& site_levels() const { return hint_.levels; }
    void fail(std::size_t at, std::string message);
    void add(Problem problem);
    void note(std::size_t at, const std::string& what);

    /// The site's names if it gave any, else `usual`, from the top down. False: their number is not
    /// `usual.size()`, or they are no names; that was told, and `usual` is used.
    bool use_levels(std::vector<std::string> usual, std::size_t at);
    /// False: it was there already, or is no host's name; that was told.
    bool add_host(std::size_t at, const std::string& name, std::vector<std::string> path);

    TopologyReading reading;

private:
    Source source_;
    const TopologyHint& hint_;
};

/// {"core", "spine", "leaf"} of 3.
std::vector<std::string> usual_levels(std::size_t count);
bool is_host_name(std::string_view name);
/// A domain's name may hold anything but control characters. Not empty, at most 128 bytes.
bool is_domain_name(std::string_view name);

/// The next line of `text` from `at` on, without its end, which `at` is moved past. A line of the
/// text starts at `begin`.
struct Line {
    std::size_t begin = 0;
    std::string_view text;
};
bool next_line(std::string_view text, std::size_t& at, Line& line);

void read_topology_yaml(TopologyBuilder& out);
/// A tree of topology inside another document; `levels` as it was written there, or none.
void read_topology_tree(TopologyBuilder& out, const Value& tree, std::vector<std::string> levels);
void read_topology_csv(TopologyBuilder& out);
void read_topology_slurm(TopologyBuilder& out);
void read_topology_ib(TopologyBuilder& out);

}  // namespace muster::spec
