#include "controller/watchdog.h"

#include <chrono>

namespace muster::controller {

Watchdog::Watchdog(std::vector<Watched> watched, Options options,
                   std::function<void(const std::string&)> log)
    : watched_(std::move(watched)),
      options_(options),
      log_(std::move(log)),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    stop_asked_.notify_all();
    thread_.join();
}

void Watchdog::run() {
    std::vector<bool> late(watched_.size(), false);
    std::unique_lock lock(mutex_);
    while (!stop_asked_.wait_for(lock, std::chrono::milliseconds(options_.every.ms),
                                 [&] { return stopping_; })) {
        for (std::size_t i = 0; i < watched_.size(); ++i) {
            const std::int64_t lag = watched_[i].lag_ms();
            const bool now_late = lag > options_.late.ms;
            if (now_late && !late[i])
                log_("watchdog: the " + watched_[i].name + " has not come round for " +
                     std::to_string(lag) + " ms");
            if (!now_late && late[i])
                log_("watchdog: the " + watched_[i].name + " comes round again");
            late[i] = now_late;
        }
    }
}

}  // namespace muster::controller
