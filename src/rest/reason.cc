#include "rest/reason.h"

#include <algorithm>

#include "base/error_codes.h"
#include "base/units.h"
#include "rest/ids.h"
#include "rest/never_fits.h"
#include "rest/time_text.h"

namespace muster::rest {
namespace {

using scheduler::Blocked;
using Reason = Blocked::Reason;

std::string plural(std::int64_t count, std::string_view one) {
    std::string out = std::to_string(count) + " ";
    out += one;
    return count == 1 ? out : out + "s";
}

std::string counts_text(const Blocked& why) {
    std::string out =
        plural(why.nodes_total, "node") + ": " + std::to_string(why.nodes_fit) + " fit now";
    const auto add = [&](std::int64_t count, std::string_view what) {
        if (count != 0) (out += ", " + std::to_string(count) + " ").append(what);
    };
    add(why.nodes_busy, "busy");
    add(why.nodes_unfit, "unfit (kind, labels or size)");
    add(why.nodes_unusable, "unusable (down or held back)");
    if (why.devices_wanted != 0) {
        out += "; wants " + plural(why.devices_wanted, "device") + ", " +
               std::to_string(why.devices_free) + " of " + std::to_string(why.devices_total) +
               " free";
    }
    return out;
}

/// "gpus: 64 of 64 used, 8 wanted". Devices and CPUs are counted in thousandths.
std::string limit_text(const Blocked& why) {
    const auto number = [&](std::int64_t n) {
        if (why.resource.empty()) return std::to_string(n);
        if (why.resource == "memory") return format_bytes(Bytes{n});
        std::string out = std::to_string(n / 1000);
        if (n % 1000 != 0) out += "." + std::to_string(1000 + n % 1000).substr(1);
        return out;
    };
    return (why.resource.empty() ? "" : why.resource + ": ") + number(why.used) + " of " +
           number(why.limit) + " used, " + number(why.wanted) + " wanted";
}

void write_counts(JsonWriter& json, const Blocked& why) {
    json.begin_object();
    json.field("nodes_wanted", why.nodes_wanted).field("group", why.group);
    json.field("nodes_total", why.nodes_total).field("nodes_unusable", why.nodes_unusable);
    json.field("nodes_unfit", why.nodes_unfit).field("nodes_busy", why.nodes_busy);
    json.field("nodes_fit", why.nodes_fit).field("devices_wanted", why.devices_wanted);
    json.field("devices_free", why.devices_free).field("devices_total", why.devices_total);
    json.field("nodes_domain", why.nodes_domain).field("ahead", why.ahead).end_object();
}

bool has_counts(Reason reason) {
    return reason == Reason::NeverFits || reason == Reason::NoNodes ||
           reason == Reason::NotEnoughFree || reason == Reason::Reserved ||
           reason == Reason::Topology || reason == Reason::Window;
}

void write_head(JsonWriter& json, std::string_view code, int number, const std::string& text) {
    json.begin_object().field("code", code);
    json.key("number");
    const ErrorCode* entry = find_error_code(number);
    if (entry != nullptr)
        json.value(error_name(number));
    else
        json.null();
    json.field("text", text).key("fix");
    if (entry != nullptr)
        json.value(entry->fix);
    else
        json.null();
}

/// text_of() with the names of the queue and of the reservation.
std::string text_in(const core::View& view, const Blocked& why) {
    std::string text = text_of(why);
    const bool limit = why.reason >= Reason::QueueLimit && why.reason <= Reason::Guarantee;
    if (limit && why.queue)
        text += " (queue " + queue_name(view, static_cast<std::uint32_t>(why.queue.value)) + ")";
    const model::Reservation* kept = view.reservations.find(why.reservation.value);
    if (why.reason != Reason::Window || kept == nullptr) return text;
    text = "would run into " + std::string(kept->maintenance ? "maintenance " : "reservation ") +
           kept->name;
    if (!kept->windows.empty()) text += " from " + format_time(kept->windows.front().start);
    return kept->reason.empty() ? text : text + ": " + kept->reason;
}

std::string dependency_list(const core::JobExtra& extra) {
    std::string out;
    for (const model::Dependency& dependency : extra.waiting_for) {
        if (out.size() > 60) return out + ", ...";
        out += (out.empty() ? "" : ", ") + std::to_string(dependency.job.value);
    }
    return out;
}

/// What a job that is backed off from failed for, and where; "" if nothing of it has ended.
std::string failure_text(const core::JobExtra& extra) {
    if (extra.attempts.empty()) return {};
    const core::Attempt& last = extra.attempts.back();
    const auto never_ran = [&](const core::Attempt& attempt) {
        return attempt.cause == last.cause && attempt.running.ms == 0;
    };
    const auto row = std::find_if_not(extra.attempts.rbegin(), extra.attempts.rend(), never_ran) -
                     extra.attempts.rbegin();
    const std::string node = last.node.empty() ? "a node" : last.node;
    std::string out = ": its last attempt ended (" + std::string(model::to_text(last.cause)) + ")";
    if (last.cause == model::Cause::Launch) {
        out = ": " + node + " could not start it";
    } else if (last.cause == model::Cause::Image) {
        out = ": " + node + " could not get its image";
    }
    if (!last.message.empty()) out += ": " + last.message;
    if (row > 1) out += "; " + std::to_string(row) + " attempts in a row ended so";
    return out;
}

}  // namespace

bool of_record(Reason reason) {
    return reason == Reason::Held || reason == Reason::Dependency ||
           reason == Reason::NotEligible || reason == Reason::Parallel;
}

std::string_view code_of(Reason reason) {
    switch (reason) {
        case Reason::NotEvaluated: return "not-evaluated";
        case Reason::NeverFits: return "never-fits";
        case Reason::NoNodes: return "no-nodes";
        case Reason::NotEnoughFree: return "not-enough-free";
        case Reason::Reserved: return "reserved";
        case Reason::NotEligible: return "not-eligible";
        case Reason::Held: return "held";
        case Reason::Dependency: return "dependency";
        case Reason::Parallel: return "parallel";
        case Reason::QueueLimit: return "queue-limit";
        case Reason::BorrowLimit: return "borrow-limit";
        case Reason::LendLimit: return "lend-limit";
        case Reason::UserLimit: return "user-limit";
        case Reason::MaxJobs: return "max-jobs";
        case Reason::UserMaxJobs: return "user-max-jobs";
        case Reason::Guarantee: return "guarantee";
        case Reason::BehindFirst: return "behind-first";
        case Reason::Window: return "window";
        case Reason::Topology: return "topology";
        case Reason::Victims: return "victims";
    }
    return "not-evaluated";
}

int number_of_reason(Reason reason) {
    switch (reason) {
        case Reason::NotEvaluated: return errors::kNotEvaluated;
        case Reason::NeverFits: return errors::kNeverFits;
        case Reason::NoNodes: return errors::kNoNodes;
        case Reason::NotEnoughFree: return errors::kNotEnoughFree;
        case Reason::Reserved: return errors::kReserved;
        case Reason::NotEligible: return errors::kNotEligible;
        case Reason::Held: return errors::kHeld;
        case Reason::Dependency: return errors::kDependency;
        case Reason::Parallel: return errors::kParallel;
        case Reason::QueueLimit: return errors::kQueueLimit;
        case Reason::BorrowLimit: return errors::kBorrowLimit;
        case Reason::LendLimit: return errors::kLendLimit;
        case Reason::UserLimit: return errors::kUserLimit;
        case Reason::MaxJobs: return errors::kMaxJobs;
        case Reason::UserMaxJobs: return errors::kUserMaxJobs;
        case Reason::Guarantee: return errors::kGuarantee;
        case Reason::BehindFirst: return errors::kBehindFirst;
        case Reason::Window: return errors::kWindow;
        case Reason::Topology: return errors::kTopology;
        case Reason::Victims: return errors::kVictims;
    }
    return 0;
}

int number_of_cause(model::Cause cause) {
    using model::Cause;
    switch (cause) {
        case Cause::None:
        case Cause::Success: return 0;
        case Cause::UserError: return errors::kEndUserError;
        case Cause::Oom: return errors::kEndOom;
        case Cause::TimeLimit: return errors::kEndTimeLimit;
        case Cause::Deadline: return errors::kEndDeadline;
        case Cause::LogRule: return errors::kEndLogRule;
        case Cause::Image: return errors::kEndImage;
        case Cause::Launch: return errors::kEndLaunch;
        case Cause::NodeLost: return errors::kEndNodeLost;
        case Cause::DeviceFault: return errors::kEndDeviceFault;
        case Cause::Preempted: return errors::kEndPreempted;
        case Cause::Requeued: return errors::kEndRequeued;
        case Cause::Cancelled: return errors::kEndCancelled;
        case Cause::Fenced: return errors::kEndFenced;
        case Cause::Peer: return errors::kEndPeer;
        case Cause::Vanished: return errors::kEndVanished;
        case Cause::Resized: return errors::kEndResized;
    }
    return 0;
}

std::string text_of(const Blocked& why) {
    switch (why.reason) {
        case Reason::NotEvaluated: return "not evaluated yet";
        case Reason::NeverFits:
            return "can never start here: needs " + plural(why.nodes_wanted, "node") + "; " +
                   counts_text(why);
        case Reason::NoNodes:
            return why.nodes_total == 0 ? std::string("no node has joined")
                                        : "no usable node: all " + std::to_string(why.nodes_total) +
                                              " are down or held back";
        case Reason::NotEnoughFree:
            return "needs " + plural(why.nodes_wanted, "node") + "; " + counts_text(why);
        case Reason::Reserved:
            return "fits, but would delay job " + std::to_string(why.behind.value) +
                   ", which is before it";
        case Reason::NotEligible: return "its time has not come";
        case Reason::Held: return "held";
        case Reason::Dependency: return "waits for other jobs";
        case Reason::Parallel: return "as many elements as its `parallel` allows are running";
        case Reason::QueueLimit: return "its queue is at its limit of " + limit_text(why);
        case Reason::BorrowLimit: return "its queue has borrowed all it may of " + limit_text(why);
        case Reason::LendLimit: return "what is free is kept for its owner: " + limit_text(why);
        case Reason::UserLimit: return "its user is at the queue's limit of " + limit_text(why);
        case Reason::MaxJobs: return "as many jobs run as its queue allows: " + limit_text(why);
        case Reason::UserMaxJobs:
            return "as many jobs of its user run as its queue allows: " + limit_text(why);
        case Reason::Guarantee:
            return "may not be preempted, so starts within its queue's guarantee of " +
                   limit_text(why);
        case Reason::BehindFirst:
            return "behind job " + std::to_string(why.behind.value) + " of its strict queue";
        case Reason::Window: return "would run into a reservation of its nodes";
        case Reason::Topology:
            return "needs " + plural(why.nodes_wanted, "node") +
                   " in one domain; the nearest has " + std::to_string(why.nodes_domain) +
                   " that fit";
        case Reason::Victims: return "waits for jobs to stop that make room for it";
    }
    return {};
}

std::string reason_line(const core::View& view, const core::Job& job, Time now) {
    using model::JobState;
    const core::JobExtra& extra = core::extra_of(job);
    switch (job.state) {
        case JobState::Pending: {
            const Blocked why = core::wait_of(view, job, now);
            if (why.reason == Reason::Held && !extra.hold_owner.empty()) {
                if (extra.hold_owner != "user") return "held by " + extra.hold_owner;
                const core::User* owner = view.users.find(job.user);
                return "held by " + (owner == nullptr ? "its user" : owner->name);
            }
            if (why.reason == Reason::Dependency)
                return (extra.waiting_for.size() == 1 ? "waits for job " : "waits for jobs ") +
                       dependency_list(extra);
            if (why.reason == Reason::NotEligible && job.eligible < kNever) {
                return "not before " + format_time(job.eligible) + failure_text(extra);
            }
            return text_in(view, why);
        }
        case JobState::Starting: return "images, setup, barrier";
        case JobState::Running: return {};
        case JobState::Stopping:
            return job.cause == model::Cause::None
                       ? std::string("stopping")
                       : "stopping: " + std::string(model::to_text(job.cause));
        case JobState::Fencing:
            return "a node of it is silent; it goes on elsewhere after the fence";
        case JobState::Succeeded: return {};
        case JobState::Failed:
        case JobState::Cancelled: break;
    }
    if (!extra.message.empty()) return extra.message;
    std::string out(model::to_text(job.cause));
    if (extra.exit_code > 0) out += " (exit code " + std::to_string(extra.exit_code) + ")";
    return out;
}

int reason_number(const core::View& view, const core::Job& job, Time now) {
    if (job.state == model::JobState::Pending) {
        return number_of_reason(core::wait_of(view, job, now).reason);
    }
    return number_of_cause(job.cause);
}

void write_reason(JsonWriter& json, const core::View& view, const core::Job* job,
                  const scheduler::Shape* shape, const Blocked& why) {
    const bool waits = job != nullptr;
    // A dry run that found nothing in the way says so.
    const bool fits = !waits && why.reason == Reason::NotEvaluated;
    std::string text = text_in(view, why);
    if (fits)
        text = "fits now: " + counts_text(why);
    else if (why.reason == Reason::NeverFits && shape != nullptr)
        text = "can never start here: " + never_fits_text(view, *shape);
    else if (waits && of_record(why.reason))
        text = reason_line(view, *job, view.at);
    write_head(json, fits ? "fits" : code_of(why.reason), fits ? 0 : number_of_reason(why.reason),
               text);
    json.key("counts");
    if (fits || has_counts(why.reason))
        write_counts(json, why);
    else
        json.null();
    json.key("behind");
    if (why.behind)
        json.value(job_name(view, why.behind));
    else
        json.null();
    write_time(json, "expected_start", why.expected_start);
    if (why.queue)
        json.field("queue", queue_name(view, static_cast<std::uint32_t>(why.queue.value)));
    if (const auto* kept = view.reservations.find(why.reservation.value); kept != nullptr)
        json.field("reservation", kept->name);
    if (waits) {
        const core::JobExtra& extra = core::extra_of(*job);
        write_time(json, "eligible", job->eligible);
        json.key("hold_owner");
        if (extra.hold_owner.empty())
            json.null();
        else
            json.value(extra.hold_owner);
        json.key("waiting_for").begin_array();
        for (const model::Dependency& dependency : extra.waiting_for) {
            json.value(job_name(view, dependency.job));
        }
        json.end_array();
    }
    json.end_object();
}

void write_active_reason(JsonWriter& json, const core::View& view, const core::Job& job) {
    const bool ended = model::ended(job.state);
    const std::string_view code = ended ? "ended" : model::to_text(job.state);
    std::string text = reason_line(view, job, view.at);
    if (text.empty()) text = model::to_text(job.state);
    write_head(json, code, number_of_cause(job.cause), text);
    json.key("counts").null().key("behind").null().key("expected_start").null();
    json.end_object();
}

}  // namespace muster::rest
