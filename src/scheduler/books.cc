// The books of nodes and queues, and the shelves that follow from them.
#include <algorithm>
#include <bit>

#include "base/require.h"
#include "scheduler/index.h"
#include "scheduler/place.h"

namespace muster::scheduler {
namespace {

void put_on(PlanIndex::State& state, const NodeEntry& node, std::uint32_t shelf_id,
            std::int32_t before, std::int32_t after) {
    Shelf& shelf = state.shelves[shelf_id];
    if (before > 0) shelf.exact[static_cast<std::size_t>(before - 1)].reset(node.at);
    if (after > 0) shelf.exact[static_cast<std::size_t>(after - 1)].set(node.at);
    const int by = after > before ? 1 : -1;
    for (auto k = std::min(before, after); k < std::max(before, after); ++k) {
        const auto step = static_cast<std::size_t>(k);
        shelf.all[step] += by;
        for (std::size_t level = 0; level < node.domains.size(); ++level)
            if (node.domains[level] != kNone) shelf.counts[level][step][node.domains[level]] += by;
    }
}

void lessen(Take& claim, const Take& held) {
    claim.cpus.value = std::max<std::int64_t>(0, claim.cpus.value - held.cpus.value);
    claim.memory.value = std::max<std::int64_t>(0, claim.memory.value - held.memory.value);
    claim.disk.value = std::max<std::int64_t>(0, claim.disk.value - held.disk.value);
    // Cells are not told apart here: a promise is of a number.
    for (CellTake cell : held.cells)
        for (CellTake& wanted : claim.cells) {
            if (wanted.pool != cell.pool) continue;
            const std::int32_t less = std::min(wanted.count, cell.count);
            wanted.count -= less, cell.count -= less;
        }
    std::erase_if(claim.cells, [](const CellTake& cell) { return cell.count == 0; });
    if (held.exclusive) claim.exclusive = false;
}

}  // namespace

std::int32_t cpu_step(MilliCpu cpus) {
    if (cpus.value < 125) return 0;
    const auto eighths = static_cast<std::uint64_t>(cpus.value / 125);
    return std::min(kCpuSteps, static_cast<std::int32_t>(std::bit_width(eighths)));
}

void PlanIndex::State::show(NodeEntry& node) {
    if (stale || node.at == kNone) return;
    const bool visible = node.usable && !node.exclusive;
    const std::int32_t step = visible ? cpu_step(node.cpus) : 0;
    if (step != node.cpu_step) {
        put_on(*this, node, node.pools.empty() ? kCpuShelf : kCpuShelfOfDeviceNodes, node.cpu_step,
               step);
        node.cpu_step = step;
    }
    bool idle = false;
    for (NodePool& share : node.pools) {
        idle |= share.free > 0 || std::ranges::any_of(share.parts, [](const PartBook& part) {
                    return part.milli < 1000;
                });
        pools[share.pool].partly.put(node.at, visible && !share.parts.empty());
        const std::int32_t free = visible ? std::max(0, share.free) : 0;
        if (free == share.shown) continue;
        put_on(*this, node, kFirstPoolShelf + share.pool, share.shown, free);
        share.shown = free;
    }
    used_up.put(node.at, visible && !idle && !node.pools.empty());
    node.visible = visible;
}

void PlanIndex::State::take(NodeEntry& node, const Take& take, int sign) {
    const auto signed_by = [sign](std::int64_t n) { return sign > 0 ? n : -n; };
    node.cpus.value -= signed_by(take.cpus.value);
    node.memory.value -= signed_by(take.memory.value);
    node.disk.value -= signed_by(take.disk.value);
    node.slots += sign;
    if (take.exclusive) node.exclusive = sign > 0;
    for (const CellTake& cell : take.cells) {
        NodePool& share = node.pools[cell.pool];
        share.free -= sign * cell.count;
        share.cells[cell.cell].free -= sign * cell.count;
    }
    if (take.part_pool != kNone) {
        NodePool& share = node.pools[take.part_pool];
        auto at = std::ranges::lower_bound(share.parts, take.part_device, {}, &PartBook::device);
        if (at == share.parts.end() || at->device != take.part_device) {
            at = share.parts.insert(at, {.device = take.part_device});
            share.free -= 1;
            share.cells[node.cell_of[take.part_device].cell].free -= 1;
        }
        at->milli += signed_by(take.part_milli);
        at->memory.value += signed_by(take.part_memory.value);
        at->owners += sign;
        if (at->owners == 0) {
            share.parts.erase(at);
            share.free += 1;
            share.cells[node.cell_of[take.part_device].cell].free += 1;
        }
    }
    show(node);
}

Take effect_of(const NodeEntry& node, const NodeClaim& claim) {
    Take rest = claim.take;
    for (const NodeHold& hold : node.held)
        if (hold.job->stopping && hold.job->beneficiary == claim.job) lessen(rest, hold.take);
    return rest;
}

void PlanIndex::State::recount(NodeEntry& node) {
    const model::NodeFacts& facts = *node.facts;
    node.cpus = facts.cpus, node.memory = facts.memory, node.disk = facts.disk;
    node.slots = 0;
    node.exclusive = false;
    for (NodePool& share : node.pools) {
        share.free = share.healthy;
        share.parts.clear();
        for (Cell& cell : share.cells) cell.free = cell.healthy;
    }
    for (const NodeHold& hold : node.held) take(node, hold.take, +1);
    for (const NodeClaim& claim : node.claims) take(node, effect_of(node, claim), +1);
    show(node);
}

void PlanIndex::State::use(QueueEntry* queue, UserBook& user, const Demand& demand, int sign,
                           int jobs) {
    const auto add = [&](ResourceVec& to) {
        for (const auto& [resource, amount] : demand) to[resource] += sign * amount;
    };
    add(user.used);
    user.running += sign * jobs;
    user.share_of = 0;
    add(used);
    for (; queue != nullptr; queue = queue->parent) {
        add(queue->used);
        queue->running += sign * jobs;
        queue->share_of = 0;
    }
}

}  // namespace muster::scheduler
