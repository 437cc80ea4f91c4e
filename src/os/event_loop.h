// One thread that waits for descriptors, times and work handed over from other threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "os/posix.h"

namespace muster::os {

class EventLoop {
public:
    using Work = std::function<void()>;
    using Ready = std::function<void(std::uint32_t events)>;  // EPOLL* bits.

    EventLoop();
    ~EventLoop();  // stop()s.
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    void start();
    /// Ends the thread; work not begun is dropped. Not from the loop's own thread.
    void stop();
    /// From any thread; in order.
    void post(Work work);
    /// From any thread but the loop's: returns when `work` is done. Without a
    /// thread (not started, or stopped) it is done by the caller.
    void run_and_wait(Work work);
    /// Runs after every round, before the loop waits again.
    void after_each_round(Work work) { after_round_ = std::move(work); }

    // The rest: from the loop's thread (or before start()) only.
    /// `fd` stays the caller's, who forgets it before closing it.
    void watch(int fd, std::uint32_t events, Ready ready);
    void change(int fd, std::uint32_t events);
    void forget(int fd);
    using Timer = std::uint64_t;  // 0: none.
    Timer after(std::int64_t delay_ms, Work work);
    void cancel(Timer timer);
    bool in_loop() const { return std::this_thread::get_id() == thread_.get_id(); }

private:
    void run();
    int wait_ms() const;

    Fd epoll_, wake_;
    std::thread thread_;
    std::mutex mutex_;
    std::vector<Work> posted_;
    bool stopping_ = false;
    Work after_round_;
    // By descriptor; shared so that a handler may forget itself while it runs.
    std::map<int, std::shared_ptr<Ready>> watched_;
    std::map<std::pair<std::int64_t, Timer>, Work> timers_;
    std::map<Timer, std::int64_t> timer_times_;
    Timer last_timer_ = 0;
};

/// A few threads for file work that may stand still (network file systems, unpacking).
class WorkerPool {
public:
    explicit WorkerPool(int threads);
    ~WorkerPool();  // Waits for the work that has begun; drops the rest.
    void post(EventLoop::Work work);

private:
    struct State;
    std::shared_ptr<State> state_;
    std::vector<std::thread> threads_;
};

}  // namespace muster::os
