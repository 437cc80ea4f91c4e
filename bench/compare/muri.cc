// The traces of the Muri paper: its simulator's figures, and a run measured on 64 GPUs.
#include <array>

#include "compare.h"
#include "simulator/reference/muri_world.h"

namespace muster::compare {
namespace {

using namespace simulator;
using reference::QueueingPolicy;

constexpr std::array kTraces = {"trace1", "trace3", "trace1_pr", "trace3_pr"};

struct Published {
    std::string trace, policy;
    double average = 0;
};
Result<std::vector<Published>> published(const std::string& path) {
    MUSTER_LET(csv, traces::CsvFile::open(path, {.strict = true}));
    MUSTER_LET(trace, csv.column("trace"));
    MUSTER_LET(policy, csv.column("policy"));
    MUSTER_LET(metric, csv.column("metric"));
    MUSTER_LET(value, csv.column("value"));
    std::vector<Published> out;
    MUSTER_TRY(csv.each([&](traces::CsvRow& row) {
        if (row.text(metric) != "avg_jct_s") return;
        out.push_back(
            {std::string(row.text(trace)), std::string(row.text(policy)), row.decimal(value)});
    }));
    return out;
}

std::string published_name(QueueingPolicy policy) {
    switch (policy) {
        case QueueingPolicy::Srtf: return "SRTF";
        case QueueingPolicy::Srsf: return "SRSF";
        case QueueingPolicy::Las: return "Tiresias_L";
    }
    return "";
}

/// Measured on 64 V100: average JCT in seconds, as the paper's logs have it.
double measured(QueueingPolicy policy) {
    switch (policy) {
        case QueueingPolicy::Srtf: return 249140.2;
        case QueueingPolicy::Srsf: return 238612.1;
        case QueueingPolicy::Las: return 336533.2;
    }
    return 0;
}

Figure figure_of(const std::string& key, double value) {
    return {.key = key, .value = value, .unit = "s average JCT"};
}

}  // namespace

Status muri(const Options& options, const Report& report) {
    MUSTER_LET(known, published(options.traces + "/muri/published.csv"));
    for (const std::string trace : kTraces) {
        if (!options.list.empty() ? trace != options.list : options.quick && trace != "trace3")
            continue;
        MUSTER_LET(read, traces::read_muri_jobs(options.traces + "/muri/" + trace + ".csv",
                                                {.strict = true}));
        const auto jobs = reference::muri_jobs(read.jobs);
        for (const QueueingPolicy policy : reference::kQueueingPolicies) {
            const std::string key = "muri_" + trace + "_" + std::string(to_string(policy));
            MUSTER_LET(run, run_queueing(jobs, {.policy = policy, .overhead = true}));
            Figure figure = figure_of(key, run.average);
            for (const Published& one : known)
                if (one.trace == trace && one.policy == published_name(policy))
                    figure.published = one.average;
            report(within_share(figure, 1e-4));
            MUSTER_LET(clean, run_queueing(jobs, {.policy = policy, .overhead = false}));
            figure = figure_of(key + "_clean", clean.average);
            figure.note = "without the overhead quirk; nobody published it";
            report(figure);
        }
    }
    return Ok{};
}

Status testbed(const Options& options, const Report& report) {
    MUSTER_LET(
        read, traces::read_muri_jobs(options.traces + "/muri/testbed_trace.csv", {.strict = true}));
    const auto jobs = reference::muri_jobs(read.jobs);
    for (const QueueingPolicy policy : reference::kQueueingPolicies) {
        const std::string key = "testbed_" + std::string(to_string(policy));
        MUSTER_LET(run, run_queueing(jobs, {.policy = policy, .overhead = true}));
        Figure figure = figure_of(key, run.average);
        figure.published = measured(policy);
        figure.note = "published: measured";
        report(within_share(figure, 0.03));
        MUSTER_LET(clean, run_queueing(jobs, {.policy = policy, .overhead = false}));
        figure = figure_of(key + "_clean", clean.average);
        figure.published = measured(policy);
        figure.note = "without the overhead quirk";
        report(figure);
    }
    return Ok{};
}

}  // namespace muster::compare
