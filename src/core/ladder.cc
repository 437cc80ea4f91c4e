// The ladder: how an attempt ends, whose fault it was, and what comes next.
//
// The first bad end decides, unless a node turns out to have been lost: then the others died of
// that. Only the job's own failures use up its restarts.
#include <algorithm>

#include "base/decay.h"
#include "core/stepper.h"

namespace muster::core {

using model::Cause;
using model::JobState;
using protocol::TaskState;

namespace {

constexpr std::size_t kAttemptsKept = 32;
constexpr std::size_t kAvoidMax = 16;
constexpr int kImageAttempts = 10;  // Over some eight minutes: a registry may be restarting.
constexpr Duration kNodeBackoffMax{300'000};
constexpr Duration kUserBackoffMax{600'000};
/// How long a gang that lost a node keeps the others, should no node take its place (F4).
constexpr Duration kDegradedClaim{600'000};
/// SIGTERM to kill, as far as the planner is concerned.
constexpr Duration kUsualGrace{10'000};

bool node_fault(Cause cause) {
    return cause == Cause::Launch || cause == Cause::NodeLost || cause == Cause::DeviceFault ||
           cause == Cause::Fenced || cause == Cause::Vanished;
}
Duration doubled(Duration first, std::int64_t times, Duration most) {
    Duration out = std::min(first, most);
    for (; times > 0 && out < most; --times) out.ms = std::min(out.ms * 2, most.ms);
    return out;
}
/// Attempts at the end of the list that failed like this one before they ran.
std::int64_t in_a_row(const JobExtra& extra, auto&& alike) {
    std::int64_t count = 0;
    for (auto at = extra.attempts.rbegin(); at != extra.attempts.rend() && alike(*at); ++at)
        ++count;
    return count;
}
bool may_restart(const model::RestartRule& rule, Cause cause, int exit_code,
                 std::uint32_t restarts) {
    if (rule.max >= 0 && restarts >= rule.max) return false;
    return rule.on_any || (cause == Cause::Oom && rule.on_oom) ||
           std::ranges::binary_search(rule.exit_codes, exit_code);
}

}  // namespace

bool wants_notice(const Job& job, const model::JobSpec& spec) {
    const bool asked = job.cause == Cause::Cancelled || job.cause == Cause::Requeued ||
                       job.cause == Cause::Preempted || job.cause == Cause::Resized;
    return asked && !spec.checkpoint.dir.empty() && extra_of(job).running_at.ms != 0;
}
Duration grace_of(const model::JobSpec& spec) {
    return spec.checkpoint.dir.empty() ? kUsualGrace : spec.checkpoint.grace;
}

void Stepper::begin_stop(JobId id, Cause cause, const std::string& message) {
    edit_job(id, [&](Job& j, JobExtra& extra) {
        j.state = JobState::Stopping;
        j.since = at_;
        j.cause = cause;
        extra.message = message;
        if (extra.fault_at.ms == 0) extra.fault_at = at_;
    });
    tell_job("job.stopping", job(id), message, extra_of(job(id)).decided_node);
    const auto spec = cached_spec(state_, job(id).spec);
    if (!wants_notice(job(id), *spec)) {
        stop_tasks(id);
    } else {
        give_notice(id, at_);
    }
    finish_if_over(id);
}

void Stepper::give_notice(JobId id, Time since) {
    const Duration grace = cached_spec(state_, job(id).spec)->checkpoint.grace;
    edit_live(id, [&](JobLive& live) {
        live.stop_cause = job(id).cause;
        live.stop_grace = grace;
        live.kill_at = since + grace;
        live.stop_sent = {};
    });
    const std::size_t ranks = tables_.live.at(id.value).tasks.size();
    for (std::uint32_t rank = 0; rank < ranks; ++rank) send_stop(job(id), rank);
}

/// After a change of leader: what of the stop is still due follows from when it began.
void Stepper::resume_stop(JobId id) {
    const Job& stopping = job(id);
    const auto spec = cached_spec(state_, stopping.spec);
    if (wants_notice(stopping, *spec) && at_ < stopping.since + spec->checkpoint.grace)
        return give_notice(id, stopping.since);
    stop_tasks(id);
}

void Stepper::stop_tasks(JobId id) {
    const Cause cause = job(id).cause;
    const auto spec = cached_spec(state_, job(id).spec);
    const bool noticed = wants_notice(job(id), *spec);
    edit_live(id, [&](JobLive& live) {
        live.stop_cause = cause;
        live.stop_grace = noticed ? stop_lead(spec->checkpoint.grace) : state_.settings.stop_grace;
        if (live.stop_sent.ms == 0) live.stop_sent = at_;
    });
    const std::size_t ranks = tables_.live.at(id.value).tasks.size();
    for (std::uint32_t rank = 0; rank < ranks; ++rank) send_stop(job(id), rank);
}

/// The order that stands for this task: notice while its grace runs, stop after.
void Stepper::send_stop(const Job& stopping, std::uint32_t rank) {
    const JobLive& live = tables_.live.at(stopping.id.value);
    if (live.tasks[rank].state == TaskState::Ended) return;
    const JobExtra& extra = extra_of(stopping);
    const NodeId node = extra.allocation->slots[rank].node;
    const protocol::TaskKey key{stopping.id, stopping.epoch, rank};
    if (live.stop_sent.ms == 0) {
        const Duration left{std::max<std::int64_t>(1, (live.kill_at - at_).ms)};
        send(node, protocol::NoticeTask{term(), key, stopping.cause, left, extra.message});
        return;
    }
    // Only the task that decided carries the cause; the others had no part in it.
    const bool asked = !model::users_fault(stopping.cause) && !node_fault(stopping.cause) &&
                       stopping.cause != Cause::Image && stopping.cause != Cause::Success;
    const bool decided = !extra.decided_node.empty() && extra.decided_rank == rank;
    const Cause cause = asked || decided ? stopping.cause : Cause::Peer;
    send(node, protocol::StopTask{term(), key, cause, live.stop_grace});
}

void Stepper::task_ended(JobId id, std::uint32_t rank, const model::TaskEnd& end) {
    const Job& ending = job(id);
    const NodeId node = extra_of(ending).allocation->slots[rank].node;
    if (end.cause == Cause::Launch) launch_failed(node, id);
    if (tables_.jobs.find(id.value) == nullptr || !model::active(job(id).state)) return;
    const std::string name = node_name(state_, node);
    const auto decide = [&](Job&, JobExtra& extra) {
        extra.decided_rank = rank;
        extra.decided_node = name;
        extra.exit_code = end.exit_code;
        extra.message = end.message;
    };
    if (job(id).state <= JobState::Running) {
        const bool mpi_done =
            rank == 0 && cached_spec(state_, job(id).spec)->launch == model::Launch::Mpi;
        if (end.cause != Cause::Success || (mpi_done && is_gang(job(id)))) {
            edit_job(id, decide);
            return begin_stop(id, end.cause, end.message);
        }
    } else if (node_fault(end.cause) && model::users_fault(job(id).cause)) {
        // Its peers died of this node's end, and only told first.
        edit_job(id, [&](Job& j, JobExtra& extra) {
            decide(j, extra);
            j.cause = end.cause;
        });
    }
    finish_if_over(id);
}

void Stepper::finish_if_over(JobId id) {
    const JobLive* live = tables_.live.find(id.value);
    if (live == nullptr) return;
    for (const protocol::TaskStatus& task : live->tasks)
        if (task.state != TaskState::Ended) return;
    finish_attempt(id);
}

void Stepper::finish_attempt(JobId id) {
    Job ending = job(id);
    JobExtra extra = extra_of(ending);
    const JobLive live = tables_.live.at(id.value);
    const auto spec = cached_spec(state_, ending.spec);
    const auto ended_well = [](const auto& task) { return task.end.cause == Cause::Success; };
    Cause cause = ending.cause;
    if (std::ranges::all_of(live.tasks, ended_well)) cause = Cause::Success;  // Done is done (F19).
    if (cause == Cause::None || cause == Cause::Peer) cause = Cause::UserError;
    if (cause == Cause::Success) extra.exit_code = 0, extra.message.clear();

    Attempt attempt;
    attempt.epoch = ending.epoch;
    attempt.queued = extra.queued_at;
    attempt.started = extra.allocation->at;
    attempt.running = extra.running_at;
    attempt.ended = at_;
    attempt.cause = cause;
    attempt.exit_code = extra.exit_code;
    if (cause != Cause::Success && !extra.decided_node.empty())
        attempt.signal = live.tasks[extra.decided_rank].end.signal;
    attempt.rank = extra.decided_rank;
    attempt.node = extra.decided_node;
    attempt.message = extra.message;
    attempt.fault = extra.fault_at.ms != 0 ? extra.fault_at : at_;
    if (cause == Cause::Preempted || cause == Cause::Resized) {
        attempt.beneficiary = extra.beneficiary;
        attempt.reason = extra.stop_reason;
    }
    attempt.last_step = live.best_step;
    attempt.resumed_step = extra.resumed_step;
    for (const protocol::Progress& each : live.progress)
        if (each.step >= 0 && each.step == live.best_step) {
            protocol::Progress last = each;
            last.key.job = {};  // The record's own.
            extra.last_progress = std::move(last);
            break;
        }
    for (const protocol::TaskStatus& task : live.tasks) {
        extra.peak_memory = std::max(extra.peak_memory, task.end.peak_memory);
        send(extra.allocation->slots[task.key.rank].node, protocol::ForgetTask{term(), task.key});
    }
    const NodeId blamed =
        extra.decided_node.empty() ? NodeId{} : extra.allocation->slots[extra.decided_rank].node;
    extra.attempts.push_back(std::move(attempt));
    ++extra.attempts_total;
    if (extra.attempts.size() > kAttemptsKept) extra.attempts.erase(extra.attempts.begin());
    extra.last_nodes.clear();
    for (const Placed& slot : extra.allocation->slots)
        if (!slot.spare) extra.last_nodes.push_back(slot.node);
    const Shared<Allocation> had = std::move(extra.allocation);
    const Allocation& allocation = *had;
    const Duration ran = extra.running_at.ms == 0 ? Duration{} : at_ - extra.running_at;
    extra.allocation.reset();
    extra.attained += accrued(allocation.weight, at_ - allocation.at, {});
    extra.running_at = extra.fault_at = {};
    extra.beneficiary = {};
    if (cause != Cause::Resized) extra.claim.reset();
    record(JobLiveDropped{id});

    switch (cause) {
        case Cause::Success:
            remember(ending, allocation, ran);
            return end_job(std::move(ending), std::move(extra), JobState::Succeeded, cause);
        case Cause::Cancelled:
            return end_job(std::move(ending), std::move(extra), JobState::Cancelled, cause);
        case Cause::TimeLimit:
        case Cause::Deadline:
            return end_job(std::move(ending), std::move(extra), JobState::Failed, cause);
        case Cause::Image: {
            const auto alike = [](const Attempt& a) { return a.cause == Cause::Image; };
            const bool in_vain =
                !extra.decided_node.empty() && live.tasks[extra.decided_rank].end.permanent;
            if (in_vain || in_a_row(extra, alike) >= kImageAttempts)
                return end_job(std::move(ending), std::move(extra), JobState::Failed, cause);
            break;
        }
        case Cause::UserError:
        case Cause::Oom:
        case Cause::LogRule:
            if (!may_restart(spec->restart, cause, extra.exit_code, ending.restarts))
                return end_job(std::move(ending), std::move(extra), JobState::Failed, cause);
            break;
        default: break;
    }
    if (node_fault(cause) && blamed) {
        std::erase(extra.avoid, blamed);
        extra.avoid.push_back(blamed);
        if (extra.avoid.size() > kAvoidMax) extra.avoid.erase(extra.avoid.begin());
    }
    if (node_fault(cause) && allocation.slots.size() > 1) {
        auto slots = healthy_slots(allocation, blamed);
        if (!slots.empty()) extra.claim = scheduler::Claim{std::move(slots), at_ + kDegradedClaim};
    }
    wait_again(std::move(ending), std::move(extra), cause);
}

/// Back to the queue, at its old place, for the next attempt.
void Stepper::wait_again(Job waiting, JobExtra extra, Cause cause) {
    const auto spec = cached_spec(state_, waiting.spec);
    Duration wait{0};
    if (model::users_fault(cause)) {
        wait = doubled(spec->restart.backoff, waiting.restarts, kUserBackoffMax);
        ++waiting.restarts;
    } else if (node_fault(cause) || cause == Cause::Image) {
        // A job that ran starts over at once; one that cannot even start waits ever longer (F38).
        const auto alike = [](const Attempt& a) {
            return (node_fault(a.cause) || a.cause == Cause::Image) && a.running.ms == 0;
        };
        const std::int64_t row = in_a_row(extra, alike);
        wait = doubled(state_.settings.retry_backoff, std::max<std::int64_t>(0, row - 1),
                       kNodeBackoffMax);
        ++waiting.faults;
    } else if (cause == Cause::Preempted || cause == Cause::Resized) {
        ++waiting.faults;
    }
    const std::string node = extra.decided_node;
    std::string message = "attempt " + std::to_string(waiting.epoch) +
                          " ended: " + std::string(model::to_text(cause));
    if (!node.empty()) message += " on " + node;
    if (extra.checkpoint_step >= 0)
        message += "; goes on from step " + std::to_string(extra.checkpoint_step);
    waiting.state = JobState::Pending;
    waiting.cause = cause;
    waiting.since = at_;
    waiting.eligible = at_ + wait;
    ++waiting.epoch;
    const JobId id = waiting.id;
    put_job(std::move(waiting), std::move(extra));
    tell_job("job.queued", job(id), message, node);
}

void Stepper::edit_end(JobId id, JobState state, Cause cause, const std::string& message) {
    JobExtra extra = extra_of(job(id));
    if (!message.empty()) extra.message = message;
    end_job(job(id), std::move(extra), state, cause);
}

void Stepper::end_job(Job ending, JobExtra extra, JobState state, Cause cause) {
    const ShapeId shape = ending.shape;
    const JobId id = ending.id;
    ending.state = state;
    ending.cause = cause;
    ending.since = at_;
    ending.held = false;
    ending.shape = {};
    extra.waiting_for.clear();
    extra.hold_owner.clear();
    extra.claim.reset();
    put_job(std::move(ending), std::move(extra));
    drop_unused({}, shape);
    tell_job("job.ended", job(id), extra_of(job(id)).message, extra_of(job(id)).decided_node);
    step_.commands.push_back(Archive{id});
    ended_.push_back(id);
}

void Stepper::settle() {
    while (!ended_.empty()) {
        const JobId id = ended_.back();
        ended_.pop_back();
        if (job(id).array_job != 0) element_ended(job(id));
        resolve_dependents(id);
    }
}

void Stepper::element_ended(const Job& element) {
    const JobId parent{element.array_job};
    const JobState state = element.state;
    edit_job(parent, [&](Job&, JobExtra& extra) {
        ArrayBook& book = extra.array.edit();
        --book.live;
        if (state == JobState::Succeeded)
            ++book.succeeded;
        else if (state == JobState::Failed)
            ++book.failed;
        else
            ++book.cancelled;
    });
    parent_over(parent);
}

void Stepper::parent_over(JobId parent) {
    const ArrayBook& book = *extra_of(job(parent)).array;
    if (model::ended(job(parent).state)) return;
    if (book.live > 0 || !book.waiting.empty() || !book.held.empty()) return;
    const Cause why = job(parent).cause;
    if (book.failed > 0)
        return edit_end(parent, JobState::Failed, why == Cause::None ? Cause::UserError : why,
                        std::to_string(book.failed) + " elements failed");
    if (book.cancelled > 0)
        return edit_end(parent, JobState::Cancelled, why == Cause::None ? Cause::Cancelled : why,
                        std::to_string(book.cancelled) + " elements were cancelled");
    edit_end(parent, JobState::Succeeded, Cause::Success, {});
}

/// Different jobs that fail to start on one node: the node is held back (F38).
void Stepper::launch_failed(NodeId node, JobId id) {
    const Settings& settings = state_.settings;
    edit_node_live(node, [&](NodeLive& live) {
        std::erase_if(live.launch_failures, [&](const auto& failure) {
            return failure.second == id || failure.first + settings.launch_failures_window <= at_;
        });
        live.launch_failures.emplace_back(at_, id);
    });
    const auto failed =
        static_cast<std::int64_t>(tables_.node_live.at(node.value).launch_failures.size());
    if (settings.launch_failures_to_hold <= 0 || failed < settings.launch_failures_to_hold) return;
    Node held = tables_.nodes.at(node.value);
    const auto same = std::ranges::find(held.holds, "launch-failures", &model::NodeHold::owner);
    if (same != held.holds.end()) return;
    const std::string reason = std::to_string(failed) + " jobs failed to start here";
    held.holds.push_back({"launch-failures", reason, at_, at_ + settings.launch_failures_window});
    record(NodePut{std::move(held)});
    edit_node_live(node, [](NodeLive& live) { live.launch_failures.clear(); });
    tell_node("node.held", node, reason);
}

}  // namespace muster::core
