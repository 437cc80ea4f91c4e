// Submitting: identity, limits, names, dependencies; then one job record, whatever the array's
// size.
#include <algorithm>
#include <optional>

#include "base/error_codes.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/shape.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

using model::JobState;
using When = model::Dependency::When;

/// Two independent 64-bit hashes: the key of a repeated submit.
std::pair<std::uint64_t, std::uint64_t> key_of(const SubmitJob& event) {
    Fnv high, low;
    high.add(event.caller.user), high.add(event.idempotency_key);
    low.add(event.idempotency_key), low.add(std::uint64_t{0x9e3779b97f4a7c15}),
        low.add(event.caller.user);
    return {high.hash(), low.hash()};
}

enum class Met { Open, Yes, Never };
Met met(When when, JobState state) {
    if (!model::ended(state)) return Met::Open;
    const bool ok = state == JobState::Succeeded;
    if (when == When::AfterAny) return Met::Yes;
    return ok == (when == When::AfterOk) ? Met::Yes : Met::Never;
}
std::string_view word(When when) {
    return when == When::AfterOk ? "afterok" : when == When::AfterAny ? "afterany" : "afternotok";
}

}  // namespace

scheduler::Shape shape_of(const model::JobSpec& spec, QueueId queue) {
    scheduler::Shape shape;
    shape.queue = queue;
    for (const model::Role& role : spec.roles)
        shape.groups.push_back({role.nodes, role.devices, role.cpus, role.memory, role.disk,
                                role.nodes_max > role.nodes ? role.nodes_max : 0});
    shape.topology = spec.topology;
    shape.mixed_kinds = spec.mixed_kinds;
    shape.preemptible = spec.preemptible;
    shape.share_unenforced = spec.share_unenforced;
    shape.constraint = spec.constraint;
    shape.exclusive = spec.exclusive;
    shape.time = spec.time;
    shape.expected_time = spec.expected_time;
    return shape;
}

Result<std::uint32_t> Stepper::queue_of(const std::string& name) const {
    const auto at = index_.queue_by_name.find(name.empty() ? "default" : name);
    if (at != index_.queue_by_name.end()) return static_cast<std::uint32_t>(at->second.value);
    std::vector<std::string> names;
    for (const auto& [known, id] : index_.queue_by_name) names.push_back(known);
    const std::string near = nearest(name, names);
    return Error{.code = Code::Invalid,
                 .message = "queue " + name + ": there is no such queue",
                 .cause = "queues are " + join(names, ", "),
                 .fix = near.empty() ? "use one of them" : "did you mean " + near + "?",
                 .number = errors::kQueueUnknown};
}

/// A list of nodes must name nodes that exist: else the job would wait for ever (F52).
Status Stepper::check_constraint(const model::JobSpec& spec) const {
    for (const model::ConstraintTerm& term : spec.constraint) {
        if (term.key != "node" || term.op != model::ConstraintTerm::Op::In) continue;
        for (const std::string& name : term.values) {
            if (index_.node_by_name.contains(name)) continue;
            std::vector<std::string> names;
            for (const auto& [known, id] : index_.node_by_name) names.push_back(known);
            const std::string near = nearest(name, names);
            return Error{.code = Code::Invalid,
                         .message = "constraint: there is no node " + name,
                         .cause = std::to_string(names.size()) + " nodes are known",
                         .fix = near.empty() ? "see `muster nodes`" : "did you mean " + near + "?",
                         .number = errors::kNodeNotFound};
        }
    }
    return Ok{};
}

/// Levels must be the site's (or lie within nodes): else the job would wait for ever.
Status Stepper::check_topology(const model::JobSpec& spec) const {
    const std::vector<std::string>& levels = tables_.topology->levels;
    const model::TopologyAsk& ask = spec.topology;
    for (const auto& [field, level] : {std::pair{"topology.required", &ask.required},
                                       {"topology.preferred", &ask.preferred},
                                       {"topology.slice.required", &ask.slice_required}}) {
        const bool known = level->empty() || *level == "cluster" || *level == "node" ||
                           *level == "link" || *level == "numa" ||
                           std::ranges::find(levels, *level) != levels.end();
        if (known) continue;
        std::vector<std::string> names = levels;
        names.insert(names.end(), {"node", "link", "numa"});
        const std::string near = nearest(*level, names);
        return Error{.code = Code::Invalid,
                     .message = std::string(field) + ": there is no level " + *level,
                     .cause = "levels are " + join(names, ", "),
                     .fix = near.empty() ? "use one of them" : "did you mean " + near + "?",
                     .number = errors::kLevelUnknown};
    }
    return Ok{};
}

