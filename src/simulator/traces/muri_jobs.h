// The public traces of the Muri paper (SIGCOMM 2022), derived from Philly's: jobs with work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/traces/csv.h"

namespace muster::simulator::traces {

struct MuriJob {
    std::int64_t id = 0;
    std::int64_t gpus = 0;
    std::int64_t submit_ms = 0;
    std::int64_t iterations = 0;
    std::int64_t iteration_ms = 0;  // Of one iteration, as profiled.
    std::string model;
};
struct MuriJobs {
    std::vector<MuriJob> jobs;  // In the file's order, which is not quite that of submission.
    BadRows bad;
};
Result<MuriJobs> read_muri_jobs(const std::string& path, const CsvOptions& options = {});

/// How much longer than profiled an iteration takes in the authors' simulator, in thousandths.
constexpr std::int64_t kMuriSlowdown = 1015;

}  // namespace muster::simulator::traces
