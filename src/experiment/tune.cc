#include "experiment/tune.h"

#include <algorithm>
#include <chrono>

#include <poll.h>

#include "base/error_codes.h"
#include "base/units.h"
#include "cli/files.h"
#include "cli/format.h"
#include "cli/table.h"
#include "experiment/live.h"
#include "experiment/search.h"
#include "experiment/simulate.h"
#include "spec/queue_file.h"

namespace muster::experiment {
namespace {

struct GoalRow {
    std::string_view name;
    Goal goal;
    std::string_view what;
};
constexpr GoalRow kGoals[] = {
    {"jct", Goal::Jct, "mean job completion time"},
    {"utilisation", Goal::Utilisation, "effective utilisation while jobs arrive"},
    {"fairness", Goal::Fairness, "90th percentile of the finish-time ratio"}};

Result<Plan> plan_of(cli::App& app, const cli::Invocation& invocation) {
    if (invocation.has("trace")) return make_plan(invocation);
    if (invocation.has("cluster"))
        return numbered(errors::kBadParameter, "--cluster: needs --trace", "",
                        "without both, the running cluster and its history are taken");
    MUSTER_LET(client, app.client());
    Live live;
    MUSTER_LET(paper, fetch_cluster(*client));
    live.paper = std::move(paper);
    const std::string since = invocation.value_or("history", "14d");
    if (const auto length = parse_duration(since); !length)
        return numbered(errors::kBadParameter, "--history: " + length.error().message);
    MUSTER_LET(history, fetch_history(*client, since));
    live.history = std::move(history);
    return make_plan(invocation, std::move(live));
}

std::string number(Goal goal, double value) {
    if (goal == Goal::Jct) return cli::length_text(static_cast<std::int64_t>(value * 1000));
    if (goal == Goal::Utilisation) return cli::metric_text(-value * 100) + " %";
    return cli::metric_text(value);
}
std::string percent(double part) {
    return (part < 0 ? "" : "+") + cli::metric_text(part * 100) + " %";
}

void tell(cli::App& app, const GoalRow& goal, const Found& found) {
    cli::Table changes({{"SETTING"}, {"NOW"}, {"THEN"}});
    for (const Change& change : found.best.changes) {
        changes.add(change.setting);
        changes.add(change.now);
        changes.add(change.then);
    }
    app.out().write(changes.render({.width = app.out_width(), .color = app.out_color()}));
    app.out().write("\n");
    cli::Table gains({{"LATER JOBS"}, {"NOW", true}, {"THEN", true}, {"GAIN", true}});
    double sum = 0, least = 0, most = 0;
    for (std::size_t i = 0; i < found.gains.size(); ++i) {
        const Gain& gain = found.gains[i];
        gains.add("part " + std::to_string(i + 1) + " of " + std::to_string(found.gains.size()));
        gains.add(number(goal.goal, gain.now));
        gains.add(number(goal.goal, gain.then));
        gains.add(percent(gain.part));
        sum += gain.part;
        least = i == 0 ? gain.part : std::min(least, gain.part);
        most = i == 0 ? gain.part : std::max(most, gain.part);
    }
    app.out().write(gains.render({.width = app.out_width(), .color = app.out_color()}));
    if (found.gains.empty()) return;
    const double mean = sum / static_cast<double>(found.gains.size());
    app.out().write("\nexpected gain in " + std::string(goal.what) + ": " + percent(mean) + " (" +
                    percent(least) + " … " + percent(most) + ")\n");
    if (least < 0) app.out().write("not better everywhere: the gain may be chance\n");
}

}  // namespace

int tune(cli::App& app, const cli::Invocation& invocation) {
    const std::string wanted = invocation.value_or("goal", "jct");
    const auto* goal = std::ranges::find(kGoals, std::string_view(wanted), &GoalRow::name);
    if (goal == std::end(kGoals))
        return app.fail(numbered(errors::kBadParameter, "--goal: " + wanted +
                                                            ": must be jct, utilisation or "
                                                            "fairness"));
    Duration budget{300'000};
    if (const auto text = invocation.value("budget")) {
        const auto length = parse_duration(*text);
        if (!length || length->ms == 0)
            return app.fail(numbered(errors::kBadParameter,
                                     "--budget: " + *text + ": must be a time above 0 (5m)"));
        budget = *length;
    }
    const auto plan = plan_of(app, invocation);
    if (!plan) return app.fail(plan.error());
    app.note(cli::counted(plan->jobs, "job") + " on " + plan->paper.words);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(budget.ms);
    const int interrupt = app.catch_interrupts();
    const std::function<bool()> stop = [&] {
        pollfd wait{interrupt, POLLIN, 0};
        return std::chrono::steady_clock::now() >= end || ::poll(&wait, 1, 0) > 0;
    };
    SearchRules rules;
    rules.goal = goal->goal;
    const auto found = search(*plan, rules, stop);
    if (!found) return app.fail(found.error());
    app.note(cli::counted(static_cast<std::int64_t>(found->tried), "setting") + " in " +
             cli::counted(static_cast<std::int64_t>(found->runs), "run") +
             (found->out_of_time ? "; out of time: the best so far" : ""));
    if (found->best.changes.empty()) {
        app.out().write("nothing that was tried is better than the present settings\n");
        return cli::exit_codes::kOk;
    }
    tell(app, *goal, *found);
    const auto path = invocation.value("write");
    if (!path) return cli::exit_codes::kOk;
    const spec::QueueFile file{found->best.cluster.queues, found->best.cluster.rules};
    if (const Status written = cli::write_file(*path, spec::to_yaml(file), 0644); !written)
        return app.fail(written.error());
    app.note("nothing was changed; `muster queues apply -f " + *path + "` would");
    return cli::exit_codes::kOk;
}

}  // namespace muster::experiment