/// What the queue says for jobs that do not.
model::JobSpec with_defaults(model::JobSpec spec, const model::QueueSettings& settings) {
    if (spec.time.ms == 0)
        spec.time = settings.default_time.ms > 0 ? settings.default_time : settings.max_time;
    if (spec.priority == model::JobSpec{}.priority) spec.priority = settings.default_priority;
    return spec;
}

std::uint32_t Stepper::user_of(const Caller& caller) {
    const auto at = index_.user_by_name.find(caller.user);
    if (at != index_.user_by_name.end()) return static_cast<std::uint32_t>(at->second.value);
    Meta meta = tables_.meta;
    const std::uint64_t id = meta.next_user++;
    put_meta(meta);
    record(UserPut{{UserId{id}, caller.user, caller.admin}});
    return static_cast<std::uint32_t>(id);
}

SpecId Stepper::intern_spec(const model::JobSpec& spec) {
    std::string bytes = model::encode(spec);
    Fnv fnv;
    fnv.add(bytes);
    const std::uint64_t content = fnv.hash();
    for (auto at = index_.spec_by_content.lower_bound({content, SpecId{0}});
         at != index_.spec_by_content.end() && at->first == content; ++at) {
        if (*tables_.specs.at(at->second.value).bytes == bytes) return at->second;
    }
    Meta meta = tables_.meta;
    const SpecId id{meta.next_spec++};
    put_meta(meta);
    Spec made;
    bytes.shrink_to_fit();  // It grew as it was written, and stays.
    made.bytes = std::make_shared<const std::string>(std::move(bytes));
    made.name = std::make_shared<const std::string>(spec.name);
    made.content = content;
    record(SpecPut{id, std::move(made)});
    return id;
}

ShapeId Stepper::intern_shape(const model::JobSpec& spec, std::uint32_t queue) {
    return intern_shape(shape_of(spec, QueueId{queue}));
}
ShapeId Stepper::intern_shape(scheduler::Shape shape) {
    const auto at = index_.shape_by_ask.find(scheduler::encode(shape));
    if (at != index_.shape_by_ask.end()) return at->second;
    Meta meta = tables_.meta;
    shape.id = {meta.next_shape++};
    put_meta(meta);
    const ShapeId id = shape.id;
    record(ShapePut{std::move(shape)});
    return id;
}

