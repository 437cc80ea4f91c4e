// What happens next in a study: plain records in a heap, equal times in the order of their booking.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id.h"

namespace muster::simulator::study {

enum class Happening : std::uint8_t {
    Arrival,      // The job that was pulled last.
    CoreTick,     // Something in core::next_wake is due.
    HostTick,     // …in node::next_wake of host `a`.
    TaskReady,    // Task `a` of job `b` stands at the barrier, or runs.
    TaskStopped,  // Task `a` of job `b` has ended after it was told to stop.
    JobDue,       // Job `b`: work, checkpoint, restart or stall is over.
    Plan,         // It is time for a plan.
    Proposal,     // A plan that was made earlier reaches core.
    NodeFails,    // Host `a`.
    LeafFails,    // Leaf `a`.
    NodeMissed,   // Host `a`'s failure is noticed.
    NodeBack,     // Host `a` is repaired.
    Sample,
};
struct Entry {
    Time at;
    std::uint64_t order = 0;
    std::uint64_t b = 0;
    std::uint32_t a = 0;
    std::uint32_t serial = 0;  // Stale if it is not its owner's present one.
    Happening what = Happening::CoreTick;
};

class Calendar {
public:
    bool empty() const { return heap_.empty(); }
    const Entry& next() const { return heap_.front(); }
    void put(Time at, Happening what, std::uint32_t a = 0, std::uint64_t b = 0,
             std::uint32_t serial = 0) {
        heap_.push_back({at, order_++, b, a, serial, what});
        std::push_heap(heap_.begin(), heap_.end(), Later{});
    }
    Entry take() {
        std::pop_heap(heap_.begin(), heap_.end(), Later{});
        const Entry entry = heap_.back();
        heap_.pop_back();
        return entry;
    }

private:
    struct Later {
        bool operator()(const Entry& x, const Entry& y) const {
            return x.at != y.at ? x.at > y.at : x.order > y.order;
        }
    };
    std::vector<Entry> heap_;
    std::uint64_t order_ = 0;
};

}  // namespace muster::simulator::study
