#include "experiment/simulate.h"

#include <algorithm>
#include <chrono>
#include <set>

#include <poll.h>

#include "base/error_codes.h"
#include "base/units.h"
#include "cli/files.h"
#include "cli/format.h"
#include "cli/panel.h"
#include "cli/table.h"
#include "experiment/live.h"
#include "experiment/runner.h"
#include "experiment/tune.h"

namespace muster::experiment {
namespace {

using sim::report::ComparedPolicy;
using sim::report::MetricRow;
using sim::report::RunReport;
constexpr int kInterrupted = 130;

/// What was wrong or left out of the trace, on stderr.
void tell_trace(cli::App& app, const sim::traces::Trace& trace) {
    for (const std::string& note : trace.notes) app.note("note: " + note);
    for (const auto& [what, count] : trace.left_out)
        app.note("note: " + cli::grouped(count) + " " + what +
                 (what.starts_with('(') ? "" : " left out"));
    if (trace.bad.count > 0) {
        std::string lines = sim::traces::text_of(trace.bad);
        lines.pop_back();
        app.note(lines);
        app.note("warning: " + cli::counted(trace.bad.count, "bad row") +
                 " not played (--strict refuses such a trace)");
    }
}

class Bar {
public:
    Bar(cli::App& app, const Plan& plan, const Gauge& gauge)
        : plan_(plan),
          gauge_(gauge),
          panel_(app.out(), app.err(), app.world().err_tty),
          begin_(std::chrono::steady_clock::now()) {}

    void draw() {
        if (!panel_.live()) return;
        const std::int64_t all = plan_.jobs * static_cast<std::int64_t>(plan_.runs());
        const double part =
            all == 0 ? 1 : static_cast<double>(gauge_.ended) / static_cast<double>(all);
        std::string line = cli::bar(part, 24) + " " + std::to_string(static_cast<int>(part * 100)) +
                           "%  " + cli::grouped(gauge_.ended) + " of " + cli::grouped(all) +
                           " jobs ended, " + cli::grouped(gauge_.waiting) + " wait";
        if (plan_.runs() > 1)
            line += ", run " + std::to_string(gauge_.runs) + "/" + std::to_string(plan_.runs());
        panel_.draw({line});
    }
    void close() { panel_.close(); }
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }

private:
    const Plan& plan_;
    const Gauge& gauge_;
    cli::Panel panel_;
    std::chrono::steady_clock::time_point begin_;
};

std::string summary_table(const cli::App& app, std::span<const RunReport> runs) {
    const std::vector<ComparedPolicy> policies = sim::report::compare(runs);
    std::vector<cli::TableColumn> heads = {{"METRIC"}};
    for (const ComparedPolicy& policy : policies) {
        std::string head = policy.policy;
        for (char& c : head) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        heads.push_back({head, true});
    }
    cli::Table table(heads);
    const auto& rows = sim::report::metric_rows();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const MetricRow& row = rows[i];
        const bool any = std::ranges::any_of(
            policies, [&](const ComparedPolicy& policy) { return policy.metrics[i].has_value(); });
        if (!any) continue;
        table.add(row.head);
        for (const ComparedPolicy& policy : policies) {
            const auto& spread = policy.metrics[i];
            std::string text = spread ? sim::report::metric_text(row, spread->mean) : "-";
            if (spread && spread->runs > 1 && spread->least < spread->most)
                text += " (" + sim::report::metric_text(row, spread->least) + " … " +
                        sim::report::metric_text(row, spread->most) + ")";
            table.add(text);
        }
    }
    return table.render({.width = app.out_width(), .color = app.out_color()});
}

void tell_runs(cli::App& app, std::span<const RunReport> runs) {
    for (const RunReport& run : runs) {
        const auto& s = run.summary;
        std::string line = run.name() + ": " + cli::grouped(s.succeeded) + " succeeded, " +
                           cli::grouped(s.failed) + " failed";
        if (s.cancelled > 0) line += ", " + cli::grouped(s.cancelled) + " cancelled";
        if (s.unfinished > 0) line += ", " + cli::grouped(s.unfinished) + " unfinished";
        if (!s.complete) line += " (stopped before its end)";
        if (s.refused > 0) line += ", " + cli::grouped(s.refused) + " refused";
        app.note(line);
        for (const auto& [reason, count] : run.refusals)
            app.note("  refused: " + cli::grouped(count) + " × " + reason);
    }
}

Status write_reports(cli::App& app, const Plan& plan, std::span<const RunReport> runs) {
    if (!plan.html.empty()) {
        MUSTER_TRY(cli::write_file(plan.html, sim::report::to_html(runs), 0644));
        app.note("report: " + plan.html);
    }
    if (plan.json == "-") {
        app.out().write(sim::report::to_json(runs));
    } else if (!plan.json.empty()) {
        MUSTER_TRY(cli::write_file(plan.json, sim::report::to_json(runs), 0644));
        app.note("json: " + plan.json);
    }
    return Ok{};
}

