// One job: read it whole, change it.
#include <charconv>

#include "base/text.h"
#include "rest/body.h"
#include "rest/find_job.h"
#include "rest/ids.h"
#include "rest/job_json.h"

namespace muster::rest {
namespace {

std::string etag_of(const core::Job& job) {
    return "\"" + std::to_string(core::revision_of(job)) + "\"";
}

/// 0: any version will do. Needed: without the header 428.
std::variant<std::uint64_t, Problem> if_match(const Call& call, bool needed) {
    std::string_view tag = trim(call.request.header("if-match"));
    if (tag.empty() && needed) {
        return Problem{numbered(errors::kPreconditionNeeded, "this change needs If-Match")};
    }
    if (tag.empty() || tag == "*") return std::uint64_t{0};
    if (tag.substr(0, 2) == "W/") tag.remove_prefix(2);
    if (tag.size() > 2 && tag.front() == '"' && tag.back() == '"') {
        tag = tag.substr(1, tag.size() - 2);
    }
    std::uint64_t revision = 0;
    const auto [end, error] = std::from_chars(tag.data(), tag.data() + tag.size(), revision);
    if (error == std::errc{} && end == tag.data() + tag.size() && revision != 0) return revision;
    return Problem{numbered(errors::kChanged, "If-Match is no version of a job")};
}

void write_job(const CallPtr& call, const core::View& view, const FoundJob& found,
               const std::vector<JobField>& fields) {
    JobRenderer renderer(view, &call->api->facts, call->now,
                         {.user = call->who.caller.user, .sees_all = call->who.caller.admin});
    JsonWriter json;
    if (found.waiting_element >= 0) {
        renderer.waiting_element(json, *found.live, found.waiting_element, fields);
    } else {
        renderer.object(json, *found.live, fields);
    }
    call->json(std::move(json).text(), {{"ETag", etag_of(*found.live)}});
}

/// All that history keeps, or the fields asked for.
void write_ended(const CallPtr& call, const ports::EndedJob& job,
                 const std::vector<JobField>& fields, bool all) {
    std::string body = call->may_see(job.user) ? job.json : mask_json(job.json);
    if (!all) {
        JsonWriter json;
        json.begin_object();
        for (const JobField field : fields) {
            const std::string_view value = member_of(body, name_of(field));
            json.key(name_of(field));
            if (value.empty())
                json.null();
            else
                json.raw(value);
        }
        json.end_object();
        body = std::move(json).text();
    }
    call->json(std::move(body));
}

void answer_acted(const CallPtr& call, const std::string& id, const Backend::Answered& answered) {
    const ViewPtr view = call->api->backend.view();
    const std::string revision = revision_text(view->meta.term, answered.revision);
    JsonWriter json;
    json.begin_object().field("id", id).key("state");
    const auto job = core::find_job(*view, id);
    if (job)
        json.value(model::to_text(view->jobs.at(job->value).state));
    else
        json.null();
    json.key("warnings").begin_array();
    for (const std::string& warning : answered.answer.warnings) json.value(warning);
    json.end_array().field("revision", revision).end_object();
    call->json(std::move(json).text(), {{"Muster-Revision", revision}});
}

/// An ended job that only history knows is a conflict, not an unknown.
void refuse_ended(const CallPtr& call, Error error) {
    if (error.code != Code::NotFound) return call->fail(std::move(error));
    find_job(call, call->api->backend.view(),
             [call, error = std::move(error)](Result<FoundJob> found) mutable {
                 if (!found || !found->ended) return call->fail(std::move(error));
                 call->fail(numbered(errors::kJobEnded, "job " + call->args[0] +
                                                            " has ended: " + found->ended->state));
             });
}

void submit(const CallPtr& call, core::Event event) {
    call->api->backend.submit(std::move(event), [call](Result<Backend::Answered> done) {
        if (!done) return refuse_ended(call, std::move(done).error());
        call->api->backend.when_published(done->revision, [call, answered = *done] {
            answer_acted(call, call->args[0], answered);
        });
    });
}

void act(const CallPtr& call, core::JobAction action) {
    Body body(call->request, BodyNeed::Optional);
    const auto reason = body.text("reason", 500);
    if (auto problem = body.finish()) return call->fail(*std::move(problem));
    const auto revision = if_match(*call, false);
    if (const auto* problem = std::get_if<Problem>(&revision)) return call->fail(*problem);
    const auto path = parse_job_path(call->args[0]);
    if (!path) return call->fail(path.error());
    core::ActOnJob event{.caller = call->who.caller,
                         .job = path->job,
                         .element = path->element,
                         .action = action,
                         .reason = reason.value_or(""),
                         .if_revision = std::get<std::uint64_t>(revision)};
    submit(call, std::move(event));
}

}  // namespace

void get_job(const CallPtr& call) {
    auto fields = parse_job_fields(call->query("fields"), all_job_fields());
    if (!fields) return call->fail(fields.error());
    with_job(call, [call, fields = *std::move(fields)](const ViewPtr& view, const FoundJob& found) {
        if (found.live != nullptr) return write_job(call, *view, found, fields);
        write_ended(call, *found.ended, fields, call->query("fields").empty());
    });
}

void update_job(const CallPtr& call) {
    Body body(call->request, BodyNeed::Required);
    const auto priority = body.integer("priority", 0, 100);
    const auto queue = body.text("queue", 255);
    if (auto problem = body.finish()) return call->fail(*std::move(problem));
    if (!priority && (!queue || queue->empty())) {
        return call->fail(
            numbered(errors::kBodyMember, "nothing to change", {}, "give priority, queue or both"));
    }
    const auto revision = if_match(*call, true);
    if (const auto* problem = std::get_if<Problem>(&revision)) return call->fail(*problem);
    const auto path = parse_job_path(call->args[0]);
    if (!path) return call->fail(path.error());
    core::UpdateJob event{.caller = call->who.caller,
                          .job = path->job,
                          .priority = priority.value_or(-1),
                          .queue = queue.value_or(""),
                          .if_revision = std::get<std::uint64_t>(revision)};
    if (path->element < 0) return submit(call, std::move(event));
    with_view(call, [event = std::move(event)](const CallPtr& ready, const ViewPtr& view) mutable {
        const auto element = core::find_job(*view, ready->args[0]);
        if (!element) return refuse_ended(ready, no_such_job(ready->args[0]));
        event.job = *element;
        submit(ready, std::move(event));
    });
}

void cancel_job(const CallPtr& call) {
    act(call, core::JobAction::Cancel);
}
void hold_job(const CallPtr& call) {
    act(call, core::JobAction::Hold);
}
void release_job(const CallPtr& call) {
    act(call, core::JobAction::Release);
}
void requeue_job(const CallPtr& call) {
    act(call, core::JobAction::Requeue);
}

}  // namespace muster::rest
