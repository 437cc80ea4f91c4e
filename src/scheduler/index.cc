#include "scheduler/index.h"

#include <algorithm>

#include "base/hash.h"
#include "base/require.h"

namespace muster::scheduler {

Order order_of(const JobQueued& ask) {
    return {-ask.priority, ask.submitted, ask.id};
}

namespace {

std::vector<Bucket> buckets_of(const model::NodeFacts& facts) {
    std::vector<Bucket> buckets;
    for (const model::Device& device : facts.devices) {
        const auto same = [&](const Bucket& b) {
            return b.kind == device.kind && b.device_class == device.device_class &&
                   b.vendor == device.vendor && b.memory == device.memory;
        };
        auto at = std::ranges::find_if(buckets, same);
        if (at == buckets.end()) {
            buckets.push_back({device.kind, device.device_class, device.vendor, device.memory, 0});
            at = buckets.end() - 1;
        }
        at->healthy += device.healthy ? 1 : 0;
    }
    return buckets;
}

/// How many healthy devices of each bucket have one of these ids.
std::vector<std::int64_t> count_devices(const NodeEntry& node,
                                        const std::vector<std::string>& ids) {
    std::vector<std::int64_t> out(node.buckets.size());
    for (const std::string& id : ids) {
        const auto& devices = node.facts->devices;
        const auto at = std::ranges::lower_bound(devices, id, {}, &model::Device::id);
        if (at == devices.end() || at->id != id || !at->healthy) continue;
        const auto bucket = std::ranges::find_if(node.buckets, [&](const Bucket& b) {
            return b.kind == at->kind && b.device_class == at->device_class &&
                   b.vendor == at->vendor && b.memory == at->memory;
        });
        ++out[static_cast<std::size_t>(bucket - node.buckets.begin())];
    }
    return out;
}

void take(NodeEntry& node, const Held& held) {
    node.load.cpus += held.slot.cpus;
    node.load.memory += held.slot.memory;
    node.load.disk += held.slot.disk;
    for (std::size_t i = 0; i < held.devices.size(); ++i) node.load.free[i] -= held.devices[i];
    ++node.load.slots;
    node.load.exclusive = node.load.exclusive || held.exclusive;
}

struct Apply {
    PlanIndex::State& state;

    void operator()(const NodeChanged& change) {
        NodeEntry& node = state.nodes[change.id];
        count_kinds(node, -1);
        node.id = change.id;
        node.facts = change.facts;
        node.usable = change.usable;
        node.buckets = buckets_of(*node.facts);
        count_kinds(node, 1);
        node.load = {};
        for (const Bucket& bucket : node.buckets) node.load.free.push_back(bucket.healthy);
        for (auto& [job, slots] : node.held) {
            for (Held& held : slots) {
                held.devices = count_devices(node, held.slot.devices);
                take(node, held);
            }
        }
        ++state.freed;
    }
    void operator()(const NodeRemoved& change) {
        const auto at = state.nodes.find(change.id);
        MUSTER_REQUIRE(at != state.nodes.end() && at->second.held.empty());
        count_kinds(at->second, -1);
        state.nodes.erase(at);
        ++state.freed;
    }
    void operator()(const ShapeAdded& change) {
        ShapeEntry entry;
        entry.shape = change.shape;
        MUSTER_REQUIRE(state.shapes.emplace(change.shape.id, std::move(entry)).second);
    }
    void operator()(const ShapeRemoved& change) {
        const auto at = state.shapes.find(change.id);
        MUSTER_REQUIRE(at != state.shapes.end() && at->second.ready.empty());
        state.shapes.erase(at);
    }
    void operator()(const JobQueued& change) {
        MUSTER_REQUIRE(state.shapes.contains(change.shape) && change.count > 0);
        MUSTER_REQUIRE(!state.started.contains(change.id));
        Blocked told;
        if (const auto old = state.queued.find(change.id); old != state.queued.end()) {
            told = old->second.told;
            remove(old);
        }
        state.sleeping.insert({change.eligible, change.id});
        state.queued.emplace(change.id, Queued{change, told});
    }
    void operator()(const JobUnqueued& change) {
        const auto at = state.queued.find(change.id);
        MUSTER_REQUIRE(at != state.queued.end());
        remove(at);
    }
    void operator()(const JobStarted& change) {
        if (const auto known = state.started.find(change.id); known != state.started.end()) {
            known->second.start = change;
            return;
        }
        MUSTER_REQUIRE(!state.queued.contains(change.id));
        const bool exclusive = state.shapes.at(change.shape).shape.exclusive;
        for (const Slot& slot : change.slots) {
            NodeEntry& node = state.nodes.at(slot.node);
            Held held{slot, exclusive, count_devices(node, slot.devices)};
            take(node, held);
            node.held[change.id].push_back(std::move(held));
        }
        MUSTER_REQUIRE(state.started.emplace(change.id, Started{change}).second);
    }
    void operator()(const JobReleased& change) {
        const auto at = state.started.find(change.id);
        MUSTER_REQUIRE(at != state.started.end());
        for (const Slot& slot : at->second.start.slots) {
            NodeEntry& node = state.nodes.at(slot.node);
            const auto held = node.held.find(change.id);
            if (held == node.held.end()) continue;  // A second slot on the same node.
            for (const Held& one : held->second) {
                node.load.cpus -= one.slot.cpus;
                node.load.memory -= one.slot.memory;
                node.load.disk -= one.slot.disk;
                for (std::size_t i = 0; i < one.devices.size(); ++i)
                    node.load.free[i] += one.devices[i];
                --node.load.slots;
            }
            node.held.erase(held);
            if (node.held.empty()) node.load.exclusive = false;
        }
        state.started.erase(at);
        ++state.freed;
    }

