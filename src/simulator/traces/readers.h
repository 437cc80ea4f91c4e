// One function a format. Internal to this folder.
#pragma once

#include "simulator/traces/trace.h"

namespace muster::simulator::traces {

/// What a reader fills in, and the file that it reads.
struct Reading {
    Trace& trace;
    CsvFile& file;
    const ReadOptions& options;

    void leave_out(const std::string& what) { ++trace.left_out[what]; }
    void add(CsvRow& row, TraceRow job) {
        if (row.ok()) trace.rows.push_back(std::move(job));
    }
};

using ReadFunction = Status (*)(Reading&);

Status read_csv_jobs(Reading& reading);
Status read_sacct(Reading& reading);
Status read_swf(Reading& reading);
Status read_history(Reading& reading);
Status read_philly(Reading& reading);
Status read_openb(Reading& reading);
Status read_muri(Reading& reading);
Status read_gavel(Reading& reading);
Status read_pollux(Reading& reading);

/// "2026-12-01 08:00:00", with T or a zone too; without one it is UTC. Empty: not a time.
std::optional<Time> parse_stamp(std::string_view text);
/// "1-02:03:04", "02:03:04", "03:04" as Slurm writes lengths of time. Empty: not of that form.
std::optional<std::int64_t> parse_slurm_length(std::string_view text);
/// A name that a queue may have: what may not stand in one becomes '-'.
std::string queue_name(std::string_view text);

/// The longest that a job of a trace may run or wait: kDurationMax.
constexpr std::int64_t kMsMax = kDurationMax.ms;
constexpr std::int64_t kTraceNodesMax = model::kNodesMax;

}  // namespace muster::simulator::traces
