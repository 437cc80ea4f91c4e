#include "controller/watchdog.h"

#include <chrono>

namespace muster::controller {
namespace {

constexpr std::int64_t kLateMs = 2'000;

}  // namespace

Watchdog::Watchdog(Loop& loop, Planner& planner, std::function<void(const std::string&)> log)
    : loop_(loop), planner_(planner), log_(std::move(log)), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    stop_asked_.notify_all();
    thread_.join();
}

void Watchdog::run() {
    bool loop_late = false, planner_late = false;
    std::unique_lock lock(mutex_);
    while (!stop_asked_.wait_for(lock, std::chrono::milliseconds(500), [&] { return stopping_; })) {
        const auto tell = [&](const char* who, bool& late, std::int64_t lag) {
            const bool now_late = lag > kLateMs;
            if (now_late && !late)
                log_(std::string("watchdog: the ") + who + " has not come round for " +
                     std::to_string(lag) + " ms");
            if (!now_late && late) log_(std::string("watchdog: the ") + who + " comes round again");
            late = now_late;
        };
        tell("loop", loop_late, loop_.stats().lag_ms);
        tell("planner", planner_late, planner_.lag_ms());
    }
}

}  // namespace muster::controller
