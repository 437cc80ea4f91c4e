#include "core/bind.h"

#include <algorithm>

#include "scheduler/place.h"

namespace muster::core {
namespace {

bool is_part(const model::DeviceAsk& ask) {
    return ask.fraction > 0 || ask.share_memory.value > 0;
}
/// Thousandths of such a device: rounded up, so that no sum of parts is more than the device.
std::int64_t part_of(const model::DeviceAsk& ask, Bytes memory) {
    if (ask.fraction > 0) return ask.fraction;
    const std::int64_t mib = std::max<std::int64_t>(1, memory.value >> 20);
    const std::int64_t asked = (ask.share_memory.value + (1 << 20) - 1) >> 20;
    return std::clamp<std::int64_t>((asked * 1000 + mib - 1) / mib, 1, 1000);
}

bool acceptable(const scheduler::Shape& shape, const model::DeviceAsk& ask,
                const model::Device& device) {
    if (!device.healthy || device.profile != ask.profile || !scheduler::matches(ask, device))
        return false;
    return !is_part(ask) || device.share_enforced || shape.share_unenforced;
}

/// Free devices that share something; the smallest such group that holds `count`, ties to the
/// lowest id. Empty: none does.
template <class Key>
std::vector<std::size_t> island(const std::vector<model::Device>& devices,
                                const std::vector<std::size_t>& free, std::size_t count, Key key) {
    std::map<decltype(key(devices.front())), std::vector<std::size_t>> groups;
    for (const std::size_t at : free) groups[key(devices[at])].push_back(at);
    const std::vector<std::size_t>* best = nullptr;
    for (const auto& [name, group] : groups) {
        if (group.size() < count || name == decltype(key(devices.front())){}) continue;
        const auto rank = [](const auto& g) { return std::pair(g.size(), g.front()); };
        if (best == nullptr || rank(group) < rank(*best)) best = &group;
    }
    return best == nullptr ? std::vector<std::size_t>{} : *best;
}

/// Whole devices of one link group if one holds them, else of one NUMA node, else the first ones.
/// `required`: "link" or "numa" and nothing less. Empty: not possible.
std::vector<std::size_t> pick(const std::vector<model::Device>& devices,
                              const std::vector<std::size_t>& free, std::size_t count,
                              const std::string& required) {
    if (free.size() < count) return {};
    const bool inside = required == "link" || required == "numa";
    if (free.size() == count && !inside) return free;  // There is no choice.
    std::vector<std::size_t> chosen;
    if (required != "numa")
        chosen = island(devices, free, count, [](const auto& d) { return d.link_group; });
    if (chosen.empty() && required != "link")
        chosen = island(devices, free, count, [](const auto& d) { return d.numa + 1; });
    if (chosen.empty() && !inside) chosen = free;
    if (chosen.size() > count) chosen.resize(count);
    return chosen;
}

}  // namespace

bool near_enough(const View& tables, const scheduler::Shape& shape,
                 const std::vector<Placed>& placed) {
    const model::TopologyAsk& ask = shape.topology;
    const std::vector<std::string>& levels = tables.topology->levels;
    /// How many nodes of `group` stand in each domain of `level`; no domain has the name "".
    const auto count = [&](const std::string& level, std::uint32_t group, bool spares) {
        std::map<std::vector<std::string>, std::int64_t> domains;
        const auto depth = std::ranges::find(levels, level) - levels.begin();
        for (const Placed& slot : placed) {
            if (slot.group != group || (slot.spare && !spares)) continue;
            auto path = model::path_of(*tables.topology, *tables.nodes.at(slot.node.value).facts);
            path.resize(std::min<std::size_t>(path.size(), static_cast<std::size_t>(depth) + 1));
            ++domains[path.empty() || path.back().empty() ? std::vector<std::string>{}
                                                          : std::move(path)];
        }
        return domains;
    };
    // What is inside a node Binder looks at.
    for (std::uint32_t group = 0; group < shape.groups.size(); ++group) {
        if (!scheduler::implied_level(ask.required)) {
            if (std::ranges::find(levels, ask.required) == levels.end()) return false;
            const auto domains = count(ask.required, group, true);
            if (domains.size() > 1 || domains.contains({})) return false;
        }
        if (ask.slice > 0 && !scheduler::implied_level(ask.slice_required)) {
            if (std::ranges::find(levels, ask.slice_required) == levels.end()) return false;
            for (const auto& [domain, nodes] : count(ask.slice_required, group, false))
                if (domain.empty() || nodes % ask.slice != 0) return false;
        }
    }
    return true;
}

Binder::Binder(const State& state, std::vector<JobId> gone)
    : state_(state), gone_(std::move(gone)) {}

std::optional<std::vector<Placed>> Binder::bind(JobId id, const scheduler::Shape& shape,
                                                const std::vector<scheduler::Slot>& slots) {
    Job job{id, &shape, {}, {}};
    std::size_t at = 0;
    const auto refused = [&] {
        undo(job, 0);
        return std::nullopt;
    };
    for (std::uint32_t group = 0; group < shape.groups.size(); ++group) {
        const scheduler::GroupAsk& ask = shape.groups[group];
        std::size_t end = at;
        while (end < slots.size() && slots[end].group == group && !slots[end].spare) ++end;
        const auto nodes = static_cast<std::int64_t>(end - at);
        if (nodes < ask.nodes || nodes > std::max(ask.nodes, ask.nodes_max)) return refused();
        if (!bind_group(job, std::span(slots).subspan(at, end - at), group)) return refused();
        at = end;
    }
    if (at == slots.size()) return std::move(job.placed);
    // Spares beside the gang: as the group's nodes, and on nodes of their own.
    std::size_t spares = slots.size() - at;
    if (static_cast<std::int64_t>(spares) > shape.topology.spares) return refused();
    job.nodes.clear();
    for (const Placed& placed : job.placed) job.nodes.insert(placed.node);
    for (; at < slots.size(); ++at) {
        if (!slots[at].spare || slots[at].group >= shape.groups.size()) return refused();
        const std::size_t mark = job.placed.size();
        const auto nodes = job.nodes;
        if (!bind_group(job, std::span(slots).subspan(at, 1), slots[at].group)) return refused();
        if (nodes.contains(slots[at].node) || job.placed.size() != mark + 1) return refused();
        job.nodes.insert(nodes.begin(), nodes.end());
    }
    return std::move(job.placed);
}

/// One alternative and one kind for the whole group, unless kinds may be mixed.
bool Binder::bind_group(Job& job, std::span<const scheduler::Slot> slots, std::uint32_t group) {
    const scheduler::GroupAsk& ask = job.shape->groups[group];
    const bool mixed = job.shape->mixed_kinds;
    job.nodes.clear();
    for (const scheduler::Slot& slot : slots) {
        if (slot.group != group || slot.alternative >= scheduler::alternatives_of(ask))
            return false;
        if (!mixed && slot.alternative != slots.front().alternative) return false;
        if (!usable(state_, slot.node) || !job.nodes.insert(slot.node).second) return false;
    }
    const std::size_t step = mixed ? 1 : slots.size();
    for (std::size_t at = 0; at < slots.size(); at += step) {
        const model::DeviceAsk& devices = scheduler::ask_of(ask, slots[at].alternative);
        std::vector<std::string> kinds = {""};
        if (devices.count > 0) kinds = scheduler::kinds_of(devices, facts(slots[at].node));
        if (std::ranges::none_of(kinds, [&](const std::string& kind) {
                return bind_kind(job, slots.subspan(at, step), kind);
            }))
            return false;
    }
    return true;
}

bool Binder::bind_kind(Job& job, std::span<const scheduler::Slot> slots, const std::string& kind) {
    const std::size_t mark = job.placed.size();
    for (const scheduler::Slot& slot : slots) {
        auto placed = bind_slot(job, slot, kind);
        if (placed) {
            job.placed.push_back(*std::move(placed));
            continue;
        }
        undo(job, mark);
        return false;
    }
    return true;
}

std::optional<Placed> Binder::bind_slot(Job& job, const scheduler::Slot& slot,
                                        const std::string& kind) {
    const scheduler::Shape& shape = *job.shape;
    const scheduler::GroupAsk& ask = shape.groups[slot.group];
    const model::DeviceAsk& devices = scheduler::ask_of(ask, slot.alternative);
    const model::NodeFacts& node = facts(slot.node);
    Room& room = room_of(slot.node);
    if (!scheduler::satisfies(shape.constraint, node) || room.exclusive) return std::nullopt;
    if (shape.exclusive && room.slots > 0) return std::nullopt;
    Placed placed;
    placed.node = slot.node;
    placed.group = slot.group;
    placed.alternative = slot.alternative;
    placed.spare = slot.spare;
    placed.cpus = scheduler::node_cpus(ask, slot.alternative, node, shape.exclusive);
    placed.memory = ask.memory;
    placed.disk = ask.disk;
    if (room.cpus < placed.cpus || room.memory < placed.memory || room.disk < placed.disk)
        return std::nullopt;
    const auto count = static_cast<std::size_t>(devices.count);
    std::vector<std::size_t> chosen;
    if (count > 0 && is_part(devices)) {
        // The fullest device that still holds it.
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < node.devices.size(); ++i) {
            const model::Device& device = node.devices[i];
            if (device.kind != kind || !acceptable(shape, devices, device)) continue;
            const std::int64_t part = part_of(devices, device.memory);
            const Room::Left& left = room.devices[i];
            if (left.share < part || left.memory < devices.share_memory) continue;
            if (!best || left.share < room.devices[*best].share) best = i;
        }
        if (!best) return std::nullopt;
        chosen = {*best};
        placed.share = part_of(devices, node.devices[*best].memory);
        placed.share_memory = devices.share_memory;
    } else if (count > 0) {
        std::vector<std::size_t> free;
        for (std::size_t i = 0; i < node.devices.size(); ++i)
            if (node.devices[i].kind == kind && room.devices[i].share == 1000 &&
                acceptable(shape, devices, node.devices[i]))
                free.push_back(i);
        chosen = pick(node.devices, free, count, shape.topology.required);
        if (chosen.size() != count) return std::nullopt;
    }
    const bool promised = state_.indexes->claims.contains(slot.node);
    const std::optional<Room> before = promised ? std::optional(room) : std::nullopt;
    for (const std::size_t at : chosen) {
        placed.devices.push_back(node.devices[at].id);
        room.devices[at].share -= placed.share == 0 ? 1000 : placed.share;
        room.devices[at].memory -= placed.share_memory;
    }
    std::ranges::sort(placed.devices);
    room.cpus -= placed.cpus, room.memory -= placed.memory, room.disk -= placed.disk;
    ++room.slots;
    room.exclusive = shape.exclusive;
    if (before && !keeps_promises(job.id, slot.node, *before, room)) {
        give_back(room, placed);
        return std::nullopt;
    }
    return placed;
}

