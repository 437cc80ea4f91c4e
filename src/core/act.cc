// What people do to jobs: cancel, hold, release, requeue, update; of arrays also to one element.
#include <algorithm>

#include "base/error_codes.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;

std::string text(JobId id) {
    return "job " + std::to_string(id.value);
}
Error wrong_state(const Job& job, std::string_view action, std::string fix) {
    return {.code = Code::Conflict,
            .message = "cannot " + std::string(action) + " " + text(job.id) + ": it is " +
                       std::string(model::to_text(job.state)),
            .fix = std::move(fix),
            .number = errors::kJobState};
}
std::string hold_owner(const Caller& caller, std::string_view owner) {
    return caller.admin && caller.user != owner ? "admin:" + caller.user : "user";
}

bool take_element(ArrayBook& book, std::int64_t element) {
    for (auto at = book.waiting.begin(); at != book.waiting.end(); ++at) {
        if (element < at->first || element >= at->last) continue;
        const ElementRange before{at->first, element}, after{element + 1, at->last};
        at = book.waiting.erase(at);
        if (after.first < after.last) at = book.waiting.insert(at, after);
        if (before.first < before.last) book.waiting.insert(at, before);
        return true;
    }
    return false;
}
void give_element(ArrayBook& book, std::int64_t element) {
    auto at = std::ranges::lower_bound(book.waiting, element, {}, &ElementRange::first);
    at = book.waiting.insert(at, {element, element + 1});
    if (at + 1 != book.waiting.end() && at->last == (at + 1)->first) {
        at->last = (at + 1)->last;
        book.waiting.erase(at + 1);
    }
    if (at != book.waiting.begin() && (at - 1)->last == at->first) {
        (at - 1)->last = at->last;
        book.waiting.erase(at);
    }
}

}  // namespace

Status Stepper::may_act(const Caller& caller, const Job& job) const {
    const std::string& owner = tables_.users.at(job.user).name;
    if (caller.admin || caller.user == owner) return Ok{};
    return Error{.code = Code::Denied,
                 .message = text(job.id) + ": belongs to " + owner + ", not to " + caller.user,
                 .fix = "ask its owner or an admin",
                 .number = errors::kNotOwner};
}

Status Stepper::operator()(const ActOnJob& event) {
    const Job* found = tables_.jobs.find(event.job.value);
    if (found == nullptr)
        return Error{.code = Code::NotFound,
                     .message = text(event.job) + ": is not among the live jobs",
                     .fix = "see `muster ps --all`",
                     .number = errors::kJobNotFound};
    MUSTER_TRY(may_act(event.caller, *found));
    if (event.element >= 0) return act_on_element(event);
    if (event.if_revision != 0 && event.if_revision != revision_of(*found))
        return Error{.code = Code::Precondition,
                     .message = text(event.job) + ": has changed since it was read",
                     .fix = "read it again and decide anew",
                     .number = errors::kChanged};
    step_.answer.job = event.job;
    switch (event.action) {
        case JobAction::Hold: return hold(event);
        case JobAction::Release: return release(event);
        case JobAction::Requeue: return requeue(event);
        case JobAction::Cancel: break;
    }
    if (model::ended(found->state)) return wrong_state(*found, "cancel", "nothing is left to do");
    cancel(event.job, Cause::Cancelled,
           event.reason.empty() ? "cancelled by " + event.caller.user : event.reason);
    return Ok{};
}

