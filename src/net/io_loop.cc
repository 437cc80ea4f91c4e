#include "net/io_loop.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace muster::net {

Result<std::shared_ptr<IoLoop>> IoLoop::make(Duration tick_every) {
    std::shared_ptr<IoLoop> loop(new IoLoop);
    loop->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
    loop->wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;  // Each write is an edge: it need never be read.
    if (!loop->epoll_ || !loop->wake_ ||
        epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->wake_.get(), &event) != 0) {
        return Error{.code = Code::Exhausted,
                     .message = "an event loop could not be made",
                     .cause = std::strerror(errno),
                     .fix = "raise the limit of open files (ulimit -n)"};
    }
    loop->tick_every_ = tick_every;
    loop->update_clock();
    return loop;
}

void IoLoop::update_clock() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    now_ms_ = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void IoLoop::run(const std::function<void()>& tick) {
    thread_.store(std::this_thread::get_id());
    std::int64_t next_tick = now_ms_ + tick_every_.ms;
    epoll_event events[256];
    for (;;) {
        bool sleep = false;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) break;
            sleep = asleep_ = posted_.empty();
        }
        const std::int64_t wait = sleep ? std::max<std::int64_t>(next_tick - now_ms_, 0) : 0;
        const int count = epoll_wait(epoll_.get(), events, 256, static_cast<int>(wait));
        update_clock();
        for (int i = 0; i < count; ++i) {
            if (events[i].data.ptr != nullptr) {
                static_cast<Watcher*>(events[i].data.ptr)->on_ready(events[i].events);
            }
        }
        run_posted();
        if (now_ms_ >= next_tick) {
            next_tick = now_ms_ + tick_every_.ms;
            tick();
        }
        graveyard_.clear();
    }
    // What was posted still runs, so that nobody waits for ever for a callback.
    for (;;) {
        run_posted();
        graveyard_.clear();
        const std::lock_guard lock(mutex_);
        if (posted_.empty()) {
            ended_ = true;
            break;
        }
    }
    thread_.store(std::thread::id{});
}

void IoLoop::run_posted() {
    std::vector<std::function<void()>> jobs;
    {
        const std::lock_guard lock(mutex_);
        asleep_ = false;
        jobs.swap(posted_);
    }
    for (auto& job : jobs) job();
}

bool IoLoop::post(std::function<void()> job) {
    bool wake = false;
    {
        const std::lock_guard lock(mutex_);
        if (ended_) return false;
        posted_.push_back(std::move(job));
        wake = asleep_;
        asleep_ = false;
    }
    if (wake) {
        const std::uint64_t one = 1;
        (void)!write(wake_.get(), &one, sizeof one);
    }
    return true;
}

void IoLoop::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    const std::uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);
}

Status IoLoop::watch(int fd, std::uint32_t events, Watcher* watcher) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = watcher;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Ok{};
    return Error{.code = Code::Exhausted,
                 .message = "a connection could not be watched",
                 .cause = std::strerror(errno)};
}

void IoLoop::forget(int fd) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

}  // namespace muster::net