    template <class Other>
    void operator()(const Other&) {}

private:
    void remove(std::map<JobId, Queued>::iterator at) {
        const JobQueued& ask = at->second.ask;
        state.sleeping.erase({ask.eligible, ask.id});
        state.shapes.at(ask.shape).ready.erase(order_of(ask));
        state.queued.erase(at);
    }
    void count_kinds(const NodeEntry& node, std::int64_t by) {
        std::set<std::string> kinds;
        for (const Bucket& bucket : node.buckets) kinds.insert(bucket.kind);
        for (const std::string& kind : kinds) {
            std::int64_t& count = state.kinds[kind];
            count += by;
            if (count == 0) state.kinds.erase(kind);
        }
    }
};

void add(Fnv& fnv, const Slot& slot) {
    fnv.add(slot.node.value), fnv.add(slot.group), fnv.add(slot.alternative);
    fnv.add(slot.devices.size());
    for (const std::string& device : slot.devices) fnv.add(device);
    for (const std::int64_t n : {slot.cpus.value, slot.memory.value, slot.disk.value})
        fnv.add(static_cast<std::uint64_t>(n));
}
void add(Fnv& fnv, const Load& load) {
    for (const std::int64_t n : {load.cpus.value, load.memory.value, load.disk.value, load.slots})
        fnv.add(static_cast<std::uint64_t>(n));
    for (const std::int64_t n : load.free) fnv.add(static_cast<std::uint64_t>(n));
    fnv.add(load.exclusive ? 1u : 0u);
}

}  // namespace

void PlanIndex::State::wake(Time now) {
    while (!sleeping.empty() && sleeping.begin()->first <= now) {
        const JobQueued& ask = queued.at(sleeping.begin()->second).ask;
        shapes.at(ask.shape).ready.insert(order_of(ask));
        sleeping.erase(sleeping.begin());
    }
}

PlanIndex::PlanIndex() : state_(std::make_unique<State>()) {}
PlanIndex::~PlanIndex() = default;
PlanIndex::PlanIndex(PlanIndex&&) noexcept = default;
PlanIndex& PlanIndex::operator=(PlanIndex&&) noexcept = default;

void PlanIndex::apply(const Change& change) {
    ++state_->revision;
    std::visit(Apply{*state_}, change);
}

std::uint64_t PlanIndex::revision() const {
    return state_->revision;
}

std::uint64_t PlanIndex::digest() const {
    Fnv fnv;
    for (const auto& [id, node] : state_->nodes) {
        fnv.add(id.value);
        fnv.add(model::encode(*node.facts));
        fnv.add(node.usable ? 1u : 0u);
        add(fnv, node.load);
        for (const auto& [job, slots] : node.held) {
            fnv.add(job.value);
            for (const Held& held : slots) add(fnv, held.slot);
        }
    }
    for (const auto& [id, entry] : state_->shapes) fnv.add(id.value), fnv.add(encode(entry.shape));
    for (const auto& [id, queued] : state_->queued) {
        const JobQueued& ask = queued.ask;
        for (const std::uint64_t n : {id.value, ask.shape.value, ask.user.value}) fnv.add(n);
        for (const std::int64_t n : {ask.priority, ask.submitted.ms, ask.eligible.ms, ask.count})
            fnv.add(static_cast<std::uint64_t>(n));
        for (const NodeId node : ask.avoid) fnv.add(node.value);
    }
    for (const auto& [id, started] : state_->started) {
        fnv.add(id.value), fnv.add(started.start.shape.value);
        fnv.add(static_cast<std::uint64_t>(started.start.expected_end.ms));
        for (const Slot& slot : started.start.slots) add(fnv, slot);
    }
    return fnv.hash();
}

}  // namespace muster::scheduler
