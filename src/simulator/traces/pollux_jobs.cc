// Workloads of the Pollux paper's simulator as jobs of the size and batch that they were tuned for,
// their work as long as it takes on as few nodes as hold them.
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {
namespace {

/// Milliseconds, epoch by epoch. Empty: outside what was measured.
std::optional<std::int64_t> work_of(const models::ApplicationProfile& profile, int per_node) {
    const models::Application& application = *profile.application;
    double seconds = 0, before = 0;
    for (int epoch = 0; epoch < application.epochs(); ++epoch) {
        const auto speed =
            application.goodput(models::packed(profile.replicas, per_node), profile.split, epoch);
        if (!speed || *speed <= 0) return std::nullopt;
        seconds += (application.progress_after(epoch) - before) / *speed;
        before = application.progress_after(epoch);
    }
    if (seconds * 1000 > static_cast<double>(kMsMax)) return std::nullopt;
    return static_cast<std::int64_t>(seconds * 1000 + 0.5);
}

}  // namespace

Status read_pollux(Reading& reading) {
    CsvFile& file = reading.file;
    MUSTER_LET(name, file.column("name"));
    MUSTER_LET(time, file.column("time"));
    MUSTER_LET(application, file.column("application"));
    MUSTER_LET(replicas, file.column("num_replicas"));
    MUSTER_LET(batch, file.column("batch_size"));
    const models::Applications* known = reading.options.applications;
    if (known == nullptr)
        return Error{.code = Code::Invalid,
                     .message = reading.trace.file +
                                ": a job's length follows from the profile of "
                                "its application, and none were given",
                     .fix = "name the folder of profiles with --profiles"};
    reading.trace.relative = true;
    const auto per_node =
        static_cast<int>(std::max<std::int64_t>(1, reading.options.devices_per_node));
    std::map<std::string, std::optional<std::int64_t>> works;
    return file.each([&](CsvRow& row) {
        TraceRow job;
        job.name = row.text(name);
        job.submit = {row.integer(time, 0, kMsMax / 1000) * 1000};
        const auto count = static_cast<int>(row.integer(replicas, 1, 4096));
        const auto samples = static_cast<int>(row.integer(batch, 1, 1 << 24));
        if (!row.ok()) return;
        const std::string text =
            models::application_profile(std::string(row.text(application)), samples, count);
        const auto profile = models::parse_application_profile(*known, text);
        if (!profile) return row.refuse(application, "no profile of it was given");
        const auto [work, fresh] = works.try_emplace(text);
        if (fresh) work->second = work_of(*profile, per_node);
        if (!work->second)
            return row.refuse(replicas, "its profile was not measured with so many and that batch");
        job.run_ms = *work->second;
        job.profile = reading.trace.texts.of(text);
        spread(job, count, per_node);
        reading.add(row, std::move(job));
    });
}

}  // namespace muster::simulator::traces