Result<Plan> plan_of(cli::App& app, const cli::Invocation& invocation) {
    if (!invocation.has("from-live")) {
        for (const char* flag : {"add", "assume"})
            if (invocation.has(flag))
                return numbered(errors::kBadParameter,
                                std::string("--") + flag + ": needs --from-live");
        return make_plan(invocation);
    }
    if (invocation.has("cluster"))
        return numbered(errors::kBadParameter, "--cluster: --from-live brings its own", "",
                        "--add adds nodes to it");
    Duration assume{3'600'000};
    if (const auto text = invocation.value("assume")) {
        MUSTER_LET(length, parse_duration(*text));
        assume = length;
    }
    MUSTER_LET(client, app.client());
    Live live;
    live.at = app.now();
    MUSTER_LET(paper, fetch_cluster(*client));
    live.paper = std::move(paper);
    MUSTER_LET(standing, fetch_jobs(*client, live.paper.cluster, live.at, assume));
    for (const auto& [what, count] : standing.left_out)
        app.note("note: " + cli::grouped(count) + " " + what + " left out");
    if (standing.assumed > 0)
        app.note("note: " + cli::counted(standing.assumed, "waiting job") +
                 " without expected_time or limit taken to run for " + format_duration(assume) +
                 " (--assume)");
    app.note(cli::counted(standing.running, "job") + " running, " + cli::grouped(standing.waiting) +
             " waiting now");
    if (standing.jobs.empty() && !invocation.has("trace"))
        return Error{.code = Code::NotFound,
                     .message = "no job runs or waits on the cluster",
                     .fix = "add jobs with --trace"};
    live.standing = std::move(standing.jobs);
    return make_plan(invocation, std::move(live));
}

/// When those that wait now would start, side by side.
std::string standing_table(const cli::App& app, const Plan& plan, std::span<const RunReport> runs) {
    constexpr std::size_t kShown = 50;
    std::vector<cli::TableColumn> heads = {{"WAITING JOB"}, {"QUEUE"}};
    std::vector<const RunReport*> columns;  // Of the first seed.
    for (const RunReport& run : runs)
        if (run.facts.seed == plan.seeds.front()) {
            columns.push_back(&run);
            heads.push_back({"STARTS (" + run.facts.policy + ")", true});
        }
    cli::Table table(heads);
    std::size_t shown = 0;
    const Time begin = plan.standing.front().submit;
    std::set<std::string> seen;
    for (const auto& job : plan.standing) {
        if (job.submit == begin || !seen.insert(job.name).second || shown == kShown) continue;
        ++shown;
        table.add(job.name);
        table.add(job.spec.queue);
        for (const RunReport* run : columns) {
            const auto found =
                std::ranges::find(run->standing, job.name, &sim::report::StandingJob::name);
            const bool starts = found != run->standing.end() && found->start_ms;
            table.add(!starts                   ? "never"
                      : *found->start_ms < 1000 ? "now"
                                                : "in " + cli::length_text(*found->start_ms));
        }
    }
    return shown == 0 ? ""
                      : table.render({.width = app.out_width(), .color = app.out_color()}) + "\n";
}

}  // namespace

int simulate(cli::App& app, const cli::Invocation& invocation) {
    const auto plan = plan_of(app, invocation);
    if (!plan) return app.fail(plan.error());
    tell_trace(app, plan->trace);
    app.note(plan->trace.format + ": " + cli::counted(plan->jobs, "job") + " on " +
             plan->paper.words);
    Gauge gauge;
    const int interrupt = app.catch_interrupts();
    Bar bar(app, *plan, gauge);
    const auto runs = run_all(*plan, gauge, [&] {
        pollfd wait{interrupt, POLLIN, 0};
        if (::poll(&wait, 1, 0) > 0) gauge.stop = true;
        bar.draw();
    });
    bar.close();
    if (!runs) return app.fail(runs.error());
    const bool stopped = gauge.stop;
    if (runs->empty()) {
        app.note("interrupted before any run had begun");
        return kInterrupted;
    }
    if (plan->json != "-") {
        if (!plan->standing.empty()) app.out().write(standing_table(app, *plan, *runs));
        app.out().write(summary_table(app, *runs));
    }
    app.out().flush();
    tell_runs(app, *runs);
    std::uint64_t events = 0;
    for (const RunReport& run : *runs) events += run.summary.events;
    const double seconds = bar.seconds();
    app.note(cli::grouped(static_cast<std::int64_t>(events)) + " events in " +
             cli::length_text(static_cast<std::int64_t>(seconds * 1000)) + ", " +
             cli::grouped(
                 static_cast<std::int64_t>(static_cast<double>(events) / std::max(seconds, 1e-3))) +
             " a second");
    if (const Status written = write_reports(app, *plan, *runs); !written)
        return app.fail(written.error());
    return stopped ? kInterrupted : cli::exit_codes::kOk;
}

int run_verb(const cli::World& world, std::span<const std::string> words, cli::Output& out,
             cli::Output& err) {
    cli::App app(world, out, err);
    const auto parsed = cli::parse_command_line(words);
    if (!parsed) {
        app.fail(parsed.error());
        return cli::exit_codes::kUsage;
    }
    const cli::Invocation& given = parsed->invocation;
    if (parsed->help) {
        out.write(cli::help_text(*given.command, 80));
        return cli::exit_codes::kOk;
    }
    const bool tunes = given.command->name == "tune";
    // Settings of the client are for a controller; a trace needs none.
    const Status ready = app.prepare(given);
    const bool asks = tunes ? !given.has("trace") : given.has("from-live");
    if (!ready && asks) return app.fail(ready.error());
    const int code = tunes ? tune(app, given) : simulate(app, given);
    out.flush();
    if (!out.good() && code == 0) return cli::exit_codes::kError;
    return code;
}

}  // namespace muster::experiment
