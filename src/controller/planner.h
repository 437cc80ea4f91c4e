// The planner's thread: owns the PlanIndex, keeps it current, and proposes plans.
//
// One plan is in flight at a time: the next is made when the loop has stepped the last. Questions
// are answered between plans, from the same index.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "scheduler/plan.h"

namespace muster::controller {

class Planner {
public:
    struct Hooks {
        std::function<void(scheduler::Plan)> propose;
        std::function<Time()> now;
    };
    /// `initial`: core::feed_all of the recovered state.
    Planner(std::vector<scheduler::Change> initial, Hooks hooks);
    ~Planner();
    Planner(const Planner&) = delete;
    Planner& operator=(const Planner&) = delete;

    /// Nothing is proposed before this.
    void start();
    void feed(std::vector<scheduler::Change> changes, bool plan_done);
    /// Asked once, on the planner's thread with its index, or with an error: too many questions
    /// wait (then on the caller's thread), or this one waited too long. Must not block.
    using Question = std::function<void(Result<const scheduler::PlanIndex*>, Time now)>;
    void ask(Question question);
    /// How long it has not come round while it had work: the watchdog's measure.
    std::int64_t lag_ms() const;
    std::uint64_t plans() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller
