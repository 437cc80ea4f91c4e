// One step under way: what the event's handlers share. A handler validates whole, then records;
// everything that changes State goes through record().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/indexes.h"
#include "core/step.h"

namespace muster::core {

class Stepper {
public:
    Stepper(State& state, Time at)
        : state_(state), tables_(state.tables), index_(*state.indexes), at_(at) {}

    Status operator()(const BecomeLeader& event);
    Status operator()(const SubmitJob& event);
    Status operator()(const ActOnJob& event);
    Status operator()(const UpdateJob& event);
    Status operator()(const ActOnNode& event);
    Status operator()(const CreateToken& event);
    Status operator()(const RevokeToken& event);
    Status operator()(const NodeJoined& event);
    Status operator()(const LinkOpened& event);
    Status operator()(const LinkClosed& event);
    Status operator()(const FromAgent& event);
    Status operator()(const PlanProposed& event);
    Status operator()(const Archived& event);
    Status operator()(const ApplyQueues& event);
    Status operator()(const SetTopology& event);
    Status operator()(const SetRules& event);
    Status operator()(const PutReservation& event);
    Status operator()(const DropReservation& event);
    Status operator()(const RefreshWindows& event);
    Status operator()(const SettingsChanged& event);
    Status operator()(const Tick& event);

    /// What follows from jobs that ended: dependents, arrays. Until nothing is left.
    void settle();
    Step take() { return std::move(step_); }

private:
    // step.cc: recording
    void record(Change change);
    void send(NodeId node, protocol::ControllerMessage message);
    const Job& job(JobId id) const { return tables_.jobs.at(id.value); }
    protocol::Term term() const { return tables_.meta.term; }
    void put_meta(const Meta& meta) { record(MetaPut{meta}); }
    void edit_live(JobId id, const auto& edit) {
        JobLive live = tables_.live.at(id.value);
        edit(live);
        record(JobLivePut{id, std::move(live)});
    }
    void edit_node_live(NodeId id, const auto& edit) {
        NodeLive live = tables_.node_live.at(id.value);
        edit(live);
        record(NodeLivePut{id, std::move(live)});
    }
    /// Edits a copy of the job and of its extra, and records them.
    void edit_job(JobId id, const auto& edit) {
        Job copy = job(id);
        JobExtra extra = extra_of(copy);
        edit(copy, extra);
        put_job(std::move(copy), std::move(extra));
    }
    void put_job(Job job, JobExtra extra);
    void unbook(JobId id);
    void drop_unused(SpecId spec, ShapeId shape);
    void use_up(Token token);

    // notices.cc
    void tell_job(std::string_view type, const Job& job, std::string_view message = {},
                  std::string_view node = {});
    void tell_node(std::string_view type, NodeId node, std::string_view message = {},
                   std::string_view user = {});
    void tell(std::string_view type, std::string_view message);

    // submit.cc
    Result<std::uint32_t> queue_of(const std::string& name) const;
    Status check_constraint(const model::JobSpec& spec) const;
    Status check_topology(const model::JobSpec& spec) const;

    // limits.cc
    Status may_use(const Caller& caller, const Queue& queue) const;
    Status check_queue(const Caller& caller, const model::JobSpec& spec, QueueId queue) const;
    Status check_move(const Caller& caller, const Job& job, QueueId queue) const;
    Status check_pending(const std::string& user, QueueId queue) const;
    /// No window that is not his opens on its nodes before it is expected to end.
    bool clear_of_windows(const Job& job, const Allocation& allocation) const;
    bool within_limits(const Job& job, const Allocation& allocation,
                       const std::vector<JobId>& gone) const;

    // use.cc
    void advance_usage(QueueId queue, UserId user);
    void predict(const Job& waiting);
    void remember(const Job& ended, const Allocation& allocation, Duration length);

    // queues.cc
    void make_queue(const std::string& name);

    // reservations.cc
    Result<std::vector<NodeId>> reserved_nodes(const PutReservation& event) const;
    void reservation_due(ReservationId id);
    void leave_reservations(NodeId node);
    std::uint32_t user_of(const Caller& caller);
    SpecId intern_spec(const model::JobSpec& spec);
    ShapeId intern_shape(const model::JobSpec& spec, std::uint32_t queue);
    ShapeId intern_shape(scheduler::Shape shape);

    // act.cc
    Status may_act(const Caller& caller, const Job& job) const;
    Status act_on_element(const ActOnJob& event);
    Status hold(const ActOnJob& event);
    Status release(const ActOnJob& event);
    Status requeue(const ActOnJob& event);
    Status requeue_waiting(const ActOnJob& event);
    void cancel(JobId id, model::Cause cause, const std::string& message);
    void cancel_array(JobId id, model::Cause cause, const std::string& message);

