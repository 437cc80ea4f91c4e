#include "controller/recurring.h"

#include <chrono>

#include "rest/windows.h"

namespace muster::controller {

std::vector<core::RefreshWindows> due_windows(const core::View& view, Time now,
                                              const std::function<void(const std::string&)>& log) {
    std::vector<core::RefreshWindows> out;
    view.reservations.for_each([&](std::uint64_t, const model::Reservation& made) {
        if (!rest::windows_due(made, now)) return;
        auto windows = rest::windows_from(made.first, made.recurrence, now);
        if (!windows) {
            log("reservation " + made.name +
                ": its windows are not made: " + windows.error().message);
            return;
        }
        if (*windows != made.windows) out.push_back({made.id, *std::move(windows)});
    });
    return out;
}

Recurring::Recurring(Hooks hooks) : hooks_(std::move(hooks)), thread_([this] { run(); }) {}

Recurring::~Recurring() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Recurring::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        lock.unlock();
        for (core::RefreshWindows& event : due_windows(*hooks_.view(), hooks_.now(), hooks_.log))
            hooks_.post(std::move(event));
        lock.lock();
        changed_.wait_for(lock, std::chrono::minutes(1), [this] { return stopping_; });
    }
}

}  // namespace muster::controller
