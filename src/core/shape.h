// What the scheduler needs of a job, taken from its spec.
#pragma once

#include "model/job_spec.h"
#include "scheduler/plan.h"

namespace muster::core {

/// Without an id: State interns it.
scheduler::Shape shape_of(const model::JobSpec& spec, QueueId queue);

}  // namespace muster::core
