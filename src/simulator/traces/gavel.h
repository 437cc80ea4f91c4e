// Reads the data of the Gavel paper's simulator: throughputs of types of jobs by kind of device,
// and streams of jobs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/models/throughputs.h"
#include "simulator/traces/csv.h"

namespace muster::simulator::traces {

/// {kind: {"('type', devices)": {"null": steps a second alone, other types: pairs}}}. What a job
/// does beside another one is not read, nor kinds called NAME_unconsolidated.
Result<models::Throughputs> read_throughputs(const std::string& path);
Result<models::Throughputs> read_throughputs_text(const std::string& name, const std::string& text);

struct GavelJob {
    std::string type;
    int devices = 1;
    double steps = 0;
    /// Since the job before, in mean times between arrivals; the first's is not used.
    double gap = 0;
};
struct GavelStream {
    std::vector<GavelJob> jobs;
    BadRows bad;
    /// Seconds, when so many jobs arrive an hour: the first at 0.
    std::vector<double> arrivals(double jobs_per_hour) const;
};
Result<GavelStream> read_gavel_stream(const std::string& path, const CsvOptions& options = {});

}  // namespace muster::simulator::traces
