// A queue into a loop: many threads put, one takes everything at once or waits until a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include <time.h>

#include "base/id.h"

namespace muster::agent {

template <class T>
class Inbox {
public:
    void put(T item) {
        const std::lock_guard lock(mutex_);
        items_.push_back(std::move(item));
        if (items_.size() == 1) filled_.notify_one();
    }
    /// All that came, or none once `wait` is over.
    std::vector<T> take(Duration wait) {
        std::vector<T> taken;
        std::unique_lock lock(mutex_);
        filled_.wait_for(lock, std::chrono::milliseconds(wait.ms),
                         [this] { return !items_.empty(); });
        taken.swap(items_);
        return taken;
    }

private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::vector<T> items_;
};

/// Never jumps back, counts sleep of the machine, and was the wall clock when it was made.
class SteadyWallClock {
public:
    SteadyWallClock() : offset_ms_(read(CLOCK_REALTIME) - read(CLOCK_BOOTTIME)) {}
    Time now() const { return Time{read(CLOCK_BOOTTIME) + offset_ms_}; }

private:
    static std::int64_t read(clockid_t clock) {
        timespec at{};
        ::clock_gettime(clock, &at);
        return static_cast<std::int64_t>(at.tv_sec) * 1000 + at.tv_nsec / 1'000'000;
    }
    std::int64_t offset_ms_;
};

}  // namespace muster::agent
