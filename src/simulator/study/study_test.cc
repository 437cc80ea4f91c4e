// Small worlds with known answers.
#include "simulator/study/study.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::simulator::study {
namespace {

using model::Cause;
using model::JobState;

constexpr std::int64_t kHour = 3'600'000;

struct Kept {
    std::string name;
    JobOutcome job;
};
class Keeper : public Sink {
public:
    std::vector<Kept> jobs;
    std::vector<std::string> refusals;
    std::vector<Sample> samples;
    std::map<Cause, int> interruptions;

    void ended(const JobOutcome& job) override { jobs.push_back({std::string(job.name), job}); }
    void refused(const Refusal& refusal) override { refusals.emplace_back(refusal.reason); }
    void sample(const Sample& sample) override { samples.push_back(sample); }
    void interrupted(JobId, Time, Cause cause) override { ++interruptions[cause]; }
    const JobOutcome& of(const std::string& name) const {
        for (const Kept& kept : jobs)
            if (kept.name == name) return kept.job;
        ADD_FAILURE() << "no job " << name;
        return jobs.front().job;
    }
};

TraceJob job(std::string name, std::int64_t at, std::int64_t nodes, std::int64_t gpus,
             std::int64_t work) {
    TraceJob out;
    out.name = std::move(name);
    out.submit = {at};
    out.spec.roles.resize(1);
    out.spec.roles[0].nodes = out.spec.roles[0].nodes_max = nodes;
    if (gpus > 0)
        out.spec.roles[0].devices = {
            {.kind = "gpu", .count = gpus, .memory_min = {}, .vendor = ""}};
    out.spec.roles[0].run = "train";
    out.model.work_ms = work;
    return out;
}
Cluster cluster_of(int nodes, int gpus = 8) {
    Cluster cluster;
    for (int i = 0; i < nodes; ++i)
        cluster.nodes.push_back(make_node("n" + std::to_string(i), "h100", gpus, {64'000},
                                          {std::int64_t{256} << 30}, "l" + std::to_string(i / 4)));
    return cluster;
}
Summary run_all(const Cluster& cluster, std::vector<TraceJob> jobs, Options options,
                Keeper& keeper) {
    JobList list(std::move(jobs));
    const Result<Summary> summary = run(cluster, list, options, keeper);
    if (!summary) {
        ADD_FAILURE() << summary.error().message;
        return {};
    }
    return *summary;
}

TEST(Study, one_job_runs_for_as_long_as_its_work) {
    Keeper keeper;
    const Summary summary =
        run_all(cluster_of(1), {job("a", 0, 1, 4, 10'000)}, {.check_books = true}, keeper);
    ASSERT_EQ(keeper.jobs.size(), 1u);
    const JobOutcome& a = keeper.of("a");
    EXPECT_EQ(a.state, JobState::Succeeded);
    EXPECT_EQ(a.first_start, Time{0});
    EXPECT_EQ(a.end, Time{10'000});
    EXPECT_EQ(a.held, 40'000);
    EXPECT_EQ(a.useful, 40'000);
    EXPECT_EQ(a.lost, 0);
    EXPECT_EQ(a.devices, 4);
    EXPECT_EQ(a.attempts, 1);
    EXPECT_EQ(summary.succeeded, 1);
    EXPECT_EQ(summary.devices_total, 80'000);
    EXPECT_TRUE(summary.complete);
}

}  // namespace
}  // namespace muster::simulator::study
