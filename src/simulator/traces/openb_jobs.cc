// The pods of the "openb" trace as jobs: from their creation, for as long as they were bound.
#include "base/text.h"
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {
namespace {

constexpr std::int64_t kSecondsMax = kMsMax / 1000;

}  // namespace

Status read_openb(Reading& reading) {
    CsvFile& file = reading.file;
    MUSTER_LET(name, file.column("name"));
    MUSTER_LET(cpus, file.column("cpu_milli"));
    MUSTER_LET(memory, file.column("memory_mib"));
    MUSTER_LET(gpus, file.column("num_gpu"));
    MUSTER_LET(milli, file.column("gpu_milli"));
    // Lists without times are for placement alone and cannot be played.
    MUSTER_LET(created, file.column("creation_time"));
    MUSTER_LET(deleted, file.column("deletion_time"));
    MUSTER_LET(scheduled, file.column("scheduled_time"));
    const auto models = file.find("gpu_spec");
    reading.trace.relative = true;
    reading.trace.notes.emplace_back(
        "openb: pods that still ran when the trace ends count as ended then");
    const auto seconds = [&](CsvRow& row, std::size_t column) {
        return Time{row.integer(column, 0, kSecondsMax) * 1000};
    };
    return file.each([&](CsvRow& row) {
        if (row.empty(scheduled)) return reading.leave_out("pods that were never bound");
        TraceRow job;
        job.name = row.text(name);
        job.submit = seconds(row, created);
        job.cpus = {row.integer(cpus, 0, kMilliCpuMax)};
        job.memory = {row.integer(memory, 0, kBytesMax >> 20) << 20};
        job.devices = static_cast<std::int32_t>(row.integer(gpus, 0, model::kGpusPerNodeMax));
        const std::int64_t part = job.devices > 0 ? row.integer(milli, 1, 1000) : 1000;
        if (part < 1000 && job.devices != 1) row.refuse(milli, "a part of more than one device");
        job.fraction = part < 1000 ? static_cast<std::int32_t>(part) : 0;
        const Time begin = seconds(row, scheduled), end = seconds(row, deleted);
        if (end < begin) row.refuse(deleted, "before it was bound");
        job.run_ms = (end - begin).ms;
        if (models) job.kinds = reading.trace.texts.of(lower(row.text(*models)));
        reading.add(row, std::move(job));
    });
}

}  // namespace muster::simulator::traces
