#include "simulator/reference/gavel.h"

#include <cstdlib>
#include <filesystem>

namespace muster::simulator::reference {
namespace {

/// A step a second on v100; "even" the same on k80, "uneven" a quarter of it there, "picky" none.
models::Throughputs table() {
    models::Throughputs made;
    for (const int devices : {1, 2}) {
        for (const std::string type : {"even", "uneven", "picky"})
            made.set("v100", type, devices, 1);
        made.set("k80", "even", devices, 1);
        made.set("k80", "uneven", devices, 0.25);
    }
    return made;
}
GavelRules rules(int v100, int k80, std::size_t jobs) {
    return {.kinds = {{"v100", v100}, {"k80", k80}}, .first = 0, .last = jobs - 1};
}
struct Arrival {
    std::string type;
    double steps, at;
    int devices = 1;
};

struct Row {
    std::string name;
    GavelPolicy policy;
    int v100, k80;
    std::vector<Arrival> jobs;
    double mean_s;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}
class Gavel : public testing::TestWithParam<Row> {};
TEST_P(Gavel, runs) {
    const Row& row = GetParam();
    std::vector<traces::GavelJob> jobs;
    std::vector<double> arrivals;
    for (const Arrival& job : row.jobs) {
        jobs.push_back({job.type, job.devices, job.steps});
        arrivals.push_back(job.at);
    }
    const auto result =
        run_gavel(rules(row.v100, row.k80, jobs.size()), row.policy, table(), jobs, arrivals);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_NEAR(result->mean_jct_s, row.mean_s, 1e-6);
}
using P = GavelPolicy;
INSTANTIATE_TEST_SUITE_P(
    Rows, Gavel,
    testing::Values(
        Row{"alone", P::FifoPerf, 1, 1, {{"uneven", 1000, 0}}, 1000},
        // a and b at once; at 720 s b moves to the faster kind and c gets the other. c ends at
        // 1,080 s, but d has to wait until 1,920 s after 720, and for a round to end.
        Row{"better_kinds_and_free_devices_wait_for_a_reset",
            P::FifoPerf,
            1,
            1,
            {{"even", 720, 0}, {"uneven", 3000, 0}, {"even", 360, 0}, {"even", 360, 0}},
            (720.0 + 3540 + 1080 + 3240) / 4},
        // Nobody runs from 1,080 s until the reset.
        Row{"who_lacks_room_blocks",
            P::FifoPerf,
            2,
            0,
            {{"even", 720, 0}, {"even", 360, 0, 2}, {"even", 360, 0}},
            (720.0 + 1080 + 3000) / 3},
        Row{"arrivals_wait_for_the_round",
            P::FifoPerf,
            2,
            0,
            {{"even", 720, 0}, {"even", 360, 1}},
            (720.0 + 719) / 2},
        // Two alike on one device take turns.
        Row{"turns", P::Las, 1, 0, {{"even", 720, 0}, {"even", 720, 0}}, (1080.0 + 1440) / 2},
        Row{"turns_by_progress_too",
            P::GavelLas,
            1,
            0,
            {{"even", 720, 0}, {"even", 720, 0}},
            (1080.0 + 1440) / 2},
        Row{"never_where_it_does_not_run",
            P::GavelLas,
            1,
            1,
            {{"picky", 720, 0}, {"picky", 720, 0}},
            (1080.0 + 1440) / 2}));

TEST(Gavel, who_loses_most_on_the_slow_kind_is_kept_off_it) {
    std::vector<traces::GavelJob> jobs;
    for (const std::string type : {"even", "uneven", "even", "uneven"})
        jobs.push_back({type, 1, 36'000});
    const std::vector<double> arrivals(jobs.size(), 0);
    const auto blind = run_gavel(rules(1, 1, 4), GavelPolicy::Las, table(), jobs, arrivals);
    const auto aware = run_gavel(rules(1, 1, 4), GavelPolicy::GavelLas, table(), jobs, arrivals);
    ASSERT_TRUE(blind && aware);
    EXPECT_GT(blind->mean_jct_s, 1.15 * aware->mean_jct_s);
}

TEST(Gavel, refuses_what_never_ends) {
    const auto error = [](std::vector<traces::GavelJob> jobs, std::size_t measured) {
        const std::vector<double> arrivals(jobs.size(), 0);
        const auto result =
            run_gavel(rules(1, 1, measured), GavelPolicy::FifoPerf, table(), jobs, arrivals);
        return result ? std::string("ran") : result.error().message;
    };
    EXPECT_EQ(error({{"other", 1, 10}}, 1),
              "job 0 of the stream ('other' on 1 devices) runs on no kind of the cluster");
    EXPECT_EQ(error({{"even", 2, 10}}, 1),
              "job 0 of the stream ('even' on 2 devices) runs on no kind of the cluster");
    EXPECT_EQ(error({{"even", 1, 10}}, 2), "the stream has 1 jobs; job 1 is to be measured");
    EXPECT_EQ(error({{"even", 1, 10}}, 1), "ran");
}

TEST(Gavel, the_single_stream_ends_near_what_was_published) {
    const char* named = std::getenv("MUSTER_TRACES");
    const std::string folder =
        (named != nullptr ? named : std::string(MUSTER_SOURCE_DIR) + "/../shared/traces") +
        "/gavel";
    if (!std::filesystem::exists(folder))
        GTEST_SKIP() << "no traces in " << folder << "; MUSTER_TRACES names another folder";
    const auto speeds = traces::read_throughputs(folder + "/simulation_throughputs.json");
    ASSERT_TRUE(speeds) << speeds.error().message;
    const auto mean_h = [&](GavelPolicy policy) {
        double sum = 0;
        for (const std::string seed : {"0", "1", "2"}) {
            const auto stream = traces::read_gavel_stream(
                folder + "/streams/continuous_single_seed" + seed + ".csv.gz");
            EXPECT_TRUE(stream);
            EXPECT_EQ(stream->jobs.size(), 6000u);
            const auto result = run_gavel({}, policy, *speeds, stream->jobs, stream->arrivals(4));
            EXPECT_TRUE(result);
            sum += result->mean_jct_s / 3600;
        }
        return sum / 3;
    };
    EXPECT_NEAR(mean_h(GavelPolicy::GavelLas), 16.82, 0.05 * 16.82);
    EXPECT_NEAR(mean_h(GavelPolicy::Las), 23.49, 0.05 * 23.49);
    EXPECT_NEAR(mean_h(GavelPolicy::FifoPerf), 17.08, 0.05 * 17.08);
}

}  // namespace
}  // namespace muster::simulator::reference
