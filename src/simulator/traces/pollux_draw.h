// Draws the workloads of the Pollux paper (OSDI '21) from the Philly trace as its authors' program
// did: for the loads whose workloads are not at hand as files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/models/application.h"
#include "simulator/traces/pollux.h"

namespace muster::simulator::traces {

/// A job of Philly, as far as the draw asks.
struct PhillyJob {
    std::int64_t second = 0;  // Of its day, from 0.
    double duration_s = 0, gpu_s = 0;
};
/// Columns timestamp ("2017-10-09 07:01:55"), duration, gpu_time; in the file's order.
Result<std::vector<PhillyJob>> read_philly_jobs(const std::string& path);

struct Tuned {
    int replicas = 1, batch = 1;
    friend bool operator==(const Tuned&, const Tuned&) = default;
};
/// Numbers of replicas, each with its fastest batch, that keep between 50 and 80 % of the speed-up
/// of their devices and end within twelve hours; one replica if there is none. Nodes of four.
std::vector<Tuned> tuned_configurations(const models::Application& application);

/// `count` jobs of the eight hours from 02:00. Errors: the six applications are not all there, or
/// fewer jobs qualify than are asked for.
Result<std::vector<PolluxJob>> draw_pollux_workload(
    const std::vector<PhillyJob>& philly,
    const std::map<std::string, models::Application>& applications, std::size_t count,
    std::uint32_t seed);

}  // namespace muster::simulator::traces
