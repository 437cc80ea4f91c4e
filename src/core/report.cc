// What agents say after their Hello. Words of a stale session, term or epoch change nothing here;
// the task that they speak of is stopped or forgotten.
#include <algorithm>

#include "core/stepper.h"

namespace muster::core {

using model::Cause;
using model::JobState;
using protocol::TaskState;

namespace {

/// An end that was inferred from a fence, not heard: the agent's own word outranks it.
bool inferred(const protocol::TaskStatus& status) {
    return status.state == TaskState::Ended && status.end.cause == Cause::NodeLost;
}

}  // namespace

Status Stepper::operator()(const FromAgent& event) {
    const auto found = index_.node_by_session.find(event.session);
    if (found == index_.node_by_session.end())
        return Error{.code = Code::Gone,
                     .message = "link " + std::to_string(event.session) +
                                ": is not the present link of any node"};
    const NodeId node = found->second;
    using namespace protocol;
    if (const auto* m = std::get_if<Heartbeat>(&event.message)) heartbeat(node, *m);
    if (const auto* m = std::get_if<FactsChanged>(&event.message)) return facts_changed(node, *m);
    if (const auto* m = std::get_if<TaskStatus>(&event.message)) {
        if (m->term > term())
            return Error{.code = Code::Conflict,
                         .message = "node " + node_name(state_, node) + ": obeys term " +
                                    std::to_string(m->term) + ", this controller has term " +
                                    std::to_string(term())};
        task_status(node, *m);
    }
    if (const auto* m = std::get_if<Progress>(&event.message)) progress(node, *m);
    if (const auto* m = std::get_if<CheckpointDone>(&event.message)) checkpoint(node, *m);
    if (const auto* m = std::get_if<LogMatch>(&event.message)) log_match(node, *m);
    return Ok{};
}

const Job* Stepper::present(NodeId node, const protocol::TaskKey& key) const {
    const Job* found = tables_.jobs.find(key.job.value);
    if (found == nullptr || !model::active(found->state) || found->epoch != key.epoch)
        return nullptr;
    const std::vector<Placed>& slots = extra_of(*found).allocation->slots;
    return key.rank < slots.size() && slots[key.rank].node == node && !slots[key.rank].spare
               ? found
               : nullptr;
}

/// A task that nobody wants: it is told to stop, then forgotten; until then its node gets no work.
void Stepper::stray(NodeId node, const protocol::TaskStatus& status) {
    const std::vector<protocol::TaskKey>& strays = tables_.node_live.at(node.value).strays;
    const bool known = std::ranges::find(strays, status.key) != strays.end();
    if (status.state == TaskState::Ended) {
        send(node, protocol::ForgetTask{term(), status.key});
        if (known)
            edit_node_live(node, [&](NodeLive& live) {
                std::erase(live.strays, status.key);
                if (live.strays.empty()) live.strays_since = {};
            });
        return;
    }
    // Of a state that was lost: adopted, not stopped.
    const bool adopted = status.key.job.value < tables_.meta.first_job &&
                         !tables_.jobs.contains(status.key.job.value);
    if (!known)
        edit_node_live(node, [&](NodeLive& live) {
            live.strays.push_back(status.key);
            if (!adopted && live.strays_since.ms == 0) live.strays_since = at_;
        });
    if (adopted) return;
    send(node, protocol::StopTask{term(), status.key, Cause::Requeued, state_.settings.stop_grace});
}

void Stepper::task_status(NodeId node, const protocol::TaskStatus& status) {
    const Job* found = present(node, status.key);
    if (found == nullptr) return stray(node, status);
    const JobId id = found->id;
    const std::uint32_t rank = status.key.rank;
    const protocol::TaskStatus& known = tables_.live.at(id.value).tasks[rank];
    const bool heard = known.term != 0 && !inferred(known);
    if (heard && status.state < known.state) return;       // Late.
    if (heard && known.state == TaskState::Ended) return;  // Said before.
    protocol::TaskStatus put = status;
    if (put.term == 0) put.term = term();
    if (put.end.cause == Cause::None && put.state == TaskState::Ended)
        put.end.cause = put.end.exit_code == 0 ? Cause::Success : Cause::UserError;
    if (put.end.cause == Cause::NodeLost) put.end.cause = Cause::Vanished;
    const bool was_inferred = inferred(known);
    if (known == put) return;
    record(TaskPut{id, put});
    const bool new_port =
        rank == 0 && put.port != 0 && tables_.live.at(id.value).master_port != put.port;
    if (new_port) {
        const model::NodeFacts& facts = *tables_.nodes.at(node.value).facts;
        edit_live(id, [&](JobLive& live) {
            live.master_port = put.port;
            live.master_address = facts.addresses.empty() ? "" : facts.addresses.front();
        });
    }
    if (put.state == TaskState::Ended) return task_ended(id, rank, put.end);
    if (was_inferred || job(id).state == JobState::Stopping || job(id).state == JobState::Fencing) {
        if (tables_.live.at(id.value).stop_sent.ms != 0) send_stop(job(id), rank);
        return;
    }
    if (put.state == TaskState::Ready || put.state == TaskState::Running)
        open_barrier(job(id), rank, new_port);
}

/// Opens the barrier once every rank stands at it; a single node needs no Go. Once it is open, a
/// rank that comes to stand at it is let through alone: to repeat all others' Go at each word of
/// each rank would be a square of them.
void Stepper::open_barrier(const Job& starting, std::uint32_t heard, bool all_anew) {
    const JobId id = starting.id;
    const JobLive& live = tables_.live.at(id.value);
    const bool gang = is_gang(starting);
    if (gang && live.master_port == 0) return;  // Rank 0 has not told its port (again) yet.
    const bool opens = starting.state == JobState::Starting;
    if (opens) {
        const TaskState least = gang ? TaskState::Ready : TaskState::Running;
        for (const protocol::TaskStatus& task : live.tasks)
            if (task.term == 0 || task.state < least || task.state > TaskState::Running) return;
        std::int64_t lost_ms = 0, repeated = 0;
        const bool again = !extra_of(starting).attempts.empty();
        edit_job(id, [&](Job& j, JobExtra& extra) {
            j.state = JobState::Running;
            j.since = extra.running_at = at_;
            if (!again) return;
            Attempt& last = extra.attempts.back();
            last.lost = {std::max<std::int64_t>(0, (at_ - last.fault).ms)};
            extra.lost_time = extra.lost_time + last.lost;
            lost_ms = last.lost.ms;
            repeated = std::max<std::int64_t>(
                0, last.last_step - std::max<std::int64_t>(0, extra.resumed_step));
            extra.steps_repeated += repeated;
        });
        edit_live(id, [&](JobLive& l) { l.running_since = at_; });
        tell_job("job.running", job(id));
        if (again)
            tell_job("job.recovered", job(id),
                     "from step " +
                         std::to_string(std::max<std::int64_t>(0, extra_of(job(id)).resumed_step)) +
                         ": " + std::to_string(repeated) + " steps repeated, " +
                         std::to_string(lost_ms / 1000) + "." +
                         std::to_string(lost_ms % 1000 / 100) + " s lost");
    }
    if (!gang || job(id).state != JobState::Running) return;
    const std::size_t ranks = tables_.live.at(id.value).tasks.size();
    const bool all = opens || all_anew;
    for (std::uint32_t rank = all ? 0 : heard; rank < (all ? ranks : heard + 1); ++rank)
        if (tables_.live.at(id.value).tasks[rank].state == TaskState::Ready) send_go(job(id), rank);
}

void Stepper::progress(NodeId node, const protocol::Progress& message) {
    if (present(node, message.key) == nullptr) return;
    record(ProgressPut{message.key.job, message});
}

void Stepper::checkpoint(NodeId node, const protocol::CheckpointDone& message) {
    const Job* found = present(node, message.key);
    if (found == nullptr || message.path.empty() ||
        message.step <= extra_of(*found).checkpoint_step)
        return;
    edit_job(found->id, [&](Job&, JobExtra& extra) {
        extra.checkpoint = message.path;
        extra.checkpoint_step = message.step;
        extra.checkpoint_at = at_;
    });
    tell_job("job.checkpoint", job(message.key.job), "step " + std::to_string(message.step),
             node_name(state_, node));
}

void Stepper::log_match(NodeId node, const protocol::LogMatch& message) {
    const Job* found = present(node, message.key);
    if (found == nullptr || found->state > JobState::Running) return;
    const auto spec = cached_spec(state_, found->spec);
    if (message.rule >= spec->log_rules.size()) return;
    const model::LogRule& rule = spec->log_rules[message.rule];
    const std::string said =
        "log rule /" + rule.match + "/ matched: " + message.line.substr(0, 200);
    const JobId id = found->id;
    edit_job(id, [&](Job&, JobExtra& extra) {
        extra.decided_rank = message.key.rank;
        extra.decided_node = node_name(state_, node);
    });
    switch (rule.action) {
        case model::LogRule::Action::Fail: return begin_stop(id, Cause::LogRule, said);
        case model::LogRule::Action::ExcludeNode: return begin_stop(id, Cause::DeviceFault, said);
        case model::LogRule::Action::Requeue: return begin_stop(id, Cause::Requeued, said);
    }
}

Status Stepper::facts_changed(NodeId node, const protocol::FactsChanged& message) {
    Node changed = tables_.nodes.at(node.value);
    MUSTER_TRY(check_facts(message.facts, changed.facts->name));
    if (*changed.facts == message.facts) return Ok{};
    const std::string boot = changed.facts->boot_id;
    changed.facts = std::make_shared<const model::NodeFacts>(message.facts);
    record(NodePut{std::move(changed)});
    std::vector<std::pair<JobId, std::string>> hurt;
    const NodeUse& use = tables_.node_use.at(node.value);
    for (const DeviceShare& share : use.devices) {
        const auto now = std::ranges::find(message.facts.devices, share.device, &model::Device::id);
        if (now == message.facts.devices.end() || !now->healthy)
            hurt.emplace_back(share.job, share.device);
    }
    for (const auto& [id, device] : hurt) {
        if (job(id).state > JobState::Running) continue;
        const std::vector<Placed>& slots = extra_of(job(id)).allocation->slots;
        const auto slot = std::ranges::find_if(slots, [&](const Placed& placed) {
            return placed.node == node &&
                   std::ranges::find(placed.devices, device) != placed.devices.end();
        });
        if (slot->spare) continue;  // No task of it is there.
        const auto rank = static_cast<std::uint32_t>(slot - slots.begin());
        edit_job(id, [&](Job&, JobExtra& extra) {
            extra.decided_rank = rank;
            extra.decided_node = message.facts.name;
        });
        begin_stop(id, Cause::DeviceFault,
                   "device " + device + " of " + message.facts.name + " is gone or unhealthy");
    }
    return Ok{};
}

}  // namespace muster::core
