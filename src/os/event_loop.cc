#include "os/event_loop.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/require.h"

namespace muster::os {
namespace {

std::int64_t now_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

EventLoop::EventLoop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    MUSTER_REQUIRE(epoll_ && wake_);
    watch(wake_.get(), EPOLLIN, [this](std::uint32_t) {
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
    });
}

EventLoop::~EventLoop() {
    stop();
}

void EventLoop::start() {
    thread_ = std::thread([this] { run(); });
}

void EventLoop::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    std::vector<Work> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(posted_);
}

void EventLoop::post(Work work) {
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        first = posted_.empty();
        posted_.push_back(std::move(work));
    }
    if (!first) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

void EventLoop::run_and_wait(Work work) {
    MUSTER_REQUIRE(!in_loop());
    if (!thread_.joinable()) return work();
    // The promise is broken, and the wait over, when stop() drops the work.
    auto done = std::make_shared<std::promise<void>>();
    std::future<void> waited = done->get_future();
    post([work = std::move(work), done] {
        work();
        done->set_value();
    });
    done.reset();
    waited.wait();
}

void EventLoop::watch(int fd, std::uint32_t events, Ready ready) {
    watched_[fd] = std::make_shared<Ready>(std::move(ready));
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    MUSTER_REQUIRE(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
}

void EventLoop::change(int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::forget(int fd) {
    if (watched_.erase(fd) == 0) return;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::Timer EventLoop::after(std::int64_t delay_ms, Work work) {
    const std::int64_t at = now_ms() + std::max<std::int64_t>(delay_ms, 0);
    const Timer timer = ++last_timer_;
    timers_.emplace(std::pair(at, timer), std::move(work));
    timer_times_.emplace(timer, at);
    return timer;
}

void EventLoop::cancel(Timer timer) {
    const auto found = timer_times_.find(timer);
    if (found == timer_times_.end()) return;
    timers_.erase({found->second, timer});
    timer_times_.erase(found);
}

int EventLoop::wait_ms() const {
    if (timers_.empty()) return -1;
    return static_cast<int>(
        std::clamp<std::int64_t>(timers_.begin()->first.first - now_ms(), 0, 3'600'000));
}

void EventLoop::run() {
    std::vector<Work> work;
    epoll_event events[64];
    while (true) {
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return;
            work.swap(posted_);
        }
        for (Work& each : work) each();
        const bool worked = !work.empty();
        work.clear();
        while (!timers_.empty() && timers_.begin()->first.first <= now_ms()) {
            auto node = timers_.extract(timers_.begin());
            timer_times_.erase(node.key().second);
            node.mapped()();
        }
        if (after_round_) after_round_();
        const int n = ::epoll_wait(epoll_.get(), events, 64, worked ? 0 : wait_ms());
        for (int i = 0; i < n; ++i) {
            const auto found = watched_.find(events[i].data.fd);
            if (found == watched_.end()) continue;
            const std::shared_ptr<Ready> ready = found->second;
            (*ready)(events[i].events);
        }
    }
}

struct WorkerPool::State {
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<EventLoop::Work> queue;
    bool stopping = false;
};

WorkerPool::WorkerPool(int threads) : state_(std::make_shared<State>()) {
    for (int i = 0; i < threads; ++i)
        threads_.emplace_back([state = state_] {
            std::unique_lock lock(state->mutex);
            while (true) {
                state->filled.wait(lock, [&] { return state->stopping || !state->queue.empty(); });
                if (state->stopping) return;
                const EventLoop::Work work = std::move(state->queue.front());
                state->queue.pop_front();
                lock.unlock();
                work();
                lock.lock();
            }
        });
}

WorkerPool::~WorkerPool() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stopping = true;
    }
    state_->filled.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::post(EventLoop::Work work) {
    {
        const std::lock_guard lock(state_->mutex);
        state_->queue.push_back(std::move(work));
    }
    state_->filled.notify_one();
}

}  // namespace muster::os
