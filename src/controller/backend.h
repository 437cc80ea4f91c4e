// rest::Backend on the controller's parts.
#pragma once

#include <memory>
#include <string>

#include "controller/agents.h"
#include "controller/loop.h"
#include "controller/planner.h"
#include "ports/history.h"
#include "ports/store.h"
#include "rest/backend.h"

namespace muster::controller {

/// Wakes those that wait for an event newer than the one they know.
class EventWatch {
public:
    EventWatch();
    ~EventWatch();
    /// Runs `then` once, at reached(last) with last > after; dropping the handle cancels it. One
    /// that came before is not seen: call reached() with the log's last event afterwards.
    std::shared_ptr<void> add(std::uint64_t after, std::function<void()> then);
    void reached(std::uint64_t last);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct BackendParts {
    Loop* loop = nullptr;
    Planner* planner = nullptr;
    std::function<Agents*()> agents;  // Null: none are served.
    ports::Store* store = nullptr;
    ports::History* history = nullptr;
    EventWatch* watch = nullptr;
    rest::Backend::Health fixed;  // What never changes of the health.
    Time started;
    std::function<Time()> now;
};
std::unique_ptr<rest::Backend> make_backend(BackendParts parts);

}  // namespace muster::controller