/// Whether what others are promised there could be given as before (F13).
bool Binder::keeps_promises(JobId job, NodeId node, const Room& before, const Room& after) const {
    for (const JobId claimant : state_.indexes->claims.at(node)) {
        if (claimant == job || std::ranges::find(gone_, claimant) != gone_.end()) continue;
        if (holds_claim(before, node, claimant) && !holds_claim(after, node, claimant))
            return false;
    }
    return true;
}

/// With what its victims still hold there given back.
bool Binder::holds_claim(Room room, NodeId node, JobId claimant) const {
    const auto victims = state_.indexes->stopping_for.find(claimant);
    if (victims != state_.indexes->stopping_for.end())
        for (const JobId victim : victims->second)
            if (std::ranges::find(gone_, victim) == gone_.end()) give_back(room, node, victim);
    const core::Job& job = state_.tables.jobs.at(claimant.value);
    if (model::active(job.state)) give_back(room, node, claimant);  // It is being resized.
    const scheduler::Shape& shape = state_.tables.shapes.at(job.shape.value);
    const model::NodeFacts& has = facts(node);
    for (const scheduler::Slot& slot : extra_of(job).claim->slots) {
        if (slot.node != node) continue;
        const scheduler::GroupAsk& ask = shape.groups.at(slot.group);
        const model::DeviceAsk& devices = scheduler::ask_of(ask, slot.alternative);
        const MilliCpu cpus = scheduler::node_cpus(ask, slot.alternative, has, shape.exclusive);
        if (room.exclusive || room.cpus < cpus || room.memory < ask.memory || room.disk < ask.disk)
            return false;
        if (shape.exclusive && room.slots > 0) return false;
        room.cpus -= cpus, room.memory -= ask.memory, room.disk -= ask.disk;
        std::int64_t left = devices.count;
        for (std::size_t i = 0; i < has.devices.size() && left > 0; ++i) {
            if (!acceptable(shape, devices, has.devices[i])) continue;
            const std::int64_t share =
                is_part(devices) ? part_of(devices, has.devices[i].memory) : 1000;
            if (room.devices[i].share < share) continue;
            room.devices[i].share -= share;
            --left;
        }
        if (left > 0) return false;
    }
    return true;
}

