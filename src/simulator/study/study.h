// A study: a stream of jobs through the production core and scheduler in virtual time.
//
// The same inputs and seed give the same outcomes and digest, on every machine. Nothing is global:
// studies may run side by side in threads, each with sources, models and sinks of its own. Memory
// is bounded by the jobs that are live at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "core/state.h"
#include "model/job.h"
#include "model/job_spec.h"
#include "model/node.h"
#include "model/queue.h"
#include "model/topology.h"
#include "simulator/models/energy.h"
#include "simulator/models/failures.h"
#include "simulator/models/rate.h"

namespace muster::simulator::study {

/// What a job really does; what it asks for is its spec.
struct JobModel {
    /// Undisturbed, on the reference (kind, placement, the nodes asked for). 0: it ends at once.
    std::int64_t work_ms = 0;
    std::string profile;                       // Key of the rate model's tables; "": none.
    model::Cause end = model::Cause::Success;  // At the end of its work. UserError, Oom: it fails.
    /// Between two checkpoints, of progress; 0: it saves only on notice (`saves_on_notice`).
    Duration checkpoint_every;
    bool checkpoint_auto = false;  // The interval follows failures, size and stall instead.
    Duration checkpoint_stall;     // Makes no progress for so long at each.
    Duration restart_cost;         // No progress for so long after each start but the first.
    bool saves_on_notice = true;   // A preempted job loses nothing that it had done by then.
};

struct TraceJob {
    std::string name;  // In the trace; need not be unique.
    Time submit;       // On any clock, not negative. All that a study tells is on the same clock.
    std::string user;  // "": "user".
    model::JobSpec spec;  // As its user would have asked: queue, nodes, devices, limit, estimate.
    JobModel model;
};

/// Pulled one by one, ascending by `submit`, so that a trace need not fit in memory.
class JobSource {
public:
    virtual ~JobSource() = default;
    /// Empty: there are no more.
    virtual std::optional<TraceJob> next() = 0;
};
/// A source over jobs in memory, for tests and small traces.
class JobList : public JobSource {
public:
    explicit JobList(std::vector<TraceJob> jobs) : jobs_(std::move(jobs)) {}
    std::optional<TraceJob> next() override {
        if (at_ == jobs_.size()) return std::nullopt;
        return std::move(jobs_[at_++]);
    }

private:
    std::vector<TraceJob> jobs_;
    std::size_t at_ = 0;
};

/// A node as a study needs it: devices with an id each, all healthy, in one NUMA node a half.
model::NodeFacts make_node(const std::string& name, const std::string& kind, std::int64_t devices,
                           MilliCpu cpus, Bytes memory, const std::string& leaf = "",
                           Bytes device_memory = {});

struct Cluster {
    std::vector<model::NodeFacts> nodes;  // Names must differ.
    model::Topology topology;             // Default: one level, "leaf", from labels.
    std::vector<model::Queue> queues;     // As spec::parse_queue_file gives them.
    std::optional<model::SchedulingRules> rules;
};

/// Of one job, when it ended; or where it stood when the study did.
struct JobOutcome {
    JobId id;
    std::string_view name, user, queue;  // Valid during the call.
    Time submit;
    std::optional<Time> first_start;  // Empty: it never did.
    std::optional<Time> end;          // Empty: the study ended first.
    model::JobState state = model::JobState::Pending;
    model::Cause cause = model::Cause::None;
    std::int64_t work_ms = 0;             // JobModel's.
    std::int64_t nodes = 0, devices = 0;  // Asked for at least; the last allocation's once it ran.
    /// Device-milliseconds (of a job without devices: node-milliseconds): allocated; of progress
    /// that counted; of progress that was lost and repeated. What is left of `held` went into
    /// starts, checkpoints and stops.
    std::int64_t held = 0, useful = 0, lost = 0;
    std::int64_t running_ms = 0;   // Wall time of all its attempts together.
    std::int64_t preemptions = 0;  // Stopped for others, or moved.
    std::int64_t failures = 0;     // Attempts that a node's failure ended.
    std::int64_t attempts = 0;
    std::int64_t energy_mj = 0;  // Of its devices while it held them.
};
/// A job of the trace that the controller refused at submit.
struct Refusal {
    std::string_view name, user, queue;
    Time submit;
    std::string_view reason;
};
struct QueueSample {
    std::string_view name;
    std::int64_t pending = 0, running = 0;
    std::int64_t devices = 0;  // Held, thousandths.
};
struct Sample {
    Time at;
    std::int64_t devices_total = 0, devices_up = 0, devices_held = 0;  // Whole ones.
    std::int64_t devices_useful = 0;                                   // Their jobs make progress.
    std::int64_t pending = 0, running = 0;
    std::int64_t largest_free = 0;  // Devices free on the node that has most: fragmentation.
    std::int64_t nodes_up = 0, nodes_empty = 0;
    std::int64_t draw_mw = 0;             // With cooling.
    std::span<const QueueSample> queues;  // By name. Valid during the call.
};
class Sink {
public:
    virtual ~Sink() = default;
    virtual void ended(const JobOutcome& job) = 0;
    virtual void refused(const Refusal&) {}
    /// Every Options::sample_every.
    virtual void sample(const Sample&) {}
    /// An attempt was stopped before its work was done, by a failure, preemption, move or resize.
    virtual void interrupted(JobId, Time, model::Cause) {}
};

struct Progress {
    Time now;
    std::uint64_t events = 0;
    std::int64_t submitted = 0, ended = 0, pending = 0, running = 0;
};

struct Options {
    std::uint64_t seed = 1;
    core::Settings settings;  // `lease` is not used: see detection.
    models::FailureRules failures;
    models::PowerRules power;
    Duration plan_latency;  // From a change to the plan that answers it.
    Duration plan_every;    // At least so long between two plans; 0: after every change.
    /// At least so long until a plan that only time asks for: a better window is looked for, a
    /// back- off is over.
    Duration wake_every{10'000};
    Duration launch;                     // From the order to start to the barrier: pull, setup.
    Duration stop;                       // From SIGTERM, or the end of a save, to the empty cgroup.
    Duration sample_every;               // 0: never.
    Time until = kNever;                 // The study ends then, whatever is live.
    bool check_books = false;            // Of core, after every step: slow, for tests.
    models::RateModel* rates = nullptr;  // Not owned. Null: UniformRate.
    /// Called now and then (every 4,096 events); false ends the study, with what it has.
    std::function<bool(const Progress&)> progress;
};

struct Summary {
    std::uint64_t events = 0;  // Inputs that core and node cores took in, and plans.
    std::uint64_t core_inputs = 0, node_inputs = 0, plans = 0;
    std::uint64_t digest = 0;  // Of every input of core and every outcome.
    bool complete = true;      // False: `until` or `progress` ended it.
    std::int64_t submitted = 0, refused = 0, succeeded = 0, failed = 0, cancelled = 0;
    std::int64_t unfinished = 0;  // Live when it ended.
    std::int64_t live_max = 0;    // Most jobs that were live at once.
    Time first_submit, last_end;  // Makespan: the difference.
    Time ended;                   // Where virtual time stood.
    /// Device-milliseconds from the first submit until `ended`.
    std::int64_t devices_total = 0, devices_up = 0, held = 0, useful = 0, lost = 0;
    std::int64_t node_failures = 0, leaf_failures = 0;
    std::int64_t interruptions = 0;  // Attempts that failures ended.
    std::int64_t preemptions = 0;
    std::int64_t node_days_up_milli = 0;
    std::int64_t energy_mj = 0;       // Of all, with cooling.
    std::int64_t busy_energy_mj = 0;  // Of devices while their jobs made progress that counted.
};

/// Errors are of the inputs (no node, queues that contradict themselves, a rule out of range).
Result<Summary> run(const Cluster& cluster, JobSource& jobs, const Options& options, Sink& sink);

}  // namespace muster::simulator::study
