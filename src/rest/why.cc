// Why a job waits, what would be if it were another, and what would become of one that is not
// there: all from the planner's own index.
#include <algorithm>

#include "base/text.h"
#include "core/shape.h"
#include "rest/ask.h"
#include "rest/explain_json.h"
#include "rest/find_job.h"
#include "rest/ids.h"
#include "rest/job_body.h"
#include "rest/reason.h"
#include "spec/parse.h"
#include "spec/render.h"

namespace muster::rest {
namespace {

/// `explanation` is null where there is none: then `note` may say why.
void write_why(const CallPtr& call, const core::View& now, const FoundJob& found,
               const scheduler::Blocked* why, const scheduler::Explanation* explanation,
               const std::string& note) {
    const core::Job& job = *found.live;
    const auto spec = core::spec_of(now, job.spec);
    JsonWriter json;
    json.begin_object().field("id", call->args[0]).field("name", spec->name);
    json.field("state", model::to_text(job.state)).field("queue", queue_name(now, job.queue));
    json.field("priority", static_cast<unsigned>(job.priority));
    json.field("wants", wants_text(*spec));
    const bool waits = job.state == model::JobState::Pending;
    json.field("waiting_ms", waits ? std::max<std::int64_t>(0, (call->now - job.since).ms) : 0);
    json.key("reason");
    const scheduler::Shape* shape = now.shapes.find(job.shape.value);
    if (why != nullptr)
        write_reason(json, now, &job, shape, *why);
    else
        write_active_reason(json, now, job);
    json.key("explanation");
    if (explanation != nullptr && shape != nullptr)
        write_explanation(json, now, &job, *shape, *explanation);
    else
        json.null();
    json.key("note");
    if (note.empty())
        json.null();
    else
        json.value(note);
    json.end_object();
    call->json(std::move(json).text());
}

void answer_why(const CallPtr& call, const ViewPtr& view, const FoundJob& found,
                const Result<scheduler::Explanation>& why) {
    const core::Job& job = *found.live;
    scheduler::Blocked reason = core::wait_of(*view, job, call->now);
    if (!why) {
        return write_why(call, *view, found, &reason, nullptr,
                         why.error().message + "; this is what its last plan said");
    }
    // Started or ended since the view, or not in any queue.
    if (why->blocked.empty()) return write_why(call, *view, found, &reason, nullptr, {});
    if (!of_record(reason.reason)) reason = why->blocked.front();
    write_why(call, *view, found, &reason, &*why, {});
}

/// Anybody's job at this moment, as the planner would be told of it.
scheduler::JobQueued as_queued(const core::View& view, const core::Job& job) {
    scheduler::JobQueued out;
    out.id = job.id;
    out.shape = job.shape;
    out.user = UserId{job.user};
    out.priority = job.priority;
    out.submitted = job.submitted;
    out.eligible = job.eligible;
    const core::JobExtra& extra = core::extra_of(job);
    out.avoid = extra.avoid;
    out.last_nodes = extra.last_nodes;
    if (const auto* known = view.predicted.find(job.id.value)) out.predicted = *known;
    return out;
}

/// "nodes=2" and the like over a job; or what is wrong with them.
std::variant<model::JobSpec, Problem> changed_job(const model::JobSpec& job,
                                                  const std::vector<std::string>& changes) {
    constexpr std::string_view kFields[] = {"nodes", "gpus", "time", "queue"};
    std::vector<spec::FlagText> flags;
    std::optional<std::string> required;
    for (const std::string& change : changes) {
        const std::size_t equals = change.find('=');
        const std::string name = change.substr(0, equals);
        const std::string value =
            equals == std::string::npos ? std::string() : change.substr(equals + 1);
        if (name == "topology.required" && !value.empty()) {
            required = value == "none" ? "" : value;
        } else if (std::ranges::find(kFields, name) != std::end(kFields) && !value.empty()) {
            flags.push_back({name, value});
        } else {
            return bad_parameter("if", change,
                                 "nodes=N, gpus=KIND:N, time=DURATION, queue=NAME or "
                                 "topology.required=LEVEL (none: anywhere)");
        }
    }
    auto parsed = spec::parse_job(spec::to_json(job), flags, {}, {.format = spec::Format::Json});
    if (const auto* problems = std::get_if<spec::Problems>(&parsed)) return invalid_job(*problems);
    auto& out = std::get<model::JobSpec>(parsed);
    if (required) {
        out.topology.required = *required;
        if (required->empty()) out.topology.slice = 0, out.topology.slice_required.clear();
    }
    return out;
}

/// Answers what would become of `spec`. `job` of nobody: submitted now by the caller.
void forecast(const CallPtr& call, const ViewPtr& view, const model::JobSpec& spec,
              scheduler::JobQueued job) {
    const auto queue = queue_of(*view, spec.queue);
    if (!queue) return call->fail(queue.error());
    const scheduler::Shape shape = core::shape_of(spec, *queue);
    const std::string wants = wants_text(spec);
    const auto look = [shape, job = std::move(job)](const scheduler::PlanIndex& index, Time now) {
        scheduler::JobQueued asked = job;
        if (!asked.id) asked.submitted = asked.eligible = now;
        return index.forecast(shape, asked, now);
    };
    ask_planner<scheduler::Forecast>(
        call, look, [call, shape, wants](Result<scheduler::Forecast> seen) {
            if (!seen) return call->fail(seen.error());
            JsonWriter json;
            json.begin_object().field("wants", wants).key("forecast");
            write_forecast(json, *call->api->backend.view(), shape, *seen);
            json.end_object();
            call->json(std::move(json).text());
        });
}

}  // namespace

void why_job(const CallPtr& call) {
    with_job(call, [call](const ViewPtr& view, const FoundJob& found) {
        if (found.live == nullptr) {
            return call->fail(numbered(
                errors::kJobEnded, "job " + call->args[0] + " has ended: " + found.ended->state));
        }
        const core::Job& job = *found.live;
        std::vector<std::string> changes;
        for (const auto& [name, value] : call->request.query)
            if (name == "if") changes.push_back(value);
        if (job.state != model::JobState::Pending) {
            if (changes.empty()) return write_why(call, *view, found, nullptr, nullptr, {});
            return call->fail(
                numbered(errors::kJobState, "job " + call->args[0] + " does not wait: it is " +
                                                std::string(model::to_text(job.state))));
        }
        if (!changes.empty()) {
            const auto changed = changed_job(*core::spec_of(*view, job.spec), changes);
            if (const auto* problem = std::get_if<Problem>(&changed)) return call->fail(*problem);
            return forecast(call, view, std::get<model::JobSpec>(changed), as_queued(*view, job));
        }
        const auto look = [id = job.id](const scheduler::PlanIndex& index, Time now) {
            return index.explanation(id, now);
        };
        ask_planner<scheduler::Explanation>(
            call, look, [call, view, found](const Result<scheduler::Explanation>& why) {
                answer_why(call, view, found, why);
            });
    });
}

void plan_job(const CallPtr& call) {
    const auto parsed = parse_job_body(*call);
    if (const auto* problem = std::get_if<Problem>(&parsed)) return call->fail(*problem);
    const auto& spec = std::get<model::JobSpec>(parsed);
    const ViewPtr view = call->api->backend.view();
    scheduler::JobQueued job;
    job.priority = spec.priority;
    view->users.for_each([&](std::uint64_t id, const core::User& user) {
        if (user.name == call->who.caller.user) job.user = UserId{id};
    });
    forecast(call, view, spec, std::move(job));
}

}  // namespace muster::rest
