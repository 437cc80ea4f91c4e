// muster logs: output of a job's tasks, merged, with prefixes that tell the ranks.
#include "base/text.h"
#include "cli/log_printer.h"
#include "cli/verbs.h"

namespace muster::cli::verbs {
namespace {

/// The ranks of the job, for the width of the prefix; 1 when it cannot be told.
std::size_t ranks_of(Client& client, const std::string& id) {
    const auto job = client.get(target("/v1/jobs/", id) + Query().add("fields", "nodes").text());
    return job ? static_cast<std::size_t>(
                     std::max<std::int64_t>(job->root()["nodes"].integer(1), 1))
               : 1;
}

}  // namespace

int logs(App& app, const Invocation& invocation) {
    const std::string id = invocation.argument(0);
    const bool follow = invocation.has("follow");
    if (follow) app.catch_interrupts();
    const auto found = app.client();
    if (!found) return app.fail(found.error());
    Client& client = **found;
    const std::string rank = invocation.value_or("rank", "all");
    Query query;
    query.add("rank", rank);
    for (const std::string_view name : {"tail", "since", "attempt"})
        if (const auto value = invocation.value(name)) query.add(name, *value);
    if (const auto local = invocation.value("local-rank")) query.add("local_rank", *local);
    if (follow) query.add("follow", "1");
    const std::size_t ranks = rank == "all" ? ranks_of(client, id) : 1;
    LogPrinter printer({.color = app.out_color(), .by_line = false});
    printer.set_ranks(invocation.has("no-prefix") ? 1 : ranks);
    EventStream stream(client, {.target = target("/v1/jobs/", id, "/logs") + query.text(),
                                .reconnect = follow,
                                .ends_at = "end"});
    for (;;) {
        auto next = stream.next(seconds(1));
        if (!next) {
            app.out().write(printer.rest());
            return app.fail(next.error());
        }
        switch (next->got) {
            case EventStream::Got::Event: break;
            case EventStream::Got::TimedOut:
            case EventStream::Got::Restarted: app.out().flush(); continue;
            case EventStream::Got::Away:
                app.note("muster: the controller is away; waiting for it");
                continue;
            case EventStream::Got::Back: app.note("muster: the controller is back"); continue;
            case EventStream::Got::Interrupted:
                app.out().write(printer.rest());
                return interrupt_code(client.interrupt_fd());
            case EventStream::Got::Ended: app.out().write(printer.rest()); return exit_codes::kOk;
        }
        const auto data = JsonDocument::parse(std::move(next->event.data));
        if (!data) continue;
        if (next->event.name == "log") {
            app.out().write(
                printer.take(data->root()["rank"].integer(), data->root()["text"].text()));
            if (follow) app.out().flush();
        } else if (next->event.name == "note") {
            app.note("muster: rank " + data->root()["rank"].text() + ": " +
                     data->root()["message"].text());
        }
        if (!app.out().good()) return exit_codes::kOk;
    }
}

}  // namespace muster::cli::verbs
