// muster reserve, and reserve list|delete.
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/confirm.h"
#include "cli/format.h"
#include "cli/verbs.h"
#include "cli/width.h"

namespace muster::cli::verbs {
namespace {

using Values = std::span<const Json>;

std::vector<std::string> names_in(const Json& list) {
    std::vector<std::string> out;
    for (const Json& name : list.items()) out.push_back(name.text());
    return out;
}

CellText window_cell(Values v, const Look& look) {
    const Time start = moment_of(v[0]), end = moment_of(v[1]);
    if (start.ms == 0) return {"-"};
    return {clock_text(start, look.now) + " to " + clock_text(end, look.now),
            v[2].truth() ? Tone::Good : Tone::Plain};
}
CellText nodes_cell(Values v, const Look&) {
    return {host_list(names_in(v[0]))};
}
CellText count_cell(Values v, const Look&) {
    return {std::to_string(v[0].size())};
}
CellText whom_cell(Values v, const Look&) {
    if (v[2].truth()) return {"nobody (maintenance)", Tone::Warn};
    std::vector<std::string> all = names_in(v[0]);
    for (const std::string& queue : names_in(v[1])) all.push_back("queue " + queue);
    return {all.empty() ? "nobody" : join(all, ",")};
}

std::vector<Column> reservation_columns() {
    return {{.head = "NAME", .fields = {"name"}},
            {.head = "WINDOW", .fields = {"start", "end", "active"}, .cell = window_cell},
            {.head = "EVERY", .fields = {"every"}},
            {.head = "ZONE", .fields = {"zone"}, .wide = true},
            {.head = "COUNT", .fields = {"nodes"}, .cell = count_cell, .right = true},
            {.head = "FOR", .fields = {"users", "queues", "maintenance"}, .cell = whom_cell},
            {.head = "NODES", .fields = {"nodes"}, .cell = nodes_cell, .flexible = true},
            {.head = "REASON", .fields = {"reason"}, .flexible = true, .wide = true},
            {.head = "BY", .fields = {"created_by"}, .wide = true}};
}

}  // namespace

int reserve(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    JsonWriter body;
    body.begin_object().field("name", invocation.argument(0));
    for (const char* name : {"reason", "nodes", "count", "gpus", "users", "queues", "start", "end",
                             "for", "every", "zone", "gap", "twice", "until"})
        if (const auto value = invocation.value(name)) body.field(name, *value);
    if (invocation.has("maintenance")) body.field("maintenance", true);
    body.end_object();
    const auto made = (*client)->post("/v1/reservations", body.text());
    if (!made) return app.fail(made.error());
    const Json root = made->root();
    if (!form->is_table()) return show_object(app, *form, root, reservation_columns(), "name");
    app.out().write("reservation " + printable(root["name"].text()) + ": " +
                    host_list(names_in(root["nodes"])) + ", " +
                    clock_text(moment_of(root["start"]), app.now()) + " to " +
                    clock_text(moment_of(root["end"]), app.now()) +
                    (root["every"].empty() ? "" : ", every " + root["every"].text()) + "\n");
    return exit_codes::kOk;
}

int reserve_list(App& app, const Invocation& invocation) {
    return show_list(app, invocation,
                     {.path = "/v1/reservations",
                      .columns = reservation_columns(),
                      .name_field = "name",
                      .none = "no reservations"});
}

int reserve_delete(App& app, const Invocation& invocation) {
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    if (!confirm(app, invocation, "Drop " + join(invocation.arguments, ", ") + "?"))
        return exit_codes::kUsage;
    int code = exit_codes::kOk;
    for (const std::string& name : invocation.arguments) {
        const auto done =
            (*client)->call({.method = "DELETE", .target = target("/v1/reservations/", name)});
        if (!done)
            code = app.fail(done.error());
        else
            app.out().write("reservation " + printable(name) + " dropped\n");
    }
    return code;
}

}  // namespace muster::cli::verbs
