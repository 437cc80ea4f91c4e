#include "rest/never_fits.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/units.h"
#include "scheduler/place.h"

namespace muster::rest {
namespace {

using Facts = model::NodeFacts;
using Nodes = std::vector<const Facts*>;

std::string of_nodes(std::size_t count, std::size_t total) {
    return std::to_string(count) + " of " + std::to_string(total) +
           (total == 1 ? " node" : " nodes");
}

/// One thing asked for, by how much of it a node has.
struct Demand {
    std::string asked;  // "500 CPUs".
    std::int64_t wanted = 0;
    std::function<std::int64_t(const Facts&)> had;
    std::function<std::string(std::int64_t)> words;

    std::size_t meeting(const Nodes& nodes) const {
        return static_cast<std::size_t>(
            std::ranges::count_if(nodes, [&](const Facts* node) { return had(*node) >= wanted; }));
    }
    std::string text(const Nodes& nodes) const {
        std::string out = "asks " + asked + " a node; " + of_nodes(meeting(nodes), nodes.size()) +
                          " can give that";
        const auto most =
            std::ranges::max_element(nodes, {}, [&](const Facts* node) { return had(*node); });
        if (most == nodes.end()) return out;
        const std::int64_t count = had(**most);
        out += ", the most is " + words(count);
        return count == 0 ? out : out + " (" + (*most)->name + ")";
    }
};

std::string ask_text(const model::DeviceAsk& ask) {
    std::string out = std::to_string(ask.count) + " " +
                      (!ask.kind.empty() ? ask.kind
                       : ask.count == 1  ? "device"
                                         : "devices");
    if (!ask.vendor.empty()) out += " of " + ask.vendor;
    if (ask.memory_min.value > 0) out += " with " + format_bytes(ask.memory_min);
    return out;
}

/// The devices of the alternative that most nodes can give.
Demand device_demand(const scheduler::GroupAsk& group, const Nodes& nodes) {
    Demand best;
    for (const model::DeviceAsk& ask : group.devices) {
        Demand demand{.asked = ask_text(ask),
                      .wanted = ask.count,
                      .had =
                          [ask](const Facts& node) {
                              return std::ranges::count_if(node.devices, [&](const auto& device) {
                                  return scheduler::matches(ask, device);
                              });
                          },
                      .words = [](std::int64_t count) { return std::to_string(count); }};
        if (!best.had || demand.meeting(nodes) > best.meeting(nodes)) best = std::move(demand);
    }
    return best;
}

std::vector<Demand> demands_of(const scheduler::GroupAsk& group, const Nodes& nodes) {
    std::vector<Demand> out;
    if (!group.devices.empty()) out.push_back(device_demand(group, nodes));
    const auto bytes = [](std::int64_t count) { return format_bytes(Bytes{count}); };
    if (group.cpus.value > 0)
        out.push_back(
            {.asked = format_cpus(group.cpus) + (group.cpus.value == 1000 ? " CPU" : " CPUs"),
             .wanted = group.cpus.value,
             .had = [](const Facts& node) { return node.cpus.value; },
             .words = [](std::int64_t count) { return format_cpus(MilliCpu{count}); }});
    if (group.memory.value > 0)
        out.push_back({.asked = format_bytes(group.memory) + " of memory",
                       .wanted = group.memory.value,
                       .had = [](const Facts& node) { return node.memory.value; },
                       .words = bytes});
    if (group.disk.value > 0)
        out.push_back({.asked = format_bytes(group.disk) + " of disk",
                       .wanted = group.disk.value,
                       .had = [](const Facts& node) { return node.disk.value; },
                       .words = bytes});
    return out;
}

std::string group_text(const scheduler::Shape& shape, const scheduler::GroupAsk& group,
                       const Nodes& nodes) {
    const auto wanted = static_cast<std::size_t>(group.nodes);
    std::string out;
    const auto add = [&](const std::string& words) { out += (out.empty() ? "" : "; ") + words; };
    if (wanted > nodes.size())
        add("asks " + std::to_string(wanted) + " nodes; there " +
            (nodes.size() == 1 ? "is" : "are") + " " + std::to_string(nodes.size()));
    const std::size_t needed = std::min(wanted, nodes.size());
    Nodes left;
    std::ranges::copy_if(nodes, std::back_inserter(left), [&](const Facts* node) {
        return scheduler::satisfies(shape.constraint, *node);
    });
    if (left.size() < needed) add("its constraint holds on " + of_nodes(left.size(), nodes.size()));
    for (const Demand& demand : demands_of(group, nodes)) {
        if (demand.meeting(nodes) < needed) add(demand.text(nodes));
        std::erase_if(left, [&](const Facts* node) { return demand.had(*node) < demand.wanted; });
    }
    if (out.empty() && left.size() < needed)
        add("asks " + std::to_string(wanted) + (wanted == 1 ? " node" : " nodes") + "; " +
            of_nodes(left.size(), nodes.size()) + " can give all of it together");
    return out;
}

}  // namespace

std::string never_fits_text(const core::View& view, const scheduler::Shape& shape) {
    Nodes nodes;
    view.nodes.for_each(
        [&](std::uint64_t, const core::Node& node) { nodes.push_back(node.facts.get()); });
    std::string out;
    for (std::size_t i = 0; i < shape.groups.size(); ++i) {
        const std::string text = group_text(shape, shape.groups[i], nodes);
        if (text.empty()) continue;
        out += out.empty() ? "" : "; ";
        if (shape.groups.size() > 1) out += "group " + std::to_string(i) + " ";
        out += text;
    }
    if (out.empty()) out = "its parts do not fit on the nodes together";
    return out;
}

}  // namespace muster::rest
