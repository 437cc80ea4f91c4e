// One thread's event loop over epoll: who is watched is called when its descriptor is ready, what
// is posted runs in order, and a tick comes at a steady pace. Internal to net.
//
// Own code, because reactor-style TLS needs readiness only: coroutines of Asio cost 20-40 s and
// 750 MB a file to compile, and a frame a connection to run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "net/unique_fd.h"

namespace muster::net {

class IoLoop {
public:
    class Watcher {
    public:
        virtual ~Watcher() = default;
        virtual void on_ready(std::uint32_t epoll_events) = 0;
    };

    static Result<std::shared_ptr<IoLoop>> make(Duration tick_every);

    /// Runs on the calling thread until stop(). `tick` comes about every `tick_every`.
    void run(const std::function<void()>& tick);
    void stop();
    /// Any thread. False when the loop has ended and the job will not run.
    bool post(std::function<void()> job);
    bool on_thread() const {
        return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }
    /// Milliseconds of the monotonic clock at the last wake-up.
    std::int64_t now_ms() const { return now_ms_; }

    /// Loop thread only, as all below. `events` as epoll's; `watcher` outlives the watch.
    Status watch(int fd, std::uint32_t events, Watcher* watcher);
    void forget(int fd);
    /// Keeps `object` until the events of this turn have been delivered.
    void bury(std::shared_ptr<void> object) { graveyard_.push_back(std::move(object)); }

    /// To read into; its contents last until the next read.
    std::span<char> scratch() { return scratch_; }

private:
    IoLoop() = default;
    void run_posted();  // Each turn's jobs; those they post wait for the next.
    void update_clock();

    UniqueFd epoll_;
    UniqueFd wake_;
    Duration tick_every_;
    std::int64_t now_ms_ = 0;
    std::atomic<std::thread::id> thread_ = {};
    std::mutex mutex_;
    std::vector<std::function<void()>> posted_;
    bool asleep_ = false;
    bool stopping_ = false;
    bool ended_ = false;
    std::vector<std::shared_ptr<void>> graveyard_;
    std::vector<char> scratch_ = std::vector<char>(64 * 1024);
};

}  // namespace muster::net
