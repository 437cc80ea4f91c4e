// Says when the loop or the planner has stopped coming round, though the API still answers (F53).
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "controller/loop.h"
#include "controller/planner.h"

namespace muster::controller {

class Watchdog {
public:
    Watchdog(Loop& loop, Planner& planner, std::function<void(const std::string&)> log);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

private:
    void run();
    Loop& loop_;
    Planner& planner_;
    std::function<void(const std::string&)> log_;
    std::mutex mutex_;
    std::condition_variable stop_asked_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace muster::controller
