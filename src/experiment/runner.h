// Runs the studies of a plan, several at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "experiment/plan.h"

namespace muster::experiment {

/// What the runs have done so far; read while they run.
struct Gauge {
    std::atomic<std::int64_t> ended{0}, waiting{0};
    std::atomic<std::uint64_t> events{0};
    std::atomic<std::int64_t> runs{0};
    std::atomic<bool> stop{false};  // Set it: every run ends with what it has.
};

/// In the order policy by policy, seed by seed, whatever ended first. A run that was not begun
/// when `gauge.stop` was set is left out. `watch` is called on this thread about ten times a second
/// until all have ended.
Result<std::vector<sim::report::RunReport>> run_all(const Plan& plan, Gauge& gauge,
                                                    const std::function<void()>& watch);

/// One study: this cluster, these jobs of the plan's trace.
Result<sim::report::RunReport> run_study(const Plan& plan, const sim::study::Cluster& cluster,
                                         const sim::traces::Play& play,
                                         const sim::study::Options& options);

}  // namespace muster::experiment
