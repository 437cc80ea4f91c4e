#include <algorithm>

#include "scheduler/pass.h"
#include "scheduler/place.h"

namespace muster::scheduler {

std::optional<std::vector<Slot>> Placer::place(const Shape& shape, const std::vector<NodeId>& avoid,
                                               const Filter& filter, bool shrinking) {
    const std::size_t mark = draft_.mark();
    std::vector<Slot> slots;
    choices_.clear();
    for (std::uint32_t group = 0; group < shape.groups.size(); ++group) {
        if (place_group(shape, group, avoid, filter, shrinking, slots)) continue;
        draft_.undo_to(mark);
        return std::nullopt;
    }
    return slots;
}

bool Placer::place_group(const Shape& shape, std::uint32_t group, const std::vector<NodeId>& avoid,
                         const Filter& filter, bool shrinking, std::vector<Slot>& slots) {
    const GroupAsk& ask = shape.groups[group];
    const auto wanted = static_cast<std::size_t>(ask.nodes);
    if (wanted > state_.nodes.size()) return false;
    const auto alternatives = static_cast<std::uint32_t>(alternatives_of(ask));
    // With several groups, what one took of a node is back when the whole does not fit.
    const bool may_skip = shrinking && shape.groups.size() == 1;
    for (std::uint32_t alternative = 0; alternative < alternatives; ++alternative) {
        for (const std::string& kind : kinds_for(state_, ask_of(ask, alternative))) {
            const Choice choice{group, alternative, kind};
            Candidates& found = candidates(shape, choice, may_skip);
            std::vector<NodeEntry*> chosen;
            for (std::size_t i = found.first; i < found.nodes.size() && chosen.size() < wanted;
                 ++i) {
                NodeEntry& node = *found.nodes[i];
                if (!draft_.fits(node, shape, choice)) {
                    if (may_skip && i == found.first) ++found.first;
                    continue;
                }
                if (filter && !filter(node, choice)) continue;
                if (std::ranges::find(avoid, node.id) != avoid.end()) continue;
                chosen.push_back(&node);
            }
            if (chosen.size() < wanted) continue;
            std::ranges::sort(chosen, {}, &NodeEntry::id);
            for (NodeEntry* node : chosen) {
                draft_.take(*node, shape, choice);
                Slot slot;
                slot.node = node->id;
                slot.group = group;
                slot.alternative = alternative;
                slots.push_back(std::move(slot));
                choices_.push_back(choice);
            }
            return true;
        }
    }
    return false;
}

/// Best fit: nodes that the share leaves fullest first; work without devices stays off device
/// nodes.
Placer::Candidates& Placer::candidates(const Shape& shape, const Choice& choice, bool shrinking) {
    const auto key = std::tuple(shape.id, choice.group, choice.alternative, choice.kind);
    if (const auto at = known_.find(key); shrinking && at != known_.end()) return at->second;
    struct Ranked {
        std::int64_t devices, cpus;
        NodeId id;
        NodeEntry* node;
    };
    std::vector<Ranked> ranked;
    const model::DeviceAsk& ask = ask_of(shape.groups[choice.group], choice.alternative);
    for (auto& [id, node] : state_.nodes) {
        if (usable_only_ && !node.usable) continue;
        if (!fits_empty(node, shape, choice) || !draft_.fits(node, shape, choice)) continue;
        const std::int64_t devices = ask.count > 0
                                         ? draft_.free_devices(node, ask, choice.kind)
                                         : static_cast<std::int64_t>(node.facts->devices.size());
        ranked.push_back({devices, (node.facts->cpus - draft_.load(node).cpus).value, id, &node});
    }
    std::ranges::sort(ranked, {},
                      [](const Ranked& r) { return std::tuple(r.devices, r.cpus, r.id); });
    Candidates& out = known_[key];
    out.nodes.clear();
    out.first = 0;
    for (const Ranked& r : ranked) out.nodes.push_back(r.node);
    return out;
}

bool ever_fits(PlanIndex::State& state, const Shape& shape, bool usable_only,
               const std::vector<NodeId>& avoid) {
    Draft empty(state, Draft::Base::Empty);
    return Placer(state, empty, usable_only).place(shape, avoid).has_value();
}

Blocked explain(PlanIndex::State& state, Draft& draft, const Shape& shape) {
    Blocked worst;
    std::int64_t worst_short = -1;
    for (std::uint32_t group = 0; group < shape.groups.size(); ++group) {
        const GroupAsk& ask = shape.groups[group];
        Blocked why;
        why.nodes_wanted = ask.nodes;
        why.devices_wanted = ask.nodes * ask_of(ask, 0).count;
        std::vector<Choice> choices;
        for (std::uint32_t alternative = 0; alternative < alternatives_of(ask); ++alternative)
            for (const std::string& kind : kinds_for(state, ask_of(ask, alternative)))
                choices.push_back({group, alternative, kind});
        for (auto& [id, node] : state.nodes) {
            ++why.nodes_total;
            const auto could = [&](const Choice& c) { return fits_empty(node, shape, c); };
            if (!std::ranges::any_of(choices, could)) {
                ++why.nodes_unfit;
                continue;
            }
            std::int64_t most = 0, free = 0;
            for (const Choice& choice : choices) {
                const model::DeviceAsk& devices = ask_of(ask, choice.alternative);
                if (devices.count == 0) continue;
                std::int64_t healthy = 0;
                for (const Bucket& bucket : node.buckets)
                    if (bucket.kind == choice.kind) healthy += bucket.healthy;
                if (!fits_empty(node, shape, choice)) continue;
                most = std::max(most, healthy);
                free = std::max(free, draft.free_devices(node, devices, choice.kind));
            }
            why.devices_total += most;
            if (!node.usable) {
                ++why.nodes_unusable;
                continue;
            }
            why.devices_free += free;
            const auto can = [&](const Choice& c) {
                return fits_empty(node, shape, c) && draft.fits(node, shape, c);
            };
            if (std::ranges::any_of(choices, can))
                ++why.nodes_fit;
            else
                ++why.nodes_busy;
        }
        const std::int64_t missing = std::max<std::int64_t>(0, ask.nodes - why.nodes_fit);
        if (missing > worst_short) worst_short = missing, worst = why;
    }
    return worst;
}

}  // namespace muster::scheduler
