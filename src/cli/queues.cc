// muster queues, and queues show|apply|set.
#include "base/error_codes.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/confirm.h"
#include "cli/format.h"
#include "cli/job_source.h"
#include "cli/verbs.h"
#include "cli/width.h"
#include "spec/parse.h"
#include "spec/queue_file.h"

namespace muster::cli::verbs {
namespace {

using Values = std::span<const Json>;

CellText age_cell(Values v, const Look& look) {
    return {ago(moment_of(v[0]), look.now)};
}
CellText gpus_of(Values v, const Look&) {
    return {v[0].exists() && !v[0].empty() ? metric_text(v[0].number()) : "-"};
}

std::string amount_text(const Json& line, std::string_view key) {
    const Json value = line[key];
    if (value.empty()) return "-";
    const bool memory = line["resource"].text() == "memory";
    return memory ? bytes_text(value.integer()) : metric_text(value.number());
}

std::string queue_text(const Json& queue, const TableStyle& style) {
    const bool color = style.color;
    std::string out = paint("Queue " + queue["name"].text(), Tone::Bold, color) + " · policy " +
                      queue["policy"].text() + " · weight " + queue["weight"].text() + " · " +
                      grouped(queue["running"].integer()) + " running · " +
                      grouped(queue["pending"].integer()) + " pending" +
                      (queue["preemptible"].truth(true) ? "" : " · not preemptible") + "\n";
    const auto line = [&](std::string_view name, const std::string& text) {
        if (!text.empty()) out += label(name, color) + printable(text) + "\n";
    };
    line("share", metric_text(queue["share"].number()) + "; number " + queue["position"].text() +
                      " to be served of the queues beside it");
    const Json next = queue["next"];
    line("next", next.is_object() ? "job " + next["job"].text() + " " + next["name"].text() +
                                        " of " + next["user"].text() + ": " + next["wants"].text() +
                                        ", waiting " + length_text(next["waiting_ms"].integer())
                                  : "nothing waits");
    std::vector<std::string> below;
    for (const Json& name : queue["below"].items()) below.push_back(name.text());
    line("below", join(below, ", "));
    Table table({{"RESOURCE"},
                 {"GUARANTEE", true},
                 {"USED", true},
                 {"BORROWED", true},
                 {"LENT", true},
                 {"LIMIT", true}});
    for (const Json& each : queue["lines"].items()) {
        table.add(each["resource"].text());
        table.add(amount_text(each, "guarantee"));
        table.add(amount_text(each, "used"));
        const bool borrows = each["borrowed"].number() > 0;
        table.add(amount_text(each, "borrowed"), borrows ? Tone::Warn : Tone::Plain);
        table.add(amount_text(each, "lent"));
        table.add(amount_text(each, "limit"));
    }
    return out + "\n" + table.render(style);
}

/// What changed, or would, a line for each.
int tell_changes(App& app, const OutputForm& form, const Json& answer) {
    if (!form.is_table()) return show_object(app, form, answer, {}, "revision");
    const std::string would = answer["dry_run"].truth() ? "would be " : "";
    for (const Json& change : answer["changes"].items())
        app.out().write("queue " + printable(change["queue"].text()) + " " + would +
                        change["change"].text() + "\n");
    if (answer["rules"].truth()) app.out().write("rules " + would + "changed\n");
    if (answer["changes"].empty() && !answer["rules"].truth())
        app.note("nothing to change: it is so already");
    return exit_codes::kOk;
}

Result<JsonDocument> send(Client& client, const std::string& method, const std::string& where,
                          const std::string& body, const std::string& type) {
    auto reply =
        client.call({.method = method, .target = where, .body = body, .content_type = type});
    if (!reply) return reply.error();
    return JsonDocument::parse(reply->body);
}

}  // namespace

int queues(App& app, const Invocation& invocation) {
    const Listing listing{
        .path = "/v1/queues",
        .columns =
            {{.head = "QUEUE", .fields = {"name"}, .flexible = true},
             {.head = "POLICY", .fields = {"policy"}, .wide = true},
             {.head = "WEIGHT", .fields = {"weight"}, .right = true, .wide = true},
             {.head = "PENDING", .fields = {"pending"}, .right = true},
             {.head = "ACTIVE", .fields = {"active"}, .right = true},
             {.head = "HELD", .fields = {"held"}, .right = true},
             {.head = "GPUS-USED", .fields = {"gpus_used"}, .right = true},
             {.head = "GUARANTEE", .fields = {"guarantee.gpus"}, .cell = gpus_of, .right = true},
             {.head = "LIMIT", .fields = {"limit.gpus"}, .cell = gpus_of, .right = true},
             {.head = "GPUS-PENDING", .fields = {"gpus_pending"}, .right = true},
             {.head = "OLDEST", .fields = {"oldest_pending"}, .cell = age_cell, .right = true}},
        .name_field = "name",
        .none = "no queues"};
    return show_list(app, invocation, listing);
}

int queues_show(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    if (invocation.arguments.empty()) {
        const auto all = (*client)->get("/v1/queues?yaml=1");
        if (!all) return app.fail(all.error());
        if (!form->is_table() && form->form != Form::Yaml)
            return show_object(app, *form, all->root(), {}, "revision");
        app.out().write(all->root()["yaml"].text());
        return exit_codes::kOk;
    }
    const auto answer = (*client)->get(target("/v1/queues/", invocation.argument(0)));
    if (!answer) return app.fail(answer.error());
    const Json queue = answer->root();
    if (form->form == Form::Yaml) {
        app.out().write(queue["yaml"].text());
        return exit_codes::kOk;
    }
    if (!form->is_table()) return show_object(app, *form, queue, {}, "name");
    app.out().write(queue_text(queue, {.width = app.out_width(), .color = app.out_color()}));
    return exit_codes::kOk;
}

int queues_apply(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const std::string file = invocation.value_or("file", "");
    if (file.empty())
        return app.fail(Error{.code = Code::Invalid,
                              .message = "muster queues apply: say which file",
                              .fix = "`muster queues apply -f queues.yaml`"}),
               exit_codes::kUsage;
    const auto text = spec::read_text_file(file, spec::kQueueFileMax, "a queue file");
    if (!text) return app.fail(text.error());
    const auto parsed = spec::parse_queue_file(*text, file == "-" ? "stdin" : file);
    if (const auto* problems = std::get_if<spec::Problems>(&parsed))
        return fail_with_problems(app, *problems, "the queue file", errors::kQueueTree,
                                  "see docs/queue-reference.md");
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    const bool whole = invocation.has("prune"), dry = invocation.has("dry-run");
    const std::string method = whole ? "PUT" : "PATCH";
    if (whole || dry) {
        const auto look = send(**client, method, "/v1/queues?dry_run=1", *text, "application/yaml");
        if (!look) return app.fail(look.error());
        if (dry) return tell_changes(app, *form, look->root());
        std::vector<std::string> dropped;
        for (const Json& change : look->root()["changes"].items())
            if (change["change"].text() == "dropped") dropped.push_back(change["queue"].text());
        if (!dropped.empty() &&
            !confirm(app, invocation,
                     "Drop the queues that the file does not name: " + join(dropped, ", ") + "?"))
            return exit_codes::kUsage;
    }
    const auto done = send(**client, method, "/v1/queues", *text, "application/yaml");
    if (!done) return app.fail(done.error());
    return tell_changes(app, *form, done->root());
}

int queues_set(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    JsonWriter body;
    body.begin_object().key("set").begin_array();
    for (std::size_t i = 1; i < invocation.arguments.size(); ++i)
        body.value(invocation.arguments[i]);
    body.end_array().end_object();
    const std::string suffix = invocation.has("dry-run") ? "?dry_run=1" : "";
    const auto done = send(**client, "PATCH", target("/v1/queues/", invocation.argument(0), suffix),
                           body.text(), "application/json");
    if (!done) return app.fail(done.error());
    return tell_changes(app, *form, done->root());
}

}  // namespace muster::cli::verbs
