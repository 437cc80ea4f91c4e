// Streams of the Gavel paper's simulator as jobs: one an hour in the mean (`--compress` makes it
// more), their work as long as it takes on a V100.
#include "base/text.h"
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {

Status read_gavel(Reading& reading) {
    CsvFile& file = reading.file;
    MUSTER_LET(id, file.column("job_id"));
    MUSTER_LET(type, file.column("job_type"));
    MUSTER_LET(scale, file.column("scale_factor"));
    MUSTER_LET(duration, file.column("v100_duration_s"));
    MUSTER_LET(gap, file.column("unit_exp_interarrival"));
    reading.trace.relative = true;
    reading.trace.notes.emplace_back(
        "gavel: one job an hour arrives in the mean; --compress 4 makes it four");
    Time at;
    return file.each([&](CsvRow& row) {
        TraceRow job;
        job.name = row.text(id);
        job.profile = reading.trace.texts.of(row.text(type));
        job.run_ms = row.thousandths(duration, kMsMax);
        spread(job, row.integer(scale, 1, kTraceNodesMax), reading.options.devices_per_node);
        const std::int64_t thousandths = row.thousandths(gap, 1'000'000'000);
        if (!row.ok()) return;
        // Each row's gap is before the next job; the first comes at once.
        job.submit = at;
        at = at + Duration{thousandths * 3600};
        reading.add(row, std::move(job));
    });
}

}  // namespace muster::simulator::traces
