// Traces of the Muri artifact: times in milliseconds; the work is iterations times the time of one
// alone.
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {

Status read_muri(Reading& reading) {
    CsvFile& file = reading.file;
    MUSTER_LET(id, file.column("job_id"));
    MUSTER_LET(gpus, file.column("num_gpu"));
    MUSTER_LET(submit, file.column("submit_time"));
    MUSTER_LET(iterations, file.column("iterations"));
    MUSTER_LET(each, file.column("iteration_time"));
    const auto model = file.find("model_name");
    reading.trace.relative = true;
    return file.each([&](CsvRow& row) {
        TraceRow job;
        job.name = row.text(id);
        job.submit = {row.integer(submit, 0, kMsMax)};
        const std::int64_t count = row.integer(iterations, 0);
        const std::int64_t micro = row.thousandths(each, kMsMax);
        const __int128 work = static_cast<__int128>(count) * micro / 1000;
        if (work > kMsMax) row.refuse(iterations, "more than ten years of work");
        job.run_ms = row.ok() ? static_cast<std::int64_t>(work) : 0;
        spread(job, row.integer(gpus, 0, kTraceNodesMax), reading.options.devices_per_node);
        if (model) job.profile = reading.trace.texts.of(row.text(*model));
        reading.add(row, std::move(job));
    });
}

}  // namespace muster::simulator::traces
