// A job as people look at it: header, progress bar, ranks, timeline. Pure text out of one answer
// of the API; `status`, the live view and its end all draw from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "cli/json.h"

namespace muster::cli {

struct ProgressView {
    std::int64_t step = -1;  // -1: none told yet.
    std::int64_t total = 0;  // 0: unknown.
    std::vector<std::pair<std::string, double>> metrics;
    bool known() const { return step >= 0; }
};

struct RankView {
    std::int64_t rank = 0;
    std::string node, role, state, node_state, cause, message;
    std::int64_t pulled = 0, pull_total = 0;
    std::optional<std::int64_t> exit_code, signal;
    ProgressView progress;
};

struct AttemptView {
    std::int64_t attempt = 0;
    Time queued, started, running, ended;
    std::string cause, node, message;
    std::int64_t rank = 0, last_step = -1, resumed_step = -1, lost_ms = 0;
    std::optional<std::int64_t> exit_code, signal;
    std::string beneficiary, preempted_for;  // Stopped for this job, and why.
};

struct JobView {
    std::string id, name, user, queue, state, cause, reason, code, gpus_per_node, message;
    std::string array;  // "8 elements: 3 waiting, 5 live"; "" if it is none.
    bool held = false;
    std::int64_t priority = 50, nodes = 1, gpus = 0, attempt = 0, restarts = 0, faults = 0;
    std::int64_t lost_ms = 0, steps_repeated = 0, run_ms = 0, wait_ms = 0, attempts_total = 0;
    Time submitted, since, started, ended, expected_start;
    std::vector<std::string> node_names;
    ProgressView progress;
    std::int64_t checkpoint_step = -1;
    std::string checkpoint_path;
    Time checkpoint_at;
    std::optional<std::int64_t> exit_code, signal;
    std::vector<RankView> ranks;
    std::vector<AttemptView> attempts;
};

/// The fields of the API that a JobView is made of.
extern const char* const kJobViewFields;
JobView job_view(const Json& job);

/// "user-error, exit 3: message": how it ended, without the state.
std::string end_detail(const JobView& job);
/// "succeeded: exit 0", "failed: user-error, exit 3", …
std::string end_text(const JobView& job);
/// "R running" and what it is doing, in one line.
std::string header_line(const JobView& job, Time now, bool color);
/// "4 nodes × h100:8", "1 node".
std::string size_text(const JobView& job);
/// Bar, step/total, metrics and the time left, within `width` columns; "" before there is progress.
/// `steps_per_s` 0: unknown.
std::string progress_line(const JobView& job, double steps_per_s, std::size_t width, bool color);
/// "step 412/800 (51%), loss 0.312, 8123 samples/s, 1m02s left": without a bar.
std::string progress_words(const JobView& job, double steps_per_s);
/// "loss 0.312", "8,123 samples/s" for samples_per_s.
std::string metric_words(const std::string& name, double value);
/// "0 R n1 412 · 1 R n2 412", or counts of states when there are too many for `width`.
std::string rank_line(const JobView& job, std::size_t width, bool color);

/// "n2 fell silent (node-lost)", "user-error, exit 3 on n2".
std::string attempt_end_words(const AttemptView& attempt);

/// What happened, oldest first.
struct Moment {
    Time at;
    std::string what;  // "queued", "started", "lost", "recovered", "done"
    std::string detail;
    bool bad = false, good = false;
};
std::vector<Moment> timeline(const JobView& job);
/// Lines longer than `width` go on below their detail; 0: never.
std::string timeline_text(const JobView& job, Time now, bool color, std::size_t width = 0);
/// "Result  test_accuracy 0.962, loss 0.08"; "" when no metric was reported.
std::string result_line(const JobView& job, bool color);

/// What a shell gets: the job's own exit code, 128 + signal, 0 when it succeeded, 1 else.
int job_exit_code(const JobView& job);

}  // namespace muster::cli
