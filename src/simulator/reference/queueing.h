// Reference policies that decide which jobs run on a cluster of equal nodes, and change their mind
// at every event: shortest remaining time, shortest remaining service (time by devices), and least
// attained service in two dimensions as the Tiresias paper has it; as the simulator of the Muri
// paper (SIGCOMM 2022) runs them. For comparison only. The first two see the true work: oracles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::simulator::reference {

struct QueueingJob {
    std::int64_t gpus = 1;
    double submit = 0;             // Seconds.
    double iterations = 0;         // Its work.
    double iteration_seconds = 0;  // While it runs, wherever that is.
    double overhead = 0;           // Seconds of progress lost; see QueueingOptions.
};
enum class QueueingPolicy : std::uint8_t { Srtf, Srsf, Las };
std::string_view to_string(QueueingPolicy policy);
inline constexpr std::array kQueueingPolicies = {QueueingPolicy::Srtf, QueueingPolicy::Srsf,
                                                 QueueingPolicy::Las};

struct QueueingOptions {
    QueueingPolicy policy = QueueingPolicy::Srtf;
    std::int64_t nodes = 8, gpus = 8;  // Of a node.
    /// The published runs take each job's overhead from everything that runs at every event,
    /// preempted or not. False: nothing is lost.
    bool overhead = false;
    /// Las: device-seconds of attained service from which on a job is in the next queue.
    std::vector<double> thresholds = {3250, 7200};
};
struct QueueingResult {
    std::vector<double> jct;  // Seconds, by job as given.
    double average = 0, p99 = 0, makespan = 0;
    std::int64_t events = 0;
};
/// Refuses a job that needs more than the cluster has, or more than a node but not whole ones.
Result<QueueingResult> run_queueing(std::span<const QueueingJob> jobs,
                                    const QueueingOptions& options);

}  // namespace muster::simulator::reference
