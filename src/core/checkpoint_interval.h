// How often a job should write a checkpoint: so that what it stands still for writes and what it
// loses with failures are least together. The simulator goes by it; live jobs are not told one yet.
#pragma once

#include <cstdint>

#include "base/id.h"

namespace muster::core {

/// A number of failures over so many node-days.
struct FailureCount {
    std::int64_t failures = 0;
    std::int64_t node_days = 0;
};
/// Mean time to failure of a job on so many nodes, by the mean of a Gamma posterior: what was seen
/// of these nodes, beside what is known of the whole fleet. kDurationMax: no failure is known of.
Duration mean_time_to_failure(std::int64_t nodes, const FailureCount& fleet,
                              const FailureCount& seen);

/// Work between two checkpoints of which each stops the job for `write`: Daly's higher-order rule
/// (J. T. Daly, Future Generation Computer Systems 22, 2006), but never below ten writes; the mean
/// time to failure itself if two writes or more take as long. Zero `write` counts as a second.
Duration checkpoint_interval(Duration mean_time_to_failure, Duration write);

/// Whether a job that was told `told` should be told `now`: they differ by more than a fifth.
bool worth_telling(Duration told, Duration now);

}  // namespace muster::core
