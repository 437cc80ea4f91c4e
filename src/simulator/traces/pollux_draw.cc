#include "simulator/traces/pollux_draw.h"

#include <algorithm>
#include <array>
#include <optional>

#include "simulator/traces/mersenne.h"
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {
namespace {

using models::Application;
using models::Placement;

constexpr double kHour = 3600;
constexpr std::int64_t kDay = 24 * 3600;
constexpr int kDevicesPerNode = 4;
constexpr std::array kReplicas = {1, 2, 4, 6, 8, 12, 16, 24, 32, 48};

struct Fastest {
    double seconds = 0;
    int batch = 0;
};
/// Of all batches that were measured, on whole nodes and a rest.
std::optional<Fastest> fastest(const Application& application, int replicas) {
    Placement placement;
    for (int left = replicas; left > 0; left -= kDevicesPerNode)
        placement.push_back(std::min(left, kDevicesPerNode));
    std::optional<Fastest> best;
    for (const int batch : application.batches()) {
        const int share = (batch + replicas - 1) / replicas;
        if (share < application.local_min()) continue;
        const int passes = (share + application.local_max() - 1) / application.local_max();
        const int local = (share + passes - 1) / passes;
        const auto time = application.step_time(placement, local);
        if (!time) continue;
        const double step = time->step_s + (passes - 1) * (time->step_s - time->sync_s);
        const double seconds = *application.iterations(batch) * step;
        if (!best || seconds < best->seconds) best = Fastest{seconds, batch};
    }
    return best;
}

}  // namespace

std::vector<Tuned> tuned_configurations(const Application& application) {
    std::vector<Tuned> found;
    std::optional<Fastest> alone;
    for (const int replicas : kReplicas) {
        if (replicas * application.local_min() > application.batch_max()) break;
        const auto best = fastest(application, replicas);
        if (!best) continue;
        if (replicas == 1) {
            alone = best;
            continue;
        }
        if (!alone) break;
        const double kept = alone->seconds / best->seconds / replicas;
        if (best->seconds < 12 * kHour && kept > 0.5 && kept < 0.8)
            found.push_back({replicas, best->batch});
    }
    if (found.empty() && alone) found.push_back({1, alone->batch});
    return found;
}

Result<std::vector<PhillyJob>> read_philly_jobs(const std::string& path) {
    MUSTER_LET(csv, CsvFile::open(path, {.strict = true}));
    MUSTER_LET(stamp, csv.column("timestamp"));
    MUSTER_LET(duration, csv.column("duration"));
    MUSTER_LET(gpu_time, csv.column("gpu_time"));
    std::vector<PhillyJob> jobs;
    MUSTER_TRY(csv.each([&](CsvRow& row) {
        const auto at = parse_stamp(row.text(stamp));
        if (!at) return row.refuse(stamp, "not a time");
        const PhillyJob job{.second = at->ms / 1000 % kDay,
                            .duration_s = row.decimal(duration),
                            .gpu_s = row.decimal(gpu_time)};
        if (row.ok()) jobs.push_back(job);
    }));
    return jobs;
}

Result<std::vector<PolluxJob>> draw_pollux_workload(
    const std::vector<PhillyJob>& philly, const std::map<std::string, Application>& applications,
    std::size_t count, std::uint32_t seed) {
    constexpr std::int64_t kFrom = 2 * 3600, kLength = 8 * 3600;
    std::map<std::string, std::vector<Tuned>> tuned;
    for (const std::string name : {"cifar10", "ncf", "deepspeech2", "bert", "yolov3", "imagenet"}) {
        const auto found = applications.find(name);
        if (found == applications.end())
            return Error{Code::NotFound, "the profiles lack '" + name + "', which workloads draw"};
        tuned[name] = tuned_configurations(found->second);
    }
    std::vector<PhillyJob> eligible;
    for (PhillyJob job : philly) {
        job.second = (job.second - kFrom + kDay) % kDay;
        if (job.duration_s >= 60 && job.gpu_s < 1000 * kHour && job.second < kLength)
            eligible.push_back(job);
    }
    if (eligible.size() < count)
        return Error{Code::Invalid, std::to_string(eligible.size()) + " jobs qualify; " +
                                        std::to_string(count) + " are to be drawn"};

    Mersenne random = Mersenne::of_python(seed), for_bert = Mersenne::of_python(seed + 3);
    const auto sample = static_cast<std::uint32_t>(random.below((std::uint64_t{1} << 32) + 1));
    const auto order =
        Mersenne::of_numpy(sample).permutation(static_cast<std::uint32_t>(eligible.size()));
    std::vector<PolluxJob> jobs;
    for (std::size_t i = 0; i < count; ++i) {
        const PhillyJob& source = eligible[order[i]];
        PolluxJob job;
        job.submit_s = source.second;
        if (source.gpu_s < kHour)
            job.application = random.below(2) == 0 ? "cifar10" : "ncf";
        else if (source.gpu_s < 10 * kHour)
            job.application = "deepspeech2";
        else
            job.application = source.gpu_s < 100 * kHour ? "yolov3" : "imagenet";
        const auto choose = [&](Mersenne& from) {
            const auto& choices = tuned.at(job.application);
            const Tuned& chosen = choices[from.below(choices.size())];
            job.replicas = chosen.replicas;
            job.batch = chosen.batch;
        };
        choose(random);
        // Half of these become another application, by draws of their own.
        if (job.application == "deepspeech2" && for_bert.below(2) == 1) {
            job.application = "bert";
            choose(for_bert);
        }
        jobs.push_back(std::move(job));
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const PolluxJob& a, const PolluxJob& b) {
        return a.submit_s < b.submit_s;
    });
    for (std::size_t i = 0; i < jobs.size(); ++i)
        jobs[i].name = jobs[i].application + "-" + std::to_string(i);
    return jobs;
}

}  // namespace muster::simulator::traces
