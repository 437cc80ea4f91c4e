#include "scheduler/placer.h"

#include <algorithm>
#include <array>

#include "base/require.h"
#include "scheduler/place.h"

namespace muster::scheduler {
namespace {

constexpr std::uint32_t kCluster = kNone;  // As a level: everything.

}  // namespace

std::vector<std::pair<std::uint16_t, std::int32_t>> pick_cells(const std::vector<Cell>& cells,
                                                               std::int32_t count, bool need_link,
                                                               bool need_numa) {
    std::vector<std::pair<std::uint16_t, std::int32_t>> out;
    if (cells.size() == 1) {
        const Cell& only = cells.front();
        if (only.free < count || (need_link && only.link.empty()) || (need_numa && only.numa < 0))
            return out;
        out.emplace_back(std::uint16_t{0}, count);
        return out;
    }
    // The smallest island of equal key that holds them all.
    const auto island = [&](auto same, auto named) {
        std::size_t best = cells.size();
        std::int32_t best_free = 0;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (!named(cells[i])) continue;
            std::int32_t free = 0;
            for (const Cell& other : cells)
                if (same(cells[i], other)) free += other.free;
            if (free < count || (best < cells.size() && free >= best_free)) continue;
            best = i, best_free = free;
        }
        if (best == cells.size()) return false;
        std::int32_t left = count;
        for (std::size_t i = 0; i < cells.size() && left > 0; ++i) {
            if (!same(cells[best], cells[i]) || cells[i].free <= 0) continue;
            const std::int32_t some = std::min(left, cells[i].free);
            out.emplace_back(static_cast<std::uint16_t>(i), some);
            left -= some;
        }
        return true;
    };
    const auto same_link = [](const Cell& a, const Cell& b) { return a.link == b.link; };
    const auto same_numa = [](const Cell& a, const Cell& b) { return a.numa == b.numa; };
    if (!need_numa && island(same_link, [](const Cell& c) { return !c.link.empty(); })) return out;
    if (need_link) return out;
    if (island(same_numa, [](const Cell& c) { return c.numa >= 0; })) return out;
    if (need_numa) return out;
    std::vector<std::uint16_t> order(cells.size());
    for (std::uint16_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](auto a, auto b) { return cells[a].free > cells[b].free; });
    std::int32_t left = count;
    for (const std::uint16_t i : order) {
        const std::int32_t some = std::min(left, cells[i].free);
        if (some <= 0) break;
        out.emplace_back(i, some);
        left -= some;
    }
    if (left > 0) out.clear();
    return out;
}

namespace {

/// What all groups together use at least, whatever the choices: devices, CPUs and memory.
Demand least_demand(const ShapeEntry& entry) {
    std::array<std::int64_t, 3> sum{};
    for (std::size_t group = 0; group < entry.groups.size(); ++group) {
        const GroupAsk& ask = entry.shape.groups[group];
        const std::int64_t nodes = ask.nodes + (group == 0 ? entry.shape.topology.spares : 0);
        std::optional<std::int64_t> devices;
        for (const Choice& choice : entry.groups[group].choices) {
            const bool none = choice.demand.empty();
            const std::int64_t here = none ? 0 : choice.demand.front().second;
            devices = std::min(devices.value_or(here), here);
        }
        sum[0] += devices.value_or(0) * nodes;
        sum[1] += ask.cpus.value * nodes, sum[2] += ask.memory.value * nodes;
    }
    Demand out;
    for (std::uint32_t r = 0; r < sum.size(); ++r)
        if (sum[r] > 0) out.emplace_back(r, sum[r]);
    return out;
}

}  // namespace

void Placer::begin(const Request& request) {
    request_ = &request;
    refusal_ = {};
    mark_ = ++state_.marks;
    const model::TopologyAsk& topology = request.shape->shape.topology;
    island_ = Island::Any;
    required_ = slice_level_ = kNone;
    impossible_ = false;
    const auto read = [&](const std::string& name, std::uint32_t& level) {
        if (name.empty() || name == "cluster") return;
        level = state_.level_of(name);
        if (level != kNone) return;
        if (name == "link" || name == "nvlink")
            island_ = Island::Link;
        else if (name == "numa")
            island_ = Island::Numa;
        else if (name != "node")
            impossible_ = true;
    };
    read(topology.required, required_);
    if (topology.slice > 0) read(topology.slice_required, slice_level_);
    // What is in one domain is in one of every level above it.
    if (slice_level_ != kNone && required_ != kNone && slice_level_ < required_)
        slice_level_ = required_;
}

