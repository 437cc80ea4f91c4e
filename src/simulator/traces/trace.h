// A trace of jobs, whatever it was written in: what each asked for, how long it really ran, how it
// ended. Rows that could not be read are counted and told, never guessed (csv.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/quantity.h"
#include "base/result.h"
#include "model/job.h"
#include "simulator/models/profile_rates.h"
#include "simulator/study/study.h"
#include "simulator/traces/csv.h"

namespace muster::simulator::traces {

/// Every text once: users, queues and kinds repeat in every row.
class Texts {
public:
    Texts() { of(""); }
    std::uint32_t of(std::string_view text);
    const std::string& operator[](std::uint32_t index) const { return texts_[index]; }

private:
    std::vector<std::string> texts_;
    std::map<std::string, std::uint32_t, std::less<>> index_;
};

/// One job, small: a trace of a million of them fits in memory.
struct TraceRow {
    std::string name;
    Time submit;
    std::int64_t run_ms = 0;       // Its work, undisturbed.
    std::int64_t limit_ms = 0;     // The limit its user set; 0: none.
    std::int64_t expected_ms = 0;  // What its user said it would take; 0: nothing.
    std::uint32_t user = 0, queue = 0, profile = 0;
    std::uint32_t kinds = 0;  // "v100" or "v100|a100", any of them; "": any device.
    std::int32_t nodes = 1;
    std::int32_t devices = 0;   // A node.
    std::int32_t fraction = 0;  // Thousandths of one device; 0: whole ones.
    MilliCpu cpus;              // A node; 0: the default.
    Bytes memory;               // A node; 0: no limit.
    std::int64_t checkpoint_ms = 0;
    std::int16_t priority = -1;  // -1: the queue's default.
    bool preemptible = true;
    model::Cause end = model::Cause::Success;
};

struct Trace {
    std::string format;  // Its name, as in `--format`.
    std::string file;
    std::vector<TraceRow> rows;  // Ascending by submit; equal ones as they stand in the file.
    Texts texts;
    BadRows bad;
    /// What was left out on purpose, and how often: "steps of jobs", "jobs that never started".
    std::map<std::string, std::int64_t> left_out;
    std::vector<std::string> notes;  // What the reader had to take for something else.
    bool relative = false;           // Times count from the trace's beginning, not from 1970.

    std::int64_t device_ms() const;  // Of all jobs.
    Time first() const { return rows.empty() ? Time{} : rows.front().submit; }
    Time last() const { return rows.empty() ? Time{} : rows.back().submit; }
    /// Sorted, each once; "" among them when some job names none.
    std::vector<std::string> queues() const;
};

struct ReadOptions {
    std::string format = "auto";
    bool strict = false;
    /// Devices of a node: a trace that only knows a total is spread over as few nodes as hold it
    /// in equal parts.
    std::int64_t devices_per_node = 8;
    std::int64_t cpus_per_node = 64;
    bool processors_are_devices = false;  // Of a workload in the Standard Workload Format.
    const models::Applications* applications = nullptr;  // Not owned; Pollux needs them.
};

struct Format {
    std::string_view name;  // "sacct"
    std::string_view what;  // One line, for help and docs.
};
/// Without "auto".
const std::vector<Format>& formats();

/// Reads the file, gzipped or not. Errors: it cannot be read, is empty, is of no known format or
/// lacks a column, holds no job; with `strict`, its first bad row.
Result<Trace> read_trace(const std::string& path, const ReadOptions& options);
/// The same of a text that is there already.
Result<Trace> read_trace_text(std::string name, std::string text, const ReadOptions& options);

/// How a trace is played.
struct Play {
    std::int64_t compress = 1000;  // Thousandths: arrivals come so much faster.
    bool know_durations = false;   // expected_time is the true length: an oracle.
    std::int64_t jobs_from = 0;    // Without the first so many…
    std::int64_t jobs_max = 0;     // …and only so many; 0: all that are left.
    /// Of jobs that do not say.
    Duration checkpoint_every;
    bool checkpoint_auto = false;
    Duration checkpoint_stall, restart_cost;
};

/// The jobs of a trace one by one. The trace outlives it; several may read one trace at once.
class TraceSource : public study::JobSource {
public:
    TraceSource(const Trace& trace, const Play& play)
        : trace_(trace), play_(play), at_(static_cast<std::size_t>(play.jobs_from)) {}
    std::optional<study::TraceJob> next() override;

private:
    const Trace& trace_;
    Play play_;
    std::size_t at_;
};

/// Spreads `total` devices over as few nodes of `per_node` as hold equal parts of it.
void spread(TraceRow& row, std::int64_t total, std::int64_t per_node);
/// Where times that count from the trace's beginning are put: 2000-01-01T00:00:00Z.
constexpr Time kRelativeStart{946'684'800'000};

}  // namespace muster::simulator::traces
