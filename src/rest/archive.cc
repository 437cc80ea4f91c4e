#include "rest/archive.h"

#include <algorithm>

#include "rest/ids.h"
#include "rest/job_json.h"

namespace muster::rest {
namespace {

/// Time with devices, over all attempts that the record still has.
std::int64_t held_ms(const core::JobExtra& extra) {
    std::int64_t sum = 0;
    for (const core::Attempt& attempt : extra.attempts) {
        if (attempt.started.ms == 0 || attempt.ended < attempt.started) continue;
        sum += (attempt.ended - attempt.started).ms;
    }
    return sum;
}

}  // namespace

std::optional<ports::EndedJob> ended_job(const core::View& view, JobId id) {
    const core::Job* job = view.jobs.find(id.value);
    if (job == nullptr || !model::ended(job->state)) return std::nullopt;
    const core::JobExtra& extra = core::extra_of(*job);
    const JobFacts facts = facts_of(*core::spec_of(view, job->spec));
    const core::Spec& spec = view.specs.at(job->spec.value);
    const Time start = started_at(*job);
    JobRenderer renderer(view, nullptr, job->since, {.sees_all = true, .archives = true});
    JsonWriter json;
    renderer.object(json, *job, all_job_fields());
    const bool is_parent = facts.is_array && job->array_job == 0;
    return ports::EndedJob{
        .job = id,
        .name = spec.name ? *spec.name : std::string(),
        .user = user_name(view, job->user),
        .queue = queue_name(view, job->queue),
        .state = std::string(model::to_text(job->state)),
        .cause = std::string(model::to_text(job->cause)),
        .submitted_ms = job->submitted.ms,
        .started_ms = start.ms,
        .ended_ms = job->since.ms,
        .wait_ms =
            std::max<std::int64_t>(0, ((start.ms != 0 ? start : job->since) - job->submitted).ms),
        .run_ms = start.ms != 0 ? std::max<std::int64_t>(0, (job->since - start).ms) : 0,
        .lost_ms = extra.lost_time.ms,
        .device_ms = is_parent ? 0 : held_ms(extra) * facts.gpus,
        .nodes = facts.nodes,
        .devices = facts.gpus,
        .attempts = extra.attempts_total,
        .exit_code = extra.exit_code,
        .array_job = static_cast<std::int64_t>(job->array_job),
        .array_element = static_cast<std::int64_t>(job->array_element),
        .json = std::move(json).text()};
}

}  // namespace muster::rest
