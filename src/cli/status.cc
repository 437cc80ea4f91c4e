// muster status: the cluster at a glance, or one job whole.
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
        std::string message = attempt.message;
        if (message.empty() && !attempt.beneficiary.empty())
            message = "for job " + attempt.beneficiary + " (" + attempt.preempted_for + ")";
        table.add(message.empty() ? "-" : message);
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

/// The placement as a tree: domains from the top down, then nodes with their ranks.
std::string topology_tree(const Json& job) {
    const Json allocation = job["allocation"];
    const std::vector<Json> levels = allocation["levels"].items();
    struct Placed {
        std::vector<std::string> path;  // Domains, then the node.
        std::string ranks;
    };
    std::vector<Placed> placed;
    for (const Json& slot : allocation["slots"].items()) {
        Placed each;
        for (const Json& name : slot["path"].items())
            each.path.push_back(name.empty() ? "(none)" : name.text());
        each.path.push_back(slot["node"].text());
        each.ranks = slot["spare"].truth() ? "spare" : "rank " + slot["rank"].text();
        const auto same = std::ranges::find(placed, each.path, &Placed::path);
        if (same == placed.end())
            placed.push_back(std::move(each));
        else
            same->ranks += ", " + each.ranks;
    }
    // Domains in the order of their first rank, so that ranks read downwards.
    const auto first_of = [&](const Placed& one, std::size_t depth) {
        return std::ranges::find_if(placed, [&](const Placed& other) {
            return std::equal(one.path.begin(),
                              one.path.begin() + static_cast<std::ptrdiff_t>(depth),
                              other.path.begin());
        });
    };
    std::vector<Placed> sorted = placed;
    std::ranges::stable_sort(sorted, [&](const Placed& a, const Placed& b) {
        for (std::size_t depth = 1; depth <= a.path.size(); ++depth)
            if (first_of(a, depth) != first_of(b, depth))
                return first_of(a, depth) < first_of(b, depth);
        return false;
    });
    std::string out;
    std::vector<std::string> last;
    for (const Placed& each : sorted) {
        bool same = true;
        for (std::size_t depth = 0; depth < each.path.size(); ++depth) {
            same = same && depth < last.size() && last[depth] == each.path[depth];
            const bool node = depth + 1 == each.path.size();
            if (same && !node) continue;
            const std::string level = depth < levels.size() ? levels[depth].text() + " " : "";
            out += std::string(2 + 2 * depth, ' ') + level + printable(each.path[depth]) +
                   (node ? ": " + each.ranks : "") + "\n";
        }
        last = each.path;
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

int job_status(App& app, const OutputForm& form, const std::string& id, bool topology) {
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
    if (topology) {
        const std::string tree = topology_tree(row);
        part("Topology", tree.empty() ? "  it holds no nodes now\n" : tree);
    }
    if (form.form == Form::Wide) part("Allocation", devices_of(row));
    app.out().write(out);
    return exit_codes::kOk;
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
        const int each =
            job_status(app, *form, invocation.arguments[i], invocation.has("topology"));
        if (each != exit_codes::kOk) code = each;
    }
    return code;
}

}  // namespace muster::cli::verbs
