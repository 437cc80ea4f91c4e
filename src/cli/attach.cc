// muster attach and exec: this terminal in a running task.
#include "base/error_codes.h"
#include "base/json_writer.h"
#include "base/units.h"
#include "cli/session_verbs.h"
#include "cli/tty_session.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

void size_fields(JsonWriter& body, const World& world) {
    int columns = world.columns, rows = world.rows;
    terminal_size(world.in_fd, columns, rows);
    body.field("columns", columns).field("rows", rows);
}

int failed(App& app, const Error& error) {
    app.fail(error);
    return exit_codes::kMusterFailed;
}

/// The server's own words, where it refused the upgrade with a problem.
Error told_plainly(const Error& error) {
    if (!error.cause.starts_with('{')) return error;
    const auto problem = JsonDocument::parse(error.cause);
    if (!problem || !problem->root()["detail"].is_string()) return error;
    return error_of_reply(static_cast<int>(problem->root()["status"].integer(500)),
                          "application/problem+json", error.cause);
}

int join_task(App& app, const std::string& where, std::string body, const SessionOptions& options) {
    const auto client = app.client();
    if (!client) return failed(app, client.error());
    auto pipe = (*client)->connection()->upgrade(
        {.method = "POST", .target = where, .body = std::move(body)});
    if (!pipe) return failed(app, told_plainly(pipe.error()));
    return run_session(app, *std::move(pipe), options);
}

}  // namespace

int attach_to(App& app, const std::string& job, std::int64_t rank, bool terminal) {
    JsonWriter body;
    body.begin_object().field("rank", rank);
    size_fields(body, app.world());
    body.end_object();
    const bool raw = terminal && app.world().in_tty && app.world().out_tty;
    return join_task(app, target("/v1/jobs/", job, "/attach"), std::move(body).text(),
                     {.terminal = raw, .send_input = true, .signals_detach = true});
}

namespace verbs {

int attach(App& app, const Invocation& invocation) {
    const auto rank = parse_integer(invocation.value_or("rank", "0"), 0, 1 << 20);
    if (!rank) return app.fail(rank.error()), exit_codes::kUsage;
    const auto client = app.client();
    if (!client) return failed(app, client.error());
    const auto job = (*client)->get(target("/v1/jobs/", invocation.argument(0), "?fields=spec"));
    if (!job) return failed(app, job.error());
    return attach_to(app, invocation.argument(0), *rank, job->root()["spec"]["pty"].truth());
}

int exec(App& app, const Invocation& invocation) {
    const auto rank = parse_integer(invocation.value_or("rank", "0"), 0, 1 << 20);
    if (!rank) return app.fail(rank.error()), exit_codes::kUsage;
    const World& world = app.world();
    const bool terminal =
        !invocation.has("no-tty") && (invocation.has("tty") || (world.in_tty && world.out_tty));
    JsonWriter body;
    body.begin_object().key("argv").begin_array();
    for (const std::string& word : invocation.rest) body.value(word);
    body.end_array().field("rank", *rank).field("tty", terminal);
    if (terminal) size_fields(body, world);
    body.end_object();
    return join_task(app, target("/v1/jobs/", invocation.argument(0), "/exec"),
                     std::move(body).text(), {.terminal = terminal && world.in_tty});
}

}  // namespace verbs
}  // namespace muster::cli
