// Positions, domains, pools and shelves: rebuilt when nodes come, go or move; not when jobs do.
#include <algorithm>

#include "base/bytes.h"
#include "base/require.h"
#include "scheduler/index.h"
#include "scheduler/place.h"

namespace muster::scheduler {
namespace {

void number_domains(PlanIndex::State& state) {
    state.domains.assign(state.levels.size(), {});
    for (std::uint32_t at = 0; at < state.order.size(); ++at) {
        NodeEntry& node = *state.order[at];
        node.domains.assign(state.levels.size(), kNone);
        std::uint32_t parent = kNone;
        for (std::size_t level = 0; level < state.levels.size(); ++level) {
            if (node.path[level].empty()) continue;
            auto& known = state.domains[level];
            const auto path = std::vector(
                node.path.begin(), node.path.begin() + static_cast<std::ptrdiff_t>(level) + 1);
            if (known.empty() || known.back().path != path)
                known.push_back({.path = path, .first = at, .last = at, .parent = parent});
            known.back().last = at + 1;
            node.domains[level] = static_cast<std::uint32_t>(known.size() - 1);
            parent = node.domains[level];
        }
    }
}

void make_shelves(PlanIndex::State& state) {
    const std::size_t nodes = state.order.size();
    state.shelves.resize(kFirstPoolShelf + state.pools.size());
    for (std::size_t i = 0; i < state.shelves.size(); ++i) {
        Shelf& shelf = state.shelves[i];
        if (i < kFirstPoolShelf) shelf.most = kCpuSteps;
        shelf.least_cpus = {}, shelf.least_memory = shelf.least_disk = {};
        const auto steps = static_cast<std::size_t>(shelf.most);
        shelf.exact.assign(steps, Bitmap(nodes));
        shelf.all.assign(steps, 0);
        shelf.waiting.resize(std::max(shelf.waiting.size(), steps));
        shelf.counts.assign(state.levels.size(), {});
        for (std::size_t level = 0; level < state.levels.size(); ++level)
            shelf.counts[level].assign(steps,
                                       std::vector<std::int32_t>(state.domains[level].size(), 0));
        shelf.empty_counts = shelf.counts;
        shelf.empty_all = shelf.all;
    }
}

void count_empty(Shelf& shelf, const NodeEntry& node, std::int32_t step) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(step); ++k) {
        ++shelf.empty_all[k];
        for (std::size_t level = 0; level < node.domains.size(); ++level)
            if (node.domains[level] != kNone) ++shelf.empty_counts[level][k][node.domains[level]];
    }
    const auto least = [](auto& known, auto value) {
        if (known.value == 0 || value < known) known = value;
    };
    if (step == 0) return;
    least(shelf.least_cpus, node.facts->cpus);
    least(shelf.least_memory, node.facts->memory);
    least(shelf.least_disk, node.facts->disk);
}

/// Fills in what follows from facts: pools, cells, capacity.
void size_pools(PlanIndex::State& state) {
    for (Pool& pool : state.pools) pool.total = 0;
    for (std::size_t i = kFirstPoolShelf; i < state.shelves.size(); ++i) state.shelves[i].most = 0;
    state.shelves.resize(kFirstPoolShelf + state.pools.size());
    state.cpus_total = state.memory_total = state.devices_total = state.weights_total = 0;
    std::ranges::fill(state.capacity, 0);
    const auto count = [&](const std::string& resource, std::int64_t amount) {
        const auto at = std::ranges::find(state.resources, resource);
        if (at != state.resources.end())
            state.capacity[static_cast<std::size_t>(at - state.resources.begin())] += amount;
    };
    for (auto& [id, node] : state.nodes) {
        state.cpus_total += node.facts->cpus.value;
        state.memory_total += node.facts->memory.value >> 30;
        count("cpus", node.facts->cpus.value);
        count("memory", node.facts->memory.value);
        for (const NodePool& share : node.pools) {
            Pool& pool = state.pools[share.pool];
            pool.total += share.healthy;
            Shelf& shelf = state.shelves[kFirstPoolShelf + share.pool];
            shelf.most = std::max(shelf.most, share.healthy);
            const std::int64_t milli = 1000 * static_cast<std::int64_t>(share.healthy);
            state.devices_total += milli;
            state.weights_total += pool.weight * share.healthy;
            count("gpus", milli);
            count(pool.kind, milli);
            if (pool.device_class != pool.kind) count(pool.device_class, milli);
        }
    }
}

