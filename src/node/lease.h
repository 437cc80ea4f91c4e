// The agent's lease: until when its gangs may run without a word from a controller, and what its
// peers say when it has run out. Times and rules only; step.cc feeds it and carries out.
#pragma once

#include "base/id.h"
#include "node/state.h"
#include "node/step.h"

namespace muster::node {

/// A task of a gang runs here: only then does the lease's end matter.
bool gang_aboard(const State& state);
/// A controller heard of us at some time not before `sent`.
void extend_lease(State& state, Time sent);
/// Moves `lease` to what holds at `now`: asks peers, decides, and stops gangs when cut off.
void review_lease(State& state, Time now, Step& step);
/// When review_lease() has something to do again.
Time lease_wake(const State& state);
/// Orders the end of `task`; the first cause stays.
void stop_task(Task& task, model::Cause cause, Duration grace, Step& step);

}  // namespace muster::node
