// Each row is a cluster with its queue, and the plan, as text.
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

struct Row {
    const char* name;
    const char* world;
    const char* starts;
    std::uint64_t ask = 0;  // Whose reason; 0: nobody's.
    const char* why = "";
    friend void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
};

const Row kRows[] = {
    {"one_device_goes_where_it_fits_best",
     "node 1 gpus=8 \n node 2 gpus=8 \n run 9 gpus=7 node=2 \n job 1 gpus=1", "1:n2"},
    {"a_gang_takes_different_nodes", "node 1 gpus=8 \n node 2 gpus=8 \n job 1 nodes=2 gpus=8",
     "1:n1,n2"},
    {"a_gang_starts_whole_or_not_at_all",
     "node 1 gpus=8 \n node 2 gpus=8 \n run 9 gpus=1 node=1 \n job 1 nodes=2 gpus=8", "", 1,
     "not-enough-free wanted=2 total=2 busy=1 fit=1 devices=16 free=15 of=16"},
    {"F3_a_sum_of_devices_is_not_a_node", "node 1 gpus=4 \n node 2 gpus=4 \n job 1 gpus=8", "", 1,
     "never-fits wanted=1 total=2 unfit=2 devices=8"},
    {"work_without_devices_keeps_off_device_nodes", "node 1 gpus=8 \n node 2 \n job 1 cpus=4",
     "1:n2"},
    {"and_takes_them_if_it_must", "node 1 gpus=8 \n node 2 cpus=2 \n job 1 cpus=4", "1:n1"},
    {"but_first_those_with_no_device_idle",
     "node 1 gpus=8 cpus=16 \n node 2 gpus=8 cpus=128 \n run 9 gpus=8 cpus=8 node=2 \n job 1 "
     "cpus=4",
     "1:n2"},
    {"devices_keep_the_cpus_that_are_asked_with_them",
     "node 1 gpus=4 cpus=32 \n node 2 gpus=4 cpus=128 \n node 3 gpus=4 cpus=32 \n"
     "run 9 gpus=1 cpus=8 node=3 \n job 1 gpus=1 cpus=32",
     "1:n2"},
    {"a_kind_that_is_asked_for_by_name_is_left",
     "node 1 gpus=1 kind=a100 \n node 2 gpus=1 kind=h100 \n node 3 gpus=1 kind=a100 \n"
     "run 9 gpus=1 kind=a100 node=3 \n job 1 gpus=1 kind=any",
     "1:n2"},
    {"what_is_asked_for_counts_while_it_waits",
     "node 1 gpus=1 kind=a100 \n node 2 gpus=1 kind=h100 \n job 1 gpus=1 kind=any \n"
     "job 2 gpus=1 kind=a100 begin=5000",
     "1:n2"},
    {"priority_then_submission_then_id",
     "node 1 gpus=1 \n job 1 gpus=1 at=5 \n job 2 gpus=1 prio=60 at=9 \n job 3 gpus=1 at=4",
     "2:n1"},
    {"first_in_first_out", "node 1 gpus=1 \n job 1 gpus=1 at=5 \n job 3 gpus=1 at=4", "3:n1"},
    {"alternatives_in_order",
     "node 1 gpus=8 kind=a100 \n node 2 gpus=8 kind=h100 \n job 1 gpus=8 kind=h100,a100 \n"
     "job 2 gpus=8 kind=h100,a100",
     "1:n2 2:n1"},
    {"a_gang_has_one_kind",
     "node 1 gpus=8 kind=a100 \n node 2 gpus=8 kind=h100 \n job 1 nodes=2 gpus=8", "", 1,
     "never-fits wanted=2 total=2 fit=2 devices=16 free=16 of=16"},
    {"a_named_kind", "node 1 gpus=8 kind=a100 \n node 2 gpus=8 kind=h100 \n job 1 gpus=1 kind=h100",
     "1:n2"},
    {"memory_and_cpus_count_too",
     "node 1 mem=16 \n node 2 mem=32 \n run 9 mem=20 node=2 \n job 1 mem=14 \n job 2 mem=16",
     "1:n1", 2, "not-enough-free wanted=1 total=2 busy=2 ahead=1"},
    {"cpus_default_to_the_share_by_devices",
     "node 1 gpus=8 cpus=8 \n job 1 gpus=4 \n job 2 gpus=4 \n job 3 cpus=1", "1:n1 2:n1", 3,
     "not-enough-free wanted=1 total=1 busy=1 ahead=2"},
    {"constraints", "node 1 label=zone:a \n node 2 label=zone:b \n job 1 only=zone:b", "1:n2"},
    {"a_constraint_nobody_meets", "node 1 label=zone:a \n job 1 only=zone:c", "", 1,
     "never-fits wanted=1 total=1 unfit=1"},
    {"whole_nodes", "node 1 \n node 2 \n run 9 node=1 \n job 1 exclusive \n job 2 nodes=1 cpus=1",
     "1:n2 2:n1"},
    {"nothing_beside_an_exclusive_job", "node 1 \n run 9 exclusive node=1 \n job 1", "", 1,
     "not-enough-free wanted=1 total=1 busy=1"},
    {"avoids_the_node_that_failed_it", "node 1 \n node 2 \n job 1 avoid=1", "1:n2"},
    {"but_uses_it_if_nothing_else_would_do", "node 1 \n job 1 avoid=1", "1:n1"},
    {"and_waits_for_others_that_would", "node 1 \n node 2 cpus=1 \n run 9 node=2 \n job 1 avoid=1",
     "", 1, "not-enough-free wanted=1 total=2 busy=1 fit=1"},
    {"an_array_starts_as_many_as_fit", "node 1 gpus=3 \n job 1 gpus=1 count=5", "1:n1 1:n1 1:n1"},
    {"not_before_its_time", "node 1 \n job 1 begin=5000", "", 1, "not-eligible start=5000"},
    {"no_nodes", "job 1", "", 1, "no-nodes wanted=1"},
    {"a_drained_node_takes_nothing", "node 1 \n drain 1 \n job 1", "", 1,
     "no-nodes wanted=1 total=1 unusable=1"},
    {"F51_idle_nodes_that_do_not_fit_are_told_with_numbers",
     "node 1 gpus=8 \n node 2 gpus=4 \n node 3 gpus=8 down \n run 9 gpus=1 node=1 \n job 1 gpus=8 "
     "prio=10",
     "", 1, "not-enough-free wanted=1 total=3 unusable=1 unfit=1 busy=1 devices=8 free=7 of=16"},
    {"backfill_that_ends_in_time",
     "node 1 gpus=8 \n node 2 gpus=8 \n run 9 gpus=8 time=9000 node=1 \n job 1 nodes=2 gpus=8 \n"
     "job 2 gpus=8 time=8000",
     "2:n2", 1, "not-enough-free wanted=2 total=2 busy=1 fit=1 devices=16 free=8 of=16 start=9000"},
    {"no_backfill_that_would_delay_the_first",
     "node 1 gpus=8 \n node 2 gpus=8 \n run 9 gpus=8 time=9000 node=1 \n job 1 nodes=2 gpus=8 \n"
     "job 2 gpus=8 time=8001",
     "", 2, "reserved wanted=1 total=2 busy=1 fit=1 devices=8 free=8 of=16 behind=1 ahead=1"},
    {"backfill_beside_the_reservation",
     "node 1 gpus=8 \n node 2 gpus=8 \n run 9 gpus=8 time=9000 node=1 \n job 1 nodes=2 gpus=4 \n"
     "job 2 gpus=4 \n job 3 gpus=4",
     "2:n2"},
    {"an_impossible_job_reserves_nothing",
     "node 1 gpus=8 \n run 9 gpus=7 time=9000 node=1 \n job 1 gpus=16 prio=99 \n job 2 gpus=1",
     "2:n1", 1, "never-fits wanted=1 total=1 unfit=1 devices=16"},
    {"F21_small_endless_jobs_do_not_starve_a_gang",
     "node 1 gpus=8 \n node 2 gpus=8 \n run 9 gpus=8 node=1 \n job 1 nodes=2 gpus=8 \n job 2 "
     "gpus=1",
     ""},
};