void place_windows(PlanIndex::State& state) {
    for (auto& [id, node] : state.nodes) node.windows.clear(), node.bookings.clear();
    for (const auto& [id, reservation] : state.reservations)
        for (const NodeId node_id : reservation.nodes) {
            const auto at = state.nodes.find(node_id);
            if (at == state.nodes.end()) continue;
            for (const model::Window& window : reservation.windows)
                at->second.windows.push_back({id, window.start, window.end, &reservation});
        }
    for (auto& [id, node] : state.nodes)
        std::ranges::sort(node.windows, {},
                          [](const NodeWindow& w) { return std::tuple(w.start, w.end, w.id); });
}

}  // namespace

std::uint32_t PlanIndex::State::level_of(const std::string& name) const {
    const auto at = std::ranges::find(levels, name);
    return at == levels.end() ? kNone : static_cast<std::uint32_t>(at - levels.begin());
}

std::uint32_t PlanIndex::State::pool_of(const model::Device& device) {
    for (std::uint32_t i = 0; i < pools.size(); ++i) {
        const Pool& pool = pools[i];
        if (pool.kind == device.kind && pool.device_class == device.device_class &&
            pool.vendor == device.vendor && pool.memory == device.memory &&
            pool.profile == device.profile && pool.share_enforced == device.share_enforced)
            return i;
    }
    Pool& pool = pools.emplace_back();
    pool.kind = device.kind, pool.device_class = device.device_class;
    pool.vendor = device.vendor, pool.memory = device.memory, pool.profile = device.profile;
    pool.share_enforced = device.share_enforced;
    for (const auto& [kind, weight] : rules.kind_weights)
        if (kind == pool.kind) pool.weight = weight;
    for (const auto& [kind, speed] : rules.kind_speeds)
        if (kind == pool.kind) pool.speed = speed;
    ++pools_version;
    return static_cast<std::uint32_t>(pools.size() - 1);
}

void PlanIndex::State::lay_out() {
    if (!stale) return;
    order.clear();
    for (auto& [id, node] : nodes) {
        node.path.resize(levels.size());
        node.cpu_step = 0;
        for (NodePool& share : node.pools) share.shown = 0;
        order.push_back(&node);
    }
    std::ranges::sort(order, [](const NodeEntry* a, const NodeEntry* b) {
        return std::tie(a->path, a->id) < std::tie(b->path, b->id);
    });
    for (std::uint32_t at = 0; at < order.size(); ++at) order[at]->at = at;
    number_domains(*this);
    size_pools(*this);
    make_shelves(*this);
    for (Pool& pool : pools) pool.partly.resize(order.size());
    used_up.resize(order.size());
    place_windows(*this);
    stale = false;
    unusable = 0;
    for (NodeEntry* node : order) {
        unusable += node->usable ? 0 : 1;
        count_empty(shelves[node->pools.empty() ? kCpuShelf : kCpuShelfOfDeviceNodes], *node,
                    cpu_step(node->facts->cpus));
        for (const NodePool& share : node->pools)
            count_empty(shelves[kFirstPoolShelf + share.pool], *node, share.healthy);
        show(*node);
    }
    place_bookings();
    count_spans();
    for (auto& [key, weak] : constraints) {
        const auto constraint = weak.lock();
        if (constraint == nullptr) continue;
        constraint->nodes.resize(order.size());
        for (const NodeEntry* node : order)
            constraint->nodes.put(node->at, satisfies(constraint->terms, *node->facts));
    }
    std::erase_if(constraints, [](const auto& entry) { return entry.second.expired(); });
    ++nodes_version;
    wake_all();
}

