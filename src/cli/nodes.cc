// muster nodes, gpus, and node drain|resume|fenced|forget.
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/confirm.h"
#include "cli/format.h"
#include "cli/verbs.h"

namespace muster::cli::verbs {
namespace {

using Values = std::span<const Json>;

CellText state_cell(Values v, const Look&) {
    std::string room;
    return node_state(v[0].view(room));
}

CellText used_of(Values v, const Look&) {
    if (v[1].integer() == 0) return {"-"};
    return {metric_text(v[0].number()) + "/" + metric_text(v[1].number())};
}

CellText memory_cell(Values v, const Look&) {
    return {bytes_text(v[0].integer()) + "/" + bytes_text(v[1].integer())};
}

CellText jobs_cell(Values v, const Look&) {
    const std::size_t count = v[0].size();
    if (count == 0) return {"-"};
    std::vector<std::string> ids;
    for (Json id = v[0].first(); id.exists() && ids.size() < 4; id = id.next())
        if (ids.empty() || ids.back() != id.text()) ids.push_back(id.text());
    return {join(ids, ",") + (count > 4 ? ",…" : "")};
}

CellText heard_cell(Values v, const Look& look) {
    return {ago(moment_of(v[0]), look.now)};
}

/// The reason of its state; else what is not enforced there.
CellText note_cell(Values v, const Look&) {
    if (!v[0].empty()) return {v[0].text(), Tone::Warn};
    if (v[1].kind() == Json::Kind::Bool && !v[1].truth()) return {"limits unenforced", Tone::Dim};
    return {"-"};
}

CellText bytes_cell(Values v, const Look&) {
    return {v[0].integer() == 0 ? "-" : bytes_text(v[0].integer())};
}

CellText free_cell(Values v, const Look&) {
    return {v[0].text(), v[0].integer() > 0 ? Tone::Good : Tone::Dim};
}

CellText device_state(Values v, const Look&) {
    const std::string state = v[0].text();
    return {state, state == "free" ? Tone::Good : state == "used" ? Tone::Busy : Tone::Bad};
}

std::vector<Column> node_columns() {
    return {
        {.head = "NODE", .fields = {"name"}, .flexible = true},
        {.head = "STATE", .fields = {"state"}, .cell = state_cell},
        {.head = "GPUS", .fields = {"gpus_used", "gpus"}, .cell = used_of, .right = true},
        {.head = "KIND", .fields = {"gpu_kinds"}, .flexible = true},
        {.head = "CPUS", .fields = {"cpus_used", "cpus"}, .cell = used_of, .right = true},
        {.head = "MEMORY",
         .fields = {"memory_used_bytes", "memory_bytes"},
         .cell = memory_cell,
         .right = true},
        {.head = "JOBS", .fields = {"jobs"}, .cell = jobs_cell},
        {.head = "HEARD", .fields = {"heard"}, .cell = heard_cell, .right = true, .wide = true},
        {.head = "VERSION", .fields = {"version"}, .wide = true},
        {.head = "RUNTIME", .fields = {"runtime"}, .wide = true},
        {.head = "DOMAIN", .fields = {"domain"}, .wide = true},
        {.head = "ADDRESS", .fields = {"addresses.0"}, .wide = true},
        {.head = "NOTE",
         .fields = {"reason", "limits_enforced"},
         .cell = note_cell,
         .flexible = true},
    };
}

int node_action(App& app, const Invocation& invocation, std::string_view action,
                std::string_view past) {
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error());
    JsonWriter body;
    body.begin_object();
    if (const auto reason = invocation.value("reason")) body.field("reason", *reason);
    body.end_object();
    int code = exit_codes::kOk;
    for (const std::string& name : invocation.arguments) {
        if (invocation.has("dry-run")) {
            const auto node = (*client)->get(target("/v1/nodes/", name));
            if (!node) {
                code = app.fail(node.error());
                continue;
            }
            const std::size_t jobs = node->root()["jobs"].size();
            app.out().write("would " + std::string(action) + " node " + name + " (" +
                            node->root()["state"].text() + ", " +
                            counted(static_cast<std::int64_t>(jobs), "job") + ")\n");
            continue;
        }
        const auto done =
            (*client)->post(target("/v1/nodes/", name, "/" + std::string(action)), body.text());
        if (!done) {
            code = app.fail(done.error());
            continue;
        }
        for (Json w = done->root()["warnings"].first(); w.exists(); w = w.next())
            app.note("warning: " + w.text());
        if (form->is_table()) {
            const std::string state = done->root()["state"].text();
            // "draining" and "drained" say it all.
            const bool drains = state.starts_with("drain");
            app.out().write("node " + name + " " + (drains ? state : std::string(past)) +
                            (drains || state.empty() ? "" : ": " + state) + "\n");
        } else {
            show_object(app, *form, done->root(), node_columns(), "name");
        }
    }
    return code;
}

/// Things that cannot be taken back are asked for first.
bool agreed(App& app, const Invocation& invocation, const std::string& question) {
    return invocation.has("dry-run") || confirm(app, invocation, question);
}

}  // namespace

