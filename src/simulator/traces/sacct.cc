// What `sacct -P` prints: one line a job, steps and batch scripts among them, by named columns.
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "base/units.h"
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

bool unknown(std::string_view text) {
    return text.empty() || text == "Unknown" || text == "None" || text == "N/A" ||
           text == "INVALID";
}

/// "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1".
struct Tres {
    std::int64_t cpus = 0, nodes = 0, gpus = 0;
    Bytes memory;
    std::string kind;
};
std::optional<Tres> parse_tres(std::string_view text) {
    Tres tres;
    std::int64_t by_kind = 0;
    for (const std::string_view part : split(text, ',')) {
        if (part.empty()) continue;
        const std::size_t at = part.find('=');
        if (at == std::string_view::npos) return std::nullopt;
        const std::string_view key = part.substr(0, at), value = part.substr(at + 1);
        if (key == "mem") {
            const auto bytes = parse_bytes(value);
            // Slurm writes 4000M and 0.5T alike; a bare number is megabytes.
            const auto bare = number(value);
            if (!bytes) return std::nullopt;
            tres.memory = bare ? Bytes{std::min(*bare, kBytesMax >> 20) << 20} : *bytes;
            continue;
        }
        const bool gpu = key == "gres/gpu" || key.starts_with("gres/gpu:");
        if (key != "cpu" && key != "node" && !gpu) continue;
        const auto count = number(value);
        if (!count) return std::nullopt;
        if (key == "cpu") tres.cpus = *count;
        if (key == "node") tres.nodes = *count;
        if (key == "gres/gpu") tres.gpus = *count;
        if (gpu && key.size() > 9) {
            by_kind += *count;
            const std::string kind = lower(key.substr(9));
            tres.kind = tres.kind.empty() || tres.kind == kind ? kind : "";
        }
    }
    if (tres.gpus == 0) tres.gpus = by_kind;
    return tres;
}

class Sacct {
public:
    explicit Sacct(Reading& reading) : reading_(reading), file_(reading.file) {}

    Status read() {
        MUSTER_LET(id, file_.column("JobID"));
        MUSTER_LET(submit, file_.column("Submit"));
        MUSTER_LET(state, file_.column("State"));
        id_ = id, submit_ = submit, state_ = state;
        if (!file_.find("ElapsedRaw") && !file_.find("Elapsed") &&
            !(file_.find("Start") && file_.find("End")))
            return lacks("how long jobs ran: ElapsedRaw, Elapsed, or Start and End");
        if (!file_.find("AllocTRES") && !file_.find("ReqTRES") && !file_.find("NCPUS") &&
            !file_.find("AllocCPUS"))
            return lacks("what jobs held: AllocTRES, ReqTRES, AllocCPUS or NCPUS");
        reading_.trace.notes.emplace_back("sacct: times without a zone are taken as UTC");
        return file_.each([this](CsvRow& row) { take(row); });
    }

private:
    Status lacks(const std::string& what) const {
        return Error{.code = Code::Invalid,
                     .message = reading_.trace.file + ": has no column for " + what,
                     .fix =
                         "sacct -a -P -S DATE -o JobID,JobName,User,Account,Partition,Submit,"
                         "Start,End,State,ElapsedRaw,Timelimit,NNodes,AllocTRES,ReqTRES"};
    }
    std::optional<std::size_t> given(const CsvRow& row, std::string_view name) const {
        const auto at = file_.find(name);
        if (!at || unknown(row.text(*at))) return std::nullopt;
        return at;
    }

    void take(CsvRow& row) {
        const std::string_view id = row.text(id_);
        if (id.find('.') != std::string_view::npos) return reading_.leave_out("steps of jobs");
        const std::string_view state = row.text(state_);
        const std::string_view word = state.substr(0, state.find(' '));  // "CANCELLED by 1000".
        if (word == "PENDING" || word == "REQUEUED" || word == "RESIZING" || word == "REVOKED")
            return reading_.leave_out("jobs that never started");
        if (word == "RUNNING" || word == "SUSPENDED" || word == "COMPLETING")
            return reading_.leave_out("jobs that still run");
        TraceRow job;
        job.name = id;
        if (const auto at = given(row, "JobName")) job.name += " " + std::string(row.text(*at));
        if (const auto time = parse_moment(row.text(submit_)))
            job.submit = *time;
        else
            row.refuse(submit_, "not a time; 2026-12-01T08:00:00 expected");
        if (!row.ok()) return;
        const bool started = file_.find("Start") ? given(row, "Start").has_value() : true;
        if (!started && word.starts_with("CANCELLED"))
            return reading_.leave_out("jobs that never started");
        ended(row, word, job);
        ran(row, job);
        if (!row.ok()) return;
        if (job.run_ms == 0 && word.starts_with("CANCELLED") && !file_.find("Start"))
            return reading_.leave_out("jobs that never started");
        held(row, job);
        limited(row, job);
        if (const auto at = given(row, "User")) job.user = reading_.trace.texts.of(row.text(*at));
        // Several partitions: the first is where it was tried first.
        if (const auto at = given(row, "Partition")) {
            const std::string_view names = row.text(*at);
            job.queue = reading_.trace.texts.of(queue_name(names.substr(0, names.find(','))));
        }
        reading_.add(row, std::move(job));
    }

