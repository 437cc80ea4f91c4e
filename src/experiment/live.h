// A copy of the running cluster, taken through the API: its nodes, queues and rules, its topology,
// and the jobs of its history. Nothing is changed there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/client.h"
#include "simulator/traces/cluster.h"
#include "simulator/traces/trace.h"

namespace muster::experiment {

/// Nodes that may be used now; what is drained or lost is left out and counted in `words`.
Result<simulator::traces::PaperCluster> fetch_cluster(cli::Client& client);

/// Jobs that ended within `since` ("14d"), as the API tells them.
Result<simulator::traces::Trace> fetch_history(cli::Client& client, const std::string& since);

/// The jobs that run and wait now, as a study would be given them.
struct Standing {
    /// Those that run first, at `at` and held to the nodes they have; then those that wait.
    std::vector<simulator::study::TraceJob> jobs;
    std::int64_t running = 0, waiting = 0;
    std::map<std::string, std::int64_t> left_out;
    std::int64_t assumed = 0;  // Waiting jobs whose length nobody told.
};
/// A job takes as long as its owner expects, else its time limit; one that runs and has neither as
/// long again as it has run, one that waits `assume`.
Result<Standing> fetch_jobs(cli::Client& client, const simulator::study::Cluster& cluster, Time at,
                            Duration assume);

}  // namespace muster::experiment
