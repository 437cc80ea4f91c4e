// muster events: what happened, and with -f what happens.
#include "base/json_writer.h"
#include "base/units.h"
#include "cli/format.h"
#include "cli/verbs.h"

namespace muster::cli::verbs {
namespace {

Time time_of(const Json& at) {
    return at.is_number() ? Time{at.integer()} : moment_of(at);
}

Tone tone_of(const std::string& type) {
    for (const std::string_view bad : {"lost", "failed", "fault", "frozen", "full", "fencing"})
        if (type.find(bad) != std::string::npos) return Tone::Bad;
    for (const std::string_view good : {"running", "succeeded", "ready", "joined", "back"})
        if (type.find(good) != std::string::npos) return Tone::Good;
    return Tone::Plain;
}

std::string job_text(const Json& event) {
    if (event["array_job"].exists())
        return event["array_job"].text() + "_" + event["array_element"].text();
    return event["job"].text();
}

/// What it is about, and what happened to it, for people.
std::string words_of(const Json& event) {
    std::string out = event["message"].text();
    const auto add = [&](std::string_view name) {
        if (event[name].empty()) return;
        out += (out.empty() ? "" : "; ") + std::string(name) + " " + event[name].text();
    };
    if (out.empty() && !event["name"].empty()) out = event["name"].text();
    add("cause");
    if (event["attempt"].integer() > 0) add("attempt");
    return out;
}

class EventTable {
public:
    explicit EventTable(App& app)
        : app_(app),
          table_({{"TIME"}, {"EVENT"}, {"JOB"}, {"NODE"}, {"USER"}, {"MESSAGE", false, true}}) {}

    void add(const Json& event) {
        const std::string type = event["type"].text();
        const auto cell = [&](const std::string& text) { table_.add(text.empty() ? "-" : text); };
        table_.add(clock_text(time_of(event["at"]), app_.now()), Tone::Dim);
        table_.add(type, tone_of(type));
        cell(job_text(event));
        cell(event["node"].text());
        cell(event["user"].text());
        cell(words_of(event));
    }
    void flush(bool header) {
        app_.out().write(table_.render(
            {.width = app_.out_width(), .header = header, .color = app_.out_color()}));
        table_.clear_rows();
        app_.out().flush();
    }

private:
    App& app_;
    Table table_;
};

int follow_events(App& app, const OutputForm& form, Query query, EventTable& table, bool header) {
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    query.add("watch", "1");
    EventStream stream(**client, {.target = "/v1/events" + query.text()});
    for (;;) {
        auto next = stream.next(seconds(1));
        if (!next) return app.fail(next.error());
        switch (next->got) {
            case EventStream::Got::Event: break;
            case EventStream::Got::Away:
                app.note("muster: the controller is away; waiting for it");
                continue;
            case EventStream::Got::Back: app.note("muster: the controller is back"); continue;
            case EventStream::Got::Restarted:
                app.note("muster: some events are no longer kept; going on from now");
                continue;
            case EventStream::Got::TimedOut: continue;
            case EventStream::Got::Interrupted: return interrupt_code((*client)->interrupt_fd());
            case EventStream::Got::Ended: return exit_codes::kOk;
        }
        const auto event = JsonDocument::parse(next->event.data);
        if (!event) continue;
        if (form.is_table()) {
            table.add(event->root());
            table.flush(std::exchange(header, false));
        } else {
            app.out().write(std::string(event->root().raw()) + "\n");
            app.out().flush();
        }
        if (!app.out().good()) return exit_codes::kOk;
    }
}

}  // namespace

int events(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const bool follow = invocation.has("follow") || invocation.has("watch");
    if (follow) app.catch_interrupts();
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    Query query;
    for (const std::string_view name : {"job", "node", "type", "after"})
        if (const auto value = invocation.value(name)) query.add(name, *value);
    const bool list = !follow || !invocation.has("after");
    EventTable table(app);
    bool header = form->header;
    if (list) {
        const std::string limit = invocation.value_or("tail", follow ? "10" : "50");
        Query page = query;
        const auto answer = (*client)->get("/v1/events" + page.add("limit", limit).text());
        if (!answer) return app.fail(answer.error());
        const Json items = answer->root()["items"];
        if (!form->is_table() && form->form != Form::Ndjson && !follow)
            return show_object(app, *form, answer->root(), {}, "last");
        for (Json item = items.first(); item.exists(); item = item.next()) {
            if (form->is_table())
                table.add(item["event"]);
            else
                app.out().write(std::string(item["event"].raw()) + "\n");
        }
        if (form->is_table() && !items.empty()) table.flush(std::exchange(header, false));
        if (follow)
            query.add("after", answer->root()["last"].text());
        else if (items.empty())
            app.note("no events");
    }
    return follow ? follow_events(app, *form, std::move(query), table, header) : exit_codes::kOk;
}

}  // namespace muster::cli::verbs
