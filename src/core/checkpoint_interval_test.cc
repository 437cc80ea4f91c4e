#include "core/checkpoint_interval.h"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

/// Failures in 10,000 node-days of the fleet; seconds.
struct Row {
    std::int64_t nodes, failures, write, mean, interval;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.nodes << " nodes, writes of " << row.write << " s";
}

TEST(CheckpointInterval, is_dalys) {
    for (const Row& row : std::vector<Row>{
             {128, 65, 60, 103'846, 3490},
             {512, 65, 60, 25'961, 1725},
             {2048, 65, 60, 6490, 843},
             {2048, 65, 10, 6490, 354},
             {16384, 65, 10, 811, 121},
             {2048, 38, 10, 11'101, 464},
             {2048, 38, 60, 11'101, 1115},
         }) {
        const Duration mean = mean_time_to_failure(row.nodes, {row.failures, 10'000}, {});
        EXPECT_EQ(mean.ms / 1000, row.mean) << testing::PrintToString(row);
        EXPECT_NEAR(static_cast<double>(checkpoint_interval(mean, seconds(row.write)).ms) / 1000,
                    static_cast<double>(row.interval), 1)
            << testing::PrintToString(row);
    }
}

TEST(CheckpointInterval, is_never_under_ten_writes) {
    EXPECT_EQ(checkpoint_interval(seconds(100), seconds(10)), seconds(100));
    EXPECT_EQ(checkpoint_interval(seconds(100), seconds(300)), seconds(3000)) << "hopeless";
    EXPECT_EQ(checkpoint_interval(seconds(0), seconds(0)), seconds(10));
    EXPECT_EQ(checkpoint_interval(kDurationMax, kDurationMax).ms, kDurationMax.ms);
}

TEST(CheckpointInterval, grows_with_the_time_to_failure) {
    Duration before{0};
    for (std::int64_t mean = 1000; mean < kDurationMax.ms; mean *= 2) {
        const Duration now = checkpoint_interval({mean}, seconds(5));
        EXPECT_GE(now, before) << mean;
        before = now;
    }
    EXPECT_GT(before, seconds(50));
}

TEST(CheckpointInterval, what_was_seen_counts_beside_the_fleet) {
    const FailureCount fleet{6, 1000};
    const auto mean = [&](const FailureCount& seen) {
        return mean_time_to_failure(1, fleet, seen).ms / 86'400'000;
    };
    EXPECT_EQ(mean({}), 166);
    EXPECT_EQ(mean({0, 1000}), 333);
    EXPECT_EQ(mean({14, 1000}), 100);
    EXPECT_EQ(mean_time_to_failure(8, {}, {}), kDurationMax) << "no failure is known of";
    EXPECT_EQ(mean_time_to_failure(1'000'000'000, {1'000'000'000, 1}, {}), Duration{1});
}

TEST(CheckpointInterval, small_changes_are_not_told) {
    EXPECT_FALSE(worth_telling(seconds(100), seconds(100)));
    EXPECT_FALSE(worth_telling(seconds(100), seconds(120)));
    EXPECT_TRUE(worth_telling(seconds(100), seconds(121)));
    EXPECT_TRUE(worth_telling(seconds(100), seconds(79)));
    EXPECT_TRUE(worth_telling(seconds(0), seconds(1)));
}

}  // namespace
}  // namespace muster::core
