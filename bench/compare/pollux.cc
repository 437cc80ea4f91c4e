// The workloads of the Pollux paper under Tiresias, as its authors simulated them.
#include "simulator/reference/pollux.h"

#include <filesystem>
#include <map>

#include "compare.h"
#include "simulator/traces/csv.h"

namespace muster::compare {
namespace {

using namespace simulator;

constexpr int kWorkloads = 8;
constexpr std::array kLoads = {"0.5", "1.0", "1.5", "2.0"};

struct Published {
    double mean_s = 0;
    std::map<std::string, double> workload_s;
};
/// By policy and load.
Result<std::map<std::pair<std::string, std::string>, Published>> published(
    const std::string& folder) {
    MUSTER_LET(csv, traces::CsvFile::open(folder + "/published.csv", {.strict = true}));
    MUSTER_LET(policy, csv.column("policy"));
    MUSTER_LET(load, csv.column("relative_load"));
    MUSTER_LET(workload, csv.column("workload"));
    MUSTER_LET(jct, csv.column("avg_jct_s"));
    std::map<std::pair<std::string, std::string>, Published> all;
    MUSTER_TRY(csv.each([&](traces::CsvRow& row) {
        all[{std::string(row.text(policy)), std::string(row.text(load))}]
            .workload_s[std::string(row.text(workload))] = row.decimal(jct);
    }));
    for (auto& [key, entry] : all) {
        for (const auto& [name, value] : entry.workload_s) entry.mean_s += value;
        entry.mean_s /= static_cast<double>(entry.workload_s.size());
    }
    return all;
}

/// "" where the trace lacks that load.
std::string workloads_of(const std::string& folder, const std::string& load) {
    const std::string path = folder + "/workloads" + (load == "1.0" ? "" : "-" + load);
    return std::filesystem::exists(path) ? path : "";
}

}  // namespace

Status pollux(const Options& options, const Report& report) {
    const std::string folder = options.traces + "/pollux";
    MUSTER_LET(known, published(folder));
    MUSTER_LET(applications, traces::read_applications(folder + "/profiles"));
    for (const std::string load : kLoads) {
        const std::string path = workloads_of(folder, load);
        if (path.empty() || (!options.list.empty() && options.list != load)) continue;
        std::vector<double> hours;
        for (int i = 1; i <= kWorkloads; ++i) {
            const std::string name = "workload-" + std::to_string(i);
            MUSTER_LET(workload,
                       traces::read_pollux_workload(path + "/" + name + ".csv", {.strict = true}));
            MUSTER_LET(outcomes, reference::run_pollux_tiresias({}, workload.jobs, applications));
            double sum = 0;
            for (const auto& outcome : outcomes)
                sum += static_cast<double>(outcome.end_s - outcome.submit_s);
            hours.push_back(sum / static_cast<double>(outcomes.size()) / 3600);
        }
        Figure figure{.key = "pollux_tiresias_" + load, .value = mean(hours), .unit = "h"};
        figure.sd = deviation(hours), figure.seeds = kWorkloads;
        if (const auto found = known.find({"tiresias", load}); found != known.end())
            figure.published = found->second.mean_s / 3600;
        report(within_share(figure, 0.01));
    }
    return Ok{};
}

}  // namespace muster::compare
