// A copy of the running cluster, taken through the API: its nodes, queues and rules, its topology,
// and the jobs of its history. Nothing is changed there.
#pragma once

#include <string>

#include "cli/client.h"
#include "simulator/traces/cluster.h"
#include "simulator/traces/trace.h"

namespace muster::experiment {

/// Nodes that may be used now; what is drained or lost is left out and counted in `words`.
Result<simulator::traces::PaperCluster> fetch_cluster(cli::Client& client);

/// Jobs that ended within `since` ("14d"), as the API tells them.
Result<simulator::traces::Trace> fetch_history(cli::Client& client, const std::string& since);

}  // namespace muster::experiment
