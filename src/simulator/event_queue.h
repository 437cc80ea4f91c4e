// Virtual time: what happens next, in an order that is the same in every run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/id.h"

namespace muster::simulator {

/// Actions of equal time run in the order in which they were put in.
class EventQueue {
public:
    using Action = std::function<void()>;

    Time now() const { return now_; }
    std::uint64_t fired() const { return fired_; }
    bool empty() const { return heap_.empty(); }
    Time next() const { return heap_.empty() ? kNever : heap_.front().at; }

    /// A time that has passed means now.
    void at(Time when, Action action) {
        heap_.push_back({std::max(when, now_), sequence_++, std::move(action)});
        std::push_heap(heap_.begin(), heap_.end(), Later{});
    }
    void after(Duration wait, Action action) { at(now_ + wait, std::move(action)); }

    /// Jumps to the next action and runs it. False: nothing is left.
    bool run_one() {
        if (heap_.empty()) return false;
        std::pop_heap(heap_.begin(), heap_.end(), Later{});
        Entry entry = std::move(heap_.back());
        heap_.pop_back();
        now_ = entry.at;
        ++fired_;
        entry.action();
        return true;
    }

private:
    struct Entry {
        Time at;
        std::uint64_t sequence;
        Action action;
    };
    struct Later {
        bool operator()(const Entry& a, const Entry& b) const {
            return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
        }
    };
    std::vector<Entry> heap_;
    Time now_;
    std::uint64_t sequence_ = 0, fired_ = 0;
};

}  // namespace muster::simulator
