#include "rest/job_json.h"

#include <algorithm>

#include "base/error_codes.h"
#include "rest/ids.h"
#include "rest/reason.h"
#include "rest/time_text.h"
#include "spec/render.h"

namespace muster::rest {
namespace {

/// Of its last attempt, unless one is under way.
int ending_signal(const core::Job& job) {
    const std::vector<core::Attempt>& attempts = core::extra_of(job).attempts;
    return attempts.empty() || model::active(job.state) ? 0 : attempts.back().signal;
}

void write_count(JsonWriter& json, std::int64_t count, std::int64_t none) {
    if (count == none)
        json.null();
    else
        json.value(count);
}

void write_cpus(JsonWriter& json, std::int64_t milli) {
    if (milli % 1000 == 0)
        json.value(milli / 1000);
    else
        json.value(static_cast<double>(milli) / 1000);
}

void write_depends(JsonWriter& json, const core::View& view, const core::JobExtra& extra) {
    using When = model::Dependency::When;
    json.begin_array();
    for (const model::Dependency& dependency : extra.waiting_for) {
        const char* when = dependency.when == When::AfterOk    ? "afterok"
                           : dependency.when == When::AfterAny ? "afterany"
                                                               : "afternotok";
        json.begin_object().field("when", when).field("job", job_name(view, dependency.job));
        json.end_object();
    }
    json.end_array();
}

void write_sweep_values(JsonWriter& json, const model::JobSpec& spec, std::int64_t element) {
    if (spec.array.sweep.empty()) return;
    json.key("values").begin_object();
    for (const model::EnvVar& var : model::sweep_values(spec.array, element)) {
        json.field(var.name, var.value);
    }
    json.end_object();
}

}  // namespace

model::JobSpec masked(model::JobSpec spec) {
    for (model::EnvVar& var : spec.env) var.value = "***";
    for (model::Role& role : spec.roles) {
        for (model::EnvVar& var : role.env) var.value = "***";
    }
    for (model::Secret& secret : spec.secrets) secret.file = "***";
    return spec;
}

Time started_at(const core::Job& job) {
    return core::extra_of(job).first_started;
}

Time ended_at(const core::Job& job) {
    return model::ended(job.state) ? job.since : Time{};
}

JobRenderer::JobRenderer(const core::View& view, JobFactsCache* facts, Time now, Viewer viewer)
    : view_(view), cache_(facts), now_(now), viewer_(std::move(viewer)) {}

void JobRenderer::object(JsonWriter& json, const core::Job& job, std::span<const JobField> fields) {
    json.begin_object();
    for (const JobField field : fields) {
        json.key(name_of(field));
        value(json, job, field);
    }
    json.end_object();
}

void JobRenderer::row(JsonWriter& json, const core::Job& job, std::span<const JobField> fields) {
    json.begin_array();
    for (const JobField field : fields) value(json, job, field);
    json.end_array();
}

void JobRenderer::waiting_element(JsonWriter& json, const core::Job& array, std::int64_t element,
                                  std::span<const JobField> fields) {
    core::Job job = array;
    job.array_job = static_cast<std::uint32_t>(array.id.value);
    job.array_element = static_cast<std::uint32_t>(element);
    core::JobExtra extra = core::extra_of(array);
    extra.array.reset();
    job.extra = std::make_shared<const core::JobExtra>(std::move(extra));
    object(json, job, fields);
}

void JobRenderer::value(JsonWriter& json, const core::Job& job, JobField field) {
    if (value_of_record(json, job, field)) return;
    if (value_of_facts(json, job, field)) return;
    if (value_of_times(json, job, field)) return;
    value_of_extra(json, job, field);
}

bool JobRenderer::value_of_record(JsonWriter& json, const core::Job& job, JobField field) {
    switch (field) {
        case JobField::Id: json.value(job_name(job)); return true;
        case JobField::Number: json.value(job.id.value); return true;
        case JobField::Name: {
            const core::Spec* entry = view_.specs.find(job.spec.value);
            json.value(entry != nullptr && entry->name ? std::string_view(*entry->name)
                                                       : std::string_view());
            return true;
        }
        case JobField::User: json.raw(quoted_user(job.user)); return true;
        case JobField::Queue: json.raw(quoted_queue(job.queue)); return true;
        case JobField::State: json.value(model::to_text(job.state)); return true;
        case JobField::Cause:
            if (job.cause == model::Cause::None)
                json.null();
            else
                json.value(model::to_text(job.cause));
            return true;
        case JobField::Reason: write_text(json, reason_line(view_, job, now_)); return true;
        case JobField::Code: {
            const int number = reason_number(view_, job, now_);
            if (number == 0)
                json.null();
            else
                json.value(error_name(number));
            return true;
        }
        case JobField::Priority: json.value(static_cast<unsigned>(job.priority)); return true;
        case JobField::Held: json.value(job.held); return true;
        case JobField::Attempt: json.value(job.epoch); return true;
        case JobField::Restarts: json.value(job.restarts); return true;
        case JobField::Faults: json.value(job.faults); return true;
        case JobField::Archived: json.value(viewer_.archives); return true;
        default: return false;
    }
}

bool JobRenderer::value_of_facts(JsonWriter& json, const core::Job& job, JobField field) {
    switch (field) {
        case JobField::Kind: {
            const char* kind = job.array_job != 0     ? "element"
                               : facts(job).is_array  ? "array"
                               : facts(job).nodes > 1 ? "gang"
                                                      : "job";
            json.value(kind);
            return true;
        }
        case JobField::Labels: json.raw(facts(job).labels_json); return true;
        case JobField::Nodes: json.value(facts(job).nodes); return true;
        case JobField::Gpus: json.value(gpus(job)); return true;
        case JobField::GpusPerNode: json.value(facts(job).gpus_per_node); return true;
        case JobField::Cpus:
            if (facts(job).milli_cpus == 0)
                json.null();
            else
                write_cpus(json, facts(job).milli_cpus);
            return true;
        case JobField::Memory: write_count(json, facts(job).memory, 0); return true;
        case JobField::Deadline: write_time(json, facts(job).deadline); return true;
        case JobField::TimeLimit: write_count(json, facts(job).time.ms, 0); return true;
        default: return false;
    }
}

bool JobRenderer::value_of_times(JsonWriter& json, const core::Job& job, JobField field) {
    const Time end = model::ended(job.state) ? job.since : now_;
    switch (field) {
        case JobField::Submitted: write_time(json, job.submitted); return true;
        case JobField::Since: write_time(json, job.since); return true;
        case JobField::Eligible: write_time(json, job.eligible); return true;
        case JobField::Started: write_time(json, started_at(job)); return true;
        case JobField::Ended: write_time(json, ended_at(job)); return true;
        case JobField::ExpectedStart: {
            const bool waits = job.state == model::JobState::Pending;
            write_time(json, waits ? core::wait_of(view_, job, now_).expected_start : Time{});
            return true;
        }
        case JobField::Wait: {
            const Time start = started_at(job).ms != 0 ? started_at(job) : end;
            json.value(std::max<std::int64_t>(0, (start - job.submitted).ms));
            return true;
        }
        case JobField::Run: {
            const Time start = started_at(job);
            json.value(start.ms == 0 ? 0 : std::max<std::int64_t>(0, (end - start).ms));
            return true;
        }
        default: return false;
    }
}

void JobRenderer::value_of_extra(JsonWriter& json, const core::Job& job, JobField field) {
    const core::JobExtra& extra = core::extra_of(job);
    switch (field) {
        case JobField::HoldOwner: return write_text(json, extra.hold_owner);
        case JobField::Lost: json.value(extra.lost_time.ms); return;
        case JobField::StepsRepeated: json.value(extra.steps_repeated); return;
        case JobField::NodeNames: return node_names(json, job);
        case JobField::Progress: return progress(json, job);
        case JobField::Checkpoint: return checkpoint(json, job);
        case JobField::ExitCode: return write_count(json, extra.exit_code, -1);
        case JobField::Signal: return write_count(json, ending_signal(job), 0);
        case JobField::Message: return write_text(json, extra.message);
        case JobField::PeakMemory: return write_count(json, extra.peak_memory.value, 0);
        case JobField::Array: return array(json, job);
        case JobField::Depends: return write_depends(json, view_, extra);
        case JobField::Avoid:
            json.begin_array();
            for (const NodeId node : extra.avoid) json.value(node_name(view_, node));
            json.end_array();
            return;
        case JobField::Master: {
            const core::JobLive* live = view_.live.find(job.id.value);
            if (live == nullptr || live->master_address.empty())
                json.null();
            else
                json.value(live->master_address + ":" + std::to_string(live->master_port));
            return;
        }
        case JobField::Spec: return spec(json, job);
        case JobField::Allocation:
            return write_allocation(json, view_, job, core::spec_of(view_, job.spec)->roles);
        case JobField::Ranks:
            return write_ranks(json, view_, job, core::spec_of(view_, job.spec)->roles);
        case JobField::AttemptsTotal: json.value(extra.attempts_total); return;
        case JobField::Attempts: return write_attempts(json, view_, job);
        default: json.null(); return;
    }
}

const JobFacts& JobRenderer::facts(const core::Job& job) {
    if (facts_ && facts_spec_ == job.spec) return *facts_;
    facts_ = cache_ != nullptr
                 ? cache_->get(view_, job.spec)
                 : std::make_shared<const JobFacts>(facts_of(*core::spec_of(view_, job.spec)));
    facts_spec_ = job.spec;
    return *facts_;
}

std::int64_t JobRenderer::gpus(const core::Job& job) {
    const core::JobExtra& extra = core::extra_of(job);
    if (!extra.allocation) return facts(job).gpus;
    std::int64_t sum = 0;
    for (const core::Placed& slot : extra.allocation->slots) {
        sum += static_cast<std::int64_t>(slot.devices.size());
    }
    return sum;
}

void JobRenderer::node_names(JsonWriter& json, const core::Job& job) {
    const core::JobExtra& extra = core::extra_of(job);
    json.begin_array();
    if (extra.allocation) {
        for (const core::Placed& slot : extra.allocation->slots) {
            json.value(node_name(view_, slot.node));
        }
    } else if (model::ended(job.state)) {
        for (const NodeId node : extra.last_nodes) json.value(node_name(view_, node));
    }
    json.end_array();
}

void JobRenderer::progress(JsonWriter& json, const core::Job& job) {
    const core::JobLive* live = view_.live.find(job.id.value);
    const protocol::Progress* best = nullptr;
    if (live != nullptr) {
        for (const protocol::Progress& each : live->progress) {
            if (each.step >= 0 && (best == nullptr || each.step > best->step)) best = &each;
        }
    }
    const core::JobExtra& extra = core::extra_of(job);
    if (best == nullptr && extra.last_progress) best = &*extra.last_progress;
    if (best == nullptr)
        json.null();
    else
        write_progress(json, *best);
}

void JobRenderer::checkpoint(JsonWriter& json, const core::Job& job) {
    const core::JobExtra& extra = core::extra_of(job);
    if (extra.checkpoint.empty()) {
        json.null();
        return;
    }
    json.begin_object().field("step", extra.checkpoint_step).field("path", extra.checkpoint);
    write_time(json, "at", extra.checkpoint_at);
    json.end_object();
}

void JobRenderer::array(JsonWriter& json, const core::Job& job) {
    const core::JobExtra& extra = core::extra_of(job);
    if (job.array_job == 0 && !extra.array) {
        json.null();
        return;
    }
    const JobFacts& known = facts(job);
    json.begin_object();
    if (job.array_job != 0) {
        json.field("job", std::to_string(job.array_job)).field("element", job.array_element);
        json.field("index", known.array_first + known.array_step * job.array_element);
        write_sweep_values(json, *core::spec_of(view_, job.spec), job.array_element);
    } else {
        const core::ArrayBook& book = *extra.array;
        std::int64_t waiting = 0;  // Held ones too.
        for (const core::ElementRange& range : book.waiting) waiting += range.last - range.first;
        waiting += static_cast<std::int64_t>(book.held.size());
        json.field("count", known.array_count).field("parallel", known.array_parallel);
        json.field("waiting", waiting).field("live", book.live);
        json.field("succeeded", book.succeeded).field("failed", book.failed);
        json.field("cancelled", book.cancelled);
    }
    json.end_object();
}

void JobRenderer::spec(JsonWriter& json, const core::Job& job) {
    const bool whole = viewer_.sees_all || viewer_.user == user_name(view_, job.user);
    const auto spec = core::spec_of(view_, job.spec);
    if (whole)
        spec::write_json(json, *spec);
    else
        spec::write_json(json, masked(*spec));
}

std::string_view JobRenderer::quoted_user(std::uint32_t user) {
    const auto [at, is_new] = users_.try_emplace(user);
    if (is_new) at->second = json_quote(user_name(view_, user));
    return at->second;
}

std::string_view JobRenderer::quoted_queue(std::uint32_t queue) {
    const auto [at, is_new] = queues_.try_emplace(queue);
    if (is_new) at->second = json_quote(queue_name(view_, queue));
    return at->second;
}

}  // namespace muster::rest
