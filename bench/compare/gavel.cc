// The streams of the Gavel paper under its policy and two that it is compared with.
#include "simulator/reference/gavel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "compare.h"
#include "production.h"
#include "simulator/models/kind_rate.h"
#include "simulator/traces/csv.h"

namespace muster::compare {
namespace {

using namespace simulator;
using reference::GavelPolicy;

constexpr int kSeeds = 3;

struct Rate {
    bool multi;
    std::string_view name;
    double jobs_per_hour;
    bool below_saturation;  // Of every policy.
    bool gavel_below_saturation;
    bool production = true;  // Far beyond its saturation the queue just grows.
};
constexpr std::array kRates = {
    Rate{false, "2.0", 2.0, true, true},        Rate{false, "4.0", 4.0, true, true},
    Rate{false, "4.8", 4.8, false, true},       Rate{false, "5.2", 5.2, false, false},
    Rate{true, "1.0", 1.0, false, false},       Rate{true, "2.0", 2.0, false, false},
    Rate{true, "2.6", 2.6, false, false, false}};
constexpr const char* kQueues = "queues: {default: {policy: las}}";
constexpr std::array kPolicies = {GavelPolicy::Las, GavelPolicy::GavelLas, GavelPolicy::FifoPerf};

/// As the notebooks call it.
std::string_view published_name(GavelPolicy policy) {
    switch (policy) {
        case GavelPolicy::Las: return "max_min_fairness";
        case GavelPolicy::GavelLas: return "max_min_fairness_perf";
        case GavelPolicy::FifoPerf: return "fifo_perf";
    }
    return "";
}

std::string key_of(const Rate& rate) {
    return std::string("gavel_") + (rate.multi ? "multi_" : "") + std::string(rate.name) + "_";
}

/// Hours, by policy and rate ("2.00"). Other figures in the same file are ratios.
Result<std::map<std::pair<std::string, std::string>, double>> published(const std::string& path) {
    MUSTER_LET(csv, traces::CsvFile::open(path, {.strict = true}));
    MUSTER_LET(figure, csv.column("figure_dir"));
    MUSTER_LET(rate, csv.column("input_job_rate_per_hour"));
    MUSTER_LET(policy, csv.column("policy"));
    MUSTER_LET(value, csv.column("value"));
    std::map<std::pair<std::string, std::string>, double> all;
    MUSTER_TRY(csv.each([&](traces::CsvRow& row) {
        if (row.text(figure).find("/jct_cdf/") == std::string_view::npos) return;
        if (row.text(value) == "nan") return;
        all.try_emplace({std::string(row.text(policy)), std::string(row.text(rate))},
                        row.decimal(value));
    }));
    return all;
}

/// Every GPU is a node of its own, as in the authors' run. A job names the kinds that it runs on,
/// its fastest first; nobody knows how long it will run.
Result<double> production_hours(const Rate& rate, const traces::GavelStream& stream,
                                const models::Throughputs& table) {
    const reference::GavelRules rules;
    std::vector<model::NodeFacts> nodes;
    for (const auto& kind : rules.kinds)
        for (int i = 0; i < kind.devices; ++i)
            nodes.push_back(single_device_node(static_cast<int>(nodes.size()), kind.name, "all"));
    MUSTER_LET(cluster, production_cluster(std::move(nodes), kQueues));
    models::KindRate rates(table, rules.kinds.front().name);
    const std::vector<double> arrivals = stream.arrivals(rate.jobs_per_hour);
    std::vector<study::TraceJob> jobs;
    for (std::size_t i = 0; i < stream.jobs.size(); ++i) {
        const traces::GavelJob& job = stream.jobs[i];
        std::vector<std::pair<double, std::string>> kinds;
        for (const auto& kind : rules.kinds)
            if (const double speed = table.steps_per_s(kind.name, job.type, job.devices); speed > 0)
                kinds.emplace_back(-speed, kind.name);
        std::sort(kinds.begin(), kinds.end());
        auto one = gang_of_single_devices(std::to_string(i), std::llround(arrivals[i] * 1000),
                                          job.devices, job.devices);
        auto& asked = one.spec.roles[0].devices;
        asked.clear();
        for (const auto& [speed, kind] : kinds)
            asked.push_back({.kind = kind, .count = 1, .memory_min = {}, .vendor = ""});
        one.model.profile = job.type;
        one.model.work_ms = std::llround(
            1000 * job.steps / table.steps_per_s(rules.kinds.front().name, job.type, job.devices));
        jobs.push_back(std::move(one));
    }
    study::Options options;
    options.rates = &rates;
    const auto measured = [&](std::string_view name) {
        const auto number = static_cast<std::size_t>(std::stoul(std::string(name)));
        return number >= rules.first && number <= rules.last;
    };
    MUSTER_LET(spans, run_production(cluster, std::move(jobs), options,
                                     rules.last - rules.first + 1, measured));
    return mean_hours(spans);
}

}  // namespace

Status gavel(const Options& options, const Report& report) {
    const std::string folder = options.traces + "/gavel";
    MUSTER_LET(table, traces::read_throughputs(folder + "/simulation_throughputs.json"));
    for (const Rate& rate : kRates) {
        if (options.quick && rate.name != "4.0") continue;
        const std::string tail = rate.multi ? "_multigpu" : "";
        MUSTER_LET(known, published(folder + "/published/continuous_jobs" + tail + ".csv"));
        std::vector<traces::GavelStream> streams;
        for (int seed = 0; seed < kSeeds; ++seed) {
            MUSTER_LET(stream,
                       traces::read_gavel_stream(folder + "/streams/continuous_" +
                                                     (rate.multi ? "multiple" : "single") +
                                                     "_seed" + std::to_string(seed) + ".csv.gz",
                                                 {.strict = true}));
            streams.push_back(std::move(stream));
        }
        for (const GavelPolicy policy : kPolicies) {
            using Outcome = std::optional<Result<reference::GavelResult>>;
            const auto runs =
                in_parallel<Outcome>(kSeeds, options.parallel, [&](int seed) -> Outcome {
                    const auto& stream = streams[static_cast<std::size_t>(seed)];
                    return reference::run_gavel({.seed = static_cast<std::uint64_t>(seed)}, policy,
                                                table, stream.jobs,
                                                stream.arrivals(rate.jobs_per_hour));
                });
            std::vector<double> hours;
            bool exhausted = false;
            for (const Outcome& run : runs) {
                if (!*run) return run->error();
                const reference::GavelResult& result = **run;
                hours.push_back(result.mean_jct_s / 3600);
                exhausted = exhausted || result.exhausted;
            }
            Figure figure{.key = key_of(rate) + std::string(to_string(policy)),
                          .value = mean(hours),
                          .unit = "h"};
            figure.sd = deviation(hours), figure.seeds = kSeeds;
            const auto found =
                known.find({std::string(published_name(policy)), std::string(rate.name) + "0"});
            if (found != known.end()) figure.published = found->second;
            if (exhausted)
                figure.note =
                    "the stream's 6,000 jobs had all arrived before the last measured one ended";
            const bool bound = policy == GavelPolicy::GavelLas ? rate.gavel_below_saturation
                                                               : rate.below_saturation;
            report(bound ? within_share(figure, 0.05) : figure);
        }
        if (!rate.production) continue;
        using Hours = std::optional<Result<double>>;
        const auto runs = in_parallel<Hours>(kSeeds, options.parallel, [&](int seed) -> Hours {
            return production_hours(rate, streams[static_cast<std::size_t>(seed)], table);
        });
        std::vector<double> hours;
        for (const Hours& run : runs) {
            if (!*run) return run->error();
            hours.push_back(**run);
        }
        Figure ours{.key = key_of(rate) + "muster", .value = mean(hours), .unit = "h"};
        ours.sd = deviation(hours), ours.seeds = kSeeds;
        const auto found = known.find({"max_min_fairness_perf", std::string(rate.name) + "0"});
        if (found != known.end()) ours.published = found->second;
        ours.note = "ours; published: heterogeneity-aware LAS";
        report(ours);
    }
    return Ok{};
}

}  // namespace muster::compare
