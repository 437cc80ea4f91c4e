// The production core and scheduler on jobs of a comparison, for the figures called muster.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "simulator/study/study.h"

namespace muster::compare {

/// When each job, by its name in the trace, was submitted and ended.
struct Spans {
    struct Span {
        std::int64_t submit_ms = 0, end_ms = 0;
    };
    std::map<std::string, Span> jobs;
    std::int64_t preemptions = 0;
};
/// Errors: a job was refused, or did not succeed. `wanted`: the study ends when so many of the jobs
/// for which `measured` holds have; 0: with the last job.
Result<Spans> run_production(const simulator::study::Cluster& cluster,
                             std::vector<simulator::study::TraceJob> jobs,
                             const simulator::study::Options& options, std::size_t wanted = 0,
                             const std::function<bool(std::string_view)>& measured = {});

/// The nodes, with queues and rules as `muster queues apply` takes them.
Result<simulator::study::Cluster> production_cluster(std::vector<model::NodeFacts> nodes,
                                                     const std::string& queue_file);

double mean_hours(const Spans& spans);

/// With plenty of CPUs and memory.
model::NodeFacts single_device_node(int number, const std::string& kind, const std::string& leaf);
/// A gang of `devices` nodes with one device each, up to `devices_max`.
simulator::study::TraceJob gang_of_single_devices(std::string name, std::int64_t submit_ms,
                                                  std::int64_t devices, std::int64_t devices_max);

}  // namespace muster::compare
