// What bench/run.sh scheduler and `muster bench` measure: the planner alone, and a whole controller
// with modelled agents.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::bench {

struct Figure {
    std::string what;
    double value = 0;
    std::string unit;
    std::string better;  // "higher" or "lower"
    double goal = 0;     // Of the default sizes; 0: none.
};

struct Ask {
    int nodes = 10'000;          // Of 8 devices each.
    int jobs = 100'000;          // That wait; works A and B have a tenth of them.
    bool sweep = true;           // Also ten times fewer nodes, and a ten times shorter queue.
    std::string folder;          // On the disk to be measured.
    std::set<std::string> only;  // Parts, as part_names(); empty: all.

    bool wants(const std::string& part) const { return only.empty() || only.contains(part); }
};
constexpr int kNodesLeast = 100, kNodesMost = 100'000, kJobsLeast = 1'000, kJobsMost = 1'000'000;
const std::vector<std::string>& part_names();
/// Of sizes and parts. Its message names what is wrong.
Status check(const Ask& ask);

struct Hooks {
    std::function<void(const Figure&)> say;
    std::function<void(const std::string&)> log;  // For people who want to know more.
};

/// In CPU time of the calling thread, so that other work on the machine counts little.
void measure_planner(const Ask& ask, const Hooks& hooks);
/// In wall time, on disk, with all threads that a controller has.
Status measure_cluster(const Ask& ask, const Hooks& hooks);
/// Both, in a folder of its own below `ask.folder` ("": $TMPDIR or /tmp), which goes afterwards,
/// also when SIGINT or SIGTERM ends the process. Goals are told for the default sizes only.
Status measure(Ask ask, const Hooks& hooks);

std::string json_of(const Figure& figure);

double percentile(std::vector<double> values, double at);
double rss_mb();

}  // namespace muster::bench
