#include "scheduler/place.h"

#include <algorithm>

namespace muster::scheduler {
namespace {

bool holds(const model::ConstraintTerm& term, const model::NodeFacts& facts) {
    using Op = model::ConstraintTerm::Op;
    const auto is_key = [&](const auto& label) { return label.first == term.key; };
    const bool is_node = term.key == "node";
    const bool exists = is_node || std::ranges::any_of(facts.labels, is_key);
    const std::string_view value = is_node ? facts.name : model::label(facts, term.key);
    const bool listed = exists && std::ranges::find(term.values, value) != term.values.end();
    switch (term.op) {
        case Op::In: return listed;
        case Op::NotIn: return !listed;
        case Op::Exists: return exists;
        case Op::NotExists: return !exists;
    }
    return false;
}

constexpr MilliCpu kPartCpus{100};  // Part of a device comes with so much at least.

/// Thousandths of a device that the ask takes on this node; 1000: whole ones.
std::int64_t part_of(const model::DeviceAsk& ask, const model::NodeFacts& facts) {
    if (ask.fraction > 0) return ask.fraction;
    if (ask.share_memory.value <= 0) return 1000;
    for (const model::Device& device : facts.devices)
        if (matches(ask, device) && device.memory > ask.share_memory)
            return std::max<std::int64_t>(
                1, (ask.share_memory.value >> 20) * 1000 / (device.memory.value >> 20));
    return 1000;
}

}  // namespace

bool matches(const model::DeviceAsk& ask, const model::Device& device) {
    const bool kind = ask.kind.empty() || ask.kind == "any" || ask.kind == device.kind ||
                      ask.kind == device.device_class;
    const bool vendor = ask.vendor.empty() || ask.vendor == device.vendor;
    return kind && vendor && ask.memory_min <= device.memory && ask.profile == device.profile;
}

bool satisfies(const std::vector<model::ConstraintTerm>& constraint,
               const model::NodeFacts& facts) {
    return std::ranges::all_of(constraint, [&](const auto& term) { return holds(term, facts); });
}

MilliCpu node_cpus(const GroupAsk& group, std::uint32_t alternative, const model::NodeFacts& facts,
                   bool exclusive) {
    if (group.cpus.value > 0) return group.cpus;
    if (exclusive) return facts.cpus;
    const std::int64_t count = ask_of(group, alternative).count;
    const auto total = static_cast<std::int64_t>(facts.devices.size());
    MilliCpu share{1000};
    if (count > 0 && count <= total) {
        const std::int64_t devices = facts.cpus.value / total * count;
        const std::int64_t part = part_of(ask_of(group, alternative), facts);
        share.value = part == 1000 ? std::max(share.value, devices)
                                   : std::max(kPartCpus.value, devices * part / 1000);
    }
    return std::min(share, std::max(facts.cpus, MilliCpu{1}));
}

std::size_t alternatives_of(const GroupAsk& group) {
    return group.devices.empty() ? 1 : group.devices.size();
}

const model::DeviceAsk& ask_of(const GroupAsk& group, std::uint32_t alternative) {
    static const model::DeviceAsk kNothing{.kind = {}, .count = 0, .memory_min = {}, .vendor = {}};
    return alternative < group.devices.size() ? group.devices[alternative] : kNothing;
}

std::vector<std::string> kinds_of(const model::DeviceAsk& ask, const model::NodeFacts& facts) {
    std::vector<std::string> kinds;
    for (const model::Device& device : facts.devices) {
        if (matches(ask, device)) kinds.push_back(device.kind);
    }
    std::ranges::sort(kinds);
    const auto rest = std::ranges::unique(kinds);
    kinds.erase(rest.begin(), rest.end());
    return kinds;
}

bool implied_level(std::string_view name) {
    constexpr std::string_view kImplied[] = {"", "cluster", "node", "link", "nvlink", "numa"};
    return std::ranges::find(kImplied, name) != std::end(kImplied);
}

}  // namespace muster::scheduler
