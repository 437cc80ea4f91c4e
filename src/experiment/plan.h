// What was asked for on the command line, checked as a whole before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "simulator/models/profile_rates.h"
#include "simulator/report/report.h"
#include "simulator/traces/cluster.h"
#include "simulator/traces/trace.h"

namespace muster::experiment {

namespace sim = muster::simulator;

/// The production scheduler with its queues as given, or with one policy in all of them.
struct Policy {
    std::string name;  // "muster", or a queue policy: "fifo".
    std::optional<model::QueuePolicy> queues;
    bool changed = false;  // On the changed cluster.
};

struct Plan {
    sim::traces::Trace trace;
    sim::models::Applications applications;
    std::optional<sim::models::Throughputs> throughputs;
    sim::traces::PaperCluster paper;                   // With its queues.
    std::optional<sim::traces::PaperCluster> changed;  // What if it were so.
    std::vector<sim::study::TraceJob> standing;        // Jobs that are there before the trace's.
    sim::traces::Play play;
    sim::study::Options options;  // Of every run; the seed is the run's.
    std::vector<Policy> policies;
    std::vector<std::uint64_t> seeds;
    std::int64_t parallel = 1;
    std::int64_t jobs = 0;                                      // To be played in each run.
    std::string html, json;                                     // Where reports go; "": nowhere.
    std::vector<std::pair<std::string, std::string>> settings;  // As given, for the report.

    /// How fast jobs run, for one run; it points into this plan.
    sim::models::MeasuredRules rates() const;
    std::size_t runs() const { return policies.size() * seeds.size(); }
};

/// What was taken from a running cluster, in place of --cluster and --trace.
struct Live {
    sim::traces::PaperCluster paper;
    std::optional<sim::traces::Trace> history;
    std::vector<sim::study::TraceJob> standing;
    Time at;  // Of the copy.
};
/// Errors are the user's: a flag's value, a file.
Result<Plan> make_plan(const cli::Invocation& invocation, std::optional<Live> live = {});

}  // namespace muster::experiment