Status Stepper::act_on_element(const ActOnJob& event) {
    const Job& parent = job(event.job);
    const std::string name = text(parent.id) + "_" + std::to_string(event.element);
    if (!extra_of(parent).array || event.element >= cached_spec(state_, parent.spec)->array.count)
        return Error{.code = Code::NotFound,
                     .message = name + ": there is no such element",
                     .number = errors::kJobNotFound};
    if (const CowTree<JobId>* elements = tables_.elements.find(parent.id.value)) {
        if (const JobId* live = elements->find(static_cast<std::uint64_t>(event.element))) {
            ActOnJob direct = event;
            direct.job = *live;
            direct.element = -1;
            return (*this)(direct);
        }
    }
    ArrayBook book = *extra_of(parent).array;
    const auto held = std::ranges::find(book.held, event.element);
    const bool is_held = held != book.held.end();
    if (is_held) book.held.erase(held);
    if (!is_held && !take_element(book, event.element))
        return Error{.code = Code::Conflict,
                     .message = name + ": has ended",
                     .fix = "nothing is left to do",
                     .number = errors::kJobState};
    switch (event.action) {
        case JobAction::Cancel: ++book.cancelled; break;
        case JobAction::Hold:
            book.held.insert(std::ranges::upper_bound(book.held, event.element), event.element);
            break;
        case JobAction::Release:
        case JobAction::Requeue: give_element(book, event.element); break;
    }
    step_.answer.job = parent.id;
    const JobId id = parent.id;
    edit_job(id, [&](Job&, JobExtra& extra) { extra.array = book; });
    if (event.action == JobAction::Cancel) tell_job("job.cancelled", job(id), name + " cancelled");
    parent_over(id);
    return Ok{};
}

Status Stepper::hold(const ActOnJob& event) {
    const Job& target = job(event.job);
    if (target.state != JobState::Pending)
        return wrong_state(target, "hold", "only waiting jobs can be held; requeue it first");
    const std::string owner = hold_owner(event.caller, tables_.users.at(target.user).name);
    // A user's hold does not take the place of an admin's.
    if (target.held && extra_of(target).hold_owner != "user" && owner == "user") return Ok{};
    edit_job(event.job, [&](Job& j, JobExtra& extra) {
        j.held = true;
        extra.hold_owner = owner;
        extra.claim.reset();
    });
    tell_job("job.held", job(event.job), event.reason);
    return Ok{};
}

Status Stepper::release(const ActOnJob& event) {
    const Job& target = job(event.job);
    if (!target.held) return wrong_state(target, "release", "it is not held");
    const std::string& owner = extra_of(target).hold_owner;
    if (owner != "user" && !event.caller.admin)
        return Error{.code = Code::Denied,
                     .message = text(event.job) + ": is held by " + owner,
                     .fix = "ask an admin to release it",
                     .number = errors::kHoldOfOther};
    edit_job(event.job, [&](Job& j, JobExtra& extra) {
        j.held = false;
        extra.hold_owner.clear();
    });
    tell_job("job.released", job(event.job), event.reason);
    return Ok{};
}

Status Stepper::requeue(const ActOnJob& event) {
    const Job& target = job(event.job);
    switch (target.state) {
        case JobState::Pending: return requeue_waiting(event);
        case JobState::Starting:
        case JobState::Running:
            begin_stop(event.job, Cause::Requeued,
                       event.reason.empty() ? "requeued by " + event.caller.user : event.reason);
            return Ok{};
        case JobState::Stopping:
        case JobState::Fencing: return wrong_state(target, "requeue", "wait until it has stopped");
        default: return wrong_state(target, "requeue", "submit it again");
    }
}

/// Of an array, what runs of it; of a job that backs off, the end of that is all there is to give.
Status Stepper::requeue_waiting(const ActOnJob& event) {
    const Job& target = job(event.job);
    if (!extra_of(target).array) {
        if (target.epoch == 0 || target.eligible <= at_)
            return wrong_state(target, "requeue", "it waits already");
        edit_job(event.job, [&](Job& j, JobExtra&) { j.eligible = at_; });
        return Ok{};
    }
    std::vector<JobId> running;
    if (const CowTree<JobId>* elements = tables_.elements.find(event.job.value))
        elements->for_each([&](std::uint64_t, JobId id) {
            if (model::active(job(id).state) && job(id).state <= JobState::Running)
                running.push_back(id);
        });
    if (running.empty()) return wrong_state(target, "requeue", "none of its elements runs");
    const std::string message =
        event.reason.empty() ? "requeued by " + event.caller.user : event.reason;
    for (const JobId id : running) begin_stop(id, Cause::Requeued, message);
    return Ok{};
}