namespace {

/// Most wanted kinds first: the fastest, then by name.
std::vector<std::string> kinds_for(const PlanIndex::State& state, const model::DeviceAsk& ask,
                                   bool unenforced) {
    std::vector<std::pair<std::int64_t, std::string>> kinds;
    for (const Pool& pool : state.pools)
        if (pool.total > 0 && matches_pool(ask, pool, unenforced))
            kinds.emplace_back(-pool.speed, pool.kind);
    std::ranges::sort(kinds);
    std::vector<std::string> out;
    for (auto& [speed, kind] : kinds)
        if (std::ranges::find(out, kind) == out.end()) out.push_back(std::move(kind));
    return out;
}

Choice choice_of(PlanIndex::State& state, const model::DeviceAsk& ask, std::uint32_t alternative,
                 const std::vector<std::string>& kinds, bool unenforced) {
    Choice choice;
    choice.alternative = alternative;
    choice.kind = kinds.size() == 1 ? kinds.front() : "";
    const bool part = ask.fraction > 0 || ask.share_memory.value > 0;
    choice.count = part ? 0 : ask.count;
    choice.part_milli = ask.fraction;
    choice.part_memory = ask.share_memory;
    choice.step = part ? 1 : static_cast<std::int32_t>(ask.count);
    for (std::uint32_t i = 0; i < state.pools.size(); ++i)
        if (std::ranges::find(kinds, state.pools[i].kind) != kinds.end() &&
            matches_pool(ask, state.pools[i], unenforced))
            choice.shelves.push_back(kFirstPoolShelf + i);
    if (choice.shelves.empty()) return choice;
    const Pool& pool = state.pools[choice.shelves.front() - kFirstPoolShelf];
    const std::int64_t milli = part ? part_milli(ask, pool.memory) : 1000 * ask.count;
    choice.demand.emplace_back(0, milli);
    for (std::uint32_t r = 3; r < state.resources.size(); ++r)
        if ((choice.kind == state.resources[r]) ||
            (pool.device_class == state.resources[r] && pool.device_class != pool.kind))
            choice.demand.emplace_back(r, milli);
    return choice;
}

std::vector<Choice> choices_of(PlanIndex::State& state, const Shape& shape, const GroupAsk& group) {
    std::vector<Choice> out;
    for (std::uint32_t i = 0; i < alternatives_of(group); ++i) {
        const model::DeviceAsk& ask = ask_of(group, i);
        if (ask.count == 0) {
            Choice choice;
            choice.alternative = i;
            choice.step = std::max(1, cpu_step(group.cpus.value > 0 ? group.cpus : MilliCpu{1000}));
            choice.shelves = {kCpuShelf};
            if (group.nodes > 1) out.push_back(choice);  // A gang keeps to one side if it can.
            choice.shelves = {kCpuShelf, kCpuShelfOfDeviceNodes};
            out.push_back(choice);
            continue;
        }
        const auto kinds = kinds_for(state, ask, shape.share_unenforced);
        for (const std::string& kind : kinds)
            out.push_back(choice_of(state, ask, i, {kind}, shape.share_unenforced));
        if (shape.mixed_kinds && kinds.size() > 1)
            out.push_back(choice_of(state, ask, i, kinds, shape.share_unenforced));
    }
    return out;
}

std::string key_of(const std::vector<model::ConstraintTerm>& terms) {
    Writer out;
    for (const model::ConstraintTerm& term : terms) {
        out.text(term.key);
        out.number(static_cast<std::uint64_t>(term.op));
        out.number(term.values.size());
        for (const std::string& value : term.values) out.text(value);
    }
    return std::move(out).bytes();
}

}  // namespace

void PlanIndex::State::prepare(ShapeEntry& entry) {
    if (entry.prepared == pools_version) return;
    entry.prepared = pools_version;
    entry.groups.clear();
    for (const GroupAsk& group : entry.shape.groups)
        entry.groups.push_back({choices_of(*this, entry.shape, group)});
    if (entry.shape.constraint.empty() || entry.constraint != nullptr) return;
    entry.constraint = constraint_of(entry.shape.constraint);
}

std::shared_ptr<Constraint> PlanIndex::State::constraint_of(
    const std::vector<model::ConstraintTerm>& terms) {
    std::weak_ptr<Constraint>& known = constraints[key_of(terms)];
    auto constraint = known.lock();
    if (constraint == nullptr) {
        constraint = std::make_shared<Constraint>();
        constraint->terms = terms;
        constraint->nodes.resize(order.size());
        for (const NodeEntry* node : order)
            constraint->nodes.put(node->at, satisfies(constraint->terms, *node->facts));
        known = constraint;
    }
    return constraint;
}

}  // namespace muster::scheduler
