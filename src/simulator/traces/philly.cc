// The table of Philly jobs (2017) as it is published with others' simulators: submit in local time,
// seconds, devices, virtual cluster.
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {

Status read_philly(Reading& reading) {
    CsvFile& file = reading.file;
    MUSTER_LET(submit, file.column("timestamp"));
    MUSTER_LET(duration, file.column("duration"));
    MUSTER_LET(gpus, file.column("num_gpus"));
    MUSTER_LET(cluster, file.column("cluster"));
    return file.each([&](CsvRow& row) {
        TraceRow job;
        const auto at = parse_stamp(row.text(submit));
        if (!at) row.refuse(submit, "not a time; 2017-10-09 07:01:55 expected");
        if (at) job.submit = *at;
        job.run_ms = row.thousandths(duration, kMsMax);
        spread(job, row.integer(gpus, 0, kTraceNodesMax), reading.options.devices_per_node);
        job.queue = reading.trace.texts.of(queue_name(row.text(cluster)));
        reading.add(row, std::move(job));
    });
}

}  // namespace muster::simulator::traces