Status Stepper::operator()(const SubmitJob& event) {
    if (event.caller.user.empty())
        return Error{.code = Code::Unauthenticated, .message = "submit: nobody is known to ask"};
    const auto [key_high, key_low] = key_of(event);
    if (!event.idempotency_key.empty()) {
        const auto known = index_.idempotency_by_key.find({key_high, key_low});
        if (known != index_.idempotency_by_key.end()) {
            const Idempotency& entry = tables_.idempotency.at(known->second);
            if (entry.body != event.request_hash)
                return Error{.code = Code::Conflict,
                             .message = "idempotency key " + event.idempotency_key +
                                        ": was used for another job, " +
                                        std::to_string(entry.job.value),
                             .cause = "the same key came with a different request",
                             .fix = "use a new key for a new job",
                             .number = errors::kKeyReused};
            step_.answer.job = entry.job;
            step_.answer.repeated = true;
            return Ok{};
        }
    }
    MUSTER_TRY(check_spec(event.spec, at_));
    MUSTER_LET(queue, queue_of(event.spec.queue));
    const model::QueueSettings& settings = tables_.queues.at(queue).settings;
    const bool defaults = settings.default_time.ms > 0 || settings.max_time.ms > 0 ||
                          settings.default_priority != event.spec.priority;
    std::optional<model::JobSpec> completed;
    if (defaults) completed = with_defaults(event.spec, settings);
    const model::JobSpec& spec = completed ? *completed : event.spec;
    MUSTER_TRY(check_constraint(spec));
    MUSTER_TRY(check_topology(spec));
    MUSTER_TRY(check_queue(event.caller, spec, {queue}));
    MUSTER_TRY(check_pending(event.caller.user, {queue}));
    if (static_cast<std::int64_t>(tables_.jobs.size()) >= state_.settings.jobs_max)
        return Error{.code = Code::Exhausted,
                     .message = "submit: " + std::to_string(tables_.jobs.size()) +
                                " jobs are live, the limit is " +
                                std::to_string(state_.settings.jobs_max),
                     .fix = "wait for jobs to end, or submit an array: it counts as one",
                     .number = errors::kTooManyJobs};
    if (tables_.meta.next_job > kJobIdMax)
        return Error{.code = Code::Exhausted, .message = "submit: all 2^31 job ids are used up"};
    if (spec.deadline.ms != 0 && spec.deadline <= at_)
        return Error{.code = Code::Invalid,
                     .message = "deadline: has passed already",
                     .fix = "give a time in the future"};

    JobExtra extra;
    std::string never;
    for (const model::Dependency& dependency : spec.depends) {
        const Job* other = tables_.jobs.find(dependency.job.value);
        const auto past = std::ranges::find(event.ended, dependency.job,
                                            [](const auto& pair) { return pair.first; });
        if (other == nullptr && past == event.ended.end())
            return Error{
                .code = Code::Invalid,
                .message = "depends: there is no job " + std::to_string(dependency.job.value),
                .fix = "see `muster ps`",
                .number = errors::kDependencyUnknown};
        switch (met(dependency.when, other != nullptr ? other->state : past->second)) {
            case Met::Yes: break;
            case Met::Open: extra.waiting_for.push_back(dependency); break;
            case Met::Never:
                never = std::string(word(dependency.when)) + " on job " +
                        std::to_string(dependency.job.value) + " can never be met: it " +
                        std::string(model::to_text(other != nullptr ? other->state : past->second));
        }
    }

    Job job;
    job.user = user_of(event.caller);
    job.queue = queue;
    job.spec = intern_spec(spec);
    job.shape = intern_shape(spec, queue);
    job.priority = static_cast<std::uint8_t>(spec.priority);
    job.submitted = job.since = at_;
    job.eligible = std::max(spec.begin, at_);
    job.held = spec.hold;
    if (spec.hold) extra.hold_owner = "user";
    extra.deadline = spec.deadline;
    if (spec.array.count > 0) extra.array = ArrayBook{.waiting = {{0, spec.array.count}}};
    Meta meta = tables_.meta;
    job.id = {meta.next_job++};
    if (!event.idempotency_key.empty()) {
        record(IdempotencyPut{{meta.next_idempotency++, key_high, key_low, event.request_hash,
                               job.id, at_ + state_.settings.idempotency_life}});
    }
    put_meta(meta);
    const JobId id = job.id;
    put_job(std::move(job), std::move(extra));
    step_.answer.job = id;
    tell_job("job.queued", this->job(id));
    if (!never.empty()) {
        step_.answer.warnings.push_back(never);
        cancel(id, model::Cause::Cancelled, never);
    }
    return Ok{};
}

/// Jobs that waited for `id`: freed, or cancelled when what they wait for can never come.
void Stepper::resolve_dependents(JobId id) {
    const auto found = index_.dependents.find(id);
    if (found == index_.dependents.end()) return;
    const std::vector<JobId> waiting(found->second.begin(), found->second.end());
    const JobState state = job(id).state;
    for (const JobId other : waiting) {
        const Job* dependent = tables_.jobs.find(other.value);
        if (dependent == nullptr || dependent->state != JobState::Pending) continue;
        std::string never;
        edit_job(other, [&](Job&, JobExtra& extra) {
            std::erase_if(extra.waiting_for, [&](const model::Dependency& open) {
                if (open.job != id) return false;
                if (met(open.when, state) == Met::Never)
                    never = std::string(word(open.when)) + " on job " + std::to_string(id.value) +
                            " can never be met: it " + std::string(model::to_text(state));
                return true;
            });
        });
        if (!never.empty()) cancel(other, model::Cause::Cancelled, never);
    }
}

}  // namespace muster::core