    static std::optional<Time> parse_moment(std::string_view text) {
        if (const auto epoch = number(text); epoch && *epoch > 100'000'000)
            return Time{*epoch * 1000};
        return parse_stamp(text);
    }

    void ended(CsvRow& row, std::string_view word, TraceRow& job) {
        if (word == "FAILED")
            job.end = model::Cause::UserError;
        else if (word == "OUT_OF_MEMORY")
            job.end = model::Cause::Oom;
        else if (word == "NODE_FAIL" || word == "PREEMPTED" || word == "BOOT_FAIL")
            reading_.trace.left_out
                ["(kept) jobs that the cluster ended: what they ran is taken "
                 "as their work"]++;
        else if (word != "COMPLETED" && !word.starts_with("CANCELLED") && word != "TIMEOUT" &&
                 word != "DEADLINE")
            row.refuse(state_, "not a state of a Slurm job");
    }

    void ran(CsvRow& row, TraceRow& job) {
        if (const auto at = given(row, "ElapsedRaw")) {
            job.run_ms = row.integer(*at, 0, kMsMax / 1000) * 1000;
        } else if (const auto elapsed = given(row, "Elapsed")) {
            const auto ms = parse_slurm_length(row.text(*elapsed));
            if (!ms || *ms > kMsMax)
                row.refuse(*elapsed, "not a length of time; 1-02:03:04 expected");
            job.run_ms = ms.value_or(0);
        } else {
            const auto start = given(row, "Start"), end = given(row, "End");
            const auto from = start ? parse_moment(row.text(*start)) : std::nullopt;
            const auto to = end ? parse_moment(row.text(*end)) : std::nullopt;
            const std::size_t column = *file_.find("End");
            if (!from || !to) return row.refuse(column, "no start and end to tell how long it ran");
            if (*to < *from) return row.refuse(column, "before its start");
            if ((*to - *from) > kDurationMax) return row.refuse(column, "ran more than ten years");
            job.run_ms = (*to - *from).ms;
        }
    }

    void held(CsvRow& row, TraceRow& job) {
        Tres tres;
        auto column = given(row, "AllocTRES");
        if (!column) column = given(row, "ReqTRES");
        if (column) {
            const auto parsed = parse_tres(row.text(*column));
            if (!parsed) return row.refuse(*column, "not of the form cpu=8,gres/gpu=2,mem=64G");
            tres = *parsed;
        }
        if (const auto at = given(row, "NNodes"); at && tres.nodes == 0)
            tres.nodes = row.integer(*at, 0, kTraceNodesMax);
        for (const std::string_view name : {"AllocCPUS", "NCPUS"})
            if (const auto at = given(row, name); at && tres.cpus == 0)
                tres.cpus = row.integer(*at, 0, kMilliCpuMax);
        const std::int64_t nodes = std::clamp<std::int64_t>(tres.nodes, 1, kTraceNodesMax);
        if (tres.gpus % nodes != 0 || tres.gpus / nodes > model::kGpusPerNodeMax) {
            const std::size_t at = column.value_or(id_);
            return row.refuse(at, std::to_string(tres.gpus) + " devices on " +
                                      std::to_string(nodes) + " nodes are not the same on each");
        }
        job.nodes = static_cast<std::int32_t>(nodes);
        job.devices = static_cast<std::int32_t>(tres.gpus / nodes);
        job.cpus = {std::min(tres.cpus * 1000 / nodes, kMilliCpuMax)};
        job.memory = {tres.memory.value / nodes};
        job.kinds = reading_.trace.texts.of(tres.kind);
    }

    void limited(CsvRow& row, TraceRow& job) {
        auto at = given(row, "TimelimitRaw");
        if (at) {
            if (const auto minutes = number(row.text(*at))) job.limit_ms = *minutes * 60'000;
        } else if ((at = given(row, "Timelimit"))) {
            const std::string_view text = row.text(*at);
            if (text == "UNLIMITED" || text == "Partition_Limit") return;
            const auto ms = parse_slurm_length(text);
            if (!ms) return row.refuse(*at, "not a limit; 1-00:00:00 or UNLIMITED expected");
            job.limit_ms = *ms;
        }
        job.limit_ms = std::min(job.limit_ms, kMsMax);
        // Slurm lets a job run a little past its limit; here the limit is exact.
        if (job.limit_ms > 0) job.run_ms = std::min(job.run_ms, job.limit_ms);
    }

    Reading& reading_;
    CsvFile& file_;
    std::size_t id_ = 0, submit_ = 0, state_ = 0;
};

}  // namespace

std::optional<std::int64_t> parse_slurm_length(std::string_view text) {
    std::int64_t days = 0;
    const std::size_t dash = text.find('-');
    if (dash != std::string_view::npos) {
        const auto count = number(text.substr(0, dash));
        if (!count || *count > 100'000) return std::nullopt;
        days = *count;
        text.remove_prefix(dash + 1);
    }
    text = text.substr(0, text.find('.'));  // Fractions of a second.
    const auto parts = split(text, ':');
    if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
    std::int64_t sum = 0;
    for (const std::string_view part : parts) {
        const auto count = number(part);
        if (!count || *count > 1'000'000) return std::nullopt;
        sum = sum * 60 + *count;
    }
    return (days * 86'400 + sum) * 1000;
}

Status read_sacct(Reading& reading) {
    return Sacct(reading).read();
}

}  // namespace muster::simulator::traces