std::optional<Placement> Placer::place(const Request& request) {
    begin(request);
    state_.prepare(*request.shape);
    const std::size_t mark = draft_.mark();
    Placement out;
    if (impossible_) return std::nullopt;
    if (request.shape->groups.size() > 1 && !within_limits(least_demand(*request.shape), 0))
        return std::nullopt;
    for (std::uint32_t group = 0; group < request.shape->groups.size(); ++group) {
        if (place_group(group, out)) continue;
        draft_.undo_to(mark);
        return std::nullopt;
    }
    std::ranges::stable_partition(out.slots, [](const Slot& slot) { return !slot.spare; });
    return out;
}

bool Placer::place_group(std::uint32_t group, Placement& out) {
    const GroupAsk& ask = request_->shape->shape.groups[group];
    const std::int64_t nodes = ask.nodes + (group == 0 ? request_->elastic_extra : 0);
    const std::int64_t spares = group == 0 ? request_->shape->shape.topology.spares : 0;
    const std::span<const Choice> choices = request_->shape->groups[group].choices;
    for (std::size_t first = 0, end = 1; first < choices.size(); first = end++) {
        if (nodes + spares > 1) {
            if (place_choice(group, choices[first], nodes, out)) return true;
            continue;
        }
        while (end < choices.size() && as_good(choices[first], choices[end])) ++end;
        if (place_single(group, choices.subspan(first, end - first), out)) return true;
    }
    return false;
}

/// Whether nobody would rather have one than the other: kinds of equal speed.
bool Placer::as_good(const Choice& a, const Choice& b) const {
    if (a.alternative != b.alternative || a.kind.empty() || b.kind.empty()) return false;
    if (a.shelves.empty() || b.shelves.empty()) return false;
    const auto speed = [&](const Choice& choice) {
        return state_.pools[choice.shelves.front() - kFirstPoolShelf].speed;
    };
    return speed(a) == speed(b);
}

bool Placer::within_limits(const Demand& demand, std::uint32_t group) {
    if (request_->ignore_limits) return true;
    QueueEntry* queue = request_->shape->queue;
    UserBook& user = queue->users[request_->user];
    user.used.resize(state_.resources.size());
    QueueEntry* blocking = nullptr;
    auto limit = limit_of(state_, queue, user, demand, request_->shape->shape.preemptible,
                          group == 0, &blocking);
    if (!limit) return true;
    refusal_.limit = std::move(limit);
    refusal_.limiting = blocking;
    return false;
}

/// Limits first (F18, F22): nothing is looked for that could not be had.
bool Placer::may_have(std::uint32_t group, const Choice& choice, std::int64_t nodes) {
    const GroupAsk& ask = request_->shape->shape.groups[group];
    Demand rough = choice.demand;
    for (auto& [resource, amount] : rough) amount *= nodes;
    if (ask.memory.value > 0) rough.emplace_back(2, ask.memory.value * nodes);
    if (ask.cpus.value > 0) rough.emplace_back(1, ask.cpus.value * nodes);
    if (!within_limits(rough, group)) return false;
    refusal_.searched = true;
    std::int32_t most = 0;
    for (const std::uint32_t shelf : choice.shelves)
        most = std::max(most, state_.shelves[shelf].most);
    return choice.step <= most;
}

bool Placer::place_choice(std::uint32_t group, const Choice& choice, std::int64_t nodes,
                          Placement& out) {
    const GroupAsk& ask = request_->shape->shape.groups[group];
    const std::int64_t spares = group == 0 ? request_->shape->shape.topology.spares : 0;
    if (!may_have(group, choice, nodes + spares)) return false;
    mark_ = ++state_.marks;
    std::vector<NodeEntry*> found;
    if (!gang(ask, choice, nodes + spares, found)) return false;
    return slots_of(group, choice, found, spares, out);
}