void Binder::undo(Job& job, std::size_t mark) {
    for (; job.placed.size() > mark; job.placed.pop_back())
        give_back(room_of(job.placed.back().node), job.placed.back());
}

void Binder::give_back(Room& room, const Placed& placed) const {
    const std::vector<model::Device>& devices = facts(placed.node).devices;
    room.cpus += placed.cpus, room.memory += placed.memory, room.disk += placed.disk;
    if (--room.slots == 0) room.exclusive = false;
    for (const std::string& device : placed.devices) {
        const auto at = std::ranges::lower_bound(devices, device, {}, &model::Device::id);
        if (at == devices.end() || at->id != device) continue;
        Room::Left& left = room.devices[static_cast<std::size_t>(at - devices.begin())];
        left.share += placed.share == 0 ? 1000 : placed.share;
        left.memory += placed.share_memory;
    }
}

void Binder::give_back(Room& room, NodeId node, JobId id) const {
    const core::Job* job = state_.tables.jobs.find(id.value);
    if (job == nullptr || !extra_of(*job).allocation) return;
    for (const Placed& slot : extra_of(*job).allocation->slots)
        if (slot.node == node) give_back(room, slot);
}

Room& Binder::room_of(NodeId node) {
    const auto [at, made] = rooms_.try_emplace(node);
    Room& room = at->second;
    if (!made) return room;
    const model::NodeFacts& has = facts(node);
    const NodeUse& use = state_.tables.node_use.at(node.value);
    room.cpus = has.cpus - use.cpus, room.memory = has.memory - use.memory;
    room.disk = has.disk - use.disk;
    room.slots = use.jobs.size();
    room.exclusive = use.exclusive;
    auto share = use.devices.begin();
    for (const model::Device& device : has.devices) {
        Room::Left& left = room.devices.emplace_back();
        left.memory = device.memory;
        while (share != use.devices.end() && share->device < device.id) ++share;
        for (; share != use.devices.end() && share->device == device.id; ++share)
            left.share -= share->share, left.memory -= share->memory;
    }
    for (const JobId id : gone_) give_back(room, node, id);
    return room;
}

}  // namespace muster::core
