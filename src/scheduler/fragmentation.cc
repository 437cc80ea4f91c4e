#include "scheduler/fragmentation.h"

#include <algorithm>

#include "base/bytes.h"
#include "scheduler/index.h"
#include "scheduler/place.h"

namespace muster::scheduler {
namespace {

constexpr std::size_t kAskedMax = 32;    // Those asked for most often stand for all.
constexpr std::int64_t kWeights = 256;   // They add up to about this.
constexpr std::int64_t kNextWeight = 5;  // Of the next ask against a node full of them.
constexpr std::size_t kKnownMax = 8192;  // A power of two.

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    a = (a ^ b) * 0x9e3779b97f4a7c15;
    return a ^ (a >> 29);
}
std::uint64_t bits(std::int64_t number) {
    return static_cast<std::uint64_t>(number);
}

/// Shapes' groups that ask for the same have the same key; queues and times do not count.
std::string key_of(const Shape& shape, const GroupAsk& group) {
    Shape alone;
    alone.groups = {group};
    alone.groups[0].nodes = 1, alone.groups[0].nodes_max = 0;
    alone.constraint = shape.constraint;
    alone.exclusive = shape.exclusive;
    alone.share_unenforced = shape.share_unenforced;
    return encode(alone);
}

}  // namespace

// ---- what is asked ----------------------------------------------------------------------------

std::vector<Typical*> Fragmentation::enter(const Shape& shape) {
    std::vector<Typical*> groups;
    for (const GroupAsk& group : shape.groups) {
        Typical& typical = all_[key_of(shape, group)];
        if (typical.shapes++ == 0) {
            typical.ask = group;
            typical.constraint = shape.constraint;
            typical.exclusive = shape.exclusive;
            typical.share_unenforced = shape.share_unenforced;
        }
        groups.push_back(&typical);
    }
    return groups;
}

void Fragmentation::leave(const Shape& shape) {
    for (const GroupAsk& group : shape.groups) {
        const auto at = all_.find(key_of(shape, group));
        if (--at->second.shapes > 0) continue;
        all_.erase(at);
        asked_.clear(), constraints_.clear();
        changed_ = true;
    }
}

void Fragmentation::count(const Shape& shape, const std::vector<Typical*>& groups,
                          std::int64_t jobs) {
    for (std::size_t i = 0; i < groups.size(); ++i)
        groups[i]->count += jobs * shape.groups[i].nodes;
    changed_ = true;
}

bool Fragmentation::current(PlanIndex::State& state) {
    const bool same_nodes =
        pools_version_ == state.pools_version && nodes_version_ == state.nodes_version;
    if (!changed_ && same_nodes) return !asked_.empty();
    changed_ = false;
    pools_version_ = state.pools_version, nodes_version_ = state.nodes_version;
    std::vector<const Typical*> most;  // In the order of their keys, then by number.
    for (const auto& [key, typical] : all_)
        if (typical.count > 0 && !typical.ask.devices.empty()) most.push_back(&typical);
    std::ranges::stable_sort(most, std::greater{}, &Typical::count);
    if (most.size() > kAskedMax) most.resize(kAskedMax);
    std::int64_t sum = 0;
    for (const Typical* typical : most) sum += typical->count;
    std::vector<std::pair<const Typical*, std::int64_t>> weights;
    for (const Typical* typical : most) {
        // Rounded, so that one job more or less seldom changes any.
        const auto share = static_cast<__int128>(typical->count) * kWeights * 2 / sum;
        weights.emplace_back(typical, static_cast<std::int64_t>((share + 1) / 2));
    }
    std::erase_if(weights, [](const auto& pair) { return pair.second == 0; });
    const bool same =
        same_nodes && std::ranges::equal(weights, asked_, [](const auto& pair, const Asked& asked) {
            return pair.first == asked.what && pair.second == asked.weight;
        });
    if (same) return !asked_.empty();
    known_.clear();
    asked_.clear();
    constraints_.clear();
    for (const auto& [typical, weight] : weights) {
        Asked& asked = asked_.emplace_back();
        asked.what = typical, asked.weight = weight;
        if (!typical->constraint.empty())
            constraints_.push_back(
                (asked.constraint = state.constraint_of(typical->constraint)).get());
        for (const Pool& pool : state.pools) {
            Need& need = asked.needs.emplace_back();
            for (std::uint32_t i = 0; i < alternatives_of(typical->ask) && need.milli == 0; ++i) {
                const model::DeviceAsk& ask = ask_of(typical->ask, i);
                if (ask.count == 0 || !matches_pool(ask, pool, typical->share_unenforced)) continue;
                need.alternative = i;
                need.milli = part_milli(ask, pool.memory);
                need.count = ask.fraction > 0 || ask.share_memory.value > 0 ? 0 : ask.count;
            }
        }
    }
    return !asked_.empty();
}

