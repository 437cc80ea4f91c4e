// The controller's shell over modelled disk, network, planner and history, round the real core.
//
// It does what the real shell does: group commits, and lets commands, answers and the planner's
// changes out only after the batch that holds their changes is durable. A crash loses all else.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "core/records.h"
#include "core/step.h"
#include "scheduler/plan.h"
#include "simulator/clock.h"
#include "simulator/disk.h"
#include "simulator/event_queue.h"
#include "simulator/network.h"
#include "simulator/tally.h"

namespace muster::simulator {

struct ControllerRules {
    Duration group{2};                      // Inputs of so long share a commit.
    Duration commit_min{1}, commit_max{8};  // Latency of a sync.
    unsigned slow_commit_per_mille = 0;
    Duration slow_commit_max{3'000};
    Duration plan_min{1}, plan_max{50};  // Latency of a plan.
    Duration archive_min{5}, archive_max{200};
    core::Settings settings;
};

/// Faults planted on purpose, to prove that a run's judge sees them. All off in every other run.
struct Sabotage {
    bool acknowledge_early = false;  // Answers leave before their batch is durable.
    bool lose_wakeups = false;       // What changes while a plan is made does not ask for another.
    std::function<void(core::Step&)> step = {};
    std::function<void(protocol::ControllerMessage&)> down = {};
    std::function<void(const core::State&, protocol::AgentMessage&)> up = {};
};

struct StoredJob {
    JobId job;
    std::optional<model::JobState> state;  // Empty: the record was dropped.
    std::uint32_t epoch = 0;
};

/// Whoever judges the controller.
class ControllerWatcher {
public:
    virtual ~ControllerWatcher() = default;
    virtual void stepped(const core::State& state, const core::Input& input,
                         const Result<core::Step>& result) = 0;
    virtual void stored(const std::vector<StoredJob>& jobs) = 0;
    virtual void recovered(const core::State& state) = 0;
};

class ModelController {
public:
    using Reply = std::function<void(const Result<core::Answer>&)>;
    using NameOf = std::function<std::string(HostIndex)>;

    ModelController(EventQueue& queue, Prng& random, Tally& tally, Network& network, Disk& disk,
                    ControllerRules rules, Sabotage sabotage, NameOf name_of,
                    ControllerWatcher& watcher);

    bool alive() const { return alive_; }
    /// Only while alive.
    const core::State& state() const { return *state_; }
    const std::map<JobId, model::JobState>& history() const { return history_; }
    HostClock& clock() { return clock_; }
    std::uint64_t steps() const { return steps_; }
    /// Of everything that the core was told and said, for comparing runs.
    std::uint64_t trace() const { return trace_; }
    /// Nothing waits for the disk, the planner or the archive.
    bool settled() const;
    /// While settled: the planner's index is the one that the state would make anew.
    bool planner_agrees() const;
    scheduler::Blocked feasible(const scheduler::Shape& shape) const {
        return index_->feasible(shape);
    }
    scheduler::Blocked why(JobId job) const { return index_->why(job, last_); }
    /// Changes wait for a plan, and none is asked for.
    bool planner_forgot() const { return !plan_wanted_ && !planning_ && !unplanned_.empty(); }

    void start();
    /// `silent`: the host loses power; agents find out by keep-alive.
    void crash(bool silent);
    void stall(Duration time);  // The loop does not run.
    void fail_next_sync() { sync_fails_ = true; }
    void set_slow_commits(unsigned per_mille) { rules_.slow_commit_per_mille = per_mille; }
    /// Called when a failed sync ended the process.
    void on_death(std::function<void()> action) { on_death_ = std::move(action); }

    void request(core::Event event, Reply reply);
    void got(std::uint64_t session, HostIndex host, const protocol::AgentMessage& message);
    void closed(std::uint64_t session);

private:
    struct Outbox {
        std::set<core::RecordName> touched;
        std::vector<core::Command> commands;
        std::vector<scheduler::Change> planning;
        std::vector<std::pair<Reply, Result<core::Answer>>> answers;
        bool empty() const {
            return touched.empty() && commands.empty() && planning.empty() && answers.empty();
        }
    };
    struct Waiting {
        core::Event event;
        Reply reply;
    };

    void feed(core::Event event, Reply reply);
    void collect(core::Step step, Reply reply);
    void pump();
    ports::Batch batch_of(const Outbox& outbox, std::vector<StoredJob>& jobs) const;
    void write(std::shared_ptr<const ports::Batch> batch);
    void synced();
    void release(Outbox outbox);
    void carry_out(const core::Command& command);
    void archive(JobId job);
    void arm();
    void ask_for_plan();
    void plan();
    void refill(core::SubmitJob& submit) const;
    void note(std::uint64_t value);
    std::function<void()> of_this_process(std::function<void()> action);

    EventQueue& queue_;
    Prng& random_;
    Tally& tally_;
    Network& network_;
    Disk& disk_;
    ControllerRules rules_;
    Sabotage sabotage_;
    NameOf name_of_;
    ControllerWatcher& watcher_;
    std::function<void()> on_death_;

    bool alive_ = false;
    std::uint64_t incarnation_ = 0;
    HostClock clock_;
    Time last_;  // Of the last input: never goes back in a process.
    std::unique_ptr<core::State> state_;
    std::map<std::uint64_t, HostIndex> sessions_;  // Said Hello.
    Time stalled_until_;
    std::deque<Waiting> waiting_;
    Time armed_ = kNever;
    std::uint64_t timer_ = 0;

    Outbox outbox_;
    std::optional<Outbox> in_flight_;
    std::vector<StoredJob> in_flight_jobs_;
    bool pump_asked_ = false, sync_fails_ = false;

    std::unique_ptr<scheduler::PlanIndex> index_;
    std::vector<scheduler::Change> unplanned_;
    bool plan_wanted_ = false, planning_ = false;

    std::map<JobId, model::JobState> history_;  // Durable, elsewhere.
    std::int64_t archiving_ = 0;
    std::uint64_t steps_ = 0, trace_ = 0;
};

}  // namespace muster::simulator
