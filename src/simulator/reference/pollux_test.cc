#include "simulator/reference/pollux.h"

#include <cstdlib>
#include <filesystem>

namespace muster::simulator::reference {
namespace {

using models::Application;
using models::ApplicationTables;

/// Two nodes of two devices. A step takes a second on any placement; epochs of 100 and 50 steps.
constexpr PolluxRules kSmall{.nodes = 2, .devices = 2, .demote_device_s = 240};
std::map<std::string, Application> toy() {
    ApplicationTables tables;
    tables.name = "toy";
    for (const models::Placement& placement : {models::Placement{1}, {2}, {1, 1}, {1, 2}, {2, 2}})
        tables.placed.push_back({placement, 1, {1, 0}});
    for (const int batch : {1, 2, 3, 4})
        tables.validation[batch] = {{100, 0, 1, 0}, {150, 0, 1, 0}};
    auto application = Application::of(std::move(tables));
    EXPECT_TRUE(application);
    std::map<std::string, Application> all;
    all.emplace("toy", *std::move(application));
    return all;
}

/// "id: nodes" of those that hold something.
std::string text(const Tiresias::Allocations& held) {
    std::string out;
    for (const auto& [id, nodes] : held) {
        out += (out.empty() ? "" : ", ") + std::to_string(id) + ":";
        for (const int node : nodes) out += " " + std::to_string(node);
    }
    return out;
}

TEST(Tiresias, starts_from_the_emptiest_node_and_passes_over_what_does_not_fit) {
    Tiresias policy(kSmall);
    const std::vector<Tiresias::Job> jobs{{0, 1}, {1, 2}, {2, 3}, {3, 1}};
    const auto held = policy.allocate(60, jobs, {});
    // 0 takes the first node, 1 the second, emptier one whole; 2 does not fit, 3 behind it does.
    EXPECT_EQ(text(held), "0: 0, 1: 1 1, 3: 0");
    // Who goes on keeps its place; freed devices go to the first in the queue.
    const std::vector<Tiresias::Job> later{{1, 2}, {2, 3}, {3, 1}, {4, 1}};
    EXPECT_EQ(text(policy.allocate(120, later, held)), "1: 1 1, 3: 0, 4: 0");
}

TEST(Tiresias, who_was_served_long_goes_behind_and_loses_everything) {
    Tiresias policy(kSmall);
    const std::vector<Tiresias::Job> jobs{{0, 4}, {1, 1}};
    auto held = policy.allocate(0, jobs, {});
    EXPECT_EQ(text(held), "0: 0 0 1 1");
    held = policy.allocate(59, jobs, std::move(held));
    EXPECT_EQ(text(held), "0: 0 0 1 1") << "236 device-seconds are below 240";
    held = policy.allocate(60, jobs, std::move(held));
    EXPECT_EQ(text(held), "1: 0");
    // It does not come back by waiting.
    held = policy.allocate(100'000, std::vector<Tiresias::Job>{{0, 4}, {1, 1}, {2, 1}},
                           std::move(held));
    EXPECT_EQ(text(held), "1: 0, 2: 1");
    held = policy.allocate(100'060, std::vector<Tiresias::Job>{{0, 4}}, std::move(held));
    EXPECT_EQ(text(held), "0: 0 0 1 1");
}

struct Row {
    std::string name;
    std::vector<traces::PolluxJob> jobs;
    std::string want;  // "end restarts" of each.
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}
class Runs : public testing::TestWithParam<Row> {};
TEST_P(Runs, ends_at) {
    const auto outcomes = run_pollux_tiresias(kSmall, GetParam().jobs, toy());
    ASSERT_TRUE(outcomes) << outcomes.error().message;
    std::string out;
    for (const auto& outcome : *outcomes)
        out += (out.empty() ? "" : ", ") + std::to_string(outcome.end_s) + " " +
               std::to_string(outcome.restarts);
    EXPECT_EQ(out, GetParam().want);
}
// A job of 150 steps of 1 s that arrives by 60 s starts then, stands still 30 s, ends at 240 s.
INSTANTIATE_TEST_SUITE_P(
    Rows, Runs,
    testing::Values(
        Row{"one", {{"a", 5, "toy", 1, 1}}, "240 0"},
        Row{"arrivals_wait_for_the_tick",
            {{"a", 60, "toy", 1, 1}, {"b", 61, "toy", 1, 1}},
            "240 0, 300 0"},
        // Four devices: demoted at 60 + 60 s, but nobody waits, so nothing changes. A batch of 4 in
        // steps without noise is worth 1.
        Row{"demotion_alone_changes_nothing", {{"a", 5, "toy", 4, 4}}, "240 0"},
        // At 120 s a has 30 of 150 steps and b takes the cluster until its end at 300 s; a starts
        // again on the tick, then stands still and works off 120 steps: 300 + 30 + 120.
        Row{"preempted_work_is_kept_and_a_restart_costs",
            {{"a", 5, "toy", 4, 4}, {"b", 61, "toy", 1, 1}},
            "450 1, 300 0"}));

TEST(Pollux, halves_of_a_second_go_to_the_even) {
    ApplicationTables tables;
    tables.name = "toy";
    tables.placed.push_back({{1}, 1, {1, 0}});
    tables.validation[1] = {{2.5, 0, 1, 0}, {5, 0, 1, 0}};
    std::map<std::string, Application> all;
    all.emplace("toy", *Application::of(std::move(tables)));
    const std::vector<traces::PolluxJob> jobs{{"a", 0, "toy", 1, 1}};
    const auto outcomes = run_pollux_tiresias(kSmall, jobs, all);
    ASSERT_TRUE(outcomes);
    EXPECT_EQ((*outcomes)[0].end_s, 60 + 30 + 2 + 2);
}

TEST(Pollux, refuses_what_it_cannot_run) {
    const auto error = [](traces::PolluxJob job) {
        const auto outcomes = run_pollux_tiresias(kSmall, std::vector{std::move(job)}, toy());
        return outcomes ? std::string("ran") : outcomes.error().message;
    };
    EXPECT_EQ(error({"a", 0, "none", 1, 1}), "job 'a' runs 'none', which has no profile");
    EXPECT_EQ(error({"a", 0, "toy", 5, 5}), "job 'a' asks for 5 devices; the cluster has 4");
    EXPECT_EQ(error({"a", 0, "toy", 1, 4}), "ran");
    EXPECT_EQ(error({"a", 0, "toy", 3, 12}),
              "the profile of 'toy' does not cover batch 12 on 3 devices");
}

TEST(Pollux, workload_6_is_as_published) {
    const char* named = std::getenv("MUSTER_TRACES");
    const std::string folder =
        (named != nullptr ? named : std::string(MUSTER_SOURCE_DIR) + "/../shared/traces") +
        "/pollux";
    if (!std::filesystem::exists(folder))
        GTEST_SKIP() << "no traces in " << folder << "; MUSTER_TRACES names another folder";
    const auto applications = traces::read_applications(folder + "/profiles");
    ASSERT_TRUE(applications) << applications.error().message;
    const auto workload = traces::read_pollux_workload(folder + "/workloads/workload-6.csv");
    ASSERT_TRUE(workload);
    EXPECT_EQ(workload->bad.count, 0);
    const auto outcomes = run_pollux_tiresias({}, workload->jobs, *applications);
    ASSERT_TRUE(outcomes) << outcomes.error().message;
    std::int64_t sum = 0, last = 0;
    for (const auto& outcome : *outcomes) {
        sum += outcome.end_s - outcome.submit_s;
        last = std::max(last, outcome.end_s);
    }
    EXPECT_EQ(outcomes->size(), 160u);
    EXPECT_EQ(sum, 555'151);  // 3469.69 s a job.
    EXPECT_EQ(last, 78'609);
}

}  // namespace
}  // namespace muster::simulator::reference
