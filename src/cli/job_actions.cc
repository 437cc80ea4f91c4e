// muster cancel, hold, release, requeue, wait.
#include <sys/types.h>

#include "base/error_codes.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/confirm.h"
#include "cli/format.h"
#include "cli/job_view.h"
#include "cli/verbs.h"

namespace muster::cli::verbs {
namespace {

struct Action {
    std::string_view verb;
    std::string_view past;  // "cancelled"
};

/// Ids named, or those that the filters select.
Result<std::vector<std::string>> chosen(Client& client, const Invocation& invocation) {
    std::vector<std::string> ids = invocation.arguments;
    Query query;
    bool filtered = false;
    for (const std::string_view name : {"user", "queue", "state", "name"}) {
        if (const auto value = invocation.value(name)) {
            query.add(name, *value);
            filtered = true;
        }
    }
    for (const std::string& label : invocation.values("label")) {
        query.add("label", label);
        filtered = true;
    }
    if (!filtered) {
        if (ids.empty())
            return Error{Code::Invalid, "muster " + invocation.command->name + ": which jobs?", "",
                         "name ids, or select with --user, --queue, --state, --name or --label"};
        return ids;
    }
    if (!ids.empty()) query.add("id", join(ids, ","));
    ids.clear();
    query.add("fields", "id").add("limit", "100000");
    MUSTER_LET(page, client.get("/v1/jobs" + query.text()));
    for (Json job = page.root()["items"].first(); job.exists(); job = job.next())
        ids.push_back(job["id"].text());
    return ids;
}

int act(App& app, const Invocation& invocation, const Action& action, bool ask) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    const auto ids = chosen(**client, invocation);
    if (!ids)
        return app.fail(ids.error()),
               ids.error().number == 0 ? exit_codes::kUsage : exit_code_of(ids.error());
    if (ids->empty()) {
        app.note("no jobs match");
        return exit_codes::kOk;
    }
    const bool by_filter = invocation.arguments.empty();
    const std::string verb(action.verb);
    if (invocation.has("dry-run")) {
        for (const std::string& id : *ids) app.out().write("would " + verb + " job " + id + "\n");
        return exit_codes::kOk;
    }
    if (ask && by_filter && ids->size() > 1 &&
        !confirm(app, invocation,
                 verb + " " + counted(static_cast<std::int64_t>(ids->size()), "job") + "?"))
        return exit_codes::kUsage;
    JsonWriter body;
    body.begin_object();
    if (const auto reason = invocation.value("reason")) body.field("reason", *reason);
    body.end_object();
    int code = exit_codes::kOk;
    for (const std::string& id : *ids) {
        const auto done = (*client)->post(target("/v1/jobs/", id, "/" + verb), body.text());
        if (!done) {
            code = app.fail(done.error());
            continue;
        }
        const Json answer = done->root();
        for (Json w = answer["warnings"].first(); w.exists(); w = w.next())
            app.note("warning: " + w.text());
        if (!form->is_table()) {
            show_object(app, *form, answer, {}, "id");
            continue;
        }
        const std::string state = answer["state"].text();
        app.out().write("job " + id + " " + std::string(action.past) +
                        (state.empty() || state == action.past ? "" : " (" + state + ")") + "\n");
    }
    return code;
}

}  // namespace

int cancel(App& app, const Invocation& invocation) {
    return act(app, invocation, {"cancel", "cancelled"}, true);
}
int hold(App& app, const Invocation& invocation) {
    return act(app, invocation, {"hold", "held"}, false);
}
int release(App& app, const Invocation& invocation) {
    return act(app, invocation, {"release", "released"}, false);
}
int requeue(App& app, const Invocation& invocation) {
    return act(app, invocation, {"requeue", "requeued"}, true);
}

int wait(App& app, const Invocation& invocation) {
    const std::string until = invocation.value_or("for", "ended");
    Time deadline = kNever;
    if (const auto limit = invocation.value("timeout")) {
        const auto length = parse_duration(*limit);
        if (!length) return app.fail(length.error()), exit_codes::kUsage;
        deadline = app.now() + *length;
    }
    const int interrupt = app.catch_interrupts();
    const auto client = app.client();
    if (!client) return app.fail(client.error()), exit_codes::kMusterFailed;
    int code = 0;
    for (const std::string& id : invocation.arguments) {
        bool away = false;
        for (;;) {
            const std::int64_t left = std::min<std::int64_t>((deadline - app.now()).ms, 20'000);
            if (left <= 0) {
                app.note("muster: job " + id + " has not " +
                         (until == "ended" ? "ended" : "reached " + until) + " in time");
                return exit_codes::kUnreachable;
            }
            const auto answer = (*client)->get(
                target("/v1/jobs/", id, "/wait") +
                Query().add("for", until).add("timeout", std::to_string(left) + "ms").text());
            if (interrupted_within(interrupt, {0})) return interrupt_code(interrupt);
            if (!answer) {
                // A controller that restarts is waited for: the job goes on.
                if (!is_away(answer.error())) {
                    app.fail(answer.error());
                    return exit_codes::kMusterFailed;
                }
                if (!std::exchange(away, true))
                    app.note("muster: the controller is away; waiting for it");
                if (interrupted_within(interrupt, {500})) return interrupt_code(interrupt);
                continue;
            }
            away = false;
            if (!answer->root()["reached"].truth() && !answer->root()["ended"].truth()) continue;
            const JobView job = job_view(answer->root()["job"]);
            if (!invocation.has("quiet"))
                app.note("job " + id + " " + (has_ended(job.state) ? end_text(job) : job.state));
            if (has_ended(job.state) && code == 0) code = job_exit_code(job);
            break;
        }
    }
    return code;
}

}  // namespace muster::cli::verbs