bool Placer::place_single(std::uint32_t group, std::span<const Choice> choices, Placement& out) {
    std::vector<const Choice*> open;
    for (const Choice& choice : choices)
        if (may_have(group, choice, 1)) open.push_back(&choice);
    while (!open.empty()) {
        mark_ = ++state_.marks;
        const auto [node, choice] = single(request_->shape->shape.groups[group], open);
        if (node == nullptr) return false;
        std::vector<NodeEntry*> found = {node};
        if (slots_of(group, *choice, found, 0, out)) return true;
        std::erase(open, choice);  // Beyond a limit with the CPUs that it would get there.
    }
    return false;
}

bool Placer::slots_of(std::uint32_t group, const Choice& choice, std::vector<NodeEntry*>& nodes,
                      std::int64_t spares, Placement& out) {
    const GroupAsk& ask = request_->shape->shape.groups[group];
    const std::size_t mark = draft_.mark(), slots = out.slots.size();
    Demand demand = choice.demand;
    for (auto& [resource, amount] : demand) amount *= static_cast<std::int64_t>(nodes.size());
    std::int64_t cpus = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        NodeEntry& node = *nodes[i];
        const auto fit = fits(node, ask, choice);
        if (!fit) break;
        Take take = take_for(node, ask, choice, *fit);
        cpus += take.cpus.value;
        Slot& slot = out.slots.emplace_back();
        slot.node = node.id, slot.group = group, slot.alternative = choice.alternative;
        slot.spare = i + static_cast<std::size_t>(spares) >= nodes.size();
        if (fit->pool != kNone)
            out.speed = std::min(out.speed, state_.pools[node.pools[fit->pool].pool].speed);
        draft_.take(node, std::move(take));
    }
    const auto memory = ask.memory.value * static_cast<std::int64_t>(nodes.size());
    demand.emplace_back(1, cpus);
    if (memory > 0) demand.emplace_back(2, memory);
    QueueEntry* queue = request_->shape->queue;
    if (out.slots.size() == slots + nodes.size() && within_limits(demand, group)) {
        draft_.use(queue, queue->users[request_->user], demand, group == 0 ? 1 : 0);
        out.demand.insert(out.demand.end(), demand.begin(), demand.end());
        return true;
    }
    draft_.undo_to(mark);
    out.slots.resize(slots);
    return false;
}

std::optional<Placement> Placer::place_on(const Request& request, std::span<const Slot> slots) {
    begin(request);
    state_.prepare(*request.shape);
    const std::size_t mark = draft_.mark();
    Placement out;
    std::size_t at = 0;
    for (std::uint32_t group = 0; group < request.shape->groups.size(); ++group) {
        std::size_t end = at;
        while (end < slots.size() && slots[end].group == group && !slots[end].spare) ++end;
        std::vector<NodeEntry*> nodes;
        for (std::size_t i = at; i < end; ++i) {
            const auto node = state_.nodes.find(slots[i].node);
            if (node != state_.nodes.end()) nodes.push_back(&node->second);
        }
        std::int64_t spares = 0;
        if (group == 0)
            for (const Slot& slot : slots) {
                const auto node = state_.nodes.find(slot.node);
                if (!slot.spare || node == state_.nodes.end()) continue;
                nodes.push_back(&node->second);
                ++spares;
            }
        bool placed = false;
        const GroupAsk& ask = request.shape->shape.groups[group];
        const auto count = static_cast<std::int64_t>(end - at);
        // Of what a gang has left, a promise is not all.
        const bool whole = count >= ask.nodes && count <= std::max(ask.nodes, ask.nodes_max) &&
                           (group > 0 || spares == request.shape->shape.topology.spares);
        for (const Choice& choice : request.shape->groups[group].choices) {
            if (placed || !whole || nodes.size() != end - at + static_cast<std::size_t>(spares))
                break;
            if (at < end && choice.alternative != slots[at].alternative) continue;
            mark_ = ++state_.marks;
            placed = !nodes.empty() && slots_of(group, choice, nodes, spares, out);
        }
        if (!placed) {
            draft_.undo_to(mark);
            return std::nullopt;
        }
        at = end;
    }
    std::ranges::stable_partition(out.slots, [](const Slot& slot) { return !slot.spare; });
    return out;
}

MilliCpu Placer::cpus_for(const NodeEntry& node, const GroupAsk& group,
                          const Choice& choice) const {
    return node_cpus(group, choice.alternative, *node.facts, request_->shape->shape.exclusive);
}

