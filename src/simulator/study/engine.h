// One study under way: the production core and planner, an agent's core a node, and models of what
// lies below them. Inside study/ only.
//
// Messages between core and agents are delivered at once and in order; heartbeats are not modelled
// (leases are made longer than any study), so a dead node is found by FailureRules::detection.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "base/prng.h"
#include "core/step.h"
#include "node/step.h"
#include "scheduler/plan.h"
#include "simulator/study/calendar.h"
#include "simulator/study/ledger.h"
#include "simulator/study/live_job.h"
#include "simulator/study/study.h"

namespace muster::simulator::study {

struct Host {
    model::NodeFacts facts;
    node::State state;
    NodeId id;
    std::uint64_t session = 0;
    bool up = false;
    std::uint32_t boots = 0;
    std::uint32_t serial = 0;  // Of its failures and repairs.
    Time armed = kNever;
    Prng random{0};
    bool lemon = false;
    std::uint32_t leaf = 0;
    std::int64_t idle_mw = 0;                            // All of it.
    std::int64_t held = 0;                               // Thousandths of devices.
    std::vector<std::pair<JobId, std::uint32_t>> tasks;  // Job and rank.
};

class Engine {
public:
    Engine(const Cluster& cluster, JobSource& jobs, const Options& options, Sink& sink);
    Result<Summary> run();

private:
    struct ToCore {
        core::Event event;
    };
    struct ToHost {
        std::uint32_t host;
        std::uint64_t session;  // 0: whatever the link.
        node::Event event;
    };
    using Delivery = std::variant<ToCore, ToHost>;
    struct Leaf {
        std::vector<std::uint32_t> hosts;
        Prng random{0};
    };

    // engine.cc: the loop, arrivals, the end
    Status check_inputs() const;
    Status set_up();
    Status must(core::Event event);
    Status loop();
    void handle(const Entry& entry);
    Status pull();
    void arrive();
    void sample();
    bool report_progress();
    void sum_up();
    Time told(Time at) const { return {at.ms - offset_}; }

    // relay.cc: what goes between core, planner and agents
    void drain();
    Result<core::Answer> feed_core(core::Event event);
    void feed_host(std::uint32_t host, node::Event event);
    void carry_out(std::uint32_t host, node::Command& command);
    void follow(const scheduler::Change& change);
    void close_session(std::uint64_t session);
    void open_link(std::uint32_t host);
    void arm_core();
    void arm_host(std::uint32_t host);
    void plan_if_due();
    void plan();
    void propose(scheduler::Plan plan);
    void archive(JobId id);
    void close_account(const LiveJob& job, model::JobState state, model::Cause cause,
                       std::optional<Time> end);

    // tasks.cc: the modelled runtime
    void start_task(std::uint32_t host, const protocol::StartTask& order);
    void task_ready(LiveJob& job, std::uint32_t rank);
    void release_task(const protocol::TaskKey& key);
    void stop_task(LiveJob& job, std::uint32_t rank, model::Cause cause);
    void end_task(LiveJob& job, std::uint32_t rank, model::TaskEnd end);
    void clean_task(std::uint32_t host, const protocol::TaskKey& key);
    LiveTask* find_task(const protocol::TaskKey& key);
    void tell(std::uint32_t host, protocol::AgentMessage message);

    // progress.cc: what jobs do with what they hold
    LiveJob* find(JobId id);
    void hold(JobId id);
    void let_go(JobId id);
    void begin(LiveJob& job);
    void work(LiveJob& job);
    void advance(LiveJob& job);
    void enter(LiveJob& job, Phase phase, Duration length = {});
    void rerate(LiveJob& job);
    void arm_job(LiveJob& job);
    void job_due(LiveJob& job);
    void count_useful(LiveJob& job);
    void saved(LiveJob& job);
    void notice(LiveJob& job, model::Cause cause);
    void leave(LiveJob& job);
    void finish(LiveJob& job);
    void halt(LiveJob& job);
    void out_of_rates(LiveJob& job);
    void rates_changed(const std::vector<JobId>& jobs);
    Duration interval_of(const LiveJob& job) const;

    // nodes.cc: failures and repairs
    void power_on(std::uint32_t host);
    void node_fails(std::uint32_t host, Duration repair);
    void leaf_fails(std::uint32_t leaf);
    void node_missed(std::uint32_t host);
    void expect_failure(std::uint32_t host);
    void expect_leaf_failure(std::uint32_t leaf);

    const Cluster& cluster_;
    JobSource& source_;
    const Options& options_;
    Sink& sink_;
    models::FailureModel failures_;
    models::UniformRate uniform_;
    models::RateModel& rates_;

    Time now_;
    Time horizon_;             // Beyond it nothing is looked at: leases end there.
    std::int64_t offset_ = 0;  // Added to the trace's times: core takes 0 for "never".
    Calendar calendar_;
    std::deque<Delivery> under_way_;
    core::State state_;
    scheduler::PlanIndex index_;
    std::vector<Host> hosts_;
    std::vector<Leaf> leaves_;
    std::vector<std::uint32_t> host_of_session_, host_of_node_;  // By number; sessions from 1.
    std::unordered_map<std::uint64_t, std::unique_ptr<LiveJob>> jobs_;  // Never iterated.
    std::optional<TraceJob> next_job_;

    Time core_armed_ = kNever, plan_armed_ = kNever;
    bool plan_wanted_ = false, planning_ = false;
    bool refused_ = false;  // Core did not take a part of the plan.
    std::optional<Time> last_plan_;
    std::optional<scheduler::Plan> proposal_;

    Ledger ledger_;
    Fnv digest_;
    Summary summary_;
    std::int64_t active_ = 0;  // Jobs that hold something.
    Time active_at_;           // When one last did.
    Ledger::Wide busy_energy_ = 0;
    std::uint64_t reported_ = 0;  // Events, at the last report of progress.
};

}  // namespace muster::simulator::study
