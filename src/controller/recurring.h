// Keeps the windows of reservations that come again known for months ahead.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/state.h"
#include "core/step.h"

namespace muster::controller {

/// The events that are due at `now`. A zone whose file is gone is told once by `log` a look.
std::vector<core::RefreshWindows> due_windows(const core::View& view, Time now,
                                              const std::function<void(const std::string&)>& log);

/// A thread that looks once a minute.
class Recurring {
public:
    struct Hooks {
        std::function<std::shared_ptr<const core::View>()> view;
        std::function<void(core::RefreshWindows)> post;
        std::function<void(const std::string&)> log;
        std::function<Time()> now;
    };
    explicit Recurring(Hooks hooks);
    ~Recurring();
    Recurring(const Recurring&) = delete;
    Recurring& operator=(const Recurring&) = delete;

private:
    void run();
    const Hooks hooks_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace muster::controller
