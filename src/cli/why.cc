// muster why: why a job waits, and what if. muster plan: what would become of one not there.
#include <algorithm>

#include "base/error_codes.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/job_source.h"
#include "cli/verbs.h"
#include "cli/width.h"
#include "spec/render.h"

namespace muster::cli::verbs {
namespace {

constexpr std::size_t kNamesMax = 4;  // Of nodes or jobs on one line.

/// "0.082" of a part; two digits are enough from a tenth on.
std::string part_text(const Json& value) {
    return metric_text(value.number());
}

class WhyText {
public:
    WhyText(Time now, bool color) : now_(now), color_(color) {}

    void line(std::string_view name, const std::string& text) {
        if (!text.empty()) out += label(name, color_) + printable(text) + "\n";
    }
    void position(const Json& why, const Json& explained) {
        const Json counts = why["reason"]["counts"];
        if (explained.is_object())
            return line("position", explained["position"].text() + " of " +
                                        explained["queued"].text() + " in " + why["queue"].text() +
                                        "; priority " + explained["priority"].text() +
                                        ", share of the queue " +
                                        part_text(explained["queue_share"]) + ", of its user " +
                                        part_text(explained["user_share"]));
        if (counts["ahead"].exists())
            line("position", counted(counts["ahead"].integer(), "job") + " ahead; priority " +
                                 why["priority"].text());
    }
    void counts(const Json& counts) {
        if (counts["nodes_total"].exists()) {
            if (counts["devices_wanted"].integer() > 0)
                line("needs", counted(counts["nodes_wanted"].integer(), "node") + ", " +
                                  counted(counts["devices_wanted"].integer(), "device"));
            std::string text = counted(counts["nodes_total"].integer(), "node");
            const auto add = [&](std::string_view key, std::string_view words) {
                if (counts[key].integer() > 0)
                    text += " · " + grouped(counts[key].integer()) + " " + std::string(words);
            };
            add("nodes_fit", "fit now");
            add("nodes_busy", "busy (would fit when empty)");
            add("nodes_unfit", "unfit (wrong kind or labels, or too small)");
            add("nodes_unusable", "not usable (lost, suspect or held back)");
            line("cluster", text);
        }
        if (counts["devices_total"].integer() > 0)
            line("devices", grouped(counts["devices_free"].integer()) + " free of " +
                                grouped(counts["devices_total"].integer()) + " that would do");
    }
    /// All that the planner's index tells beyond the first reason.
    void explanation(const Json& explained) {
        nodes_out(explained["nodes_out"]);
        for (const Json& also : rest_of(explained["blocked"])) line("also", also["text"].text());
        holders(explained["holders"]);
        const Json closest = explained["closest"];
        if (closest.is_object()) {
            std::vector<std::string> path;
            for (const Json& name : closest["path"].items()) path.push_back(name.text());
            line("closest", closest["level"].text() + " " + join(path, "/") + ": " +
                                closest["nodes_fit"].text() + " of " +
                                closest["nodes_wanted"].text() + " nodes fit");
        }
    }
    void starts(const Json& explained, const Json& fallback) {
        const Time at = moment_of(explained["expected_start"]);
        const Time early = moment_of(explained["earliest"]), late = moment_of(explained["latest"]);
        if (at.ms != 0 && early.ms != 0 && late.ms != 0 && early < late)
            return line("starts", "about " + clock_text(at, now_) + ", between " +
                                      clock_text(early, now_) + " and " + clock_text(late, now_));
        const Time known = at.ms != 0 ? at : moment_of(fallback);
        if (known.ms != 0)
            line("starts", "about " + clock_text(known, now_) + ", from running jobs' time limits");
    }
    void sooner(const Json& changes) {
        std::vector<std::string> words;
        for (const Json& change : changes.items()) {
            const Time at = moment_of(change["start"]);
            words.push_back(change["field"].text() + ": " + change["value"].text() + " → " +
                            (at.ms == 0 ? "now" : clock_text(at, now_)));
        }
        line("sooner if", join(words, " · "));
    }

    std::string out;

private:
    static std::vector<Json> rest_of(const Json& list) {
        std::vector<Json> items = list.items();
        if (!items.empty()) items.erase(items.begin());
        return items;
    }
    void nodes_out(const Json& nodes) {
        std::vector<std::string> words;
        for (const Json& node : nodes.items()) {
            if (words.size() == kNamesMax) {
                words.emplace_back("…");
                break;
            }
            words.push_back(node["node"].text() + " " + node["state"].text() +
                            (node["reason"].empty() ? "" : " (" + node["reason"].text() + ")"));
        }
        line("out", join(words, ", "));
    }
    void holders(const Json& all) {
        std::vector<std::string> words;
        for (const Json& holder : all.items()) {
            if (words.size() == kNamesMax) {
                words.emplace_back("…");
                break;
            }
            const Time end = moment_of(holder["end"]);
            words.push_back("job " + holder["job"].text() + " " + holder["user"].text() + " " +
                            counted(holder["nodes"].integer(), "node") +
                            (holder["devices"].integer() > 0
                                 ? ", " + counted(holder["devices"].integer(), "device")
                                 : "") +
                            (end.ms == 0 ? ", end unknown" : ", until " + clock_text(end, now_)));
        }
        line("held by", join(words, " · "));
    }

