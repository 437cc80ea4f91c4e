#include "scheduler/book.h"

#include <algorithm>

#include "scheduler/place.h"

namespace muster::scheduler {
namespace {

using State = PlanIndex::State;

constexpr Duration kOverrunMin{60'000};

/// A job that is over its expected end is taken to need as long again.
Time end_of(const StartedJob& job, Time now) {
    if (job.stopping) return std::max(now, job.until);
    if (job.start.expected_end > now) return job.start.expected_end;
    return now + std::max(kOverrunMin, now - job.start.started);
}

struct When {
    Time at;
    std::int64_t open = 0;  // Devices free now: of two nodes never free, the emptier.
    std::uint32_t node = 0;
};
bool earlier(const When& a, const When& b) {
    return std::tuple(a.at, -a.open, a.node) < std::tuple(b.at, -b.open, b.node);
}

class Finder {
public:
    Finder(State& state, const Request& request) : state_(state), request_(request) {}

    std::optional<Booking> find() {
        const Shape& shape = request_.shape->shape;
        Booking booking{request_.job, request_.now, {}, request_.now};
        for (std::uint32_t group = 0; group < shape.groups.size(); ++group) {
            std::optional<std::vector<When>> best;
            const Choice* of = nullptr;
            for (const Choice& choice : request_.shape->groups[group].choices) {
                auto found = group_at(group, choice);
                if (!found || (best && last(*best) <= last(*found))) continue;
                best = std::move(found), of = &choice;
            }
            if (!best) return std::nullopt;
            std::ranges::sort(*best, {}, &When::node);
            for (const When& when : *best) {
                Slot slot;
                slot.node = state_.order[when.node]->id;
                slot.group = group, slot.alternative = of->alternative;
                slot.spare = std::ssize(booking.slots) >= shape.groups[group].nodes && group == 0 &&
                             shape.groups.size() == 1;
                booking.slots.push_back(slot);
                taken_.push_back(when.node);
            }
            booking.at = std::max(booking.at, last(*best));
        }
        return booking;
    }

private:
    static Time last(const std::vector<When>& nodes) {
        Time at;
        for (const When& when : nodes) at = std::max(at, when.at);
        return at;
    }

    /// When the node could take one share; nothing: never, even empty.
    std::optional<When> node_at(NodeEntry& node, const GroupAsk& group, const Choice& choice) {
        if (!node.usable || !fits_empty(state_, node, *request_.shape, group, choice)) return {};
        if (std::ranges::find(request_.avoid, node.id) != request_.avoid.end()) return {};
        std::uint32_t pool = kNone;
        std::int64_t devices = 0, wanted = choice.count;
        const bool part = choice.part_milli > 0 || choice.part_memory.value > 0;
        if (part) wanted = 1;
        for (std::uint32_t i = 0; i < node.pools.size() && wanted > 0 && pool == kNone; ++i)
            if (std::ranges::find(choice.shelves, kFirstPoolShelf + node.pools[i].pool) !=
                    choice.shelves.end() &&
                node.pools[i].healthy >= wanted)
                pool = i, devices = node.pools[i].free;
        MilliCpu cpus = node.cpus;
        Bytes memory = node.memory, disk = node.disk;
        std::int32_t slots = node.slots;
        const bool whole = request_.shape->shape.exclusive;
        Time after = request_.now;
        for (const NodeBooking& booking : node.bookings) {
            if (booking.job == request_.job || unbound(booking.job)) continue;
            if (booking.exclusive || whole) {
                after = std::max(after, booking.end);
                continue;
            }
            cpus -= booking.cpus, memory -= booking.memory;
            if (booking.pool == pool) devices -= booking.devices;
        }
        const MilliCpu need =
            node_cpus(group, choice.alternative, *node.facts, request_.shape->shape.exclusive);
        bool exclusive = node.exclusive;
        const auto enough = [&] {
            return devices >= wanted && cpus >= need && memory >= group.memory &&
                   disk >= group.disk && !exclusive && (!whole || slots == 0);
        };
        Time at = after;
        if (!enough()) {
            at = kNever;
            for (const NodeHold& hold : node.held) {
                cpus += hold.take.cpus, memory += hold.take.memory, disk += hold.take.disk;
                --slots;
                if (hold.take.exclusive) exclusive = false;
                for (const CellTake& cell : hold.take.cells)
                    if (cell.pool == pool) devices += cell.count;
                if (hold.take.part_pool == pool && part) devices += 1;
                at = std::max({after, end_of(*hold.job, request_.now), request_.now});
                if (enough()) break;
                at = kNever;
            }
        }
        if (at != kNever) at = after_windows(node, at);
        return When{at, pool == kNone ? node.cpus.value : node.pools[pool].free, node.at};
    }
    bool unbound(JobId job) const { return request_.rule != nullptr && !request_.rule->binds(job); }
    Time after_windows(const NodeEntry& node, Time at) const {
        const Duration length = length_of(request_.shape->shape, request_.predicted, 1000);
        for (const NodeWindow& window : node.windows) {
            if (allowed(state_, *window.reservation, request_.user, request_.shape->queue))
                continue;
            if (window.end <= at) continue;
            if (length.ms > 0 && at + length <= window.start) break;
            at = window.end;
        }
        return at;
    }

    std::optional<std::vector<When>> group_at(std::uint32_t index, const Choice& choice) {
        const Shape& shape = request_.shape->shape;
        const GroupAsk& group = shape.groups[index];
        const std::int64_t nodes = group.nodes + (index == 0 ? shape.topology.spares : 0);
        std::vector<When> all;
        for (NodeEntry* node : state_.order) {
            if (std::ranges::find(taken_, node->at) != taken_.end()) continue;
            if (const auto when = node_at(*node, group, choice)) all.push_back(*when);
        }
        if (std::ssize(all) < nodes) return std::nullopt;
        const std::uint32_t required = state_.level_of(shape.topology.required);
        const std::uint32_t slices =
            shape.topology.slice > 0 ? state_.level_of(shape.topology.slice_required) : kNone;
        const std::int64_t spares = nodes - group.nodes, slice = shape.topology.slice;
        if (required == kNone) return pick(all, nodes, slices, slice, spares);
        std::optional<std::vector<When>> best;
        for (std::size_t from = 0; from < all.size();) {
            const std::uint32_t domain = state_.order[all[from].node]->domains[required];
            std::size_t to = from;
            while (to < all.size() && state_.order[all[to].node]->domains[required] == domain) ++to;
            if (domain != kNone) {
                const std::vector<When> here(all.begin() + static_cast<std::ptrdiff_t>(from),
                                             all.begin() + static_cast<std::ptrdiff_t>(to));
                auto found = pick(here, nodes, slices, slice, spares);
                if (found && (!best || last(*found) < last(*best))) best = std::move(found);
            }
            from = to;
        }
        return best;
    }
    /// The `nodes` that are free first; by whole slices if there are.
    std::optional<std::vector<When>> pick(std::vector<When> from, std::int64_t nodes,
                                          std::uint32_t level, std::int64_t slice,
                                          std::int64_t spares) const {
        const auto wanted = static_cast<std::size_t>(nodes);
        if (from.size() < wanted) return std::nullopt;
        if (level == kNone) {
            std::ranges::nth_element(from, from.begin() + static_cast<std::ptrdiff_t>(wanted) - 1,
                                     earlier);
            from.resize(wanted);
            return from;
        }
        std::vector<std::vector<When>> ready;  // Slices, each by time.
        for (std::size_t i = 0; i < from.size();) {
            const std::uint32_t domain = state_.order[from[i].node]->domains[level];
            std::vector<When> here;
            for (; i < from.size() && state_.order[from[i].node]->domains[level] == domain; ++i)
                here.push_back(from[i]);
            std::ranges::sort(here, earlier);
            const auto size = static_cast<std::size_t>(slice);
            for (std::size_t at = 0; domain != kNone && at + size <= here.size(); at += size)
                ready.emplace_back(here.begin() + static_cast<std::ptrdiff_t>(at),
                                   here.begin() + static_cast<std::ptrdiff_t>(at + size));
        }
        std::ranges::stable_sort(
            ready, [](const auto& a, const auto& b) { return earlier(a.back(), b.back()); });
        std::vector<When> out;
        const std::size_t in_slices = wanted - static_cast<std::size_t>(spares);
        for (const auto& nodes_of : ready) {
            if (out.size() >= in_slices) break;
            out.insert(out.end(), nodes_of.begin(), nodes_of.end());
        }
        if (out.size() < in_slices) return std::nullopt;
        std::ranges::sort(from, earlier);
        for (const When& when : from) {
            if (out.size() >= wanted) break;
            if (std::ranges::find(out, when.node, &When::node) == out.end()) out.push_back(when);
        }
        return out;
    }

    State& state_;
    const Request& request_;
    std::vector<std::uint32_t> taken_;
};

}  // namespace

std::optional<Booking> find_window(State& state, const Request& request) {
    state.prepare(*request.shape);
    return Finder(state, request).find();
}

bool fits_empty(const State& state, const NodeEntry& node, const ShapeEntry& entry,
                const GroupAsk& group, const Choice& choice) {
    const model::NodeFacts& facts = *node.facts;
    if (facts.memory < group.memory || facts.disk < group.disk ||
        facts.cpus < node_cpus(group, choice.alternative, facts, entry.shape.exclusive))
        return false;
    if (entry.constraint != nullptr && !entry.constraint->nodes.test(node.at)) return false;
    const std::string& required = entry.shape.topology.required;
    const bool any = state.level_of(required) != kNone;
    const bool link = !any && (required == "link" || required == "nvlink");
    const bool numa = !any && required == "numa";
    const bool part = choice.part_milli > 0 || choice.part_memory.value > 0;
    if (choice.count == 0 && !part) {
        const std::uint32_t shelf = node.pools.empty() ? kCpuShelf : kCpuShelfOfDeviceNodes;
        return std::ranges::find(choice.shelves, shelf) != choice.shelves.end();
    }
    for (const NodePool& share : node.pools) {
        if (std::ranges::find(choice.shelves, kFirstPoolShelf + share.pool) == choice.shelves.end())
            continue;
        if (share.healthy < (part ? 1 : choice.count)) continue;
        if (!link && !numa) return true;
        std::vector<Cell> cells = share.cells;
        for (Cell& cell : cells) cell.free = cell.healthy;
        const auto count = static_cast<std::int32_t>(part ? 1 : choice.count);
        if (!pick_cells(cells, count, link, numa).empty()) return true;
    }
    return false;
}

void lay(State& state, const Booking& booking, const ShapeEntry& shape,
         const Prediction& predicted) {
    const Duration length = length_of(shape.shape, predicted, 1000);
    for (const Slot& slot : booking.slots) {
        const auto at = state.nodes.find(slot.node);
        if (at == state.nodes.end() || slot.group >= shape.groups.size()) continue;
        NodeEntry& node = at->second;
        const GroupAsk& group = shape.shape.groups[slot.group];
        NodeBooking here;
        here.job = booking.job, here.at = booking.at;
        here.end = length.ms > 0 && booking.at != kNever ? booking.at + length : kNever;
        here.cpus = node_cpus(group, slot.alternative, *node.facts, shape.shape.exclusive);
        here.memory = group.memory;
        here.exclusive = shape.shape.exclusive;
        const model::DeviceAsk& ask = ask_of(group, slot.alternative);
        const bool part = ask.fraction > 0 || ask.share_memory.value > 0;
        for (std::uint32_t i = 0; i < node.pools.size() && here.pool == kNone; ++i) {
            if (ask.count == 0) break;
            if (node.pools[i].healthy < ask.count) continue;
            if (!matches_pool(ask, state.pools[node.pools[i].pool], true)) continue;
            here.pool = i;
            here.devices = part ? 1 : static_cast<std::int32_t>(ask.count);
        }
        node.bookings.push_back(here);
        state.booked.set(node.at);
    }
}

void State::place_bookings() {
    booked.resize(order.size());
    for (NodeEntry* node : order) {
        node->bookings.clear();
        if (!node->windows.empty()) booked.set(node->at);
    }
    for (const Booking& booking : bookings) {
        const auto job = queued.find(booking.job);
        if (job == queued.end()) continue;
        prepare(*job->second.shape);
        lay(*this, booking, *job->second.shape, job->second.ask.predicted);
    }
}

namespace {

/// By counts alone, where that is certain. Nothing: look at the nodes.
std::optional<bool> surely_fits(const State& state, const ShapeEntry& entry, std::size_t group,
                                const Choice& choice) {
    const GroupAsk& ask = entry.shape.groups[group];
    const model::TopologyAsk& topology = entry.shape.topology;
    const std::int64_t nodes = ask.nodes + (group == 0 ? topology.spares : 0);
    std::int64_t upper = 0;
    bool roomy = true;
    for (const std::uint32_t id : choice.shelves) {
        const Shelf& shelf = state.shelves[id];
        if (choice.step > shelf.most) continue;
        upper += shelf.empty_all[static_cast<std::size_t>(choice.step - 1)];
        roomy &= ask.memory <= shelf.least_memory && ask.disk <= shelf.least_disk &&
                 (ask.cpus <= shelf.least_cpus || id < kFirstPoolShelf);
    }
    if (upper < nodes) return false;
    if (entry.constraint != nullptr || !roomy || (ask.cpus.value > 0 && choice.count == 0))
        return std::nullopt;
    if (topology.required.empty() && topology.slice == 0) return true;
    if (choice.count == 0 || choice.shelves.size() != 1) return std::nullopt;
    const std::uint32_t required = state.level_of(topology.required);
    const std::uint32_t slices =
        topology.slice > 0 ? state.level_of(topology.slice_required) : kNone;
    if (required == kNone && (!topology.required.empty() || slices == kNone)) return std::nullopt;
    const Shelf& shelf = state.shelves[choice.shelves.front()];
    const auto step = static_cast<std::size_t>(choice.step - 1);
    if (slices == kNone) {
        const auto& counts = shelf.empty_counts[required][step];
        return std::ranges::any_of(counts, [&](std::int32_t count) { return count >= nodes; });
    }
    if (required != kNone || topology.spares > 0) return std::nullopt;
    std::int64_t whole = 0;
    for (const std::int32_t count : shelf.empty_counts[slices][step])
        whole += count / topology.slice * topology.slice;
    return whole >= nodes;
}

bool slow_fits(State& state, ShapeEntry& entry, std::size_t group, const Choice& choice,
               bool usable_only, std::span<const NodeId> avoid) {
    const GroupAsk& ask = entry.shape.groups[group];
    const model::TopologyAsk& topology = entry.shape.topology;
    const std::uint32_t required = state.level_of(topology.required);
    const std::uint32_t slices =
        topology.slice > 0 ? state.level_of(topology.slice_required) : kNone;
    const std::int64_t spares = group == 0 ? topology.spares : 0;
    std::int64_t here = 0, all = 0, in_slice = 0;
    bool fits = false;
    std::uint32_t domain = kNone, slice = kNone;
    const auto close_slice = [&] {
        if (slices != kNone) here += in_slice / topology.slice * topology.slice;
        in_slice = 0;
    };
    const auto close_domain = [&] {  // Spares need not stand in a slice.
        close_slice();
        fits |= here >= ask.nodes && all >= ask.nodes + spares;
        here = all = 0;
    };
    for (const NodeEntry* node : state.order) {
        const std::uint32_t in = required == kNone ? 0 : node->domains[required];
        const std::uint32_t part = slices == kNone ? 0 : node->domains[slices];
        if (part != slice) close_slice(), slice = part;
        if (in != domain) close_domain(), domain = in;
        if (in == kNone) continue;
        if (usable_only && (!node->usable || std::ranges::find(avoid, node->id) != avoid.end()))
            continue;
        if (!fits_empty(state, *node, entry, ask, choice)) continue;
        ++all;
        if (part != kNone) ++(slices == kNone ? here : in_slice);
    }
    close_domain();
    return fits;
}

}  // namespace

bool known_level(const State& state, const std::string& name) {
    return implied_level(name) || state.level_of(name) != kNone;
}

bool ever_fits(State& state, ShapeEntry& entry, bool usable_only, std::span<const NodeId> avoid) {
    state.prepare(entry);
    const model::TopologyAsk& topology = entry.shape.topology;
    if (!known_level(state, topology.required)) return false;
    if (topology.slice > 0 && !known_level(state, topology.slice_required)) return false;
    if (!usable_only && entry.never_known && entry.nodes_version == state.nodes_version)
        return !entry.never;
    bool all = true;
    for (std::size_t group = 0; group < entry.groups.size() && all; ++group) {
        bool fits = false;
        for (const Choice& choice : entry.groups[group].choices) {
            const auto sure = surely_fits(state, entry, group, choice);
            fits = sure.has_value() && (!*sure || !usable_only)
                       ? *sure
                       : slow_fits(state, entry, group, choice, usable_only, avoid);
            if (fits) break;
        }
        all = fits;
    }
    if (!usable_only) {
        entry.never = !all, entry.never_known = true;
        entry.nodes_version = state.nodes_version;
    }
    return all;
}

}  // namespace muster::scheduler
