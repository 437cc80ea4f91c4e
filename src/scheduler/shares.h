// Who has had how much: the order of queues and of users.
#pragma once

#include "scheduler/index.h"

namespace muster::scheduler {

/// The dominant share of the cluster, of decayed use and of present use together, over the weight.
/// One whole cluster used all the time by a queue of weight 100: 2. Cached for a pass.
double share_of(PlanIndex::State& state, QueueEntry& queue, Time now);
double share_of(PlanIndex::State& state, UserBook& user, Time now);
/// With aging.
std::int64_t priority_at(const QueueEntry& queue, std::int64_t priority, Time submitted, Time now);
OrderKey key_of(PlanIndex::State& state, const Lane& lane, const LaneKey& job, Time now);
/// Has a guarantee that it does not use up.
bool starved(const QueueEntry& queue);

}  // namespace muster::scheduler
