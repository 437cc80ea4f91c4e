// Reports from the field, by their numbers: each row is a cluster, a moment, and what must come.
#include "scheduler/test_rows.h"

namespace muster::scheduler {
namespace {

const Row kRows[] = {
    {"F1_victims_on_one_node_or_none",
     "queue 1 \n node 1 gpus=2 \n node 2 gpus=2 \n run 11 gpus=1 node=1 prio=10 \n"
     "run 12 gpus=1 node=1 prio=90 \n run 13 gpus=1 node=2 prio=10 \n run 14 gpus=1 node=2 "
     "prio=90\n"
     "job 1 gpus=2 prio=50",
     "", 1000, 1, "not-enough-free wanted=1 total=2 busy=2 devices=2 of=4"},
    {"F1_all_victims_on_the_node_where_it_then_fits",
     "queue 1 \n node 1 gpus=2 \n node 2 gpus=2 \n run 11 gpus=1 node=1 prio=10 \n"
     "run 12 gpus=1 node=1 prio=90 \n run 13 gpus=1 node=2 prio=10 \n run 14 gpus=1 node=2 "
     "prio=20\n"
     "job 1 gpus=2 prio=50",
     "stop 13 for 1 (priority) stop 14 for 1 (priority) promised 1:n2"},
    {"F5_free_and_freeable_together",
     "queue 1 \n node 1 gpus=8 \n node 2 gpus=8 \n run 9 gpus=8 node=2 prio=10 \n"
     "job 1 nodes=2 gpus=8 prio=60",
     "stop 9 for 1 (priority) promised 1:n1,n2"},
    {"F7_by_counts_not_by_ids",
     "node 1 gpus=2 \n run 8 gpus=1 end=36000000 \n run 9 gpus=1 end=3600000 \n job 1 gpus=1", "",
     1000, 1, "not-enough-free wanted=1 total=1 busy=1 devices=1 of=2 start=3600000"},
    {"F8_free_on_two_sockets_is_no_island",
     "node 1 gpus=8 numa=4 \n run 9 gpus=4 end=9000 \n job 1 gpus=4 required=numa \n"
     "job 2 gpus=4 required=numa",
     "1:n1", 1000, 2, "not-enough-free wanted=1 total=1 busy=1 devices=4 of=8 start=9000"},
    {"F8_an_island_that_no_node_has", "node 1 gpus=8 numa=4 \n job 1 gpus=8 required=numa", "",
     1000, 1, "never-fits wanted=1 total=1 unfit=1 devices=8"},
    {"F9_one_name_may_begin_another",
     "levels zone leaf \n node 1 gpus=8 path=z/r1 \n node 2 gpus=8 path=z/r10 \n"
     "node 3 gpus=8 path=z/r1 \n job 1 nodes=2 gpus=8 required=leaf",
     "1:n1,n3"},
    {"F9_equal_leaves_of_two_zones_are_two",
     "levels zone leaf \n node 1 gpus=8 path=a/r1 \n node 2 gpus=8 path=b/r1 \n"
     "job 1 nodes=2 gpus=8 required=leaf",
     "", 1000, 1, "never-fits wanted=2 total=2 fit=2 devices=16 free=16 of=16"},
    {"F10_equal_slices",
     "levels rack \n node 1 gpus=4 path=a \n node 2 gpus=4 path=a \n node 3 gpus=4 path=a \n"
     "node 4 gpus=4 path=b \n node 5 gpus=4 path=b \n node 6 gpus=4 path=b \n"
     "job 1 nodes=4 gpus=4 slice=2/rack",
     "1:n1,n2,n4,n5"},
    {"F10_seven_and_nine_are_not_eight_and_eight",
     "levels rack \n node 1 gpus=4 path=a \n node 2 gpus=4 path=b \n node 3 gpus=4 path=b \n"
     "node 4 gpus=4 path=b \n job 1 nodes=4 gpus=4 slice=2/rack",
     "", 1000, 1, "never-fits wanted=4 total=4 fit=4 devices=16 free=16 of=16"},
    {"F11_one_device_jobs_keep_whole_racks_whole",
     "levels rack \n node 1 gpus=8 path=a \n node 2 gpus=8 path=a \n node 3 gpus=8 path=b \n"
     "run 9 gpus=8 node=1 \n job 1 gpus=1 \n job 2 gpus=8",
     "1:n2 2:n3"},
    {"F12_few_whole_victims_not_a_part_of_each",
     "queue 1 guarantee=gpus:8 \n queue 2 \n node 1 gpus=4 \n node 2 gpus=4 \n"
     "run 11 queue=2 nodes=2 gpus=2 node=1,2 \n run 12 queue=2 nodes=2 gpus=2 node=1,2 \n"
     "job 1 queue=1 gpus=2",
     "stop 11 for 1 (reclaim) promised 1:n1", 1000000},
    {"F14_what_never_fits_preempts_nobody",
     "queue 1 \n node 1 gpus=8 \n run 9 gpus=8 prio=1 \n job 1 gpus=16 prio=99", "", 1000, 1,
     "never-fits wanted=1 total=1 unfit=1 devices=16"},
    {"F15_no_reclaim_beyond_the_guarantee",
     "queue 1 guarantee=gpus:4 \n queue 2 guarantee=gpus:4 \n node 1 gpus=8 \n"
     "run 8 queue=1 gpus=4 \n run 9 queue=2 gpus=4 \n job 1 queue=1 gpus=1 \n job 2 queue=2 gpus=1",
     ""},
    {"F16_reclaim_is_slow_on_purpose",
     "rules per_minute=2 \n queue 1 guarantee=gpus:4 \n queue 2 \n node 1 gpus=4 \n"
     "run 11 queue=2 gpus=1 \n run 12 queue=2 gpus=1 \n run 13 queue=2 gpus=1 \n"
     "run 14 queue=2 gpus=1 \n job 1 queue=1 gpus=2 \n step 1000 \n job 2 queue=1 gpus=2 prio=49",
     "", 1500},
    {"F16_and_goes_on_when_the_first_are_gone",
     "rules per_minute=2 \n queue 1 guarantee=gpus:4 \n queue 2 \n node 1 gpus=4 \n"
     "run 11 queue=2 gpus=1 \n run 12 queue=2 gpus=1 \n run 13 queue=2 gpus=1 \n"
     "run 14 queue=2 gpus=1 \n job 1 queue=1 gpus=2 \n step 1000 \n job 2 queue=1 gpus=2 prio=49\n"
     "step 1500 \n freed 2000 \n step 2000",
     "stop 13 for 2 (reclaim) stop 14 for 2 (reclaim) promised 2:n1", 3000},
    {"F17_idle_nodes_before_victims",
     "queue 1 \n node 1 gpus=8 kind=a100 \n node 2 gpus=8 kind=h100 \n run 9 gpus=8 node=2 prio=1\n"
     "job 1 gpus=8 kind=h100,a100 prio=90",
     "1:n1"},
    {"F18_over_its_limit_it_preempts_nobody",
     "queue 1 limit=gpus:8 \n node 1 gpus=8 \n node 2 gpus=8 \n run 8 gpus=8 node=1 prio=90 \n"
     "run 9 gpus=8 node=2 prio=1 queue=2 \n job 1 gpus=8 prio=80",
     "", 1000, 1, "queue-limit wanted=1 queue=1 gpus limit=8000 used=8000 asks=8000"},
    {"F22_over_its_limit_it_books_nothing",
     "queue 1 limit=gpus:4 \n node 1 gpus=8 \n run 9 gpus=4 end=90000 \n job 1 gpus=4 prio=90 \n"
     "job 2 queue=2 gpus=4",
     "2:n1"},
    {"F21_the_gang_has_its_place_whatever_streams_by",
     "node 1 gpus=8 \n node 2 gpus=8 \n run 8 gpus=8 node=1 end=9000 \n run 9 gpus=1 node=2 "
     "end=5000\n"
     "job 1 nodes=2 gpus=8 prio=60 \n job 2 gpus=1 count=20 \n job 3 gpus=1 time=100000 count=20 \n"
     "job 4 gpus=1 time=7999",
     "4:n2", 1000, 1, "not-enough-free wanted=2 total=2 busy=2 devices=16 free=6 of=16 start=9000"},
    {"least_service_takes_from_who_has_had_more",
     "queue 1 policy=las min_runtime=0 \n node 1 gpus=2 \n run 8 gpus=1 started=3000000 \n"
     "run 9 gpus=1 \n job 1 gpus=1",
     "stop 9 for 1 (priority) promised 1:n1", 4000000},
    {"least_service_leaves_who_has_had_as_little",
     "queue 1 policy=las min_runtime=0 \n node 1 gpus=1 \n run 9 gpus=1 \n job 1 gpus=1", "",
     3000000},
    {"least_service_takes_from_nobody_with_a_higher_priority",
     "queue 1 policy=las min_runtime=0 \n node 1 gpus=1 \n run 9 gpus=1 prio=60 \n job 1 gpus=1",
     "", 4000000},
    {"least_service_who_enters_a_level_goes_behind_those_in_it",
     "queue 1 policy=las min_runtime=0 \n node 1 gpus=1 \n run 9 gpus=1 \n"
     "job 1 gpus=1 attained=5000",
     "stop 9 for 1 (priority) promised 1:n1", 4000000},
    {"least_service_who_comes_back_to_his_level_does_not",
     "queue 1 policy=las min_runtime=0 \n node 1 gpus=1 \n run 9 gpus=1 attained=3700 \n"
     "job 1 gpus=1 attained=5000",
     "", 4000000},
    {"F23_five_times_is_enough",
     "rules preemptions=5 \n queue 1 \n node 1 gpus=1 \n run 9 gpus=1 prio=1 preempted=5 \n"
     "job 1 gpus=1 prio=99",
     ""},
    {"F24_the_guarantee_comes_back_whole",
     "queue 1 guarantee=gpus:4 \n queue 2 guarantee=gpus:4 \n node 1 gpus=8 \n"
     "run 9 queue=2 gpus=8 \n job 1 queue=1 gpus=4",
     "stop 9 for 1 (reclaim) promised 1:n1"},
    {"F24_from_whoever_has_more_than_his_own",
     "queue 1 guarantee=gpus:4 \n queue 2 guarantee=gpus:1 \n queue 3 guarantee=gpus:1 \n"
     "node 1 gpus=2 \n node 2 gpus=2 \n node 3 gpus=2 \n"
     "run 11 queue=2 gpus=1 node=1 prio=1 \n run 12 queue=2 gpus=1 node=2 prio=1 \n"
     "run 13 queue=3 gpus=1 node=1 prio=2 \n run 14 queue=3 gpus=1 node=2 prio=2 \n"
     "run 15 queue=3 gpus=2 node=3 prio=3 \n job 1 queue=1 nodes=2 gpus=1",
     "stop 11 for 1 (reclaim) stop 15 for 1 (reclaim) promised 1:n1,n3"},
    {"F27_parts_fit_by_device_not_by_sum",
     "node 1 gpus=2 dmem=24 \n job 1 share=16 \n job 2 share=16 \n job 3 share=16", "1:n1 2:n1",
     1000, 3, "not-enough-free wanted=1 total=1 busy=1 of=2"},
    {"F28_whole_and_in_parts_are_one_table",
     "node 1 gpus=2 \n run 8 fraction=300 \n job 3 fraction=700 prio=90 \n"
     "job 4 fraction=100 prio=80 \n job 2 gpus=1 prio=70",
     "3:n1 4:n1", 1000, 2, "not-enough-free wanted=1 total=1 busy=1 devices=1 of=2"},
    {"F30_a_job_without_end_locks_nothing",
     "node 1 gpus=1 \n run 9 gpus=1 end=315360000000 \n job 1 gpus=1", "", 1000, 1,
     "not-enough-free wanted=1 total=1 busy=1 devices=1 of=1 start=315360000000"},
    {"F30_a_limit_has_no_year",
     "queue 1 limit=gpus:1 \n node 1 gpus=8 \n run 9 gpus=1 \n job 1 gpus=1", "", 1000, 1,
     "queue-limit wanted=1 queue=1 gpus limit=1000 used=1000 asks=1000"},
    {"F4_a_degraded_gang_has_its_slots",
     "queue 1 \n node 1 gpus=8 \n node 2 gpus=8 down \n job 1 nodes=2 gpus=8 \n"
     "promise 1 node=1 \n job 2 gpus=8 prio=99",
     ""},
    {"F4_and_is_whole_again_when_there_is_a_node",
     "queue 1 \n node 1 gpus=8 \n node 2 gpus=8 down \n job 1 nodes=2 gpus=8 \n"
     "promise 1 node=1 \n job 2 gpus=8 prio=99 \n step 1000 \n undrain 2",
     "1:n1,n2", 2000},
    {"F13_freed_is_for_whom_it_was_freed",
     "queue 1 \n node 1 gpus=2 \n run 8 gpus=1 prio=10 \n run 9 gpus=1 prio=10 \n"
     "job 1 gpus=2 prio=50 \n step 1000 \n end 8 \n job 3 gpus=1 prio=99",
     "", 1500, 1, "victims wanted=1 total=1 busy=1 devices=2 of=2 ahead=1"},
};

class Cases : public testing::TestWithParam<Row> {};
TEST_P(Cases, come_out_right) {
    come_out_right(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Table, Cases, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace muster::scheduler
