#include "controller/cluster_config.h"

namespace muster::controller {

std::vector<core::Event> cluster_events(const spec::ClusterParts& cluster) {
    const core::Caller file{.user = "controller.yaml", .admin = true};
    std::vector<core::Event> events;
    if (cluster.rules) events.emplace_back(core::SetRules{file, *cluster.rules});
    if (cluster.topology) events.emplace_back(core::SetTopology{file, *cluster.topology});
    if (cluster.queues.empty()) return events;
    core::ApplyQueues apply{.caller = file};
    for (const model::Queue& queue : cluster.queues)
        apply.queues.push_back({.name = queue.name, .settings = queue.settings});
    events.emplace_back(std::move(apply));
    return events;
}

}  // namespace muster::controller
