// A trace of the Muri paper as its published runs had it.
#pragma once

#include <span>
#include <vector>

#include "simulator/reference/queueing.h"
#include "simulator/traces/muri_jobs.h"

namespace muster::simulator::reference {

/// Seconds of progress that the authors take from a job of this model at each event.
double muri_overhead(std::string_view model, std::int64_t gpus);
std::vector<QueueingJob> muri_jobs(std::span<const traces::MuriJob> jobs);

}  // namespace muster::simulator::reference
