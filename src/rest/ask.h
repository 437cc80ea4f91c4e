// Questions to the planner's index without waiting on any thread: worked out on the planner's,
// answered on Api::reads, given up when the planner is late.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "rest/api.h"

namespace muster::rest {

constexpr Duration kPlannerWait = seconds(5);

/// `work` looks at the index on the planner's thread and must be quick; `then` gets what it made,
/// or why there is none. Exactly once.
template <class T>
void ask_planner(const CallPtr& call, std::function<T(const scheduler::PlanIndex&, Time)> work,
                 std::function<void(Result<T>)> then) {
    struct Once {
        std::atomic<bool> done{false};
        std::uint64_t timer = 0;
    };
    auto once = std::make_shared<Once>();
    once->timer = call->api->watches->after(kPlannerWait, [once, then] {
        if (once->done.exchange(true)) return;
        then(Error{.code = Code::Unavailable,
                   .message = "the planner is late: no answer for 5 s",
                   .fix = "try again in a moment; `muster doctor` tells how late it is",
                   .number = errors::kNotReady});
    });
    call->api->backend.ask([call, once, work = std::move(work), then = std::move(then)](
                               Result<const scheduler::PlanIndex*> index, Time now) {
        if (once->done) return;  // Too late: nobody waits for it.
        auto made = std::make_shared<Result<T>>(index ? Result<T>(work(**index, now))
                                                      : Result<T>(index.error()));
        call->api->reads.post([call, once, made, then] {
            if (once->done.exchange(true)) return;
            call->api->watches->cancel(once->timer);
            then(std::move(*made));
        });
    });
}

}  // namespace muster::rest
