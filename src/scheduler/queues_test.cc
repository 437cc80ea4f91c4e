// Order, bounds, topology and time as rows: a cluster, a moment, and what must come.
#include "scheduler/test_rows.h"

namespace muster::scheduler {
namespace {

const Row kRows[] = {
    {"fifo_is_strict",
     "queue 1 policy=fifo \n node 1 gpus=2 \n run 9 gpus=1 \n job 1 gpus=2 \n job 2 gpus=1", "",
     1000, 2, "behind-first behind=1 ahead=1"},
    {"fifo_is_not_closed_by_what_never_fits",
     "queue 1 policy=fifo \n node 1 gpus=2 \n job 1 gpus=4 \n job 2 gpus=1", "2:n1"},
    {"aging_is_bounded",
     "queue 1 aging=1000 aging_max=5 \n node 1 gpus=1 \n job 1 gpus=1 prio=50 at=0 \n"
     "job 2 gpus=1 prio=56 at=100000",
     "2:n1", 100000},
    {"aging_passes_the_newer",
     "queue 1 aging=1000 aging_max=9 \n node 1 gpus=1 \n job 1 gpus=1 prio=50 at=0 \n"
     "job 2 gpus=1 prio=56 at=100000",
     "1:n1", 100000},
    {"fair_between_users",
     "queue 1 policy=fair \n usage 1 1 devices=1000000 \n node 1 gpus=1 \n job 1 gpus=1 user=1 \n"
     "job 2 gpus=1 user=2",
     "2:n1"},
    {"shortest_first",
     "queue 1 policy=shortest \n node 1 gpus=1 \n job 1 gpus=1 p50=9000 \n job 2 gpus=1 p50=500",
     "2:n1"},
    {"least_attained_first",
     "queue 1 policy=las \n node 1 gpus=1 \n job 1 gpus=1 attained=90000 \n job 2 gpus=1", "2:n1"},
    {"of_equal_service_fewer_devices_first",
     "queue 1 policy=las \n node 1 gpus=8 \n job 1 gpus=8 \n job 2 gpus=1", "2:n1"},
    {"the_guarantee_goes_first",
     "queue 1 weight=1000 \n queue 2 guarantee=gpus:1 weight=1 \n node 1 gpus=1 \n job 1 gpus=1 \n"
     "job 2 queue=2 gpus=1",
     "2:n1"},
    {"beyond_guarantees_by_weight",
     "queue 1 weight=100 \n queue 2 weight=300 \n node 1 gpus=4 \n job 1 gpus=1 count=4 \n"
     "job 2 queue=2 gpus=1 count=4",
     "1:n1 2:n1 2:n1 2:n1"},
    {"borrow_limit",
     "queue 1 guarantee=gpus:1 borrow=gpus:1 \n node 1 gpus=4 \n job 1 gpus=1 count=3", "1:n1 1:n1",
     1000, 1, "borrow-limit wanted=1 queue=1 gpus limit=2000 used=2000 asks=1000"},
    {"lend_limit",
     "queue 1 guarantee=gpus:4 lend=gpus:1 \n queue 2 \n node 1 gpus=4 \n job 1 queue=2 gpus=1 "
     "count=3",
     "1:n1", 1000, 1, "lend-limit wanted=1 queue=1 gpus limit=1000 used=1000 asks=1000"},
    {"user_limit_holds_one_user_only",
     "queue 1 user_limit=gpus:1 \n node 1 gpus=4 \n job 1 gpus=1 user=1 \n job 2 gpus=1 user=1 \n"
     "job 3 gpus=1 user=2",
     "1:n1 3:n1", 1000, 2, "user-limit wanted=1 queue=1 gpus limit=1000 used=1000 asks=1000"},
    {"max_jobs_counts_a_job_of_two_groups_once",
     "queue 1 max_jobs=1 \n node 1 gpus=8 \n job 1 gpus=1 role=1x2", "1:n1,n1"},
    {"not_preemptible_within_the_guarantee_only",
     "queue 1 guarantee=gpus:1 \n node 1 gpus=4 \n job 1 gpus=1 fixed count=2", "1:n1", 1000, 1,
     "guarantee wanted=1 queue=1 gpus limit=1000 used=1000 asks=1000"},
    {"min_runtime",
     "queue 1 min_runtime=5000 \n node 1 gpus=1 \n run 9 gpus=1 prio=1 \n job 1 gpus=1", "", 4999},
    {"min_runtime_is_over",
     "queue 1 min_runtime=5000 \n node 1 gpus=1 \n run 9 gpus=1 prio=1 \n job 1 gpus=1 \n step "
     "4999",
     "stop 9 for 1 (priority) promised 1:n1", 6000},
    {"the_least_lost",
     "queue 1 \n node 1 gpus=2 \n run 8 gpus=1 prio=1 started=100 \n"
     "run 9 gpus=1 prio=1 started=0 saved=90000 \n job 1 gpus=1",
     "stop 9 for 1 (priority) promised 1:n1", 100000},
    {"shrinks_before_it_stops",
     "queue 1 \n node 1 gpus=1 \n node 2 gpus=1 \n node 3 gpus=1 \n run 8 gpus=1 prio=1 node=1 \n"
     "run 9 nodes=1..2 gpus=1 prio=1 node=2,3 \n job 1 gpus=1",
     "stop 9 for 1 (shrink) promised 9:n3 promised 1:n2"},
    {"grows_when_nobody_waits",
     "rules resize=1000 \n queue 1 \n node 1 gpus=1 \n node 2 gpus=1 \n node 3 gpus=1 \n"
     "run 9 nodes=1..3 gpus=1 node=1 checkpoints",
     "stop 9 for 9 (grow) promised 9:n1,n2,n3"},
    {"grows_only_if_it_can_go_on_from_a_checkpoint",
     "rules resize=1000 \n queue 1 \n node 1 gpus=1 \n node 2 gpus=1 \n"
     "run 9 nodes=1..3 gpus=1 node=1",
     ""},
    {"grows_onto_no_node_that_failed_it",
     "rules resize=1000 \n queue 1 \n node 1 gpus=1 \n node 2 gpus=1 \n node 3 gpus=1 \n"
     "run 9 nodes=1..3 gpus=1 node=1 checkpoints avoid=2",
     "stop 9 for 9 (grow) promised 9:n1,n3"},
    {"elastic_takes_all_that_is_left",
     "queue 1 \n node 1 gpus=1 \n node 2 gpus=1 \n node 3 gpus=1 \n node 4 gpus=1 \n"
     "job 1 nodes=1..8 gpus=1 \n job 2 gpus=1",
     "1:n1,n2,n3 2:n4"},
    {"moves_fragments_together",
     "queue 1 \n node 1 gpus=2 \n node 2 gpus=2 \n run 8 gpus=1 node=1 started=999000 "
     "saved=999999\n"
     "run 9 gpus=1 node=2 started=999000 saved=999999 \n job 1 gpus=2 \n step 1000000",
     "", 1000001, 1, "victims wanted=1 total=2 busy=2 devices=2 free=1 of=4"},
    {"spares_stand_beside_the_gang",
     "node 1 gpus=1 \n node 2 gpus=1 \n node 3 gpus=1 \n job 1 nodes=2 gpus=1 spares=1",
     "1:n1,n2,n3*"},
    {"spares_need_no_slice",
     "levels rack \n node 1 gpus=1 path=a \n node 2 gpus=1 path=a \n node 3 gpus=1 path=b \n"
     "job 1 nodes=2 gpus=1 slice=2/rack spares=1",
     "1:n1,n2,n3*"},
    {"a_level_that_nobody_has",
     "node 1 gpus=1 \n node 2 gpus=1 \n job 1 nodes=2 gpus=1 required=pod", "", 1000, 1,
     "never-fits wanted=2 total=2 fit=2 devices=2 free=2 of=2"},
    {"a_required_domain_that_is_not_free",
     "levels rack \n node 1 gpus=1 path=a \n node 2 gpus=1 path=a \n node 3 gpus=1 path=b \n"
     "run 9 gpus=1 node=1 end=7000 \n job 1 nodes=2 gpus=1 required=rack",
     "", 1000, 1,
     "topology wanted=2 total=3 busy=1 fit=2 domain=1 devices=2 free=2 of=3 start=7000"},
    {"an_nvlink_island",
     "node 1 gpus=8 link=2 \n node 2 gpus=8 link=4 \n job 1 gpus=4 required=link", "1:n2"},
    {"ranks_follow_the_tree",
     "levels rack \n node 1 gpus=1 path=b \n node 2 gpus=1 path=a \n node 3 gpus=1 path=b \n"
     "node 4 gpus=1 path=a \n job 1 nodes=4 gpus=1",
     "1:n2,n4,n1,n3"},
    {"a_reservation_is_for_its_users",
     "user 1 ann \n user 2 bob \n reserve 1 nodes=1 from=0 to=9000 users=ann \n node 1 gpus=2 \n"
     "job 1 gpus=1 user=1 \n job 2 gpus=1 user=2",
     "1:n1", 1000, 2,
     "window wanted=1 total=1 busy=1 devices=1 free=1 of=2 reservation=1 start=9000"},
    {"maintenance_to_come_lets_the_short_by",
     "reserve 1 nodes=1 from=5000 to=9000 maintenance \n node 1 gpus=2 \n job 1 gpus=1 time=4000 \n"
     "job 2 gpus=1 time=4001",
     "1:n1", 1000, 2,
     "window wanted=1 total=1 fit=1 devices=1 free=1 of=2 reservation=1 start=9000"},
    {"windows_of_one_node_stand_beside_each_other",
     "node 1 gpus=8 cpus=800 \n node 2 gpus=8 \n node 3 gpus=8 \n run 8 gpus=8 node=2 \n"
     "run 9 gpus=8 node=3 \n job 1 nodes=2 gpus=4 \n job 2 nodes=2 gpus=4 mem=1 \n job 3 gpus=4",
     "", 1000, 3, "reserved wanted=1 total=3 busy=2 fit=1 devices=4 free=8 of=24 behind=1 ahead=2"},
    {"parts_come_with_part_of_the_cpus", "node 1 gpus=1 cpus=8 \n job 1 fraction=250 count=5",
     "1:n1 1:n1 1:n1 1:n1"},
    {"a_profile_is_a_kind_of_its_own",
     "node 1 gpus=2 \n node 2 gpus=2 profile=1g.10gb \n job 1 gpus=1 profile=1g.10gb", "1:n2"},
    {"kinds_mixed_only_if_asked",
     "node 1 gpus=1 kind=a100 \n node 2 gpus=1 kind=h100 \n job 1 nodes=2 gpus=1 mixed", "1:n1,n2"},
};

class Queues : public testing::TestWithParam<Row> {};
TEST_P(Queues, plan) {
    come_out_right(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Table, Queues, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(Queues, standing_has_numbers) {
    Cluster cluster(
        "queue 1 guarantee=gpus:4 \n queue 2 \n node 1 gpus=4 \n run 8 queue=2 gpus=3 \n"
        "run 9 gpus=1 \n job 1 gpus=2 \n job 2 gpus=1 prio=90");
    const auto standing = cluster.index.standing({1}, {1000});
    ASSERT_TRUE(standing.has_value());
    EXPECT_EQ(standing->lines.at(0).guarantee, 4000);
    EXPECT_EQ(standing->lines.at(0).used, 1000);
    EXPECT_EQ(standing->lines.at(0).lent, 3000);
    EXPECT_EQ(standing->running, 1);
    EXPECT_EQ(standing->pending, 2);
    EXPECT_EQ(standing->next, JobId{2});
    EXPECT_EQ(standing->position, 1);
}

TEST(Queues, forecast_tells_whom_it_would_stop_and_leaves_no_trace) {
    Cluster cluster("queue 1 \n node 1 gpus=1 \n run 9 gpus=1 prio=1");
    const auto before = cluster.index.digest();
    const Cluster::Words words = {"job", "1", "gpus=1"};
    const Forecast forecast =
        cluster.index.forecast(cluster.shape(words), cluster.ask(1, words), {1000});
    ASSERT_EQ(forecast.stops.size(), 1u);
    EXPECT_EQ(forecast.stops[0].job, JobId{9});
    EXPECT_EQ(cluster.index.digest(), before);
    EXPECT_TRUE(cluster.index.plan({1000}).stops.empty());
}

}  // namespace
}  // namespace muster::scheduler
