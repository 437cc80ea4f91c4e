// Small worlds with known answers.
#include "simulator/study/study.h"

#include <algorithm>
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

TEST(Study, jobs_wait_for_what_others_hold) {
    Keeper keeper;
    run_all(cluster_of(1), {job("a", 0, 1, 6, 10'000), job("b", 1'000, 1, 6, 5'000)},
            {.check_books = true}, keeper);
    EXPECT_EQ(keeper.of("b").first_start, Time{10'000});
    EXPECT_EQ(keeper.of("b").end, Time{15'000});
}

TEST(Study, a_gang_starts_when_all_its_tasks_are_ready_and_ends_as_its_trace_says) {
    Keeper keeper;
    std::vector<TraceJob> jobs = {job("gang", 0, 4, 8, 60'000), job("bad", 0, 1, 8, 1'000)};
    jobs[1].model.end = Cause::UserError;
    run_all(cluster_of(5), jobs, {.launch = {2'000}, .check_books = true}, keeper);
    EXPECT_EQ(keeper.of("gang").end, Time{62'000});
    EXPECT_EQ(keeper.of("gang").held, 62'000 * 32);
    EXPECT_EQ(keeper.of("gang").useful, 60'000 * 32);
    EXPECT_EQ(keeper.of("bad").state, JobState::Failed);
    EXPECT_EQ(keeper.of("bad").cause, Cause::UserError);
    EXPECT_EQ(keeper.of("bad").useful, 8'000);
}

TEST(Study, no_work_ends_at_once_and_time_limits_end_jobs) {
    Keeper keeper;
    std::vector<TraceJob> jobs = {job("nothing", 0, 1, 1, 0), job("limit", 0, 1, 1, 100'000)};
    jobs[1].spec.time = {30'000};
    run_all(cluster_of(1), jobs, {.check_books = true}, keeper);
    EXPECT_EQ(keeper.of("nothing").state, JobState::Succeeded);
    EXPECT_EQ(keeper.of("nothing").end, Time{0});
    EXPECT_EQ(keeper.of("limit").cause, Cause::TimeLimit);
    EXPECT_EQ(keeper.of("limit").end, Time{30'000});
}

struct Preempted {
    const char* name;
    bool saves;
    std::int64_t stall, restart;
    std::int64_t end, lost;  // Of the one that was preempted.
};
void PrintTo(const Preempted& row, std::ostream* out) {
    *out << row.name;
}
class Preemption : public testing::TestWithParam<Preempted> {};

// "low" runs from 0 for 20 min of work; "high" comes after 10 min and takes all for 5 min.
TEST_P(Preemption, a_victim_goes_on_from_what_it_saved) {
    const Preempted& row = GetParam();
    Keeper keeper;
    std::vector<TraceJob> jobs = {job("low", 0, 1, 8, 1'200'000),
                                  job("high", 600'000, 1, 8, 300'000)};
    jobs[0].model.saves_on_notice = row.saves;
    jobs[0].model.checkpoint_stall = {row.stall};
    jobs[0].model.restart_cost = {row.restart};
    jobs[1].spec.priority = 90;
    const Summary summary = run_all(cluster_of(1), jobs, {.check_books = true}, keeper);
    EXPECT_EQ(summary.preemptions, 1);
    EXPECT_EQ(keeper.of("low").preemptions, 1);
    EXPECT_EQ(keeper.of("low").end, Time{row.end});
    EXPECT_EQ(keeper.of("low").lost, row.lost * 8);
    EXPECT_EQ(keeper.of("low").useful, 1'200'000 * 8);
}
INSTANTIATE_TEST_SUITE_P(Rows, Preemption,
                         testing::Values(Preempted{"saves_at_once", true, 0, 0, 1'500'000, 0},
                                         Preempted{"saving_and_restoring_take_time", true, 5'000,
                                                   20'000, 1'525'000, 0},
                                         Preempted{"never_saves", false, 0, 0, 2'100'000, 600'000}),
                         [](const auto& row) { return std::string(row.param.name); });

/// A file of lifetimes of one length: the nodes all fail then.
Options failing(std::int64_t after, std::int64_t repair) {
    Options options;
    options.failures.law = models::FailureLaw::Replayed;
    options.failures.lifetimes = {{after}};
    options.failures.repair = {repair};
    options.check_books = true;
    return options;
}

TEST(Study, a_failed_nodes_job_resumes_from_its_newest_checkpoint) {
    Keeper keeper;
    std::vector<TraceJob> jobs = {job("a", 0, 1, 8, 2 * kHour)};
    jobs[0].model.checkpoint_every = {600'000};
    const Options options = failing(95 * 60'000, 60'000);  // Repairs take a minute at least.
    const Summary summary = run_all(cluster_of(1), jobs, options, keeper);
    const JobOutcome& a = keeper.of("a");
    EXPECT_EQ(a.state, JobState::Succeeded);
    EXPECT_EQ(a.failures, 1);
    EXPECT_EQ(a.attempts, 2);
    EXPECT_EQ(a.useful, 2 * kHour * 8);
    EXPECT_EQ(a.lost, 5 * 60'000 * 8);
    EXPECT_EQ(a.end, Time{2 * kHour + 5 * 60'000 + 60'000});
    EXPECT_EQ(summary.interruptions, 1);
    EXPECT_EQ(summary.node_failures, 1);
    EXPECT_EQ(keeper.interruptions[Cause::NodeLost], 1);
}

TEST(Study, a_gang_loses_what_it_did_since_its_checkpoint_and_goes_on_with_another_node) {
    Keeper keeper;
    std::vector<TraceJob> jobs = {job("gang", 0, 3, 8, 2 * kHour)};
    jobs[0].model.checkpoint_every = {600'000};
    jobs[0].model.restart_cost = {120'000};
    Options options = failing(0, 0);
    options.failures.law = models::FailureLaw::Exponential;
    options.failures.rate = 20'000'000;  // Twenty a node and day.
    options.failures.repair = {kHour};
    options.seed = 7;
    const Summary summary = run_all(cluster_of(5), jobs, options, keeper);
    const JobOutcome& gang = keeper.of("gang");
    EXPECT_EQ(gang.state, JobState::Succeeded);
    EXPECT_GT(gang.failures, 0);
    EXPECT_EQ(gang.useful, 2 * kHour * 24);
    EXPECT_GT(gang.lost, 0);
    EXPECT_LT(gang.lost, gang.failures * 600'000 * 24);
    EXPECT_EQ(summary.interruptions, gang.failures);
}

TEST(Study, the_same_seed_is_the_same_study_and_another_is_not) {
    const auto digest_of = [](std::uint64_t seed) {
        Keeper keeper;
        std::vector<TraceJob> jobs;
        for (int i = 0; i < 300; ++i) {
            jobs.push_back(job("j" + std::to_string(i), i * 20'000, 1 + i % 3, 1 + i % 8,
                               (1 + i * 7 % 60) * 60'000));
            jobs.back().model.checkpoint_every = {300'000};
            jobs.back().user = "u" + std::to_string(i % 5);
        }
        Options options;
        options.seed = seed;
        options.failures.law = models::FailureLaw::Weibull;
        options.failures.rate = 300'000;
        options.failures.lemons = 200;
        options.failures.leaf_rate = 20'000;
        options.plan_latency = {50};
        options.launch = {1'500};
        options.stop = {700};
        options.check_books = seed == 2;
        const Summary summary = run_all(cluster_of(12), jobs, options, keeper);
        EXPECT_EQ(summary.succeeded, 300);
        EXPECT_GT(summary.interruptions, 0);
        EXPECT_GE(summary.held, summary.useful + summary.lost);
        EXPECT_LE(summary.held, summary.devices_up);
        return summary.digest;
    };
    const std::uint64_t first = digest_of(1);
    EXPECT_EQ(digest_of(1), first);
    EXPECT_NE(digest_of(2), first);
}

/// Jobs without end, made as they are pulled.
class Stream : public JobSource {
public:
    explicit Stream(int count) : count_(count) {}
    std::optional<TraceJob> next() override {
        if (at_ == count_) return std::nullopt;
        const int i = at_++;
        return job("s", i * 1'000, 1, 1, 20'000);
    }

private:
    int count_, at_ = 0;
};
TEST(Study, memory_is_bounded_by_the_jobs_that_live_at_once) {
    Stream stream(20'000);
    Keeper keeper;
    const Result<Summary> summary = run(cluster_of(4), stream, {.plan_every = {1'000}}, keeper);
    ASSERT_TRUE(static_cast<bool>(summary));
    EXPECT_EQ(summary->succeeded, 20'000);
    EXPECT_LE(summary->live_max, 30);
}

TEST(Study, ends_when_told_to_with_what_it_has) {
    Keeper keeper;
    const Summary summary =
        run_all(cluster_of(1),
                {job("a", 0, 1, 8, 10'000), job("b", 0, 1, 8, 10'000), job("c", 90'000, 1, 1, 1)},
                {.until = {15'000}, .check_books = true}, keeper);
    EXPECT_FALSE(summary.complete);
    EXPECT_EQ(summary.unfinished, 1);
    EXPECT_EQ(summary.submitted, 2);
    EXPECT_EQ(keeper.of("b").end, std::nullopt);
    EXPECT_EQ(keeper.of("b").useful, 5'000 * 8);
    EXPECT_EQ(summary.ended, Time{15'000});
}

TEST(Study, what_never_fits_does_not_run_for_ever) {
    Keeper keeper;
    Options options;
    options.failures.law = models::FailureLaw::Exponential;
    const Summary summary = run_all(
        cluster_of(1), {job("big", 0, 2, 8, 10'000), job("a", 0, 1, 1, 1'000)}, options, keeper);
    EXPECT_FALSE(summary.complete);
    EXPECT_EQ(summary.unfinished, 1);
    EXPECT_EQ(keeper.of("big").first_start, std::nullopt);
    EXPECT_EQ(keeper.of("big").state, JobState::Pending);
}

TEST(Study, energy_is_idle_draw_and_work_with_cooling) {
    Keeper keeper;
    Options options;
    options.power.kinds = {{.kind = "h100", .idle_mw = 100'000, .busy_mw = 700'000}};
    options.power.node_mw = 200'000;
    options.power.pue_thousandths = 1'500;
    const Summary summary = run_all(
        cluster_of(1), {job("a", 0, 1, 4, 10'000), job("b", 20'000, 1, 1, 0)}, options, keeper);
    // Of 20 s: the node 200 W, 8 idle devices of 100 W; for 10 s four of them 600 W more.
    EXPECT_EQ(summary.energy_mj, (20 * 1'000'000 + 10 * 2'400'000) * 3 / 2);
    EXPECT_EQ(keeper.of("a").energy_mj, 10 * 4 * 700'000);
    EXPECT_EQ(summary.busy_energy_mj, 10 * 4 * 700'000);
}

TEST(Study, a_power_limit_slows_work_down) {
    Keeper keeper;
    Options options;
    options.power.kinds = {{.kind = "h100", .speed_ppm = 800'000}};
    run_all(cluster_of(1), {job("a", 0, 1, 4, 10'000)}, options, keeper);
    EXPECT_EQ(keeper.of("a").end, Time{12'500});
}

class Halves : public models::RateModel {
public:
    models::Rate rate(const models::RunningJob& job, std::int64_t done,
                      std::int64_t work) override {
        if (done < work / 2) return {models::kMillion, work / 2};
        return {models::kMillion / 4 * static_cast<std::int64_t>(job.nodes.size())};
    }
};
TEST(Study, a_rate_may_change_with_progress) {
    Keeper keeper;
    Halves halves;
    Options options;
    options.rates = &halves;
    run_all(cluster_of(1), {job("a", 0, 1, 4, 10'000)}, options, keeper);
    EXPECT_EQ(keeper.of("a").end, Time{5'000 + 20'000});
}

/// Two jobs on one node slow each other down to half.
class Neighbours : public models::RateModel {
public:
    models::Rate rate(const models::RunningJob&, std::int64_t, std::int64_t) override {
        return {models::kMillion /
                static_cast<std::int64_t>(std::max<std::size_t>(running_.size(), 1))};
    }
    std::vector<JobId> began(const models::RunningJob& job) override {
        const std::vector<JobId> others = running_;
        running_.push_back(job.id);
        return others;
    }
    std::vector<JobId> ended(const models::RunningJob& job) override {
        std::erase(running_, job.id);
        return running_;
    }

private:
    std::vector<JobId> running_;
};
TEST(Study, jobs_may_slow_each_other_down) {
    Keeper keeper;
    Neighbours neighbours;
    Options options;
    options.rates = &neighbours;
    run_all(cluster_of(1), {job("a", 0, 1, 4, 10'000), job("b", 5'000, 1, 4, 10'000)}, options,
            keeper);
    EXPECT_EQ(keeper.of("a").end, Time{15'000});
    EXPECT_EQ(keeper.of("b").end, Time{20'000});
}

TEST(Study, an_elastic_job_works_faster_on_more_nodes) {
    Keeper keeper;
    std::vector<TraceJob> jobs = {job("a", 0, 1, 8, 100'000)};
    jobs[0].spec.roles[0].nodes_max = 4;
    run_all(cluster_of(4), jobs, {.check_books = true}, keeper);
    EXPECT_EQ(keeper.of("a").end, Time{25'000});
    EXPECT_EQ(keeper.of("a").nodes, 4);
}

struct Wrong {
    const char* name;
    void (*make)(Cluster&, std::vector<TraceJob>&, Options&);
    const char* message;
};
void PrintTo(const Wrong& row, std::ostream* out) {
    *out << row.name;
}
class Inputs : public testing::TestWithParam<Wrong> {};
TEST_P(Inputs, are_refused_with_what_is_wrong) {
    Cluster cluster = cluster_of(2);
    std::vector<TraceJob> jobs = {job("a", 5, 1, 1, 1), job("b", 6, 1, 1, 1)};
    Options options;
    GetParam().make(cluster, jobs, options);
    JobList list(std::move(jobs));
    Keeper keeper;
    const Result<Summary> summary = run(cluster, list, options, keeper);
    ASSERT_FALSE(static_cast<bool>(summary));
    EXPECT_NE(summary.error().message.find(GetParam().message), std::string::npos)
        << summary.error().message;
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Inputs,
    testing::Values(
        Wrong{"no_nodes", [](Cluster& c, auto&, auto&) { c.nodes.clear(); }, "it has no nodes"},
        Wrong{"twins", [](Cluster& c, auto&, auto&) { c.nodes[1] = c.nodes[0]; },
              "node n0: is named twice"},
        Wrong{"unsorted", [](auto&, auto& jobs, auto&) { jobs[1].submit = {4}; },
              "job b: is submitted before"},
        Wrong{"far", [](auto&, auto& jobs, auto&) { jobs[1].submit = kNever; },
              "more than nine years"},
        Wrong{"negative", [](auto&, auto& jobs, auto&) { jobs[0].model.work_ms = -1; },
              "its work of -1 ms"},
        Wrong{"shape", [](auto&, auto&, Options& o) { o.failures.shape = 5; }, "0.1 to 10"},
        Wrong{"nothing_to_replay",
              [](auto&, auto&, Options& o) { o.failures.law = models::FailureLaw::Replayed; },
              "no lifetimes"},
        Wrong{"queues",
              [](Cluster& c, auto&, auto&) {
                  model::Queue queue;
                  queue.name = "a/b";
                  c.queues = {queue};
              },
              "parent"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Study, what_the_controller_refuses_is_told) {
    Keeper keeper;
    std::vector<TraceJob> jobs = {job("a", 0, 1, 1, 1)};
    jobs[0].spec.queue = "nowhere";
    const Summary summary = run_all(cluster_of(1), jobs, {}, keeper);
    EXPECT_EQ(summary.refused, 1);
    ASSERT_EQ(keeper.refusals.size(), 1u);
    EXPECT_NE(keeper.refusals[0].find("queue nowhere"), std::string::npos);
}

TEST(Study, samples_tell_who_holds_and_who_waits) {
    Keeper keeper;
    Options options;
    options.sample_every = {5'000};
    run_all(cluster_of(2), {job("a", 0, 1, 6, 12'000), job("b", 0, 2, 8, 1'000)}, options, keeper);
    ASSERT_GE(keeper.samples.size(), 3u);
    const Sample& second = keeper.samples[1];
    EXPECT_EQ(second.at, Time{5'000});
    EXPECT_EQ(second.devices_total, 16);
    EXPECT_EQ(second.devices_held, 6);
    EXPECT_EQ(second.devices_useful, 6);
    EXPECT_EQ(second.running, 1);
    EXPECT_EQ(second.pending, 1);
    EXPECT_EQ(second.largest_free, 8);
    EXPECT_EQ(second.nodes_empty, 1);
}

}  // namespace
}  // namespace muster::simulator::study
