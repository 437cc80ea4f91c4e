// muster status: the cluster at a glance, or one job whole. muster why: why it waits.
#include <algorithm>

#include "base/text.h"
#include "cli/follow.h"
#include "cli/format.h"
#include "cli/job_view.h"
#include "cli/verbs.h"
#include "cli/width.h"

namespace muster::cli::verbs {
namespace {

constexpr std::size_t kBarCells = 20;

std::string label(std::string_view name, bool color) {
    std::string text = "  " + std::string(name);
    text.append(text.size() < 14 ? 14 - text.size() : 1, ' ');
    return paint(text, Tone::Dim, color);
}

/// "████░░░░  12 of 32 used" of a pair of numbers.
std::string share(double used, double total, bool color) {
    const double part = total > 0 ? used / total : 0;
    return paint(bar(part, kBarCells), part > 0.9 ? Tone::Warn : Tone::Good, color) + "  ";
}

std::string count_list(const Json& counts, std::initializer_list<std::string_view> names) {
    std::string out;
    for (const std::string_view name : names) {
        const std::int64_t count = counts[name].integer();
        if (count == 0) continue;
        out += (out.empty() ? "" : ", ") + grouped(count) + " " + std::string(name);
    }
    return out.empty() ? "none" : out;
}

int cluster_status(App& app, const OutputForm& form) {
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    const auto answer = (*client)->get("/v1/cluster");
    if (!answer) return app.fail(answer.error());
    const Json cluster = answer->root();
    if (!form.is_table()) return show_object(app, form, cluster, {}, "term");
    const bool color = app.out_color();
    std::string out = paint("Cluster", Tone::Bold, color) + "  " + (*client)->where() + "\n";
    const Json nodes = cluster["nodes"];
    out += label("nodes", color) + grouped(nodes["total"].integer()) + ": " +
           count_list(nodes, {"ready", "suspect", "lost", "unknown"});
    if (nodes["held"].integer() > 0)
        out += "; " + grouped(nodes["held"].integer()) + " held from new work";
    out += "\n";
    if (const std::int64_t bare = nodes["unenforced"].integer(); bare > 0)
        out += label("limits", color) +
               paint("unenforced on " + counted(bare, "node"), Tone::Warn, color) +
               "; `muster nodes -o wide` and `muster doctor` tell more\n";
    const Json gpus = cluster["gpus"];
    if (gpus["total"].integer() > 0) {
        out += label("gpus", color) + share(gpus["used"].number(), gpus["total"].number(), color) +
               grouped(gpus["used"].integer()) + " of " + grouped(gpus["total"].integer()) +
               " used, " + grouped(gpus["free"].integer()) + " free";
        if (gpus["unusable"].integer() > 0)
            out += ", " + grouped(gpus["unusable"].integer()) + " not usable";
        out += "\n";
    }
    const Json cpus = cluster["cpus"], memory = cluster["memory_bytes"];
    out += label("cpus", color) + share(cpus["used"].number(), cpus["total"].number(), color) +
           metric_text(cpus["used"].number()) + " of " + metric_text(cpus["total"].number()) +
           " used\n";
    out += label("memory", color) +
           share(memory["used"].number(), memory["total"].number(), color) +
           bytes_text(memory["used"].integer()) + " of " + bytes_text(memory["total"].integer()) +
           " given out\n";
    const Json jobs = cluster["jobs"];
    out += label("jobs", color) +
           count_list(jobs, {"running", "starting", "stopping", "fencing", "pending", "held"}) +
           "\n";
    if (cluster["frozen"].truth())
        out += paint(
            "  Too many nodes fell silent at once: nothing is evicted until they are back "
            "or confirmed off.\n",
            Tone::Bad, color);
    if (cluster["disk_full"].truth())
        out += paint("  The controller's disk is nearly full: new work is refused.\n", Tone::Bad,
                     color);
    app.out().write(out);
    return exit_codes::kOk;
}

std::string attempts_table(const JobView& job, Time now, const TableStyle& style) {
    if (job.attempts.empty()) return "";
    Table table({{"ATTEMPT", true},
                 {"STARTED"},
                 {"RAN", true},
                 {"ENDED-BY"},
                 {"NODE"},
                 {"FROM-STEP", true},
                 {"TO-STEP", true},
                 {"LOST", true},
                 {"MESSAGE", false, true}});
    const auto step = [](std::int64_t value) { return value < 0 ? "-" : std::to_string(value); };
    for (const AttemptView& attempt : job.attempts) {
        const Time began = attempt.running.ms != 0 ? attempt.running : attempt.started;
        table.add(std::to_string(attempt.attempt));
        table.add(clock_text(attempt.started, now));
        table.add(began.ms == 0 ? "-" : length_text((attempt.ended - began).ms));
        table.add(attempt.cause.empty() ? "-" : attempt.cause,
                  attempt.cause == "success" ? Tone::Good : Tone::Bad);
        table.add(attempt.node.empty() ? "-" : attempt.node);
        table.add(step(attempt.resumed_step));
        table.add(step(attempt.last_step));
        table.add(attempt.lost_ms > 0 ? length_text(attempt.lost_ms) : "-");
        table.add(attempt.message.empty() ? "-" : attempt.message);
    }
    return table.render(style);
}

std::string ranks_table(const JobView& job, const TableStyle& style) {
    if (job.ranks.empty()) return "";
    Table table({{"RANK", true},
                 {"NODE"},
                 {"STATE"},
                 {"STEP", true},
                 {"METRICS", false, true},
                 {"MESSAGE", false, true}});
    for (const RankView& rank : job.ranks) {
        std::string metrics;
        for (const auto& [name, value] : rank.progress.metrics)
            metrics += (metrics.empty() ? "" : ", ") + metric_words(name, value);
        const bool silent = rank.node_state == "lost" || rank.node_state == "suspect";
        std::string state{state_letter(rank.state), ' '};
        state += rank.state;
        if (rank.state == "pulling" && rank.pull_total > 0)
            state += " " + std::to_string(rank.pulled * 100 / rank.pull_total) + "%";
        if (silent) state += " (node " + rank.node_state + ")";
        std::string message = rank.message;
        if (message.empty() && !rank.cause.empty()) {
            message = rank.cause;
            if (rank.exit_code) message += ", exit " + std::to_string(*rank.exit_code);
        }
        table.add(std::to_string(rank.rank));
        table.add(rank.node);
        table.add(state, silent ? Tone::Bad : state_tone(rank.state));
        table.add(rank.progress.known() ? std::to_string(rank.progress.step) : "-");
        table.add(metrics.empty() ? "-" : metrics);
        table.add(message.empty() ? "-" : message);
    }
    return table.render(style);
}

std::string devices_of(const Json& job) {
    std::string out;
    for (Json slot = job["allocation"]["slots"].first(); slot.exists(); slot = slot.next()) {
        std::vector<std::string> ids;
        for (Json id = slot["devices"].first(); id.exists(); id = id.next())
            ids.push_back(id.text());
        out += "  " + slot["node"].text() + ": ";
        out += ids.empty() ? "no devices" : join(ids, ", ");
        out += "; " + slot["cpus"].text() + " CPUs";
        if (slot["memory_bytes"].integer() > 0)
            out += ", " + bytes_text(slot["memory_bytes"].integer());
        out += "\n";
    }
    return out;
}

/// Where an element stands in its array.
std::string element_line(const Json& array) {
    if (!array.is_object() || array["count"].exists()) return "";
    std::string values;
    for (const auto& [name, value] : array["values"].members())
        values += " " + name + "=" + value.text();
    return "element " + array["index"].text() + " of job " + array["job"].text() +
           (values.empty() ? "" : ":" + values);
}

int job_status(App& app, const OutputForm& form, const std::string& id) {
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    const auto answer = (*client)->get(target("/v1/jobs/", id));
    if (!answer) return app.fail(answer.error());
    const Json row = answer->root();
    const std::vector<Column> columns = job_columns();
    if (!form.is_table()) return show_object(app, form, row, columns, "id");
    const JobView job = job_view(row);
    const bool color = app.out_color();
    const std::size_t width = app.out_width() == 0 ? 100 : app.out_width();
    std::string out = header_line(job, app.now(), color) + "\n";
    const auto line = [&](std::string_view name, const std::string& text) {
        if (!text.empty()) out += label(name, color) + text + "\n";
    };
    line("owner", job.user + ", queue " + job.queue + ", priority " + std::to_string(job.priority));
    if (job.state == "pending" || job.state == "fencing") line("reason", printable(job.reason));
    if (job.expected_start.ms != 0)
        line("expected", "start about " + clock_text(job.expected_start, app.now()));
    if (has_ended(job.state)) line("ended", printable(end_text(job)));
    line("array", job.array.empty() ? element_line(row["array"]) : job.array);
    line("nodes", host_list(job.node_names));
    line("progress", progress_line(job, 0, width - 14, color));
    if (job.checkpoint_step >= 0)
        line("checkpoint", "step " + std::to_string(job.checkpoint_step) + ", " +
                               ago(job.checkpoint_at, app.now()) + " ago, " + job.checkpoint_path);
    if (job.lost_ms > 0)
        line("lost",
             length_text(job.lost_ms) +
                 (job.steps_repeated > 0 ? ", " + counted(job.steps_repeated, "step") + " repeated"
                                         : ""));
    if (row["peak_memory_bytes"].integer() > 0)
        line("peak memory", bytes_text(row["peak_memory_bytes"].integer()));
    line("rendezvous", row["master"].text());
    for (Json wait = row["depends"].first(); wait.exists(); wait = wait.next())
        line("waits for", wait["when"].text() + " " + wait["job"].text());
    const TableStyle style{.width = app.out_width(), .color = color};
    const auto part = [&](std::string_view title, const std::string& text) {
        if (!text.empty()) out += "\n" + paint(title, Tone::Bold, color) + "\n" + text;
    };
    part("Timeline", timeline_text(job, app.now(), color, app.out_width()));
    if (job.attempts_total > static_cast<std::int64_t>(job.attempts.size()))
        out += "  (the first " +
               std::to_string(job.attempts_total - static_cast<std::int64_t>(job.attempts.size())) +
               " attempts are no longer kept)\n";
    if (job.attempts.size() > 1 || form.form == Form::Wide)
        part("Attempts", attempts_table(job, app.now(), style));
    part("Ranks", ranks_table(job, style));
    if (form.form == Form::Wide) part("Allocation", devices_of(row));
    app.out().write(out);
    return exit_codes::kOk;
}

std::string why_text(const Json& why, Time now, bool color) {
    const Json reason = why["reason"];
    const Json counts = reason["counts"];
    std::string out = paint("Job " + why["id"].text(), Tone::Bold, color) + " " +
                      printable(why["name"].text()) + " · wants " + why["wants"].text() +
                      " · queue " + why["queue"].text() + " · " + why["state"].text();
    if (why["state"].text() == "pending") out += " " + length_text(why["waiting_ms"].integer());
    out += "\n";
    const auto line = [&](std::string_view name, const std::string& text) {
        if (!text.empty()) out += label(name, color) + printable(text) + "\n";
    };
    line("reason", reason["text"].text());
    if (counts["ahead"].exists())
        line("position", counted(counts["ahead"].integer(), "job") + " ahead; priority " +
                             why["priority"].text());
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
    else if (!reason["expected_start"].empty())
        line("starts", "about " + clock_text(moment_of(reason["expected_start"]), now) +
                           ", from running jobs' time limits");
    line("do", reason["fix"].text());
    if (!reason["number"].empty())
        line("code", reason["number"].text() + " (muster explain " + reason["number"].text() + ")");
    return out;
}

}  // namespace

int status(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    if (invocation.arguments.empty()) return cluster_status(app, *form);
    if (invocation.has("watch"))
        return follow_job(app, {.job = invocation.argument(0), .logs = false});
    int code = exit_codes::kOk;
    for (std::size_t i = 0; i < invocation.arguments.size(); ++i) {
        if (i > 0 && form->is_table()) app.out().write("\n");
        const int each = job_status(app, *form, invocation.arguments[i]);
        if (each != exit_codes::kOk) code = each;
    }
    return code;
}

int why(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    int code = exit_codes::kOk;
    for (std::size_t i = 0; i < invocation.arguments.size(); ++i) {
        const auto answer = (*client)->get(target("/v1/jobs/", invocation.arguments[i], "/why"));
        if (!answer) {
            code = app.fail(answer.error());
            continue;
        }
        if (i > 0 && form->is_table()) app.out().write("\n");
        if (form->is_table()) {
            app.out().write(why_text(answer->root(), app.now(), app.out_color()));
        } else {
            show_object(app, *form, answer->root(), {}, "id");
        }
    }
    return code;
}

}  // namespace muster::cli::verbs