class Plans : public testing::TestWithParam<Row> {};
TEST_P(Plans, start_and_explain) {
    Cluster cluster(GetParam().world);
    EXPECT_EQ(cluster.show(), GetParam().starts);
    if (GetParam().ask != 0) EXPECT_EQ(cluster.why(GetParam().ask), GetParam().why);
}
INSTANTIATE_TEST_SUITE_P(Table, Plans, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(Plan, waits_are_told_once_and_again_when_they_change) {
    Cluster cluster("node 1 gpus=8 \n run 9 gpus=8 node=1 \n job 1 gpus=8 \n job 2 gpus=8");
    const Plan first = cluster.index.plan({1000});
    ASSERT_EQ(first.shape_waits.size(), 1u);
    EXPECT_EQ(first.shape_waits[0].why.reason, Blocked::Reason::NotEnoughFree);
    EXPECT_TRUE(cluster.index.plan({1001}).shape_waits.empty());
    cluster.add("drain 1");
    EXPECT_EQ(cluster.index.plan({1002}).shape_waits.size(), 1u);
}

TEST(Plan, is_cut_at_its_bound_and_says_so) {
    Cluster cluster("node 1 cpus=64");
    for (int i = 1; i <= 10; ++i) cluster.add("job " + std::to_string(i));
    const Plan plan = cluster.index.plan({1000}, {.starts_max = 4});
    EXPECT_EQ(plan.starts.size(), 4u);
    EXPECT_FALSE(plan.complete);
}

TEST(Plan, wakes_for_the_next_begin) {
    Cluster cluster("node 1 \n job 1 begin=7000");
    EXPECT_EQ(cluster.index.plan({1000}).wake, Time{7000});
    EXPECT_EQ(cluster.show({7000}), "1:n1");
}

}  // namespace
}  // namespace muster::scheduler