// ---- a node -----------------------------------------------------------------------------------

Room::Room(const NodeEntry& of) : node(&of), cpus(of.cpus.value), memory(of.memory.value) {
    for (const NodePool& pool : of.pools) {
        if (shares == kSharesMax || parts + pool.parts.size() > kPartsMax) {
            known = false;
            return;
        }
        for (const PartBook& book : pool.parts)
            part[parts++] = {book.device, static_cast<std::uint16_t>(shares),
                             static_cast<std::int16_t>(1000 - book.milli)};
        share[shares++] = {pool.pool, std::max<std::int64_t>(0, pool.free)};
    }
}

std::int64_t Room::idle() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < shares; ++i) sum += 1000 * share[i].idle;
    for (std::size_t i = 0; i < parts; ++i) sum += part[i].left;
    return sum;
}

void Room::take_part(std::uint32_t of_share, std::uint32_t device, std::int64_t milli) {
    for (std::size_t i = 0; i < parts; ++i)
        if (part[i].device == device) {
            part[i].left = static_cast<std::int16_t>(part[i].left - milli);
            return;
        }
    --share[of_share].idle;
    if (parts == kPartsMax)
        known = false;
    else
        part[parts++] = {device, static_cast<std::uint16_t>(of_share),
                         static_cast<std::int16_t>(1000 - milli)};
}

std::uint64_t Fragmentation::look(const Room& room) const {
    const model::NodeFacts& facts = *room.node->facts;
    std::uint64_t all = mix(bits(room.cpus), bits(room.memory));
    all = mix(mix(all, bits(facts.cpus.value)), facts.devices.size());
    for (std::size_t i = 0; i < room.shares; ++i)
        all = mix(mix(all, room.share[i].pool), bits(room.share[i].idle));
    std::uint64_t parts = 0;  // Which device it is does not count.
    for (std::size_t i = 0; i < room.parts; ++i)
        if (room.part[i].left > 0)
            parts += mix(mix(0, room.part[i].share + 1), bits(room.part[i].left));
    all = mix(all, parts);
    for (const Constraint* constraint : constraints_)
        all = mix(all, constraint->nodes.test(room.node->at) ? 1 : 2);
    return all | 1;  // 0 is nobody's.
}

std::int64_t Fragmentation::out_of_reach(const Room& room, std::uint64_t look) {
    if (known_.empty()) known_.resize(kKnownMax);
    auto& known = known_[(look >> 20) % kKnownMax];
    if (known.first != look) known = {look, measure(room)};
    return known.second;
}

std::int64_t Fragmentation::measure(const Room& room) const {
    const std::int64_t idle = room.idle();
    std::int64_t sum = 0;
    if (idle == 0) return 0;
    for (const Asked& asked : asked_) sum += asked.weight * left_out(asked, room, idle);
    return sum;
}

/// Of `idle` thousandths on the node.
std::int64_t Fragmentation::left_out(const Asked& asked, const Room& room, std::int64_t idle) {
    if (asked.constraint != nullptr && !asked.constraint->nodes.test(room.node->at))
        return (kNextWeight + 1) * idle;
    std::int64_t usable = 0;  // On devices that are free enough.
    std::int64_t most = 0;    // Were it full of such asks.
    for (std::size_t i = 0; i < room.shares; ++i) {
        const Need& need = asked.needs[room.share[i].pool];
        if (need.milli == 0) continue;
        std::int64_t here = 1000 * room.share[i].idle, fitting = 0;
        if (need.count > 0) {
            fitting = room.share[i].idle / need.count;
        } else {
            fitting = room.share[i].idle * (1000 / need.milli);
            for (std::size_t p = 0; p < room.parts; ++p)
                if (room.part[p].share == i && room.part[p].left >= need.milli) {
                    here += room.part[p].left;
                    fitting += room.part[p].left / need.milli;
                }
        }
        if (fitting == 0) continue;
        const std::int64_t each = need.count > 0 ? 1000 * need.count : need.milli;
        const std::int64_t cpus =
            node_cpus(asked.what->ask, need.alternative, *room.node->facts, asked.what->exclusive)
                .value;
        const std::int64_t memory = asked.what->ask.memory.value >> 20;
        if (room.cpus < cpus || (room.memory >> 20) < memory) continue;
        std::int64_t full = fitting * each;
        if (cpus > 0) full = std::min(full, room.cpus * each / cpus);
        if (memory > 0) full = std::min(full, (room.memory >> 20) * each / memory);
        usable += here, most += full;
    }
    return kNextWeight * (idle - usable) + idle - std::min(idle, most);
}

}  // namespace muster::scheduler