Take Placer::take_for(const NodeEntry& node, const GroupAsk& group, const Choice& choice,
                      const Fit& fit) const {
    Take take;
    take.cpus = cpus_for(node, group, choice);
    take.memory = group.memory, take.disk = group.disk;
    take.exclusive = request_->shape->shape.exclusive;
    if (fit.pool == kNone) return take;
    if (fit.device != kNone) {
        take.part_pool = fit.pool, take.part_device = fit.device;
        take.part_milli = part_milli(ask_of(group, choice.alternative),
                                     state_.pools[node.pools[fit.pool].pool].memory);
        take.part_memory = choice.part_memory;
        return take;
    }
    for (const auto& [cell, count] :
         pick_cells(node.pools[fit.pool].cells, static_cast<std::int32_t>(choice.count),
                    island_ == Island::Link, island_ == Island::Numa))
        take.cells.push_back({static_cast<std::uint16_t>(fit.pool), cell, count});
    return take;
}

std::optional<Fit> Placer::fits(NodeEntry& node, const GroupAsk& group, const Choice& choice) {
    const Shape& shape = request_->shape->shape;
    if (!node.visible || node.mark == mark_ || (shape.exclusive && node.slots > 0)) return {};
    if (node.memory < group.memory || node.disk < group.disk ||
        node.cpus < cpus_for(node, group, choice))
        return {};
    const auto& constraint = request_->shape->constraint;
    if (constraint != nullptr && !constraint->nodes.test(node.at)) return {};
    if (!request_->avoid.empty() &&
        std::ranges::find(request_->avoid, node.id) != request_->avoid.end())
        return {};
    Fit fit;
    const bool part = choice.part_milli > 0 || choice.part_memory.value > 0;
    if (choice.count > 0 || part) {
        for (std::uint32_t i = 0; i < node.pools.size() && fit.pool == kNone; ++i) {
            const NodePool& share = node.pools[i];
            if (std::ranges::find(choice.shelves, kFirstPoolShelf + share.pool) ==
                choice.shelves.end())
                continue;
            if (part) {
                const Pool& pool = state_.pools[share.pool];
                const std::int64_t milli =
                    part_milli(ask_of(group, choice.alternative), pool.memory);
                std::int64_t best = 1001;
                for (const PartBook& book : share.parts) {
                    const std::int64_t left = 1000 - book.milli - milli;
                    if (left < 0 || pool.memory < book.memory + choice.part_memory) continue;
                    if (left < best) best = left, fit = {i, book.device, left};
                }
                if (fit.pool == kNone && share.free > 0) {
                    // Any without parts, of a cell where one is free: the books count only.
                    std::uint32_t device = 0;
                    const auto may = [&](const CellTake& of) {
                        return of.pool == i && of.count > 0 && share.cells[of.cell].free > 0 &&
                               std::ranges::find(share.parts, device, &PartBook::device) ==
                                   share.parts.end();
                    };
                    while (device < node.cell_of.size() && !may(node.cell_of[device])) ++device;
                    if (device < node.cell_of.size()) fit = {i, device, 1000 - milli};
                }
            } else if (share.free >= choice.count) {
                if (island_ != Island::Any &&
                    pick_cells(share.cells, static_cast<std::int32_t>(choice.count),
                               island_ == Island::Link, island_ == Island::Numa)
                        .empty())
                    continue;
                fit.pool = i;
            }
        }
        if (fit.pool == kNone) return {};
    }
    if (state_.booked.test(node.at) && !may_use(node, group, choice, fit)) return {};
    return fit;
}

