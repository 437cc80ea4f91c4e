#include "spec/topology_reader.h"

#include <algorithm>
#include <map>
#include <set>

#include "spec/place.h"
#include "spec/topology_builder.h"
#include "spec/yaml_out.h"

namespace muster::spec {
namespace {

constexpr std::string_view kFormats[] = {"auto", "yaml", "slurm", "ib", "csv"};
constexpr std::size_t kNameMax = 128;

/// By what only one of them can hold.
TopologyFormat detect(std::string_view text) {
    Line line;
    for (std::size_t at = 0; next_line(text, at, line);) {
        const std::string_view words = trim(line.text);
        if (words.substr(0, 25) == "# Topology file: generated") return TopologyFormat::Ib;
        if (words.empty() || words.front() == '#') continue;
        const std::string start = lower(words.substr(0, 11));
        for (const std::string_view key : {"switchname=", "blockname=", "blocksizes="})
            if (start.substr(0, key.size()) == key) return TopologyFormat::Slurm;
        for (const std::string_view key : {"vendid=", "switchguid=", "caguid=", "switch\t", "ca\t"})
            if (start.substr(0, key.size()) == key) return TopologyFormat::Ib;
        const std::size_t comma = words.find(',');
        return comma != words.npos && words.find_first_of(":{[") == words.npos
                   ? TopologyFormat::Csv
                   : TopologyFormat::Yaml;
    }
    return TopologyFormat::Yaml;
}

/// Writes hosts[first, last), whose paths agree above `depth`, at that depth.
class TreeWriter {
public:
    using Host = std::pair<std::vector<std::string>, std::string>;  // Its path and its name.
    explicit TreeWriter(YamlOut& out) : out_(out) {}

