// The workloads of the Pollux paper: under Tiresias, as its authors simulated it, and under Muster
// with elastic jobs.
#include "simulator/reference/pollux.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "compare.h"
#include "production.h"
#include "simulator/models/application_rate.h"
#include "simulator/traces/csv.h"
#include "simulator/traces/pollux_draw.h"

namespace muster::compare {
namespace {

using namespace simulator;
using Applications = std::map<std::string, models::Application>;
using Workload = std::vector<traces::PolluxJob>;

constexpr int kWorkloads = 8;
constexpr std::size_t kJobsAtLoad1 = 160;
struct Load {
    const char* name;
    double factor;
};
constexpr std::array kLoads = {Load{"0.5", 0.5}, Load{"1.0", 1.0}, Load{"1.5", 1.5},
                               Load{"2.0", 2.0}};
/// Each GPU is a node of its own, four to a leaf: a gang's unit is a GPU then, and it is placed on
/// as few leaves as hold it.
constexpr int kMachines = 16, kDevices = 4;
constexpr const char* kQueues = "queues: {default: {policy: las}}";

/// Hours, the mean over workloads, by policy and load.
using Published = std::map<std::pair<std::string, std::string>, double>;
Result<Published> published(const std::string& folder) {
    MUSTER_LET(csv, traces::CsvFile::open(folder + "/published.csv", {.strict = true}));
    MUSTER_LET(policy, csv.column("policy"));
    MUSTER_LET(load, csv.column("relative_load"));
    MUSTER_LET(jct, csv.column("avg_jct_s"));
    std::map<std::pair<std::string, std::string>, std::vector<double>> all;
    MUSTER_TRY(csv.each([&](traces::CsvRow& row) {
        all[{std::string(row.text(policy)), std::string(row.text(load))}].push_back(
            row.decimal(jct) / 3600);
    }));
    Published means;
    for (const auto& [key, values] : all) means[key] = mean(values);
    return means;
}

/// The files of load 1; those of the others are drawn as their authors drew them.
Result<std::vector<Workload>> workloads_of(const std::string& traces, const Load& load,
                                           const Applications& applications,
                                           const std::vector<traces::PhillyJob>& philly) {
    std::vector<Workload> all;
    for (int i = 1; i <= kWorkloads; ++i) {
        if (load.factor == 1) {
            MUSTER_LET(read, traces::read_pollux_workload(traces + "/pollux/workloads/workload-" +
                                                              std::to_string(i) + ".csv",
                                                          {.strict = true}));
            all.push_back(std::move(read.jobs));
            continue;
        }
        const auto count =
            static_cast<std::size_t>(std::lround(load.factor * static_cast<double>(kJobsAtLoad1)));
        MUSTER_LET(drawn, traces::draw_pollux_workload(philly, applications, count,
                                                       static_cast<std::uint32_t>(i)));
        all.push_back(std::move(drawn));
    }
    return all;
}

Result<double> tiresias_hours(const Workload& jobs, const Applications& applications) {
    MUSTER_LET(outcomes, reference::run_pollux_tiresias({}, jobs, applications));
    double sum = 0;
    for (const auto& outcome : outcomes)
        sum += static_cast<double>(outcome.end_s - outcome.submit_s);
    return sum / static_cast<double>(outcomes.size()) / 3600;
}

/// Jobs are elastic from one GPU to the number that they were tuned for; they keep their tuned
/// batch, or (`adaptive`) choose the best for what they hold.
Result<double> production_hours(const Workload& jobs, const Applications& applications,
                                bool adaptive) {
    std::vector<model::NodeFacts> nodes;
    std::vector<std::uint32_t> machine;
    for (int i = 0; i < kMachines * kDevices; ++i) {
        machine.push_back(static_cast<std::uint32_t>(i / kDevices));
        nodes.push_back(single_device_node(i, "t4", "m" + std::to_string(machine.back())));
    }
    MUSTER_LET(cluster, production_cluster(std::move(nodes), kQueues));
    models::ApplicationRate rates(applications, machine);
    std::vector<study::TraceJob> asked;
    for (const traces::PolluxJob& job : jobs) {
        auto one = gang_of_single_devices(job.name, job.submit_s * 1000, 1, job.replicas);
        one.model.profile = job.application + (adaptive ? "" : "/" + std::to_string(job.batch));
        one.model.work_ms = rates.work_ms(one.model.profile);
        one.model.restart_cost = seconds(30);
        asked.push_back(std::move(one));
    }
    study::Options options;
    options.rates = &rates;
    MUSTER_LET(spans, run_production(cluster, std::move(asked), options));
    if (rates.uncovered() > 0)
        return Error{Code::Internal, "a job held what its profile does not cover"};
    return mean_hours(spans);
}

}  // namespace

Status pollux(const Options& options, const Report& report) {
    const std::string folder = options.traces + "/pollux";
    MUSTER_LET(known, published(folder));
    MUSTER_LET(applications, traces::read_applications(folder + "/profiles"));
    std::vector<traces::PhillyJob> philly;
    if (!options.quick) {
        MUSTER_LET(read, traces::read_philly_jobs(options.traces + "/philly/philly.csv.gz"));
        philly = std::move(read);
    }
    const auto add = [&](const std::string& what, const Load& load, const auto& hours_of,
                         const std::string& beside) -> Result<Figure> {
        MUSTER_LET(workloads, workloads_of(options.traces, load, applications, philly));
        const auto runs = in_parallel<std::optional<Result<double>>>(
            kWorkloads, options.parallel, [&](int i) -> std::optional<Result<double>> {
                return hours_of(workloads[static_cast<std::size_t>(i)]);
            });
        std::vector<double> hours;
        for (const auto& run : runs) {
            if (!*run) return run->error();
            hours.push_back(**run);
        }
        Figure figure{.key = "pollux_" + what + "_" + load.name, .value = mean(hours), .unit = "h"};
        figure.sd = deviation(hours), figure.seeds = kWorkloads;
        if (const auto found = known.find({beside, load.name}); found != known.end())
            figure.published = found->second;
        return figure;
    };
    for (const Load& load : kLoads) {
        if (options.quick && load.factor != 1) continue;
        if (!options.list.empty() && options.list != load.name) continue;
        const auto tiresias = [&](const Workload& jobs) {
            return tiresias_hours(jobs, applications);
        };
        MUSTER_LET(reference, add("tiresias", load, tiresias, "tiresias"));
        report(within_share(reference, 0.01));
        for (const bool adaptive : {false, true}) {
            const auto production = [&](const Workload& jobs) {
                return production_hours(jobs, applications, adaptive);
            };
            MUSTER_LET(ours,
                       add(adaptive ? "muster_adaptive" : "muster", load, production, "pollux"));
            ours.note = "ours, on the same model; published: the authors' own policy";
            report(ours);
        }
    }
    return Ok{};
}

}  // namespace muster::compare
