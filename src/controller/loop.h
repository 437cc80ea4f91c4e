// The thread that owns the core's State, and the pipeline behind it: step, make durable, then act.
//
// Inputs are stepped one by one; what they changed gathers into a batch while the batch before it
// is being synced (group commit). Only after a batch is durable are its commands sent, its askers
// answered and its view published. Nothing but the store's own queue can hold the loop up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/state.h"
#include "core/step.h"
#include "ports/store.h"
#include "scheduler/plan.h"

namespace muster::controller {

struct LoopHooks {
    /// All on the committing thread, after durability, in order.
    std::function<void(std::vector<core::Command>, const std::shared_ptr<const core::View>&)>
        carry_out;
    std::function<void(std::uint64_t last_event)> on_events;
    /// On the loop's thread: what the planner must be told; `plan_done` after a PlanProposed.
    std::function<void(std::vector<scheduler::Change>, bool plan_done)> feed_planner;
    /// The state on disk is not known or not ours any more: the process must end.
    std::function<void(const Error&)> fatal;
    std::function<void(const std::string&)> log;
    std::function<Time()> now;
};

struct LoopOptions {
    std::size_t queue_max = 100'000;  // Inputs waiting; beyond it a post is refused.
    Duration publish_every{10};
    std::size_t batch_records_max = 4'000;
};

struct LoopStats {
    std::uint64_t inputs = 0, refused = 0, batches = 0, records = 0, views = 0;
    std::int64_t lag_ms = 0;   // Of the round it is in, or of the oldest input that waits.
    bool store_stuck = false;  // A batch waits for room on the disk.
};

struct Answered {
    core::Answer answer;
    std::uint64_t revision = 0;
};
using Reply = std::function<void(Result<Answered>)>;

class Loop {
public:
    /// Takes a recovered State and a store whose term is ours.
    Loop(core::State state, ports::Store& store, LoopOptions options, LoopHooks hooks);
    ~Loop();  // As stop().
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    void start();
    /// Steps and commits what was posted, then stops: no hook is called after it, and what is
    /// posted from then on is forgotten.
    void stop();
    /// Any thread. `reply` may be empty; it is called on the committing thread (refusals: the
    /// loop's). Refused with Exhausted when the queue is full, NoSpace for new work on a full disk.
    void post(core::Event event, Reply reply = {});
    std::shared_ptr<const core::View> view() const;
    void when_published(std::uint64_t revision, std::function<void()> then);
    LoopStats stats() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller
