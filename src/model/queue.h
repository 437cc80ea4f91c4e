// A queue: who may use how much of the cluster, and in what order its jobs go.
//
// Queues are a tree; jobs wait in its leaves. What a queue uses counts for all above it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/quantity.h"

namespace muster::model {

/// So much of one resource: "gpus" (every device of any class), a device kind ("h100") or class
/// ("npu"), "cpus", "memory". Devices and CPUs in thousandths, memory in bytes.
struct Amount {
    std::string resource;
    std::int64_t value = 0;
    friend auto operator<=>(const Amount&, const Amount&) = default;
};
/// Sorted by resource, each once. What is not named is not bounded (a guarantee: is 0).
using Amounts = std::vector<Amount>;

enum class QueuePolicy : std::uint8_t {
    Priority,  // Higher first, then submission. The default.
    Fifo,      // Strict: nothing passes the first.
    Fair,      // The user with the smallest decayed share first, then as Priority.
    Shortest,  // By predicted duration, then as Priority.
    Las,       // Least attained service first, in discrete levels, then submission.
};
std::string_view to_text(QueuePolicy policy);  // "priority", "fifo", …
std::optional<QueuePolicy> parse_queue_policy(std::string_view text);

struct QueueSettings {
    Amounts guarantee;     // Its own: lent while idle, always given back.
    Amounts limit;         // Never above it.
    Amounts borrow_limit;  // At most so much above the guarantee.
    Amounts lend_limit;    // At most so much of an idle guarantee is lent; the rest stays free.
    std::int64_t weight = 100;  // Of what is shared beyond guarantees. 1..1,000,000.
    QueuePolicy policy = QueuePolicy::Priority;
    std::int64_t max_jobs = -1;     // Running at once; -1: no bound.
    std::int64_t max_pending = -1;  // Refused at submit beyond it.
    Amounts user_limit;             // Of one user's running jobs together.
    std::int64_t user_max_jobs = -1;
    std::int64_t user_max_pending = -1;
    Amounts job_limit;                // Of one job: more is refused at submit.
    std::vector<std::string> users;   // Allowed; both empty: everyone. Sorted.
    std::vector<std::string> groups;  // Allowed groups of the operating system. Sorted.
    bool preemptible = true;          // Its jobs may be preempted (a job may say no only if so).
    Duration min_runtime{300'000};    // A job is not preempted before it ran so long.
    // Of jobs that do not say.
    Duration default_time;              // 0: none.
    std::int64_t default_priority = 50;
    Duration max_time;                  // Longer limits are refused; 0: none.
    /// One priority point more for each `aging` of waiting, at most `aging_max`. 0: none.
    Duration aging;
    std::int64_t aging_max = 20;
    friend bool operator==(const QueueSettings&, const QueueSettings&) = default;
};

struct Queue {
    QueueId id;
    QueueId parent;    // None: at the top.
    std::string name;  // From the top: "research/nlp".
    QueueSettings settings;
    friend bool operator==(const Queue&, const Queue&) = default;
};

std::string encode(const Queue& queue);
/// Old versions are read for ever. Empty: `bytes` is not a queue.
std::optional<Queue> decode_queue(std::string_view bytes);

/// Rules of the whole cluster.
struct SchedulingRules {
    Duration half_life{std::int64_t{7} * 24 * 3600 * 1000};  // Of past use.
    /// What a device of a kind costs against others, in thousandths (h100: 1000). Sorted; a kind
    /// that is not named: 1000.
    std::vector<std::pair<std::string, std::int64_t>> kind_weights;
    /// How fast a kind works against the one that expected_time speaks of, in thousandths.
    std::vector<std::pair<std::string, std::int64_t>> kind_speeds;
    std::int64_t bookings_max = 8;  // Blocked jobs of each kind of device that get a window.
    bool conservative = false;      // Every blocked job (up to 256) gets one.
    /// Devices that reclaim may take back in a minute, in the whole cluster (F16).
    std::int64_t reclaim_per_minute = 512;
    std::int64_t preemptions_max = 5;  // A job that suffered so many is a victim no more (F23).
    Duration resize_min_interval{1'800'000};
    bool defragment = true;
    friend bool operator==(const SchedulingRules&, const SchedulingRules&) = default;
};
std::string encode(const SchedulingRules& rules);
std::optional<SchedulingRules> decode_scheduling_rules(std::string_view bytes);

}  // namespace muster::model
