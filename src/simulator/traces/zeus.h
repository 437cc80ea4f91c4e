// Measured time, power and epochs to target of training jobs by power limit (the Zeus paper's
// trace, NSDI 2023).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/traces/csv.h"

namespace muster::simulator::traces {

/// One epoch of a job at a power limit.
struct ZeusEpoch {
    std::string dataset, network, optimizer;
    std::int64_t batch_size = 0;
    std::int64_t power_limit = 0;  // Watts.
    double seconds = 0, watts = 0;
};
/// A run that reached a target metric after so many epochs.
struct ZeusRun {
    std::string dataset, network, optimizer;
    std::int64_t batch_size = 0;
    double target = 0;
    double epochs = 0;
};
struct ZeusEpochs {
    std::vector<ZeusEpoch> epochs;
    BadRows bad;
};
struct ZeusRuns {
    std::vector<ZeusRun> runs;
    BadRows bad;
};
Result<ZeusEpochs> read_zeus_epochs(const std::string& path, const CsvOptions& options = {});
/// Runs that did not reach their target (target_epoch empty or nan) are left out.
Result<ZeusRuns> read_zeus_runs(const std::string& path, const CsvOptions& options = {});

}  // namespace muster::simulator::traces