    // preempt.cc
    void make_deals(const scheduler::Plan& plan);
    bool make_deal(JobId beneficiary, const std::vector<scheduler::Stop>& stops,
                   const std::vector<scheduler::Promise>& promises);
    bool may_stop(const scheduler::Stop& stop) const;
    void stop_for(const scheduler::Stop& stop);
    void forget_claims(NodeId node);
    void put_bookings(const std::vector<scheduler::Booking>& bookings);
    std::vector<scheduler::Slot> healthy_slots(const Allocation& allocation, NodeId blamed) const;

    // start.cc
    bool start(const scheduler::Start& start);
    Job element_of(const Job& parent);
    void feed_again(const Job& waiting);
    /// `gang` may be null: then it is made.
    void send_start(const Job& job, std::uint32_t rank, std::shared_ptr<const protocol::Gang> gang);
    void send_go(const Job& job, std::uint32_t rank);
    std::shared_ptr<const protocol::Gang> gang_of(const Job& job, const model::JobSpec& spec) const;

    // report.cc
    void heartbeat(NodeId node, const protocol::Heartbeat& message);
    Status facts_changed(NodeId node, const protocol::FactsChanged& message);
    void task_status(NodeId node, const protocol::TaskStatus& status);
    void progress(NodeId node, const protocol::Progress& message);
    void checkpoint(NodeId node, const protocol::CheckpointDone& message);
    void log_match(NodeId node, const protocol::LogMatch& message);
    /// The job that `key` names, if that task is of its present attempt and on `node`.
    const Job* present(NodeId node, const protocol::TaskKey& key) const;
    void stray(NodeId node, const protocol::TaskStatus& status);
    /// `heard` was just heard of; `all_anew`: others wait for what it told.
    void open_barrier(const Job& job, std::uint32_t heard, bool all_anew);

    // ladder.cc
    /// A task of an active job ended, or is taken to have ended.
    void task_ended(JobId id, std::uint32_t rank, const model::TaskEnd& end);
    /// The attempt is over for `cause`: every task that has not ended is stopped.
    void begin_stop(JobId id, model::Cause cause, const std::string& message);
    void give_notice(JobId id, Time since);
    void resume_stop(JobId id);
    void stop_tasks(JobId id);
    void send_stop(const Job& job, std::uint32_t rank);
    void finish_if_over(JobId id);
    void finish_attempt(JobId id);
    void wait_again(Job job, JobExtra extra, model::Cause cause);
    void end_job(Job job, JobExtra extra, model::JobState state, model::Cause cause);
    /// A pending job ends without having started.
    void edit_end(JobId id, model::JobState state, model::Cause cause, const std::string& message);
    void element_ended(const Job& element);
    void parent_over(JobId parent);
    void resolve_dependents(JobId id);
    void launch_failed(NodeId node, JobId job);

    // link.cc
    void reconcile(NodeId node, const protocol::Hello& hello, bool rebooted);
    void reconcile_task(const Job& job, std::uint32_t rank, const protocol::TaskStatus* status,
                        bool rebooted);
    void close_link(std::uint64_t session, std::string reason);
    bool adopt(const protocol::Hello& hello);

    // lease.cc
    void node_due(NodeId node);
    void node_lost(NodeId node);
    void node_fenced(NodeId node, bool every_job, const std::string& how);
    void job_due(JobId id);
    void expect_later(JobId id);
    void thaw_if_over();
    bool too_many_silent() const;
    void name_peers_at_once(NodeId node);
    void name_peers(NodeId node, NodeLive& live, protocol::LeaseGrant& grant);
    void keep_peers(NodeId node, PeerSets sets);
    std::vector<NodeId> peers_of(NodeId node) const;
    /// Since when enough of its peers tell a silent node that it is cut off, if it is alive.
    Time vouched_at(NodeId node) const;
    void fence_due(NodeId node);
    void say_of_gangs(NodeId node, const std::string& message);
    /// Tasks on the node, as (job, rank).
    std::vector<std::pair<JobId, std::uint32_t>> tasks_on(NodeId node) const;

    State& state_;
    const View& tables_;
    const Indexes& index_;
    Time at_;
    Step step_;
    std::vector<JobId> ended_;  // In this step, consequences not yet drawn.
};

/// Whether the job's attempt runs on more than one node.
bool is_gang(const Job& job);
/// Facts as an agent may give them: bounded and in order. Else what is wrong.
Status check_facts(const model::NodeFacts& facts, const std::string& name);
Status check_spec(const model::JobSpec& spec, Time now);
/// Refused unless an admin asks.
Status admin_only(const Caller& caller, const std::string& what);
/// Whether the stop of a job for that cause gives it time to save.
bool wants_notice(const Job& job, const model::JobSpec& spec);
/// How long the job has from the notice, or from SIGTERM, to its kill.
Duration grace_of(const model::JobSpec& spec);

}  // namespace muster::core
