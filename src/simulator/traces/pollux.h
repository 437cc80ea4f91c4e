// Reads the data of the Pollux paper's simulator: application profiles and workloads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/models/application.h"
#include "simulator/traces/csv.h"

namespace muster::simulator::traces {

/// A folder with placements.csv, scalability.csv and validation-BATCH.csv of one application,
/// which is called as the folder is. Every row must be good: a profile with holes is no profile.
Result<models::Application> read_application(const std::string& folder);
/// All applications of a folder of such folders, by name.
Result<std::map<std::string, models::Application>> read_applications(const std::string& folder);

struct PolluxJob {
    std::string name;
    std::int64_t submit_s = 0;
    std::string application;
    int replicas = 0, batch = 0;  // As tuned for a cluster of its own.
};
struct PolluxWorkload {
    std::vector<PolluxJob> jobs;  // As in the file: by submit.
    BadRows bad;
};
Result<PolluxWorkload> read_pollux_workload(const std::string& path,
                                            const CsvOptions& options = {});

}  // namespace muster::simulator::traces
