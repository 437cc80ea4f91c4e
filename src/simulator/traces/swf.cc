// The Standard Workload Format: 18 numbers a job, -1 for what is not known.
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {
namespace {

enum Column : std::size_t {
    kJob,
    kSubmit,
    kWait,
    kRun,
    kProcessors,
    kCpuTime,
    kUsedMemory,
    kProcessorsAsked,
    kTimeAsked,
    kMemoryAsked,
    kStatus,
    kUser,
    kGroup,
    kExecutable,
    kQueue,
};
constexpr std::int64_t kSecondsMax = kMsMax / 1000;
constexpr std::int64_t kProcessorsMax = std::int64_t{1} << 24;

}  // namespace

Status read_swf(Reading& reading) {
    reading.trace.relative = true;
    Texts& texts = reading.trace.texts;
    return reading.file.each([&](CsvRow& row) {
        TraceRow job;
        job.name = row.text(kJob);
        job.submit = {row.integer(kSubmit, 0, kSecondsMax) * 1000};
        // Some logs write seconds with decimals.
        const double run = row.decimal(kRun, -1);
        if (run > static_cast<double>(kSecondsMax)) row.refuse(kRun, "more than ten years");
        const std::int64_t asked = row.integer(kProcessorsAsked, -1, kProcessorsMax);
        const std::int64_t got = row.integer(kProcessors, -1, kProcessorsMax);
        const std::int64_t limit = row.integer(kTimeAsked, -1, kSecondsMax);
        const std::int64_t status = row.integer(kStatus, -1);
        const std::int64_t user = row.integer(kUser, -1), queue = row.integer(kQueue, -1);
        const std::int64_t kilobytes =
            row.integer(kMemoryAsked, -1, kBytesMax / 1024);  // A processor.
        if (!row.ok()) return;
        if (run < 0) return reading.leave_out("jobs without a run time (cancelled while waiting)");
        job.run_ms = static_cast<std::int64_t>(run * 1000 + 0.5);
        const std::int64_t processors = asked > 0 ? asked : got;
        if (processors <= 0)
            return row.refuse(kProcessorsAsked, "neither asked nor allocated processors are known");
        if (reading.options.processors_are_devices) {
            spread(job, processors, reading.options.devices_per_node);
        } else {
            spread(job, processors, reading.options.cpus_per_node);
            job.cpus = {std::int64_t{job.devices} * 1000};
            if (kilobytes > 0) job.memory = {std::min(kilobytes * 1024 * job.devices, kBytesMax)};
            job.devices = 0;
        }
        if (limit > 0) job.limit_ms = limit * 1000;
        if (user >= 0) job.user = texts.of("user" + std::to_string(user));
        if (queue >= 0) job.queue = texts.of("queue" + std::to_string(queue));
        if (status == 0) job.end = model::Cause::UserError;
        reading.add(row, std::move(job));
    });
}

}  // namespace muster::simulator::traces