    void write(const std::vector<Host>& hosts, std::size_t depth) {
        const bool deeper = std::any_of(hosts.begin(), hosts.end(), [&](const Host& host) {
            return std::any_of(host.first.begin() + static_cast<std::ptrdiff_t>(depth),
                               host.first.end(), [](const auto& name) { return !name.empty(); });
        });
        if (!deeper && depth > 0) {
            out_.list();
            for (const Host& host : hosts) out_.text(host.second);
            return out_.end();
        }
        std::map<std::string, std::vector<Host>> domains;
        for (const Host& host : hosts) domains[host.first[depth]].push_back(host);
        out_.map(domains.empty());
        for (const auto& [name, inside] : domains) {
            out_.key(name);
            write(inside, depth + 1);
        }
        out_.end();
    }

private:
    YamlOut& out_;
};

}  // namespace

std::optional<TopologyFormat> parse_topology_format(std::string_view text) {
    const auto found = std::find(std::begin(kFormats), std::end(kFormats), text);
    if (found == std::end(kFormats)) return std::nullopt;
    return static_cast<TopologyFormat>(found - std::begin(kFormats));
}
std::string_view to_text(TopologyFormat format) {
    return kFormats[static_cast<std::size_t>(format)];
}

bool next_line(std::string_view text, std::size_t& at, Line& line) {
    if (at >= text.size()) return false;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    line.begin = at;
    line.text = text.substr(at, end - at);
    if (!line.text.empty() && line.text.back() == '\r') line.text.remove_suffix(1);
    at = end + 1;
    return true;
}

bool is_host_name(std::string_view name) {
    return !name.empty() && name.size() <= 253 && name.front() != '-' && name.front() != '.' &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.' || c == '_';
           });
}
bool is_domain_name(std::string_view name) {
    return !name.empty() && name.size() <= kNameMax &&
           std::all_of(name.begin(), name.end(),
                       [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

std::vector<std::string> usual_levels(std::size_t count) {
    std::vector<std::string> levels = {"leaf", "spine", "core"};
    while (levels.size() < count) levels.push_back("tier" + std::to_string(levels.size() + 1));
    levels.resize(count);
    std::reverse(levels.begin(), levels.end());
    return levels;
}

std::string level_names_error(const std::vector<std::string>& levels) {
    constexpr std::string_view kLetters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    if (levels.empty()) return "no levels; name at least one, as in [leaf]";
    if (levels.size() > model::kTopologyLevelsMax)
        return std::to_string(levels.size()) + " levels, over the limit of " +
               std::to_string(model::kTopologyLevelsMax);
    std::set<std::string> seen;
    for (const std::string& name : levels) {
        if (name.empty() || name.size() > 64 || name.find_first_not_of(kLetters) != name.npos)
            return shorten(name) +
                   ": not the name of a level; at most 64 letters, digits and . _ - / (leaf)";
        for (const std::string_view implied : {"cluster", "node", "link", "numa", "none"})
            if (name == implied)
                return name + ": a level of this name is always there; leave it out";
        if (!seen.insert(name).second) return name + ": two levels of this name";
    }
    return {};
}

void TopologyBuilder::add(Problem problem) {
    if (++reading.bad <= static_cast<std::int64_t>(kProblemsMax))
        reading.problems.push_back(std::move(problem));
}
void TopologyBuilder::fail(std::size_t at, std::string message) {
    if (reading.bad >= static_cast<std::int64_t>(kProblemsMax)) {
        ++reading.bad;
        return;
    }
    Problem problem = problem_at(source_, static_cast<std::uint32_t>(at));
    problem.number = errors::kJobBadValue;
    problem.message = std::move(message);
    add(std::move(problem));
}
void TopologyBuilder::note(std::size_t at, const std::string& what) {
    if (reading.notes.size() >= kProblemsMax) return;
    const Problem place = problem_at(source_, static_cast<std::uint32_t>(at));
    reading.notes.push_back((place.file.empty() ? "" : place.file + ":") +
                            std::to_string(place.line) + ": " + what);
}

bool TopologyBuilder::use_levels(std::vector<std::string> usual, std::size_t at) {
    reading.topology.levels = std::move(usual);
    std::vector<std::string>& levels = reading.topology.levels;
    const std::vector<std::string>& wanted = hint_.levels.empty() ? levels : hint_.levels;
    if (const std::string error = level_names_error(wanted); !error.empty()) {
        fail(at, "levels: " + error);
        return false;
    }
    if (wanted.size() != levels.size()) {
        fail(at, "levels: the file has " + std::to_string(levels.size()) + " (" +
                     join(levels, ", ") + "), but " + std::to_string(wanted.size()) +
                     " names are given for them (" + join(wanted, ", ") + ")");
        return false;
    }
    if (!hint_.levels.empty()) levels = hint_.levels;
    return true;
}

bool TopologyBuilder::add_host(std::size_t at, const std::string& name,
                               std::vector<std::string> path) {
    if (!is_host_name(name)) {
        fail(at, shorten(name) + ": not a host's name; letters, digits, . _ and -");
        return false;
    }
    if (!reading.topology.hosts.emplace(name, std::move(path)).second) {
        fail(at, "host " + name + " has a place already");
        return false;
    }
    return true;
}

TopologyReading read_topology(std::string_view text, const TopologyHint& hint) {
    TopologyBuilder out(text, hint);
    if (auto bad = check_text(out.source(), kTopologyFileMax, "a topology")) {
        out.add(std::move(*bad));
        return std::move(out.reading);
    }
    out.reading.format = hint.format == TopologyFormat::Auto ? detect(text) : hint.format;
    out.reading.topology.levels.clear();
    switch (out.reading.format) {
        case TopologyFormat::Auto:
        case TopologyFormat::Yaml: read_topology_yaml(out); break;
        case TopologyFormat::Slurm: read_topology_slurm(out); break;
        case TopologyFormat::Ib: read_topology_ib(out); break;
        case TopologyFormat::Csv: read_topology_csv(out); break;
    }
    if (out.reading.topology.hosts.empty() && out.reading.bad == 0)
        out.fail(0, "there is no host in it");
    TopologyReading reading = std::move(out.reading);
    if (const auto more = reading.bad - static_cast<std::int64_t>(kProblemsMax); more > 0)
        reading.problems.push_back({.number = errors::kJobInvalid,
                                    .file = hint.file,
                                    .message = "and " + std::to_string(more) + " more problems"});
    if (reading.topology.levels.empty()) reading.topology.levels = model::Topology{}.levels;
    return reading;
}

std::string to_yaml(const model::Topology& topology) {
    YamlOut out;
    out.map(false);
    out.key("levels");
    out.list();
    for (const std::string& level : topology.levels) out.text(level);
    out.end();
    if (!topology.hosts.empty()) {
        std::vector<TreeWriter::Host> hosts;
        for (const auto& [name, path] : topology.hosts) hosts.emplace_back(path, name);
        out.key("tree");
        TreeWriter(out).write(hosts, 0);
    }
    out.end();
    return std::move(out).take();
}

}  // namespace muster::spec
