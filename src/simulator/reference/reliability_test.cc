#include "simulator/reference/reliability.h"

#include <gtest/gtest.h>

#include "core/checkpoint_interval.h"

namespace muster::simulator::reference {
namespace {

TEST(Reliability, without_failures_only_writes_cost) {
    const GangLife life{kDurationMax, seconds(90), seconds(10), seconds(300)};
    EXPECT_NEAR(expected_ettr(life), 0.9, 1e-4);
    EXPECT_NEAR(simulated_ettr(life, seconds(100'000), 1), 0.9, 1e-9);
    EXPECT_NEAR(simulated_ettr(life, seconds(50), 1), 1, 1e-9) << "before the first write";
    EXPECT_EQ(simulated_ettr(life, seconds(0), 1), 0);
}

TEST(Reliability, runs_are_what_the_formula_expects) {
    struct Row {
        std::int64_t nodes, write, restart;
        double ettr;
    };
    // At 6.5 failures in 1,000 node-days.
    for (const Row& row :
         {Row{128, 60, 600, 0.961}, Row{512, 60, 600, 0.912}, Row{2048, 60, 600, 0.793},
          Row{2048, 10, 300, 0.903}, Row{16384, 10, 300, 0.588}}) {
        GangLife life;
        life.mean_time_to_failure = core::mean_time_to_failure(row.nodes, {65, 10'000}, {});
        life.write = seconds(row.write), life.restart = seconds(row.restart);
        life.interval = core::checkpoint_interval(life.mean_time_to_failure, life.write);
        EXPECT_NEAR(expected_ettr(life), row.ettr, 0.0006) << row.nodes << " nodes";
        const Duration length{life.mean_time_to_failure.ms * 5000};
        EXPECT_NEAR(simulated_ettr(life, length, 7) / row.ettr, 1, 0.02) << row.nodes << " nodes";
    }
}

TEST(Reliability, the_rules_interval_is_near_the_best) {
    GangLife life{seconds(11'101), seconds(0), seconds(10), seconds(300)};
    life.interval = core::checkpoint_interval(life.mean_time_to_failure, life.write);
    const double chosen = expected_ettr(life);
    for (std::int64_t interval = 50; interval < 5000; interval += 10) {
        life.interval = seconds(interval);
        EXPECT_LT(expected_ettr(life), chosen * 1.0005) << interval;
    }
}

TEST(Reliability, a_seed_is_a_run) {
    const GangLife life{seconds(1000), seconds(90), seconds(10), seconds(30)};
    EXPECT_EQ(simulated_ettr(life, seconds(1'000'000), 3),
              simulated_ettr(life, seconds(1'000'000), 3));
    EXPECT_NE(simulated_ettr(life, seconds(1'000'000), 3),
              simulated_ettr(life, seconds(1'000'000), 4));
}

}  // namespace
}  // namespace muster::simulator::reference
