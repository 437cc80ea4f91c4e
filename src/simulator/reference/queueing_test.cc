#include "simulator/reference/queueing.h"

#include <sstream>

#include <gtest/gtest.h>

#include "simulator/reference/muri_world.h"

namespace muster::simulator::reference {
namespace {

/// Jobs as "submit+seconds*gpus" on a cluster "nodes x gpus"; when each ended.
struct Row {
    std::string name;
    QueueingPolicy policy;
    std::int64_t nodes, gpus;
    std::string jobs, want;
    double overhead = 0;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

std::vector<QueueingJob> jobs_of(const Row& row) {
    std::vector<QueueingJob> out;
    std::istringstream text(row.jobs);
    char plus = 0, star = 0;
    double submit = 0, seconds = 0;
    for (std::int64_t gpus = 0; text >> submit >> plus >> seconds >> star >> gpus;)
        out.push_back({gpus, submit, seconds, 1, row.overhead});
    return out;
}

class QueueingRows : public testing::TestWithParam<Row> {};
TEST_P(QueueingRows, ends_when_it_should) {
    const Row& row = GetParam();
    const auto jobs = jobs_of(row);
    const auto result = run_queueing(jobs, {.policy = row.policy,
                                            .nodes = row.nodes,
                                            .gpus = row.gpus,
                                            .overhead = row.overhead > 0,
                                            .thresholds = {8, 32}});
    ASSERT_TRUE(result) << result.error().message;
    std::ostringstream got;
    for (std::size_t i = 0; i < jobs.size(); ++i)
        got << (i == 0 ? "" : " ") << jobs[i].submit + result->jct[i];
    EXPECT_EQ(got.str(), row.want);
}
using enum QueueingPolicy;
INSTANTIATE_TEST_SUITE_P(
    Rows, QueueingRows,
    testing::Values(
        Row{"one", Srtf, 1, 8, "0+10*1", "10"},
        Row{"beside_each_other", Srtf, 1, 8, "0+10*4 0+20*4", "10 20"},
        Row{"the_shortest_first", Srtf, 1, 8, "0+10*8 0+5*8", "15 5"},
        Row{"a_shorter_one_preempts", Srtf, 1, 8, "0+10*8 2+3*8", "13 5"},
        Row{"a_longer_one_does_not", Srtf, 1, 8, "0+10*8 2+9*8", "10 19"},
        Row{"by_service_the_narrow_go_first", Srsf, 1, 8, "0+5*8 0+10*1 0+39*1", "44 10 39"},
        Row{"by_time_the_wide_do", Srtf, 1, 8, "0+5*8 0+10*1 0+39*1", "5 15 44"},
        Row{"equal_ones_in_order_of_submission", Srtf, 1, 8, "0+5*8 0+5*8", "5 10"},
        Row{"those_that_fit_pass_those_that_do_not", Srtf, 1, 8, "0+9*6 0+10*4 0+20*2", "9 19 20"},
        Row{"on_one_node", Srtf, 2, 8, "0+5*6 0+5*6 0+10*4", "5 5 15"},
        Row{"the_wide_on_whole_nodes", Srtf, 2, 8, "0+5*1 0+10*16", "5 15"},
        Row{"as_given_not_as_submitted", Srtf, 1, 8, "4+3*8 0+6*8", "9 6"},
        Row{"overhead_is_lost_at_each_event", Srtf, 1, 8, "0+10*4 4+20*4", "11 25", 1},
        Row{"served_least_first", Las, 1, 8, "0+10*8 1+1*8", "11 2"},
        // At 1 s the first has had 8 device-seconds: the next level.
        Row{"a_level_down", Las, 1, 8, "0+10*8 0+1*8 0+1*8", "12 2 3"},
        Row{"until_the_last_level_then_first_come", Las, 1, 8, "0+10*8 0+10*8", "14 20"},
        Row{"devices_are_counted_nodes_are_not", Las, 2, 8, "0+1*6 0+1*6 0+1*4", "1 1 1"}),
    [](const auto& row) { return row.param.name; });

TEST(Queueing, refuses_what_could_never_run) {
    const std::vector<QueueingJob> wide = {{65, 0, 1, 1, 0}}, odd = {{12, 0, 1, 1, 0}};
    EXPECT_EQ(run_queueing(wide, {}).error().code, Code::Invalid);
    EXPECT_EQ(run_queueing(odd, {}).error().code, Code::Invalid);
    EXPECT_TRUE(run_queueing({}, {}));
}

TEST(Queueing, jobs_of_no_work_end_at_once) {
    const std::vector<QueueingJob> jobs(2000, QueueingJob{1, 5, 0, 1, 0});
    for (const QueueingPolicy policy : kQueueingPolicies) {
        const auto result = run_queueing(jobs, {.policy = policy});
        ASSERT_TRUE(result);
        EXPECT_EQ(result->average, 0);
        EXPECT_EQ(result->makespan, 5);
    }
}

TEST(Queueing, statistics) {
    std::vector<QueueingJob> jobs;
    for (int i = 1; i <= 200; ++i) jobs.push_back({1, 0, static_cast<double>(i), 1, 0});
    const auto result = run_queueing(jobs, {.policy = Srtf, .nodes = 200, .gpus = 1});
    ASSERT_TRUE(result);
    EXPECT_DOUBLE_EQ(result->average, 100.5);
    EXPECT_DOUBLE_EQ(result->p99, 199);
    EXPECT_DOUBLE_EQ(result->makespan, 200);
}

TEST(Muri, overheads_are_by_model_and_width) {
    EXPECT_EQ(muri_overhead("a2c", 1), 38);
    EXPECT_EQ(muri_overhead("vgg16", 32), 10);
    EXPECT_EQ(muri_overhead("dqn", 16), 8);
    EXPECT_EQ(muri_overhead("unheard_of", 8), 0);
}

}  // namespace
}  // namespace muster::simulator::reference