void Stepper::cancel(JobId id, Cause cause, const std::string& message) {
    const Job& target = job(id);
    switch (target.state) {
        case JobState::Pending:
            if (extra_of(target).array) return cancel_array(id, cause, message);
            edit_end(id, cause == Cause::Deadline ? JobState::Failed : JobState::Cancelled, cause,
                     message);
            return;
        case JobState::Starting:
        case JobState::Running: return begin_stop(id, cause, message);
        case JobState::Stopping:
        case JobState::Fencing: {
            if (target.cause == Cause::Success) return;  // Only its helpers are left.
            const JobLive& live = tables_.live.at(id.value);
            // Asked twice: the notice's grace is over. Not stopped yet: a silent node is waited
            // for.
            const bool now = target.cause == Cause::Cancelled ||
                             (live.stop_sent.ms == 0 && live.kill_at.ms == 0);
            edit_job(id, [&](Job& j, JobExtra& extra) {
                j.cause = cause;
                extra.message = message;
            });
            if (now) stop_tasks(id);
            return;
        }
        default: return;
    }
}

void Stepper::cancel_array(JobId id, Cause cause, const std::string& message) {
    edit_job(id, [&](Job& j, JobExtra& extra) {
        ArrayBook& book = extra.array.edit();
        for (const ElementRange& range : book.waiting) book.cancelled += range.last - range.first;
        book.cancelled += static_cast<std::int64_t>(book.held.size());
        book.waiting.clear();
        book.held.clear();
        extra.waiting_for.clear();
        extra.deadline = {};
        extra.message = message;
        j.cause = cause;
    });
    std::vector<JobId> live;
    if (const CowTree<JobId>* elements = tables_.elements.find(id.value))
        elements->for_each([&](std::uint64_t, JobId element) { live.push_back(element); });
    for (const JobId element : live)
        if (!model::ended(job(element).state)) cancel(element, cause, message);
    parent_over(id);
}

Status Stepper::operator()(const UpdateJob& event) {
    const Job* found = tables_.jobs.find(event.job.value);
    if (found == nullptr)
        return Error{.code = Code::NotFound,
                     .message = text(event.job) + ": is not among the live jobs",
                     .number = errors::kJobNotFound};
    MUSTER_TRY(may_act(event.caller, *found));
    if (event.if_revision != 0 && event.if_revision != revision_of(*found))
        return Error{.code = Code::Precondition,
                     .message = text(event.job) + ": has changed since it was read",
                     .fix = "read it again and decide anew",
                     .number = errors::kChanged};
    if (event.priority < -1 || event.priority > 100)
        return Error{
            .code = Code::Invalid,
            .message = "priority: " + std::to_string(event.priority) + " is not between 0 and 100"};
    if (model::ended(found->state)) return wrong_state(*found, "update", "submit it again");
    std::uint32_t queue = found->queue;
    if (!event.queue.empty()) {
        MUSTER_LET(named, queue_of(event.queue));
        if (named != queue && found->state != JobState::Pending)
            return wrong_state(*found, "move", "only waiting jobs change their queue");
        if (named != queue) MUSTER_TRY(check_move(event.caller, *found, {named}));
        queue = named;
    }
    const ShapeId before = found->shape;
    ShapeId shape = before;
    if (queue != found->queue) {
        scheduler::Shape moved = tables_.shapes.at(before.value);
        moved.queue = {queue};
        shape = intern_shape(std::move(moved));
    }
    edit_job(event.job, [&](Job& j, JobExtra& extra) {
        if (shape != before) extra.claim.reset();
        if (event.priority >= 0) j.priority = static_cast<std::uint8_t>(event.priority);
        j.queue = queue;
        j.shape = shape;
    });
    if (shape != before) drop_unused({}, before);
    tell_job("job.updated", job(event.job));
    step_.answer.job = event.job;
    return Ok{};
}

}  // namespace muster::core
