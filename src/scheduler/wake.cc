// Sleeping and waking: a shape that did not fit is looked at again when what it waits for may have
// come, and not before.
#include <algorithm>

#include "scheduler/index.h"

namespace muster::scheduler {

namespace {

bool valid(const Sleeper& sleeper) {
    if (sleeper.lane != nullptr)
        return sleeper.lane->asleep && sleeper.lane->slept == sleeper.slept;
    return sleeper.shape->asleep && sleeper.shape->slept == sleeper.slept;
}

}  // namespace

void PlanIndex::State::sleep(ShapeEntry& entry, std::vector<Sleeper>& list) {
    if (!entry.asleep) {
        entry.asleep = true;
        ++entry.slept;
        entry.preempt_tried = false;
    }
    if (list.size() == list.capacity())  // Rather than grow for entries that are void.
        std::erase_if(list, [](const Sleeper& sleeper) { return !valid(sleeper); });
    list.push_back({&entry, nullptr, entry.slept});
}

void PlanIndex::State::wake(ShapeEntry& entry) {
    if (entry.asleep) ++entry.slept, woken.push_back(&entry);
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
    if (!valid(sleeper)) return;
    if (sleeper.lane != nullptr) sleeper.lane->asleep = false, ++sleeper.lane->slept;
    wake(*sleeper.shape);
}

void PlanIndex::State::wake_list(std::vector<Sleeper>& list) {
    std::vector<Sleeper> all;
    all.swap(list);
    for (const Sleeper& sleeper : all) rouse(sleeper);
}

void PlanIndex::State::wake_at(const NodeEntry& node) {
    wake_list(waiting_any);
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
}

void PlanIndex::State::wake_on(const Booking& booking) {
    for (const Slot& slot : booking.slots)
        if (const auto node = nodes.find(slot.node); node != nodes.end()) wake_at(node->second);
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
    waiting_window.clear();
    reserved.clear();
    waiting_node.clear();
}

void PlanIndex::State::wake_limited(QueueEntry* queue) {
    for (; queue != nullptr; queue = queue->parent) wake_list(queue->limited);
}

}  // namespace muster::scheduler
