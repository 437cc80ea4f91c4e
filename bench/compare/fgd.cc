// The openb trace through the six policies of the fragmentation paper.
#include <algorithm>
#include <cstdio>
#include <map>

#include "compare.h"
#include "fgd_production.h"
#include "simulator/reference/openb_world.h"
#include "simulator/traces/csv.h"

namespace muster::compare {
namespace {

using namespace simulator;
using reference::PackingPolicy;

constexpr std::array kLists = {"default", "gpushare100", "gpuspec33", "multigpu50", "cpu250"};
constexpr std::uint64_t kFirstSeed = 42;

/// By list and policy, as its own columns name them: the means of the published runs.
Result<std::map<std::pair<std::string, std::string>, double>> published(const std::string& folder) {
    MUSTER_LET(csv,
               traces::CsvFile::open(folder + "/fgd_published_allocation.csv", {.strict = true}));
    MUSTER_LET(workload, csv.column("workload"));
    MUSTER_LET(policy, csv.column("sc_policy"));
    MUSTER_LET(at_end, csv.column("130"));
    std::map<std::pair<std::string, std::string>, std::vector<double>> all;
    MUSTER_TRY(csv.each([&](traces::CsvRow& row) {
        all[{std::string(row.text(workload)), std::string(row.text(policy))}].push_back(
            row.decimal(at_end));
    }));
    std::map<std::pair<std::string, std::string>, double> means;
    for (const auto& [key, values] : all) means[key] = mean(values);
    return means;
}

}  // namespace

Status fgd(const Options& options, const Report& report) {
    const std::string folder = options.traces + "/openb";
    MUSTER_LET(known, published(folder));
    for (const std::string list : kLists) {
        if (!options.list.empty() ? list != options.list : options.quick && list != "default")
            continue;
        MUSTER_LET(world, reference::openb_world(folder, list));
        for (const PackingPolicy policy : reference::kPackingPolicies) {
            const auto values = in_parallel<double>(options.seeds, options.parallel, [&](int seed) {
                return openb_allocation(world, policy,
                                        kFirstSeed + static_cast<std::uint64_t>(seed));
            });
            Figure figure{.key = "fgd_" + list + "_" + std::string(to_string(policy)),
                          .value = mean(values),
                          .unit = "% of GPUs"};
            figure.sd = deviation(values), figure.seeds = options.seeds;
            for (const auto& [key, value] : known) {
                std::string name =
                    key.second.substr(std::min(key.second.find('-') + 1, key.second.size()));
                std::ranges::transform(name, name.begin(), [](unsigned char c) {
                    return static_cast<char>(std::tolower(c));
                });
                if (key.first == "openb_pod_list_" + list &&
                    (name == to_string(policy) || name == "gpu" + std::string(to_string(policy))))
                    figure.published = value;
            }
            report(within(figure, 0.5, "points"));
        }
        const auto gains = in_parallel<double>(options.seeds, options.parallel, [&](int seed) {
            return production_allocation(world, kFirstSeed + static_cast<std::uint64_t>(seed));
        });
        const auto fgds = in_parallel<double>(options.seeds, options.parallel, [&](int seed) {
            return openb_allocation(world, PackingPolicy::Fgd,
                                    kFirstSeed + static_cast<std::uint64_t>(seed));
        });
        std::vector<double> ahead;
        for (std::size_t i = 0; i < gains.size(); ++i) ahead.push_back(gains[i] - fgds[i]);
        Figure figure{.key = "fgd_" + list + "_muster", .value = mean(gains), .unit = "% of GPUs"};
        figure.sd = deviation(gains), figure.seeds = options.seeds;
        figure.inside = mean(ahead) >= 0;
        figure.bound = "not below own fgd, paired by seed";
        char note[80];
        std::snprintf(note, sizeof note, "%+.2f ± %.2f to own fgd", mean(ahead), deviation(ahead));
        figure.note = note;
        report(figure);
    }
    return Ok{};
}

}  // namespace muster::compare
