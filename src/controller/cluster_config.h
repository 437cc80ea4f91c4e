// What controller.yaml says of the cluster, as events: at the start and at each reload.
#pragma once

#include <vector>

#include "core/step.h"
#include "spec/cluster_file.h"

namespace muster::controller {

/// To be posted in this order. What the file does not name stays as it is: queues that were made
/// otherwise are neither changed nor dropped.
std::vector<core::Event> cluster_events(const spec::ClusterParts& cluster);

}  // namespace muster::controller
