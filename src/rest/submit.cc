// POST /v1/jobs: the body becomes the normal form or all its errors; then it is
// durable, or only looked at (dry run).
#include "base/hash.h"
#include "base/text.h"
#include "core/shape.h"
#include "rest/ask.h"
#include "rest/ids.h"
#include "rest/job_body.h"
#include "rest/reason.h"
#include "spec/parse.h"
#include "spec/render.h"

namespace muster::rest {
namespace {

constexpr std::size_t kKeyMax = 255;

/// The format, or 415.
std::variant<spec::Format, Problem> format_of(const net::HttpRequest& request) {
    const std::string type = lower(trim(split(request.header("content-type"), ';').front()));
    if (type.empty()) return spec::Format::Auto;
    if (type == "application/json") return spec::Format::Json;
    if (type == "application/yaml" || type == "application/x-yaml" || type == "text/yaml" ||
        type == "text/x-yaml") {
        return spec::Format::Yaml;
    }
    return Problem{numbered(errors::kMediaType,
                            "content type \"" + type.substr(0, 100) + "\" is not a job's", {},
                            "send application/json or application/yaml")};
}

model::JobState state_named(std::string_view text) {
    using model::JobState;
    for (const JobState state : {JobState::Succeeded, JobState::Failed, JobState::Cancelled}) {
        if (text == model::to_text(state)) return state;
    }
    return JobState::Failed;
}

/// How dependencies ended that are not `live` any more. Asks the history, so not on an I/O thread.
Result<std::vector<std::pair<JobId, model::JobState>>> ended_dependencies(
    ports::History& history, const model::JobSpec& spec, const core::View* live) {
    std::vector<std::pair<JobId, model::JobState>> out;
    for (const model::Dependency& dependency : spec.depends) {
        if (live != nullptr && live->jobs.contains(dependency.job.value)) continue;
        MUSTER_LET(found, history.find(dependency.job));
        if (found) out.emplace_back(dependency.job, state_named(found->state));
    }
    return out;
}

void dry_run(const CallPtr& call, model::JobSpec spec) {
    auto kept = std::make_shared<const model::JobSpec>(std::move(spec));
    const auto queue = queue_of(*call->api->backend.view(), kept->queue);
    if (!queue) return call->fail(queue.error());
    const scheduler::Shape shape = core::shape_of(*kept, *queue);
    const auto answer = [call, kept, shape](Result<scheduler::Blocked> feasible) {
        if (!feasible) return call->fail(feasible.error());
        using Reason = scheduler::Blocked::Reason;
        const bool never =
            feasible->reason == Reason::NeverFits || feasible->reason == Reason::NoNodes;
        JsonWriter json;
        json.begin_object().field("valid", true).field("could_run", !never);
        json.field("starts_now", feasible->reason == Reason::NotEvaluated).key("why");
        write_reason(json, *call->api->backend.view(), nullptr, &shape, *feasible);
        json.key("spec");
        spec::write_json(json, *kept);
        json.field("yaml", spec::to_yaml(*kept)).key("warnings").begin_array().end_array();
        json.end_object();
        call->json(std::move(json).text());
    };
    const auto look = [shape](const scheduler::PlanIndex& index, Time) {
        scheduler::Blocked out = index.feasible(shape);
        if (out.reason == scheduler::Blocked::Reason::NotEnoughFree &&
            out.nodes_fit >= out.nodes_wanted)
            out.reason = scheduler::Blocked::Reason::NotEvaluated;
        return out;
    };
    ask_planner<scheduler::Blocked>(call, look, answer);
}

void answer_submitted(const CallPtr& call, const std::string& name,
                      const Backend::Answered& answered) {
    const std::string id = std::to_string(answered.answer.job.value);
    call->api->own_writes.note(call->who.caller.user, answered.revision);
    const std::string revision =
        revision_text(call->api->backend.view()->meta.term, answered.revision);
    JsonWriter json;
    json.begin_object().field("id", id).field("number", answered.answer.job.value);
    json.field("name", name).field("state", model::to_text(model::JobState::Pending));
    json.field("repeated", answered.answer.repeated).key("warnings").begin_array();
    for (const std::string& warning : answered.answer.warnings) json.value(warning);
    json.end_array().field("revision", revision).end_object();
    call->json(std::move(json).text(),
               {{"Location", "/v1/jobs/" + id}, {"Muster-Revision", revision}}, 201);
}

void submit(const CallPtr& call, core::SubmitJob event) {
    std::string name = event.spec.name;
    call->api->backend.submit(std::move(event),
                              [call, name = std::move(name)](Result<Backend::Answered> done) {
                                  if (!done) return call->fail(std::move(done).error());
                                  answer_submitted(call, name, *done);
                              });
}

/// With what is known of its dependencies. A job may be live in the view and gone to the history
/// when the core looks: then all of them are looked up there once more. On the reads thread.
void submit_dependent(const CallPtr& call, const std::shared_ptr<const core::SubmitJob>& event) {
    ports::History& history = call->api->backend.history();
    const ViewPtr view = call->api->backend.view();
    auto ended = ended_dependencies(history, event->spec, view.get());
    if (!ended) return call->fail(std::move(ended).error());
    core::SubmitJob first = *event;
    first.ended = *std::move(ended);
    call->api->backend.submit(std::move(first), [call, event](Result<Backend::Answered> done) {
        if (done) return answer_submitted(call, event->spec.name, *done);
        if (done.error().number != errors::kDependencyUnknown)
            return call->fail(std::move(done).error());
        call->api->reads.post([call, event] {
            auto all = ended_dependencies(call->api->backend.history(), event->spec, nullptr);
            if (!all) return call->fail(std::move(all).error());
            core::SubmitJob second = *event;
            second.ended = *std::move(all);
            submit(call, std::move(second));
        });
    });
}

}  // namespace

std::variant<model::JobSpec, Problem> parse_job_body(const Call& call) {
    const auto format = format_of(call.request);
    if (const auto* problem = std::get_if<Problem>(&format)) return *problem;
    const spec::ParseOptions options{.file = {},
                                     .format = std::get<spec::Format>(format),
                                     .now = call.now,
                                     .base_dir = {},
                                     .default_workdir = {}};
    auto parsed = spec::parse_job(call.request.body, options);
    if (const auto* problems = std::get_if<spec::Problems>(&parsed)) return invalid_job(*problems);
    return std::move(std::get<model::JobSpec>(parsed));
}

void submit_job(const CallPtr& call) {
    const std::string_view key = call->request.header("idempotency-key");
    if (key.size() > kKeyMax) {
        return call->fail(bad_parameter("Idempotency-Key", key, "at most 255 bytes"));
    }
    auto parsed = parse_job_body(*call);
    if (const auto* problem = std::get_if<Problem>(&parsed)) return call->fail(*problem);
    auto& spec = std::get<model::JobSpec>(parsed);
    if (call->query_flag("dry_run")) return dry_run(call, std::move(spec));
    Fnv hash;
    hash.add(std::string_view(call->request.body));
    core::SubmitJob event{.caller = call->who.caller,
                          .spec = std::move(spec),
                          .idempotency_key = std::string(key),
                          .request_hash = hash.hash(),
                          .ended = {}};
    if (event.spec.depends.empty()) return submit(call, std::move(event));
    call->api->reads.post([call, kept = std::make_shared<const core::SubmitJob>(std::move(event))] {
        submit_dependent(call, kept);
    });
}

}  // namespace muster::rest
