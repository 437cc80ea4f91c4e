// `musterd bench` (and `muster bench`): what this machine does, without a controller or a cluster.
#include <cmath>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "bench/measure.h"
#include "daemon.h"
#include "verbs.h"

namespace muster::apps {
namespace {

std::string rounded(double value) {
    char text[32];
    // Four digits are more than such a figure is good for.
    if (value >= 1000)
        std::snprintf(text, sizeof text, "%.0f", value);
    else
        std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

void print_row(const bench::Figure& figure) {
    std::string goal;
    if (figure.goal > 0) {
        const bool met =
            figure.better == "higher" ? figure.value >= figure.goal : figure.value <= figure.goal;
        goal = (figure.better == "higher" ? ">= " : "<= ") + rounded(figure.goal) +
               (met ? "" : "  missed");
    }
    std::printf("%-26s %10s %-6s %s\n", figure.what.c_str(), rounded(figure.value).c_str(),
                figure.unit.c_str(), goal.c_str());
    std::fflush(stdout);
}

}  // namespace

int bench_verb(int argc, char** argv) {
    CLI::App app("musterd bench: measures controller and scheduler on this machine");
    bench::Ask ask;
    bool quick = false, json = false, verbose = false;
    std::vector<std::string> only;
    app.add_option("--nodes", ask.nodes, "Nodes of the made-up cluster, of 8 devices each")
        ->capture_default_str();
    app.add_option("--jobs", ask.jobs, "Jobs that wait; bursts have a tenth of them")
        ->capture_default_str();
    app.add_flag("--quick", quick, "Without the sweep over sizes");
    app.add_option("--only", only, "This part alone; may be repeated");
    app.add_option("--folder", ask.folder, "Where state is written ($TMPDIR, else /tmp)");
    app.add_flag("--json", json, "One JSON object a figure");
    app.add_flag("--verbose", verbose, "Tell on standard error what lies behind the figures");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    ask.sweep = !quick;
    ask.only.insert(only.begin(), only.end());
    if (const Status good = bench::check(ask); !good) return report(good.error());
    if (!json) std::printf("%-26s %10s %-6s %s\n", "FIGURE", "VALUE", "UNIT", "GOAL");
    bench::Hooks hooks;
    hooks.say = [&](const bench::Figure& figure) {
        if (!json) return print_row(figure);
        std::printf("%s\n", bench::json_of(figure).c_str());
        std::fflush(stdout);
    };
    hooks.log = [&](const std::string& line) {
        if (verbose) std::fprintf(stderr, "%s\n", line.c_str());
    };
    const Status done = bench::measure(ask, hooks);
    return done ? 0 : report(done.error());
}

}  // namespace muster::apps
