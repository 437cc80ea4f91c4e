// Says when the loop or the planner has stopped coming round, though the API still answers (F53).
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/id.h"

namespace muster::controller {

class Watchdog {
public:
    struct Watched {
        std::string name;                      // "loop"
        std::function<std::int64_t()> lag_ms;  // How long it has not come round; any thread.
    };
    struct Options {
        Duration every{500};
        Duration late{2'000};
    };
    /// One line in the log when one is late, and one when it comes round again.
    Watchdog(std::vector<Watched> watched, Options options,
             std::function<void(const std::string&)> log);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

private:
    void run();
    const std::vector<Watched> watched_;
    const Options options_;
    const std::function<void(const std::string&)> log_;
    std::mutex mutex_;
    std::condition_variable stop_asked_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace muster::controller
