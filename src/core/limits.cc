// What a queue allows: at submit, and once more when a job starts (F18, F22).
#include <algorithm>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "core/stepper.h"
#include "scheduler/place.h"

namespace muster::core {
namespace {

/// As people write it: memory in bytes, all else in thousandths.
std::string text(std::string_view resource, std::int64_t value) {
    return resource == "memory" ? format_bytes({value}) : format_cpus({value});
}

/// The least that a job of this spec can take of a resource, whatever alternatives it gets.
std::int64_t least(const model::JobSpec& spec, std::string_view resource) {
    std::int64_t sum = 0;
    for (const model::Role& role : spec.roles) {
        std::int64_t of_node = role.devices.empty() ? 0 : INT64_MAX;
        for (const model::DeviceAsk& ask : role.devices) {
            const bool counts = resource == "gpus" || resource == ask.kind;
            // What share of a device a size of memory is, only the device tells.
            const std::int64_t part = ask.share_memory.value > 0 ? 0 : 1000;
            const std::int64_t each = ask.fraction > 0 ? ask.fraction : part;
            of_node = std::min(of_node, counts ? ask.count * each : 0);
        }
        if (resource == "cpus") of_node = role.cpus.value;
        if (resource == "memory") of_node = role.memory.value;
        sum += of_node * role.nodes;
    }
    return sum;
}

struct Bound {
    const char* name;
    const model::Amounts* amounts;
};

}  // namespace

Status Stepper::may_use(const Caller& caller, const Queue& queue) const {
    for (const QueueId id : chain_of(tables_, queue.id)) {
        const model::QueueSettings& settings = tables_.queues.at(id.value).settings;
        if (settings.users.empty() && settings.groups.empty()) continue;
        if (std::ranges::binary_search(settings.users, caller.user)) continue;
        const auto member = [&](const std::string& group) {
            return std::ranges::binary_search(settings.groups, group);
        };
        if (std::ranges::any_of(caller.groups, member)) continue;
        const std::string& name = tables_.queues.at(id.value).name;
        std::string who = join(settings.users, ", ");
        if (!settings.groups.empty())
            who += (who.empty() ? "groups " : " and groups ") + join(settings.groups, ", ");
        return Error{.code = Code::Denied,
                     .message = "queue " + name + ": is not for " + caller.user,
                     .cause = "it is for " + who,
                     .fix = "use another queue, or ask an administrator",
                     .number = errors::kQueueDenied};
    }
    return Ok{};
}

Status Stepper::check_queue(const Caller& caller, const model::JobSpec& spec, QueueId queue) const {
    const Queue& leaf = tables_.queues.at(queue.value);
    std::vector<std::string> below;
    tables_.queues.for_each([&](std::uint64_t, const Queue& other) {
        if (other.parent == queue) below.push_back(other.name);
    });
    if (!below.empty())
        return Error{.code = Code::Invalid,
                     .message = "queue " + leaf.name + ": has queues below it, jobs go to those",
                     .cause = "they are " + join(below, ", "),
                     .fix = "use one of them",
                     .number = errors::kQueueNotLeaf};
    MUSTER_TRY(may_use(caller, leaf));
    const auto over = [&](const Queue& at, const std::string& bound, std::string_view resource,
                          std::int64_t asked, std::int64_t limit, const std::string& fix) {
        return Error{.code = Code::Invalid,
                     .message = std::string(resource) + ": the job asks for " +
                                text(resource, asked) + ", " + bound + " of queue " + at.name +
                                " is " + text(resource, limit),
                     .cause = "it could never start there",
                     .fix = fix,
                     .number = errors::kOverQueueLimit};
    };
    for (const QueueId id : chain_of(tables_, queue)) {
        const Queue& at = tables_.queues.at(id.value);
        const model::QueueSettings& settings = at.settings;
        for (const Bound& bound :
             {Bound{"the job_limit", &settings.job_limit}, Bound{"the limit", &settings.limit},
              Bound{"the user_limit", &settings.user_limit}})
            for (const model::Amount& each : *bound.amounts)
                if (const auto asked = least(spec, each.resource); asked > each.value)
                    return over(at, bound.name, each.resource, asked, each.value,
                                "ask for less, or use another queue");
        if (settings.max_time.ms > 0 && spec.time > settings.max_time)
            return Error{.code = Code::Invalid,
                         .message = "time: " + format_duration(spec.time) +
                                    " is more than the max_time of queue " + at.name + ", " +
                                    format_duration(settings.max_time),
                         .fix = "give a shorter time, or use another queue",
                         .number = errors::kOverQueueLimit};
    }
    // What cannot be taken back must be its own: beyond the guarantee it would never start.
    if (spec.preemptible || !leaf.settings.preemptible) return Ok{};
    for (const QueueId id : chain_of(tables_, queue)) {
        const Queue& at = tables_.queues.at(id.value);
        if (at.settings.guarantee.empty()) continue;
        for (const model::Amount& each : at.settings.guarantee)
            if (const auto asked = least(spec, each.resource); asked > each.value)
                return over(at, "without preemption the guarantee", each.resource, asked,
                            each.value, "leave out preemptible: false, or ask for less");
        return Ok{};
    }
    return Error{.code = Code::Invalid,
                 .message = "preemptible: false, but queue " + leaf.name + " has no guarantee",
                 .cause = "a job that may not be preempted starts within a guarantee only",
                 .fix = "leave it out, or use a queue with a guarantee",
                 .number = errors::kOverQueueLimit};
}

Status Stepper::check_pending(const std::string& user, QueueId queue) const {
    const auto known = index_.user_by_name.find(user);
    for (const QueueId id : chain_of(tables_, queue)) {
        const Queue& at = tables_.queues.at(id.value);
        const auto full = [&](std::string_view whose, std::int64_t pending, std::int64_t limit,
                              std::string_view name) {
            return Error{
                .code = Code::Exhausted,
                .message = "queue " + at.name + ": " + std::to_string(pending) +
                           std::string(whose) + " wait, its " + std::string(name) + " is " +
                           std::to_string(limit),
                .fix = "wait until some have started, or submit an array: it counts as one",
                .number = errors::kQueueFull};
        };
        const QueueUse* use = tables_.queue_use.find(id.value);
        const std::int64_t pending = use == nullptr ? 0 : use->pending;
        if (at.settings.max_pending >= 0 && pending >= at.settings.max_pending)
            return full(" jobs", pending, at.settings.max_pending, "max_pending");
        if (at.settings.user_max_pending < 0) continue;
        std::int64_t own = 0;
        if (known != index_.user_by_name.end())
            if (const auto of = index_.user_use.find({id, known->second});
                of != index_.user_use.end())
                own = of->second.pending;
        if (own >= at.settings.user_max_pending)
            return full(" jobs of " + user, own, at.settings.user_max_pending, "user_max_pending");
    }
    return Ok{};
}

/// To another queue: what holds for a new job of its owner holds for it.
Status Stepper::check_move(const Caller& caller, const Job& job, QueueId queue) const {
    Caller owner = caller;
    if (caller.admin) owner.user = tables_.users.at(job.user).name;
    if (!caller.admin || owner.user == caller.user) {
        MUSTER_TRY(check_queue(owner, *cached_spec(state_, job.spec), queue));
    } else if (Status refused = check_queue(owner, *cached_spec(state_, job.spec), queue);
               !refused && refused.error().number != errors::kQueueDenied) {
        return refused;  // An admin may put others' jobs where they may not.
    }
    return check_pending(owner.user, queue);
}

/// Of its queue and all above it, with `gone` ended. What depends on others (guarantees, lending)
/// is the planner's to judge.
bool Stepper::within_limits(const Job& job, const Allocation& allocation,
                            const std::vector<JobId>& gone) const {
    const UserId user{job.user};
    model::Amounts asked;  // Once a bound is there: mostly there is none.
    const auto within = [](const model::Amounts& used, const model::Amount& limit,
                           std::int64_t least_above) {
        return amount_of(used, limit.resource) <= limit.value + least_above;
    };
    const auto holds = [&](const model::Amounts& used, const model::Amounts& limits) {
        return std::ranges::all_of(limits, [&](const model::Amount& limit) {
            // What it does not ask for it may not be held back by.
            return amount_of(asked, limit.resource) == 0 || within(used, limit, 0);
        });
    };
    const QueueId own{job.queue};
    for (const QueueId id : chain_of(tables_, own)) {
        const model::QueueSettings& settings = tables_.queues.at(id.value).settings;
        const bool users =
            id == own && (!settings.user_limit.empty() || settings.user_max_jobs >= 0);
        if (settings.limit.empty() && settings.borrow_limit.empty() && settings.max_jobs < 0 &&
            !users)
            continue;
        if (asked.empty()) asked = running_of(allocation);
        QueueUse use, of_user;
        if (const QueueUse* known = tables_.queue_use.find(id.value)) use = *known;
        if (const auto at = index_.user_use.find({id, user}); at != index_.user_use.end())
            of_user = at->second;
        for (const JobId other : gone) {
            const Job& victim = this->job(other);
            const auto chain = chain_of(tables_, {victim.queue});
            if (std::ranges::find(chain, id) == chain.end()) continue;
            const model::Amounts less = running_of(*extra_of(victim).allocation);
            add_to(use.running, less, -1), --use.active;
            if (victim.user == job.user) add_to(of_user.running, less, -1), --of_user.active;
        }
        add_to(use.running, asked), ++use.active;
        add_to(of_user.running, asked), ++of_user.active;
        if (settings.max_jobs >= 0 && use.active > settings.max_jobs) return false;
        if (!holds(use.running, settings.limit)) return false;
        for (const model::Amount& limit : settings.borrow_limit)
            if (amount_of(asked, limit.resource) > 0 &&
                !within(use.running, limit, amount_of(settings.guarantee, limit.resource)))
                return false;
        if (!users) continue;
        if (settings.user_max_jobs >= 0 && of_user.active > settings.user_max_jobs) return false;
        if (!holds(of_user.running, settings.user_limit)) return false;
    }
    return true;
}

}  // namespace muster::core
