// A link opens: who it is, what the node has, what it should have, and the difference.
#include <algorithm>
#include <map>

#include "core/stepper.h"

namespace muster::core {

using model::Cause;
using model::JobState;
using model::NodeHealth;
using protocol::TaskState;

void Stepper::close_link(std::uint64_t session, std::string reason) {
    if (session != 0) step_.commands.push_back(CloseLink{session, std::move(reason)});
}

/// Tasks with ids that this state never gave out: it is younger than the cluster. They are adopted.
bool Stepper::adopt(const protocol::Hello& hello) {
    if (state_.settings.bootstrap) return false;
    const Meta& meta = tables_.meta;
    std::uint64_t newest = 0;
    bool found = false;
    for (const protocol::TaskStatus& task : hello.tasks) {
        if (task.state == TaskState::Ended || tables_.jobs.contains(task.key.job.value)) continue;
        const std::uint64_t id = task.key.job.value;
        if (id >= meta.next_job) newest = std::max(newest, id);
        found = found || id >= meta.next_job || id < meta.first_job;
    }
    if (newest >= meta.next_job && newest < kJobIdMax) {
        Meta changed = meta;
        changed.next_job = changed.first_job = newest + 1;
        put_meta(changed);
    }
    return found;
}

Status Stepper::operator()(const LinkOpened& event) {
    const auto refuse = [&](std::string reason) {
        close_link(event.session, reason);
        tell("node.refused", event.name + ": " + reason);
        return Ok{};
    };
    if (event.session == 0 || index_.node_by_session.contains(event.session))
        return Error{.code = Code::Invalid, .message = "link: its session number is in use"};
    const auto known = find_node(state_, event.name);
    if (known && tables_.nodes.at(known->value).certificate != event.certificate)
        return refuse("its certificate is not the one that joined under this name");
    if (!known && !event.certificate.empty())
        return refuse("it has not joined, or was forgotten: join it with a new token");
    if (const Status sound = check_facts(event.hello.facts, event.name); !sound)
        return refuse(sound.error().message);
    if (event.hello.last_term > term())
        return refuse("it obeys a newer leader, of term " + std::to_string(event.hello.last_term));

    bool rebooted = false;
    NodeId id;
    if (known) {
        id = *known;
        const Node& old = tables_.nodes.at(id.value);
        rebooted = !old.facts->boot_id.empty() && old.facts->boot_id != event.hello.facts.boot_id;
        if (!(*old.facts == event.hello.facts)) {
            Node node = old;
            node.facts = std::make_shared<const model::NodeFacts>(event.hello.facts);
            record(NodePut{std::move(node)});
        }
    } else {
        Meta meta = tables_.meta;
        id = {meta.next_node++};
        put_meta(meta);
        record(NodePut{
            {id, std::make_shared<const model::NodeFacts>(event.hello.facts), {}, "", at_, false}});
        tell_node("node.joined", id);
    }
    const NodeLive before = tables_.node_live.at(id.value);
    close_link(before.session, "the node opened another link");
    edit_node_live(id, [&](NodeLive& live) {
        if (live.health != NodeHealth::Ready) live.since = at_;
        live.health = NodeHealth::Ready;
        live.session = event.session;
        live.heard = at_;
        live.fenced = false;
        live.peers_at = live.peers_since = live.fence_again = {};
        live.strays.clear();
        live.strays_since = {};
    });

    protocol::Welcome welcome{term(), id, state_.settings.lease, {}, adopt(event.hello)};
    for (const auto& [job_id, rank] : tasks_on(id))
        welcome.wanted.push_back({job_id, job(job_id).epoch, rank});
    if (welcome.adopt_all)
        tell_node("cluster.adopted", id,
                  "it runs tasks of a state that is lost: they are left alone, and it gets no new "
                  "work until they end");
    send(id, std::move(welcome));
    name_peers_at_once(id);
    reconcile(id, event.hello, rebooted);
    if (before.health != NodeHealth::Ready) tell_node("node.ready", id);
    thaw_if_over();
    return Ok{};
}

Status Stepper::operator()(const LinkClosed& event) {
    const auto found = index_.node_by_session.find(event.session);
    if (found == index_.node_by_session.end()) return Ok{};  // It was replaced already.
    edit_node_live(found->second, [](NodeLive& live) { live.session = 0; });
    return Ok{};
}

void Stepper::reconcile(NodeId node, const protocol::Hello& hello, bool rebooted) {
    std::map<protocol::TaskKey, const protocol::TaskStatus*> reported;
    for (const protocol::TaskStatus& task : hello.tasks) reported[task.key] = &task;
    for (const auto& [key, status] : reported)
        if (present(node, key) == nullptr) stray(node, *status);
    for (const auto& [id, rank] : tasks_on(node)) {
        const Job* found = tables_.jobs.find(id.value);
        if (found == nullptr || !model::active(found->state)) continue;  // Ended by an earlier one.
        const auto at = reported.find({id, found->epoch, rank});
        reconcile_task(*found, rank, at == reported.end() ? nullptr : at->second, rebooted);
    }
}

void Stepper::reconcile_task(const Job& wanted, std::uint32_t rank,
                             const protocol::TaskStatus* status, bool rebooted) {
    const JobId id = wanted.id;
    const protocol::TaskStatus known = tables_.live.at(id.value).tasks[rank];
    const NodeId node = extra_of(wanted).allocation->slots[rank].node;
    if (status != nullptr) {
        // A silent single-node job was only waited for: it is as it was.
        const bool silent_only = wanted.state == JobState::Fencing && !is_gang(wanted) &&
                                 wanted.cause == Cause::NodeLost;
        if (silent_only && status->state != TaskState::Ended) {
            edit_job(id, [&](Job& j, JobExtra& extra) {
                j.state = extra.running_at.ms != 0 ? JobState::Running : JobState::Starting;
                j.cause = Cause::None;
                j.since = at_;
                extra.message.clear();
                extra.decided_node.clear();
                extra.decided_rank = 0;
                extra.fault_at = {};
            });
            edit_live(id, [](JobLive& live) {
                live.stop_sent = live.kill_at = live.fence_at = {};
                live.stop_cause = Cause::None;
            });
            tell_job("job.found", job(id), "its node is back", node_name(state_, node));
        }
        task_status(node, *status);
        const Job* now = tables_.jobs.find(id.value);
        if (now == nullptr || !model::active(now->state)) return;
        // Orders are repeated until they are seen to be done.
        if (now->state > JobState::Running)
            send_stop(*now, rank);
        else if (now->state == JobState::Running && status->state == TaskState::Ready)
            open_barrier(*now, rank, false);
        return;
    }
    if (known.state == TaskState::Ended) return;
    const bool never_heard = known.term == 0 && wanted.state == JobState::Starting;
    if (never_heard && !rebooted) return send_start(wanted, rank, nullptr);
    // The agent's word: it does not have it (any more).
    protocol::TaskStatus gone = known;
    gone.state = TaskState::Ended;
    if (gone.term == 0) gone.term = term();
    gone.end = {};
    // It was not even told to start: no fault of its node.
    const bool never_told = known.term == 0 && wanted.state > JobState::Running && !rebooted;
    gone.end.cause = never_told ? Cause::Peer : Cause::Vanished;
    gone.end.message = rebooted
                           ? "node " + node_name(state_, node) + " was rebooted"
                           : "node " + node_name(state_, node) + " does not have the task any more";
    record(TaskPut{id, gone});
    task_ended(id, rank, gone.end);
}

}  // namespace muster::core
