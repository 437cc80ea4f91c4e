#include "core/step.h"

#include "base/require.h"
#include "core/stepper.h"

namespace muster::core {

void Stepper::record(Change change) {
    feed(state_, change, step_.planning);
    apply_change(state_, change);
    step_.changes.push_back(std::move(change));
}

void Stepper::put_job(Job job, JobExtra extra) {
    static const JobExtra kDefault;
    const JobExtra& old_extra = extra_of(job);
    if (!(extra == old_extra)) {
        job.extra =
            extra == kDefault ? nullptr : std::make_shared<const JobExtra>(std::move(extra));
    }
    const JobId id = job.id;
    if (job.state != model::JobState::Pending && tables_.waits.contains(id.value))
        record(WaitDropped{id});
    const Job* old = tables_.jobs.find(id.value);
    const bool ran = old != nullptr && model::active(old->state);
    if (ran != model::active(job.state)) advance_usage({job.queue}, {job.user});
    const bool waits = queued(job);
    if (waits && (old == nullptr || !queued(*old))) predict(job);
    record(JobPut{std::move(job)});
    if (!waits && index_.booked.contains(id)) unbook(id);
}

void Stepper::unbook(JobId id) {
    std::vector<scheduler::Booking> left = *tables_.bookings;
    std::erase_if(left, [&](const scheduler::Booking& booking) { return booking.job == id; });
    record(BookingsPut{std::make_shared<const std::vector<scheduler::Booking>>(std::move(left))});
}

void Stepper::send(NodeId node, protocol::ControllerMessage message) {
    const NodeLive* live = tables_.node_live.find(node.value);
    if (live == nullptr || live->session == 0) return;  // Repeated after its next Hello.
    step_.commands.push_back(Send{live->session, std::move(message)});
}

void Stepper::drop_unused(SpecId spec, ShapeId shape) {
    if (shape && tables_.shapes.contains(shape.value) && !index_.shape_uses.contains(shape))
        record(ShapeDropped{shape});
    const Spec* record_of_spec = tables_.specs.find(spec.value);
    if (record_of_spec != nullptr && record_of_spec->uses == 0) record(SpecDropped{spec});
}

Status Stepper::operator()(const Tick&) {
    // Each record is looked at a few times at most: what wants to be looked at again at once is a
    // bug.
    std::size_t left = 4 * index_.timers.size() + 16;
    while (!index_.timers.empty() && index_.timers.begin()->at <= at_) {
        MUSTER_REQUIRE(left-- > 0);
        const Timer timer = *index_.timers.begin();
        switch (timer.kind) {
            case TimerKind::Job: job_due({timer.id}); break;
            case TimerKind::Node: node_due({timer.id}); break;
            case TimerKind::Token: record(TokenDropped{timer.id}); break;
            case TimerKind::Idempotency: record(IdempotencyDropped{timer.id}); break;
            case TimerKind::Reservation: reservation_due({timer.id}); break;
        }
    }
    return Ok{};
}

Status Stepper::operator()(const SettingsChanged& event) {
    state_.settings = event.settings;
    rebuild_timers(state_);
    make_queue("default");
    for (const std::string& name : event.settings.queues) make_queue(name);
    return Ok{};
}

Status Stepper::operator()(const BecomeLeader& event) {
    if (event.term <= tables_.meta.term && tables_.meta.term != 0)
        return Error{.code = Code::Conflict,
                     .message = "term " + std::to_string(event.term) + " is not above term " +
                                std::to_string(tables_.meta.term),
                     .cause = "another controller has led since",
                     .fix = "take a newer term from the store"};
    rebuild_indexes(state_);
    Meta meta = tables_.meta;
    meta.term = event.term;
    put_meta(meta);
    const Settings settings = state_.settings;
    (void)(*this)(SettingsChanged{settings});
    if (tables_.frozen) record(FreezePut{false, at_});
    // Silence before now is nobody's fault: every node is waited for from now on.
    std::vector<NodeId> nodes;
    tables_.nodes.for_each([&](std::uint64_t id, const Node&) { nodes.push_back({id}); });
    for (const NodeId id : nodes) {
        NodeLive live;
        live.since = at_;
        const model::NodeFacts& facts = *tables_.nodes.at(id.value).facts;
        if (!facts.boot_id.empty() || facts.cpus.value > 0) live.heard = at_;
        record(NodeLivePut{id, std::move(live)});
    }
    std::vector<JobId> live, ended;
    std::vector<Job> waiting;
    tables_.jobs.for_each([&](std::uint64_t id, const Job& job) {
        if (queued(job) && !index_.run_times_by_name.empty()) waiting.push_back(job);
        if (model::active(job.state)) live.push_back({id});
        if (model::ended(job.state)) ended.push_back({id});
    });
    for (const Job& job : waiting) predict(job);
    for (const JobId id : live) {
        const Job& job = tables_.jobs.at(id.value);
        const JobExtra& extra = extra_of(job);
        JobLive fresh;
        fresh.tasks.resize(ranks_of(*extra.allocation));
        fresh.progress.resize(fresh.tasks.size());
        for (std::uint32_t rank = 0; rank < fresh.tasks.size(); ++rank) {
            fresh.tasks[rank].key = {id, job.epoch, rank};
            fresh.progress[rank].key = {id, job.epoch, rank};
            fresh.progress[rank].step = -1;
        }
        fresh.running_since = extra.running_at;
        fresh.best_step = extra.checkpoint_step;
        record(JobLivePut{id, std::move(fresh)});
        // A silent single-node job was not told to stop: it is waited for.
        const bool silent = job.state == model::JobState::Fencing && !is_gang(job) &&
                            job.cause == model::Cause::NodeLost;
        if (job.state > model::JobState::Running && !silent) resume_stop(id);
    }
    for (const JobId id : ended) step_.commands.push_back(Archive{id});
    return Ok{};
}

Status Stepper::operator()(const Archived& event) {
    for (const JobId id : event.jobs) {
        const Job* found = tables_.jobs.find(id.value);
        if (found == nullptr || !model::ended(found->state)) continue;  // A repeated word.
        const Job gone = *found;
        record(JobDropped{id});
        drop_unused(gone.spec, gone.shape);
    }
    return Ok{};
}

Result<Step> step(State& state, const Input& input) {
    if (!state.indexes->live) rebuild_indexes(state);
    Stepper stepper(state, input.at);
    MUSTER_TRY(std::visit([&](const auto& event) { return stepper(event); }, input.event));
    stepper.settle();
    return stepper.take();
}

}  // namespace muster::core
