// The trace that anyone can write: a table with `submit`, `duration` and what else is known.
#include <algorithm>

#include "base/text.h"
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {
namespace {

constexpr std::string_view kColumns[] = {"submit",
                                         "duration",
                                         "name",
                                         "user",
                                         "queue",
                                         "nodes",
                                         "gpus",
                                         "gpus_per_node",
                                         "kind",
                                         "gpu_fraction",
                                         "cpus",
                                         "memory_gib",
                                         "time_limit",
                                         "expected_time",
                                         "priority",
                                         "end",
                                         "checkpoint_interval",
                                         "preemptible",
                                         "profile"};

/// "yes", "no" and the like.
std::optional<bool> truth(std::string_view text) {
    if (text == "yes" || text == "true" || text == "1") return true;
    if (text == "no" || text == "false" || text == "0") return false;
    return std::nullopt;
}

class CsvJobs {
public:
    explicit CsvJobs(Reading& reading) : reading_(reading) {}

    Status read() {
        CsvFile& file = reading_.file;
        for (const std::string& name : file.columns())
            if (std::ranges::find(kColumns, name) == std::end(kColumns)) {
                const std::vector<std::string> known(std::begin(kColumns), std::end(kColumns));
                const std::string near = nearest(name, known);
                return Error{.code = Code::Invalid,
                             .message = reading_.trace.file + ": unknown column '" + name + "'" +
                                        (near.empty() ? "" : "; did you mean " + near + "?"),
                             .fix = "the columns are " + join(known, ", ")};
            }
        MUSTER_TRY(need("submit"));
        MUSTER_TRY(need("duration"));
        if (file.find("gpus") && file.find("gpus_per_node"))
            return Error{
                .code = Code::Invalid,
                .message = reading_.trace.file + ": has both gpus (of the job) and gpus_per_node",
                .fix = "leave one of the two columns out"};
        return file.each([this](CsvRow& row) { take(row); });
    }

private:
    Status need(std::string_view name) {
        MUSTER_LET(at, reading_.file.column(name));
        (void)at;
        return Ok{};
    }
    /// The column's index if the file has it and this row fills it in.
    std::optional<std::size_t> given(const CsvRow& row, std::string_view name) const {
        const auto at = reading_.file.find(name);
        if (!at || row.empty(*at)) return std::nullopt;
        return at;
    }
    std::uint32_t text(const CsvRow& row, std::string_view name) {
        const auto at = given(row, name);
        return at ? reading_.trace.texts.of(row.text(*at)) : 0;
    }
    std::int64_t milliseconds(CsvRow& row, std::string_view name) {
        const auto at = given(row, name);
        return at ? row.thousandths(*at, kMsMax) : 0;
    }

    void take(CsvRow& row) {
        TraceRow job;
        submit(row, job);
        job.run_ms = row.thousandths(*reading_.file.find("duration"), kMsMax);
        if (const auto at = given(row, "name")) job.name = row.text(*at);
        job.user = text(row, "user");
        if (const auto at = given(row, "queue"))
            job.queue = reading_.trace.texts.of(queue_name(row.text(*at)));
        devices(row, job);
        if (const auto at = given(row, "cpus")) job.cpus = {row.thousandths(*at, kMilliCpuMax)};
        if (const auto at = given(row, "memory_gib")) {
            // In thousandths of a GiB, which are not whole bytes.
            const std::int64_t milli = row.thousandths(*at, (kBytesMax >> 30) * 1000);
            job.memory = {static_cast<std::int64_t>((static_cast<__int128>(milli) << 30) / 1000)};
        }
        job.limit_ms = milliseconds(row, "time_limit");
        job.expected_ms = milliseconds(row, "expected_time");
        job.checkpoint_ms = milliseconds(row, "checkpoint_interval");
        job.profile = text(row, "profile");
        if (const auto at = given(row, "priority"))
            job.priority = static_cast<std::int16_t>(row.integer(*at, 0, 100));
        if (const auto at = given(row, "preemptible")) {
            const auto yes = truth(row.text(*at));
            if (!yes) row.refuse(*at, "must be yes or no");
            job.preemptible = yes.value_or(true);
        }
        if (const auto at = given(row, "end")) {
            const std::string_view word = row.text(*at);
            if (word == "failed")
                job.end = model::Cause::UserError;
            else if (word == "oom")
                job.end = model::Cause::Oom;
            else if (word != "success")
                row.refuse(*at, "must be success, failed or oom");
        }
        reading_.add(row, std::move(job));
    }

    void submit(CsvRow& row, TraceRow& job) {
        const std::size_t at = *reading_.file.find("submit");
        const std::string_view text = row.text(at);
        const bool stamp = text.size() >= 10 && text.find('-', 1) != std::string_view::npos;
        if (kind_ == Kind::Unknown) kind_ = stamp ? Kind::Stamps : Kind::Seconds;
        if (stamp != (kind_ == Kind::Stamps))
            return row.refuse(
                at, stamp ? "a date, after rows with seconds" : "seconds, after rows with dates");
        if (!stamp) {
            job.submit = {row.thousandths(at, std::int64_t{1} << 53)};
            reading_.trace.relative = true;
            if (job.submit.ms > kMsMax)
                row.refuse(at, "more than ten years after the beginning; write dates");
        } else if (const auto time = parse_stamp(text)) {
            job.submit = *time;
        } else {
            row.refuse(at, "not a time; seconds or 2026-12-01T08:00:00Z expected");
        }
    }

    void devices(CsvRow& row, TraceRow& job) {
        const auto nodes = given(row, "nodes"), total = given(row, "gpus"),
                   each = given(row, "gpus_per_node"), part = given(row, "gpu_fraction");
        if (nodes) job.nodes = static_cast<std::int32_t>(row.integer(*nodes, 1, kTraceNodesMax));
        if (each)
            job.devices = static_cast<std::int32_t>(row.integer(*each, 0, model::kGpusPerNodeMax));
        if (total) {
            const std::int64_t count = row.integer(*total, 0, kTraceNodesMax);
            if (!nodes)
                spread(job, count, reading_.options.devices_per_node);
            else if (count % job.nodes != 0)
                row.refuse(*total, "not a multiple of its nodes");
            else
                job.devices = static_cast<std::int32_t>(count / job.nodes);
        }
        if (part) {
            const std::int64_t milli = row.thousandths(*part, 1000);
            if (milli == 0) row.refuse(*part, "must be above 0, at most 1");
            if (milli < 1000 && (job.devices != 1 || job.nodes != 1))
                row.refuse(*part, "a part of more than one device");
            job.fraction = milli < 1000 ? static_cast<std::int32_t>(milli) : 0;
        }
        if (const auto at = given(row, "kind"))
            job.kinds = reading_.trace.texts.of(lower(row.text(*at)));
    }

    enum class Kind { Unknown, Seconds, Stamps };
    Reading& reading_;
    Kind kind_ = Kind::Unknown;
};

}  // namespace

Status read_csv_jobs(Reading& reading) {
    return CsvJobs(reading).read();
}

}  // namespace muster::simulator::traces
