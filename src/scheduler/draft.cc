#include "scheduler/draft.h"

#include <algorithm>

#include "scheduler/place.h"

namespace muster::scheduler {
namespace {

bool accepts(const model::DeviceAsk& ask, const Bucket& bucket, const std::string& kind) {
    if (bucket.kind != kind) return false;
    const bool named =
        ask.kind.empty() || ask.kind == bucket.kind || ask.kind == bucket.device_class;
    return named && (ask.vendor.empty() || ask.vendor == bucket.vendor) &&
           ask.memory_min <= bucket.memory;
}
Load empty_load(const NodeEntry& node) {
    Load load;
    for (const Bucket& bucket : node.buckets) load.free.push_back(bucket.healthy);
    return load;
}
std::int64_t free_of(const Load& load, const NodeEntry& node, const model::DeviceAsk& ask,
                     const std::string& kind) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < node.buckets.size(); ++i)
        if (accepts(ask, node.buckets[i], kind)) sum += std::max<std::int64_t>(0, load.free[i]);
    return sum;
}

}  // namespace

Draft::Draft(PlanIndex::State& state, Base base)
    : state_(state), base_(base), at_(static_cast<std::size_t>(base)), number_(++state.drafts) {}

const Load& Draft::load(NodeEntry& node) {
    if (node.draft[at_] == number_) return node.drafted[at_];
    if (base_ == Base::Now) return node.load;
    return touch(node);
}

Load& Draft::touch(NodeEntry& node) {
    if (node.draft[at_] != number_) {
        node.drafted[at_] = base_ == Base::Now ? node.load : empty_load(node);
        node.draft[at_] = number_;
    }
    return node.drafted[at_];
}

bool Draft::fits(NodeEntry& node, const Shape& shape, const Choice& choice) {
    return fits(load(node), node, shape, choice);
}

bool Draft::fits(const Load& load, const NodeEntry& node, const Shape& shape,
                 const Choice& choice) const {
    if (load.exclusive || (shape.exclusive && load.slots > 0)) return false;
    const GroupAsk& group = shape.groups[choice.group];
    const model::DeviceAsk& ask = ask_of(group, choice.alternative);
    if (ask.count > 0 && free_of(load, node, ask, choice.kind) < ask.count) return false;
    const model::NodeFacts& facts = *node.facts;
    const MilliCpu cpus = node_cpus(group, choice.alternative, facts, shape.exclusive);
    return load.cpus + cpus <= facts.cpus && load.memory + group.memory <= facts.memory &&
           load.disk + group.disk <= facts.disk;
}

void Draft::take(NodeEntry& node, const Shape& shape, const Choice& choice) {
    log_.push_back({&node, load(node)});
    take(touch(node), node, shape, choice);
}

void Draft::take(Load& load, const NodeEntry& node, const Shape& shape, const Choice& choice) {
    const GroupAsk& group = shape.groups[choice.group];
    load.cpus += node_cpus(group, choice.alternative, *node.facts, shape.exclusive);
    load.memory += group.memory;
    load.disk += group.disk;
    ++load.slots;
    load.exclusive = load.exclusive || shape.exclusive;
    const model::DeviceAsk& ask = ask_of(group, choice.alternative);
    std::int64_t left = ask.count;
    for (std::size_t i = 0; i < node.buckets.size() && left > 0; ++i) {
        if (!accepts(ask, node.buckets[i], choice.kind)) continue;
        const std::int64_t taken = std::clamp<std::int64_t>(load.free[i], 0, left);
        load.free[i] -= taken;
        left -= taken;
    }
}

void Draft::release(const JobStarted& job) {
    std::vector<NodeId> nodes;  // Each once: a job may have several slots on a node.
    for (const Slot& slot : job.slots) nodes.push_back(slot.node);
    std::ranges::sort(nodes);
    const auto rest = std::ranges::unique(nodes);
    nodes.erase(rest.begin(), rest.end());
    for (const NodeId id : nodes) {
        NodeEntry& node = state_.nodes.at(id);
        const auto held = node.held.find(job.id);
        if (held == node.held.end()) continue;
        log_.push_back({&node, load(node)});
        Load& load = touch(node);
        for (const Held& one : held->second) {
            load.cpus -= one.slot.cpus;
            load.memory -= one.slot.memory;
            load.disk -= one.slot.disk;
            for (std::size_t i = 0; i < one.devices.size(); ++i) load.free[i] += one.devices[i];
            --load.slots;
        }
        if (load.slots == 0) load.exclusive = false;
    }
}

std::int64_t Draft::free_devices(NodeEntry& node, const model::DeviceAsk& ask,
                                 const std::string& kind) {
    return free_of(load(node), node, ask, kind);
}

void Draft::undo_to(std::size_t mark) {
    while (log_.size() > mark) {
        log_.back().node->drafted[at_] = std::move(log_.back().load);
        log_.pop_back();
    }
}

bool fits_empty(const NodeEntry& node, const Shape& shape, const Choice& choice) {
    const GroupAsk& group = shape.groups[choice.group];
    const model::DeviceAsk& ask = ask_of(group, choice.alternative);
    if (ask.count > 0) {
        std::int64_t healthy = 0;
        for (const Bucket& bucket : node.buckets)
            if (accepts(ask, bucket, choice.kind)) healthy += bucket.healthy;
        if (healthy < ask.count) return false;
    }
    const model::NodeFacts& facts = *node.facts;
    return node_cpus(group, choice.alternative, facts, shape.exclusive) <= facts.cpus &&
           group.memory <= facts.memory && group.disk <= facts.disk &&
           satisfies(shape.constraint, facts);
}

std::vector<std::string> kinds_for(const PlanIndex::State& state, const model::DeviceAsk& ask) {
    if (ask.count == 0) return {""};
    std::vector<std::string> kinds;
    for (const auto& [kind, nodes] : state.kinds) kinds.push_back(kind);
    // A named kind is the only one that can be; a class or "any" may be met by each in turn.
    if (state.kinds.contains(ask.kind)) {
        std::erase(kinds, ask.kind);
        kinds.insert(kinds.begin(), ask.kind);
    }
    return kinds;
}

}  // namespace muster::scheduler
