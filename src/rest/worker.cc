#include "rest/worker.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace muster::rest {
namespace {

std::int64_t monotonic_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Worker::State {
    using Key = std::pair<std::int64_t, std::uint64_t>;  // Due (monotonic ms), name.
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::function<void()>> queue;
    std::map<Key, std::function<void()>> timers;
    std::map<std::uint64_t, std::int64_t> due;
    std::uint64_t next_timer = 1;
    bool stop = false;

    void run() {
        std::unique_lock lock(mutex);
        while (!stop) {
            std::function<void()> work;
            if (!timers.empty() && timers.begin()->first.first <= monotonic_ms()) {
                work = std::move(timers.begin()->second);
                due.erase(timers.begin()->first.second);
                timers.erase(timers.begin());
            } else if (!queue.empty()) {
                work = std::move(queue.front());
                queue.pop_front();
            } else if (timers.empty()) {
                wake.wait(lock);
                continue;
            } else {
                const std::int64_t left = timers.begin()->first.first - monotonic_ms();
                wake.wait_for(lock, std::chrono::milliseconds(left));
                continue;
            }
            lock.unlock();
            work();
            work = nullptr;
            lock.lock();
        }
    }
};

Worker::Worker() : state_(std::make_shared<State>()), thread_([state = state_] { state->run(); }) {}

Worker::~Worker() {
    stop();
    if (thread_.joinable()) thread_.detach();  // The last owner was work of its own.
}

void Worker::stop() {
    std::deque<std::function<void()>> queue;  // Destroyed after the lock is let go.
    std::map<State::Key, std::function<void()>> timers;
    {
        const std::lock_guard lock(state_->mutex);
        state_->stop = true;
        queue.swap(state_->queue);
        timers.swap(state_->timers);
        state_->due.clear();
    }
    state_->wake.notify_one();
    if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

void Worker::post(std::function<void()> work) {
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->stop) return;
        state_->queue.push_back(std::move(work));
    }
    state_->wake.notify_one();
}

std::uint64_t Worker::after(Duration delay, std::function<void()> work) {
    std::uint64_t timer = 0;
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->stop) return 0;
        timer = state_->next_timer++;
        const std::int64_t due = monotonic_ms() + delay.ms;
        state_->timers.emplace(State::Key{due, timer}, std::move(work));
        state_->due.emplace(timer, due);
    }
    state_->wake.notify_one();
    return timer;
}

void Worker::cancel(std::uint64_t timer) {
    std::function<void()> dropped;  // Destroyed after the lock is let go.
    const std::lock_guard lock(state_->mutex);
    const auto at = state_->due.find(timer);
    if (at == state_->due.end()) return;
    const auto entry = state_->timers.find(State::Key{at->second, timer});
    dropped = std::move(entry->second);
    state_->timers.erase(entry);
    state_->due.erase(at);
}

}  // namespace muster::rest
