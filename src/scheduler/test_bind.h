// Slots bound to device ids, for the scheduler's tests: that a plan's counts are true of ids.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/index.h"
#include "scheduler/place.h"
#include "scheduler/plan.h"

namespace muster::scheduler {

/// Who has what of each device, by id.
class Owners {
public:
    struct Device {
        std::int64_t milli = 0;
        Bytes memory;
    };
    struct Node {
        std::map<std::string, Device> devices;
        MilliCpu cpus;
        Bytes memory;
        int slots = 0;
        bool exclusive = false;
    };
    std::map<NodeId, Node> nodes;

    /// Fills in the slots' devices, CPUs and memory; false, with the reason, if they are not there.
    bool bind(JobStarted& job, const Shape& shape, const std::map<NodeId, NodeChanged>& known,
              std::string& fault) {
        std::set<std::pair<std::uint32_t, NodeId>> seen;
        for (Slot& slot : job.slots) {
            const NodeChanged& node = known.at(slot.node);
            if (!seen.insert({slot.group, slot.node}).second) fault = "twice on one node";
            if (!satisfies(shape.constraint, *node.facts)) fault = "its constraint does not hold";
            if (fault.empty()) fault = bind_slot(slot, shape, *node.facts);
            if (!fault.empty()) {
                fault += " (n" + std::to_string(slot.node.value) + ")";
                return false;
            }
        }
        takes_[job.id] = std::move(pending_);
        pending_.clear();
        if (!shape.mixed_kinds) fault = one_kind(job, known);
        return fault.empty();
    }
    void give(const JobStarted& job) {
        for (const Slot& slot : job.slots) {
            Node& node = nodes[slot.node];
            node.cpus -= slot.cpus, node.memory -= slot.memory;
            if (--node.slots == 0) node.exclusive = false;
        }
        for (const auto& [node, id, milli, memory] : takes_[job.id]) {
            nodes[node].devices[id].milli -= milli;
            nodes[node].devices[id].memory -= memory;
        }
        takes_.erase(job.id);
    }

private:
    std::string bind_slot(Slot& slot, const Shape& shape, const model::NodeFacts& facts) {
        Node& node = nodes[slot.node];
        const GroupAsk& group = shape.groups.at(slot.group);
        const model::DeviceAsk& ask = ask_of(group, slot.alternative);
        if (node.exclusive || (shape.exclusive && node.slots > 0)) return "not alone";
        slot.cpus = node_cpus(group, slot.alternative, facts, shape.exclusive);
        slot.memory = group.memory;
        node.cpus += slot.cpus, node.memory += slot.memory;
        ++node.slots;
        node.exclusive = shape.exclusive;
        if (node.cpus > facts.cpus) return "CPUs";
        if (node.memory > facts.memory) return "memory";
        const bool part = ask.fraction > 0 || ask.share_memory.value > 0;
        if (part) return bind_part(slot, shape, ask, facts, node);
        std::vector<const model::Device*> free;
        for (const model::Device& device : facts.devices)
            if (device.healthy && matches(ask, device) && node.devices[device.id].milli == 0)
                free.push_back(&device);
        const auto count = static_cast<std::size_t>(ask.count);
        const auto picked = pick(free, count, shape.topology.required);
        if (picked.size() != count) return "devices";
        for (const model::Device* device : picked) take(slot, *device, 1000, device->memory);
        return "";
    }
    std::string bind_part(Slot& slot, const Shape& shape, const model::DeviceAsk& ask,
                          const model::NodeFacts& facts, Node& node) {
        const model::Device* best = nullptr;
        for (const model::Device& device : facts.devices) {
            if (!device.healthy || !matches(ask, device)) continue;
            if (!device.share_enforced && !shape.share_unenforced) continue;
            const Device& used = node.devices[device.id];
            if (used.milli + part_milli(ask, device.memory) > 1000 ||
                used.memory + ask.share_memory > device.memory)
                continue;
            if (best == nullptr || node.devices[best->id].milli < used.milli) best = &device;
        }
        if (best == nullptr) return "part of a device";
        take(slot, *best, part_milli(ask, best->memory), ask.share_memory);
        return "";
    }
    void take(Slot& slot, const model::Device& device, std::int64_t milli, Bytes memory) {
        Device& to = nodes[slot.node].devices[device.id];
        to.milli += milli, to.memory += memory;
        slot.devices.push_back(device.id);
        pending_.emplace_back(slot.node, device.id, milli, memory);
    }
    static std::string one_kind(const JobStarted& job, const std::map<NodeId, NodeChanged>& known) {
        std::map<std::uint32_t, std::set<std::string>> kinds;
        for (const Slot& slot : job.slots)
            for (const std::string& id : slot.devices)
                for (const model::Device& device : known.at(slot.node).facts->devices)
                    if (device.id == id) kinds[slot.group].insert(device.kind);
        for (const auto& [group, of] : kinds)
            if (of.size() > 1) return "several kinds";
        return "";
    }
    /// Out of the smallest island that holds them; else the islands with most.
    static std::vector<const model::Device*> pick(const std::vector<const model::Device*>& free,
                                                  std::size_t count, const std::string& required) {
        using Group = std::vector<const model::Device*>;
        const auto smallest = [&](auto key) {
            std::map<std::string, Group> groups;
            for (const model::Device* device : free)
                if (!key(*device).empty()) groups[key(*device)].push_back(device);
            Group best;
            for (auto& [name, group] : groups)
                if (group.size() >= count && (best.empty() || group.size() < best.size()))
                    best = group;
            if (!best.empty()) best.resize(count);
            return best;
        };
        const auto link = [](const model::Device& device) { return device.link_group; };
        const auto numa = [](const model::Device& device) {
            return device.numa < 0 ? std::string() : std::to_string(device.numa);
        };
        if (count == 0) return {};
        if (required != "numa")
            if (Group found = smallest(link); !found.empty()) return found;
        if (required == "link") return {};
        if (Group found = smallest(numa); !found.empty()) return found;
        if (required == "numa" || free.size() < count) return {};
        std::map<std::pair<std::string, int>, Group> cells;
        for (const model::Device* device : free)
            cells[{device->link_group, device->numa}].push_back(device);
        std::vector<Group> order;
        for (auto& [key, group] : cells) order.push_back(group);
        std::ranges::stable_sort(
            order, [](const Group& a, const Group& b) { return a.size() > b.size(); });
        Group out;
        for (const Group& group : order)
            for (const model::Device* device : group)
                if (out.size() < count) out.push_back(device);
        return out;
    }

    using Took = std::tuple<NodeId, std::string, std::int64_t, Bytes>;
    std::vector<Took> pending_;
    std::map<JobId, std::vector<Took>> takes_;
};

}  // namespace muster::scheduler
