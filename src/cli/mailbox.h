// From the threads that read streams to the one that shows: a bounded queue with a time-out.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "base/id.h"

namespace muster::cli {

template <class T>
class Mailbox {
public:
    explicit Mailbox(std::size_t most) : most_(most) {}

    /// Waits while the box is full; false once it is closed.
    bool put(T message) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closed_ || box_.size() < most_; });
        if (closed_) return false;
        box_.push_back(std::move(message));
        changed_.notify_all();
        return true;
    }
    std::optional<T> take(Duration wait) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::milliseconds(wait.ms), [&] { return !box_.empty(); });
        if (box_.empty()) return std::nullopt;
        T message = std::move(box_.front());
        box_.pop_front();
        changed_.notify_all();
        return message;
    }
    void close() {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<T> box_;
    const std::size_t most_;
    bool closed_ = false;
};

}  // namespace muster::cli
