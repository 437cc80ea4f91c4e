// Sleeping and waking: a shape that did not fit is looked at again when what it waits for may have
// come, and not before.
#include <algorithm>

#include "scheduler/index.h"

namespace muster::scheduler {

void PlanIndex::State::sleep(ShapeEntry& entry, std::vector<Sleeper>& list) {
    if (!entry.asleep) {
        entry.asleep = true;
        ++entry.slept;
        entry.preempt_tried = false;
    }
    list.push_back({&entry, nullptr, entry.slept});
}

void PlanIndex::State::wake(ShapeEntry& entry) {
    if (entry.asleep) ++entry.slept;
    entry.asleep = false;
    if (!entry.listed) entry.queue->awake.push_back(&entry);
    entry.listed = true;
    reopen(entry);
}

void PlanIndex::State::reopen(const ShapeEntry& entry) {
    ShapeEntry* const first = entry.queue->first.shape;
    if (first == nullptr || first == &entry) return;
    const LaneKey* least = nullptr;
    for (const auto& [id, lane] : first->lanes)
        if (!lane.jobs.empty() && (least == nullptr || *lane.jobs.begin() < *least))
            least = &*lane.jobs.begin();
    bool before = least == nullptr;
    for (const auto& [id, lane] : entry.lanes)
        before = before || (!lane.jobs.empty() && *lane.jobs.begin() < *least);
    if (!before) return;
    entry.queue->first = {};
    wake(*first);
}

void PlanIndex::State::rouse(const Sleeper& sleeper) {
    if (sleeper.lane == nullptr) {
        if (sleeper.shape->asleep && sleeper.shape->slept == sleeper.slept) wake(*sleeper.shape);
        return;
    }
    if (!sleeper.lane->asleep || sleeper.lane->slept != sleeper.slept) return;
    sleeper.lane->asleep = false;
    ++sleeper.lane->slept;
    if (!sleeper.shape->asleep) wake(*sleeper.shape);
}

void PlanIndex::State::wake_list(std::vector<Sleeper>& list) {
    std::vector<Sleeper> woken;
    woken.swap(list);
    for (const Sleeper& sleeper : woken) rouse(sleeper);
}

void PlanIndex::State::wake_at(const NodeEntry& node) {
    if (stale || !node.visible) return;
    const auto up_to = [&](Shelf& shelf, std::int32_t step) {
        const auto end =
            std::min<std::size_t>(shelf.waiting.size(), static_cast<std::size_t>(step));
        for (std::size_t k = 0; k < end; ++k)
            if (!shelf.waiting[k].empty()) wake_list(shelf.waiting[k]);
    };
    up_to(shelves[node.pools.empty() ? kCpuShelf : kCpuShelfOfDeviceNodes], node.cpu_step);
    for (const NodePool& share : node.pools)
        up_to(shelves[kFirstPoolShelf + share.pool],
              std::max(share.shown, share.parts.empty() ? 0 : 1));
    wake_list(waiting_any);
}

void PlanIndex::State::wake_all() {
    for (auto& [id, entry] : shapes) {
        for (auto& [lane_id, lane] : entry.lanes) lane.asleep = false, ++lane.slept;
        if (entry.jobs > 0) wake(entry);
    }
    for (auto& [id, queue] : queues) queue.limited.clear();
    for (Shelf& shelf : shelves)
        for (auto& list : shelf.waiting) list.clear();
    waiting_any.clear();
    waiting_booking.clear();
}

void PlanIndex::State::wake_limited(QueueEntry* queue) {
    for (; queue != nullptr; queue = queue->parent) wake_list(queue->limited);
}

}  // namespace muster::scheduler