    const Time now_;
    const bool color_;
};

std::string why_text(const Json& why, Time now, bool color) {
    const Json reason = why["reason"], explained = why["explanation"];
    WhyText text(now, color);
    text.out = paint("Job " + why["id"].text(), Tone::Bold, color) + " " +
               printable(why["name"].text()) + " · wants " + why["wants"].text() + " · queue " +
               why["queue"].text() + " · " + why["state"].text();
    if (why["state"].text() == "pending")
        text.out += " " + length_text(why["waiting_ms"].integer());
    text.out += "\n";
    const auto line = [&](std::string_view name, const std::string& words) {
        text.line(name, words);
    };
    line("reason", reason["text"].text());
    text.position(why, explained);
    text.counts(reason["counts"]);
    text.explanation(explained);
    const std::string code(reason["code"].text());
    // What the reason's text says is not said again.
    if (code == "reserved" && !reason["behind"].empty())
        line("behind", "job " + reason["behind"].text() + ", whose reservation is in the way");
    if (code != "held" && !reason["hold_owner"].empty())
        line("held by", reason["hold_owner"].text());
    for (Json job = reason["waiting_for"].first(); code != "dependency" && job.exists();
         job = job.next())
        line("waits for", "job " + job.text());
    if (code == "not-eligible")
        line("starts", "in " + length_text((moment_of(reason["eligible"]) - now).ms) + ", at " +
                           clock_text(moment_of(reason["eligible"]), now) + ", if there is room");
    else
        text.starts(explained, reason["expected_start"]);
    text.sooner(explained["sooner"]);
    line("note", why["note"].text());
    line("do", reason["fix"].text());
    if (!reason["number"].empty())
        line("code", reason["number"].text() + " (muster explain " + reason["number"].text() + ")");
    return text.out;
}

std::string forecast_text(const std::string& title, const Json& planned, Time now, bool color) {
    const Json forecast = planned["forecast"], why = forecast["why"];
    const Json explained = forecast["explanation"];
    WhyText text(now, color);
    text.out = paint(title, Tone::Bold, color) + " · wants " + planned["wants"].text() + "\n";
    const bool now_ = forecast["starts_now"].truth();
    const bool could = forecast["could_run"].truth();
    const std::vector<Json> preempts = forecast["preempts"].items();
    text.line("starts", now_               ? "now"
                        : !could           ? "never, as the cluster is"
                        : preempts.empty() ? ""
                                           : "after " + counted(std::ssize(preempts), "job") +
                                                 " made room for it");
    std::vector<std::string> nodes, spares;
    for (const Json& slot : forecast["slots"].items())
        (slot["spare"].truth() ? spares : nodes).push_back(slot["node"].text());
    text.line("nodes", host_list(nodes));
    text.line("spares", host_list(spares));
    for (const Json& job : preempts)
        text.line("preempts", "job " + job["job"].text() + " " + job["name"].text() + " of " +
                                  job["user"].text() + " (" + job["reason"].text() + ")");
    if (now_) return text.out;
    text.line("reason", why["text"].text());
    text.counts(why["counts"]);
    if (explained.is_object()) {
        text.line("position", explained["position"].text() + " in its queue; priority " +
                                  explained["priority"].text());
        text.explanation(explained);
        if (preempts.empty()) text.starts(explained, why["expected_start"]);
        text.sooner(explained["sooner"]);
    }
    if (!could) text.line("do", why["fix"].text());
    return text.out;
}

int show_forecast(App& app, const OutputForm& form, const std::string& title, const Json& planned) {
    const bool could = planned["forecast"]["could_run"].truth();
    if (form.is_table())
        app.out().write(forecast_text(title, planned, app.now(), app.out_color()));
    else
        show_object(app, form, planned, {}, "wants");
    return could ? exit_codes::kOk : exit_codes::kNoPlace;
}

}  // namespace

int why(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    Query query;
    for (const std::string& change : invocation.values("if")) query.add("if", change);
    int code = exit_codes::kOk;
    for (std::size_t i = 0; i < invocation.arguments.size(); ++i) {
        const std::string& id = invocation.arguments[i];
        const auto answer = (*client)->get(target("/v1/jobs/", id, "/why") + query.text());
        if (!answer) {
            code = app.fail(answer.error());
            continue;
        }
        if (i > 0 && form->is_table()) app.out().write("\n");
        if (invocation.has("if")) {
            const std::string title = "Job " + id + " with " + join(invocation.values("if"), ", ");
            const int each = show_forecast(app, *form, title, answer->root());
            if (each != exit_codes::kOk) code = each;
        } else if (form->is_table()) {
            app.out().write(why_text(answer->root(), app.now(), app.out_color()));
        } else {
            show_object(app, *form, answer->root(), {}, "id");
        }
    }
    return code;
}

int plan(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const std::string file = invocation.value_or("file", invocation.argument(0));
    const auto read = read_job(app, invocation, file);
    if (const int* code = std::get_if<int>(&read)) return *code;
    const auto& job = std::get<model::JobSpec>(read);
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    const auto answer = (*client)->post("/v1/plan", spec::to_json(job));
    if (!answer) return app.fail(answer.error());
    return show_forecast(app, *form, "Plan of " + printable(job.name), answer->root());
}

}  // namespace muster::cli::verbs