bool Placer::may_use(NodeEntry& node, const GroupAsk& group, const Choice& choice, const Fit& fit) {
    const Shape& shape = request_->shape->shape;
    const std::int64_t speed =
        fit.pool == kNone ? 1000 : state_.pools[node.pools[fit.pool].pool].speed;
    const Duration length = length_of(shape, request_->predicted, speed);
    const Time now = request_->now;
    const Time end = length.ms > 0 ? now + length : kNever;
    for (const NodeWindow& window : node.windows) {
        if (window.end <= now || end <= window.start) continue;
        if (allowed(state_, *window.reservation, request_->user, request_->shape->queue)) continue;
        refusal_.window = true, refusal_.reservation = window.id;
        refusal_.window_end = std::min(refusal_.window_end, window.end);
        return false;
    }
    if (request_->ignore_bookings) return true;
    for (const NodeBooking& booking : node.bookings) {
        if (booking.job == request_->job) continue;
        if (end <= booking.at && end != kNever) continue;  // Gone by then.
        if (request_->rule != nullptr && !request_->rule->binds(booking.job)) continue;
        bool beside = !booking.exclusive && !shape.exclusive;
        if (beside) {
            // What will be free when the booking comes.
            std::int64_t devices = 0;
            MilliCpu cpus = node.cpus;
            Bytes memory = node.memory;
            if (fit.pool != kNone) devices = node.pools[fit.pool].free;
            for (const NodeHold& hold : node.held) {
                if (hold.job->start.expected_end > booking.at || booking.at == kNever) break;
                if (hold.job->drafted != 0) continue;
                cpus += hold.take.cpus, memory += hold.take.memory;
                for (const CellTake& cell : hold.take.cells)
                    if (cell.pool == fit.pool) devices += cell.count;
            }
            // Beside all that are there then.
            for (const NodeBooking& other : node.bookings) {
                if (other.job == request_->job || other.at > booking.at) continue;
                if (other.end <= booking.at && other.end != kNever) continue;
                if (request_->rule != nullptr && !request_->rule->binds(other.job)) continue;
                cpus -= other.cpus, memory -= other.memory;
                if (other.pool == fit.pool) devices -= other.devices;
            }
            const std::int64_t wanted = fit.device == kNone ? choice.count : 1;
            beside = cpus >= cpus_for(node, group, choice) && memory >= group.memory &&
                     (fit.pool == kNone || booking.pool != fit.pool || devices >= wanted);
        }
        if (beside) continue;
        refusal_.booked = true;
        if (!refusal_.behind) refusal_.behind = booking.job;
        return false;
    }
    return true;
}

// ---- gangs ------------------------------------------------------------------------------------

std::int64_t Placer::bound(const Choice& choice, std::uint32_t level, std::uint32_t domain) const {
    std::int64_t sum = 0;
    for (const std::uint32_t id : choice.shelves) {
        const Shelf& shelf = state_.shelves[id];
        if (choice.step > shelf.most) continue;
        const auto step = static_cast<std::size_t>(choice.step - 1);
        if (level == kCluster)
            sum += shelf.all[step];
        else
            sum += shelf.counts[level][step][domain];
        // A node with a device given away in parts may have room for another part: not counted.
    }
    return sum;
}

bool Placer::gang(const GroupAsk& group, const Choice& choice, std::int64_t nodes,
                  std::vector<NodeEntry*>& out) {
    const std::int64_t all = bound(choice, kCluster, 0);
    if (all < nodes) return false;
    const auto levels = static_cast<std::uint32_t>(state_.levels.size());
    const std::uint32_t highest = required_ == kNone ? 0 : required_;
    for (std::uint32_t level = levels; level-- > highest;) {
        if (slice_level_ != kNone && level > slice_level_) continue;
        const auto count = static_cast<std::uint32_t>(state_.domains[level].size());
        std::vector<bool> tried(count, false);
        while (true) {
            std::uint32_t best = kNone;
            std::int64_t best_bound = 0;
            for (std::uint32_t i = 0; i < count; ++i) {
                const std::int64_t here = tried[i] ? 0 : bound(choice, level, i);
                if (here > refusal_.fit && level == highest)
                    refusal_.fit = here, refusal_.level = level, refusal_.domain = i;
                if (here < nodes) continue;
                const bool quieter =
                    best != kNone && here == best_bound &&
                    state_.domains[level][i].spanning < state_.domains[level][best].spanning;
                if (best == kNone || here < best_bound || quieter) best = i, best_bound = here;
            }
            if (best == kNone) break;
            if (gather(group, choice, level, best, nodes, out)) return true;
            tried[best] = true;
        }
    }
    if (required_ == kNone && gather(group, choice, kCluster, 0, nodes, out)) return true;
    refusal_.topology = refusal_.topology || required_ != kNone || slice_level_ != kNone;
    return false;
}

