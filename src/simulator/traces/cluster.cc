#include "simulator/traces/cluster.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "simulator/traces/openb.h"
#include "spec/cluster_file.h"
#include "spec/node_list.h"
#include "spec/parse.h"

namespace muster::simulator::traces {
namespace {

constexpr std::size_t kFileMax = std::size_t{16} << 20;
constexpr std::int64_t kDevicesMax = 1024;

std::string numbered_name(const std::string& name, std::int64_t number, std::int64_t count) {
    std::string digits = std::to_string(number);
    const std::size_t width = std::to_string(count).size();
    digits.insert(0, width > digits.size() ? width - digits.size() : 0, '0');
    return name + digits;
}

void add_group(study::Cluster& cluster, const spec::NodeGroup& group) {
    for (std::int64_t i = 0; i < group.count; ++i) {
        model::NodeFacts node =
            study::make_node(numbered_name(group.name, i + 1, group.count), group.kind,
                             group.devices, group.cpus, group.memory, "", group.device_memory);
        node.labels = group.labels;
        for (const auto& [level, size] : group.blocks)
            node.labels.emplace_back(level, group.name + "-" + std::to_string(i / size + 1));
        std::ranges::sort(node.labels);
        cluster.nodes.push_back(std::move(node));
    }
}

Error bad_short_form(const std::string& text) {
    return {.code = Code::Invalid,
            .message = text + ": not a cluster",
            .cause =
                "352x8:v100 is 352 nodes with 8 v100 each, 128x64c is 128 nodes with 64 CPUs; "
                "several with commas between; else a file (.yaml, or openb's .csv)",
            .fix = "write it so, or name a file (./NAME if it has no dot)"};
}

/// "352x8:v100", "128x64c".
Result<spec::NodeGroup> parse_group(const std::string& whole, std::string_view part) {
    const std::size_t x = part.find('x');
    if (x == std::string_view::npos) return bad_short_form(whole);
    spec::NodeGroup group;
    const auto count = parse_integer(part.substr(0, x), 1, spec::kPaperNodesMax);
    std::string_view each = part.substr(x + 1);
    if (!count) return bad_short_form(whole);
    group.count = *count;
    if (each.ends_with('c')) {
        const auto cpus = parse_integer(each.substr(0, each.size() - 1), 1, 1'000'000);
        if (!cpus) return bad_short_form(whole);
        group.cpus = {*cpus * 1000};
        group.memory = {std::min(*cpus << 33, kBytesMax)};  // 8 GiB a CPU.
        return group;
    }
    const std::size_t colon = each.find(':');
    const auto devices = parse_integer(each.substr(0, colon), 1, kDevicesMax);
    group.kind = colon == std::string_view::npos ? "gpu" : lower(each.substr(colon + 1));
    const bool word = !group.kind.empty() &&
                      group.kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._+-") ==
                          std::string::npos;
    if (!devices || !word) return bad_short_form(whole);
    group.devices = *devices;
    group.cpus = {std::max<std::int64_t>(32, *devices * 12) * 1000};
    group.memory = {std::max<std::int64_t>(128, *devices * 128) << 30};
    return group;
}

Status read_short(PaperCluster& out, const std::string& text) {
    std::size_t index = 0;
    const auto parts = split(text, ',');
    for (const std::string_view part : parts) {
        MUSTER_LET(group, parse_group(text, trim(part)));
        if (parts.size() > 1) group.name = "node" + std::to_string(++index) + "-";
        add_group(out.cluster, group);
    }
    return Ok{};
}

Status read_yaml_file(PaperCluster& out, const std::string& path) {
    MUSTER_LET(text, spec::read_text_file(path, kFileMax, "a cluster file"));
    spec::NodeList list = spec::read_node_list(text, path);
    spec::ClusterParts parts = spec::read_cluster_parts(text, path);
    list.problems.insert(list.problems.end(), parts.problems.begin(), parts.problems.end());
    if (!list.problems.empty()) return spec::to_error(list.problems);
    for (const spec::NodeGroup& group : list.groups) add_group(out.cluster, group);
    out.cluster.queues = std::move(parts.queues);
    out.cluster.rules = parts.rules;
    if (parts.topology) out.cluster.topology = *std::move(parts.topology);
    for (const spec::DrawOfKind& draw : list.draws)
        out.power.kinds.push_back(
            {.kind = draw.kind, .idle_mw = draw.idle_w * 1000, .busy_mw = draw.busy_w * 1000});
    out.power.node_mw = list.node_w * 1000;
    out.power.pue_thousandths = list.pue_thousandths;
    return Ok{};
}

Status read_openb_list(PaperCluster& out, const std::string& path) {
    MUSTER_LET(list, read_openb_nodes(path, {.strict = true}));
    for (const OpenbNode& node : list.nodes)
        out.cluster.nodes.push_back(study::make_node(node.name, lower(node.model), node.gpus,
                                                     {node.cpu_milli}, {node.memory_mib << 20}));
    return Ok{};
}

}  // namespace

void describe(PaperCluster& out) {
    std::map<std::string, std::int64_t> kinds;
    std::set<std::size_t> sizes;
    for (const model::NodeFacts& node : out.cluster.nodes) {
        const auto devices = static_cast<std::int64_t>(node.devices.size());
        out.devices += devices;
        out.devices_per_node = std::max(out.devices_per_node, devices);
        out.cpus_per_node = std::max(out.cpus_per_node, node.cpus.value / 1000);
        sizes.insert(node.devices.size());
        for (const model::Device& device : node.devices) ++kinds[device.kind];
    }
    out.uniform = sizes.size() == 1;
    out.words = std::to_string(out.cluster.nodes.size()) + " nodes, " +
                std::to_string(out.devices) + " devices";
    std::string names;
    for (const auto& [kind, count] : kinds)
        names += (names.empty() ? ": " : ", ") +
                 (kinds.size() > 1 ? std::to_string(count) + " " : std::string()) + kind;
    out.words += names;
}

Result<PaperCluster> read_cluster(const std::string& text) {
    PaperCluster out;
    const bool file = text.find('/') != std::string::npos || text.ends_with(".yaml") ||
                      text.ends_with(".yml") || text.ends_with(".csv");
    if (text.ends_with(".csv"))
        MUSTER_TRY(read_openb_list(out, text));
    else if (file)
        MUSTER_TRY(read_yaml_file(out, text));
    else
        MUSTER_TRY(read_short(out, text));
    if (out.cluster.nodes.empty())
        return Error{.code = Code::Invalid,
                     .message = text + ": a cluster without nodes",
                     .fix = "give it some"};
    describe(out);
    return out;
}

void add_queues(study::Cluster& cluster, const std::vector<std::string>& names) {
    if (!cluster.queues.empty()) return;
    std::set<std::string> all;
    for (const std::string& name : names)
        for (std::size_t slash = 0; slash != std::string::npos;) {  // Parents too.
            slash = name.find('/', slash + 1);
            if (!name.empty()) all.insert(name.substr(0, slash));
        }
    for (const std::string& name : all) {
        model::Queue queue;
        queue.name = name;
        cluster.queues.push_back(std::move(queue));
    }
}

}  // namespace muster::simulator::traces