int nodes(App& app, const Invocation& invocation) {
    Listing listing{.path = "/v1/nodes",
                    .columns = node_columns(),
                    .name_field = "name",
                    .none = "no nodes; `muster token create --join` lets one join",
                    .has_fields = true,
                    .paged = true};
    if (const auto state = invocation.value("state")) listing.query.emplace_back("state", *state);
    for (const std::string& label : invocation.values("label"))
        listing.query.emplace_back("label", label);
    return show_list(app, invocation, listing);
}

int gpus(App& app, const Invocation& invocation) {
    Listing listing{.path = "/v1/gpus",
                    .columns = {},
                    .items = "kinds",
                    .name_field = "kind",
                    .none = "no devices are known"};
    if (!invocation.arguments.empty())
        listing.query.emplace_back("kind", invocation.arguments.front());
    if (invocation.has("devices")) {
        listing.items = "devices";
        listing.name_field = "id";
        listing.columns = {
            {.head = "NODE", .fields = {"node"}},
            {.head = "DEVICE", .fields = {"id"}, .flexible = true},
            {.head = "KIND", .fields = {"kind"}},
            {.head = "CLASS", .fields = {"class"}, .wide = true},
            {.head = "MEMORY", .fields = {"memory_bytes"}, .cell = bytes_cell, .right = true},
            {.head = "NUMA", .fields = {"numa"}, .right = true, .wide = true},
            {.head = "LINK", .fields = {"link_group"}, .wide = true},
            {.head = "STATE", .fields = {"state"}, .cell = device_state},
            {.head = "JOB", .fields = {"job"}},
            {.head = "USER", .fields = {"user"}},
        };
    } else {
        listing.query.emplace_back("devices", "0");
        listing.columns = {
            {.head = "KIND", .fields = {"kind"}},
            {.head = "CLASS", .fields = {"class"}, .wide = true},
            {.head = "MEMORY", .fields = {"memory_bytes"}, .cell = bytes_cell, .right = true},
            {.head = "FREE", .fields = {"free"}, .cell = free_cell, .right = true},
            {.head = "USED", .fields = {"used"}, .right = true},
            {.head = "DOWN", .fields = {"unusable"}, .right = true},
            {.head = "TOTAL", .fields = {"total"}, .right = true},
            {.head = "NODES", .fields = {"nodes"}, .right = true},
            {.head = "MOST-ON-ONE", .fields = {"most_free_on_a_node"}, .right = true},
        };
    }
    return show_list(app, invocation, listing);
}

int node_drain(App& app, const Invocation& invocation) {
    return node_action(app, invocation, "drain", "drained");
}
int node_resume(App& app, const Invocation& invocation) {
    return node_action(app, invocation, "resume", "resumed");
}
int node_fenced(App& app, const Invocation& invocation) {
    if (!agreed(app, invocation,
                "Is " + join(invocation.arguments, ", ") +
                    " really off? If its tasks still run, two copies will run."))
        return exit_codes::kUsage;
    return node_action(app, invocation, "fenced", "confirmed off");
}
int node_forget(App& app, const Invocation& invocation) {
    if (!agreed(app, invocation, "Remove " + join(invocation.arguments, ", ") + " for good?"))
        return exit_codes::kUsage;
    return node_action(app, invocation, "forget", "forgotten");
}

}  // namespace muster::cli::verbs