bool Placer::gather(const GroupAsk& group, const Choice& choice, std::uint32_t level,
                    std::uint32_t domain, std::int64_t nodes, std::vector<NodeEntry*>& out) {
    mark_ = ++state_.marks;
    out.clear();
    const model::TopologyAsk& topology = request_->shape->shape.topology;
    std::int64_t spares = &group == &request_->shape->shape.groups[0] ? topology.spares : 0;
    const std::int64_t slice =
        slice_level_ == kNone ? 1 : std::max<std::int64_t>(1, topology.slice);
    const std::int64_t wanted = nodes - spares;
    if (collect(group, choice, level, domain, wanted, slice, out) < wanted) return false;
    std::ranges::sort(out, {}, &NodeEntry::at);
    std::vector<NodeEntry*> beside;
    if (spares > 0 && collect(group, choice, level, domain, spares, 1, beside) < spares)
        return false;
    out.insert(out.end(), beside.begin(), beside.end());
    // fits() of the caller looks at them once more.
    mark_ = ++state_.marks;
    return true;
}

std::int64_t Placer::scan(const GroupAsk& group, const Choice& choice, std::uint32_t first,
                          std::uint32_t last, std::int64_t wanted, std::vector<NodeEntry*>& out) {
    std::int64_t got = 0;
    for (const std::uint32_t id : choice.shelves) {
        const Shelf& shelf = state_.shelves[id];
        for (std::int32_t step = choice.step; step <= shelf.most && got < wanted; ++step) {
            const Bitmap& nodes = shelf.exact[static_cast<std::size_t>(step - 1)];
            for (std::size_t at = nodes.next(first, last); at != Bitmap::kNone && got < wanted;
                 at = nodes.next(at + 1, last)) {
                NodeEntry& node = *state_.order[at];
                if (!fits(node, group, choice)) continue;
                node.mark = mark_;
                out.push_back(&node);
                ++got;
            }
        }
    }
    return got;
}

/// Up to `wanted` nodes, from as few domains below as will do; from each domain of the slices'
/// level a multiple of `multiple`. Gives back how many it found.
std::int64_t Placer::collect(const GroupAsk& group, const Choice& choice, std::uint32_t level,
                             std::uint32_t domain, std::int64_t wanted, std::int64_t multiple,
                             std::vector<NodeEntry*>& out) {
    const bool cluster = level == kCluster;
    const std::uint32_t first = cluster ? 0 : state_.domains[level][domain].first;
    const std::uint32_t last = cluster ? static_cast<std::uint32_t>(state_.order.size())
                                       : state_.domains[level][domain].last;
    const std::uint32_t below = cluster ? 0 : level + 1;
    const bool slices = multiple > 1 && !cluster && level == slice_level_;
    if (slices) wanted = std::min(wanted, bound(choice, level, domain)) / multiple * multiple;
    if (slices || below >= state_.levels.size()) {
        const std::size_t before = out.size();
        std::int64_t got = scan(group, choice, first, last, wanted, out);
        for (; slices && got % multiple != 0; --got) out.back()->mark = 0, out.pop_back();
        MUSTER_REQUIRE(out.size() == before + static_cast<std::size_t>(got));
        return got;
    }
    struct Child {
        std::uint32_t id;
        std::int64_t bound;
    };
    std::vector<Child> children;
    const auto& known = state_.domains[below];
    for (auto at = std::ranges::lower_bound(known, first, {}, &Domain::first) - known.begin();
         at < std::ssize(known) && known[static_cast<std::size_t>(at)].first < last; ++at) {
        const auto id = static_cast<std::uint32_t>(at);
        const std::int64_t here = bound(choice, below, id) /
                                  (below == slice_level_ ? multiple : 1) *
                                  (below == slice_level_ ? multiple : 1);
        if (here > 0) children.push_back({id, here});
    }
    std::int64_t got = 0;
    while (got < wanted) {
        Child* best = nullptr;
        for (Child& child : children) {
            if (child.bound <= 0) continue;
            const bool holds = child.bound >= wanted - got;
            const bool best_holds = best != nullptr && best->bound >= wanted - got;
            if (best == nullptr || (holds && !best_holds) ||
                (holds == best_holds &&
                 (holds ? child.bound < best->bound : child.bound > best->bound)))
                best = &child;
        }
        if (best == nullptr) break;
        got += collect(group, choice, below, best->id, std::min(wanted - got, best->bound),
                       multiple, out);
        best->bound = 0;
    }
    if (got < wanted && multiple == 1)
        got += scan(group, choice, first, last, wanted - got, out);  // In no domain below.
    return got;
}

}  // namespace muster::scheduler
