// One thread with a queue and timers: where work goes that may not be done on
// an I/O thread or on the controller's threads, such as history, big lists and
// time-outs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/id.h"

namespace muster::rest {

class Worker {
public:
    Worker();
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Drops what has not begun, waits for what has, and takes nothing more. Idempotent.
    void stop();
    /// In order of the calls.
    void post(std::function<void()> work);
    /// Not before `delay` from now. The answer names it for cancel().
    std::uint64_t after(Duration delay, std::function<void()> work);
    /// Harmless when it has run or is running.
    void cancel(std::uint64_t timer);

private:
    struct State;
    // Shared with the thread: the last owner of a Worker may be work that it
    // runs.
    std::shared_ptr<State> state_;
    std::thread thread_;
};

}  // namespace muster::rest
