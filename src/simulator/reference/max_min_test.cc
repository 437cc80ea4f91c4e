#include "simulator/reference/max_min.h"

#include "base/prng.h"

namespace muster::simulator::reference {
namespace {

struct Row {
    std::string name;
    std::vector<ShareGroup> groups;
    std::vector<double> capacity;
    double least;
    std::vector<std::vector<double>> share;  // Empty: not unique.
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}
class MaxMin : public testing::TestWithParam<Row> {};
TEST_P(MaxMin, makes_the_worst_off_best_off) {
    const Row& row = GetParam();
    const Shares shares = max_min_shares(row.groups, row.capacity);
    EXPECT_NEAR(shares.least, row.least, 1e-5 * row.least);
    for (std::size_t g = 0; g < row.share.size(); ++g)
        for (std::size_t w = 0; w < row.capacity.size(); ++w)
            EXPECT_NEAR(shares.share[g][w], row.share[g][w], 1e-3) << g << ' ' << w;
}
INSTANTIATE_TEST_SUITE_P(
    Rows, MaxMin,
    testing::Values(
        Row{"alone_with_room", {{1, 1, {2}}}, {4}, 2, {{1}}},
        Row{"four_on_two", {{4, 1, {1}}}, {2}, 0.5, {{0.5}}},
        // One is three times as fast on the first kind, the other alike on both: each gets its
        // better one, and the second is the worst off.
        Row{"each_where_it_gains_most", {{1, 1, {3, 1}}, {1, 1, {1, 1}}}, {1, 1}, 1, {}},
        // 3 a + (1 - a) = (1 - a) + b, a half of each kind's time too few for both: by hand
        // t = 1.2 with the first on kind one for 0.6 of its time.
        Row{"splits_when_both_want_the_same",
            {{1, 1, {2, 1}}, {1, 1, {3, 1}}},
            {1, 1},
            5.0 / 3,
            {{2.0 / 3, 1.0 / 3}, {1.0 / 3, 2.0 / 3}}},
        Row{"a_kind_that_does_not_run_it", {{2, 1, {0, 1}}}, {9, 1}, 0.5, {{0, 0.5}}},
        // Two of two devices and one of one share two devices; worth counts devices.
        Row{"larger_jobs_get_less_time",
            {{2, 2, {2}}, {1, 1, {1}}},
            {2},
            2.0 / 3,
            {{1.0 / 3}, {2.0 / 3}}},
        // Room for all on both kinds: the middle of the optima, not a corner of them.
        Row{"in_the_middle_of_many_optima", {{2, 1, {1, 1}}}, {4, 4}, 1, {{0.5, 0.5}}},
        Row{"nobody", {}, {1}, 0, {}}));

TEST(MaxMin, groups_are_as_good_as_their_jobs_one_by_one_and_nothing_is_given_twice) {
    Prng random(5);
    for (int round = 0; round < 40; ++round) {
        std::vector<ShareGroup> groups, singles;
        for (int g = 0; g < 6; ++g) {
            ShareGroup group{static_cast<int>(random.between(1, 4)),
                             1 << random.below(3),
                             {static_cast<double>(random.between(5, 20)),
                              static_cast<double>(random.between(3, 20)),
                              static_cast<double>(random.between(0, 9))}};
            groups.push_back(group);
            for (int i = 0; i < group.count; ++i) {
                singles.push_back(group);
                singles.back().count = 1;
            }
        }
        const std::vector<double> capacity{8, 8, 4};
        const Shares together = max_min_shares(groups, capacity);
        EXPECT_NEAR(together.least, max_min_shares(singles, capacity).least, 1e-5 * together.least);
        std::vector<double> taken(capacity.size(), 0);
        for (std::size_t g = 0; g < groups.size(); ++g) {
            double time = 0, worth = 0;
            for (std::size_t w = 0; w < capacity.size(); ++w) {
                time += together.share[g][w];
                worth += together.share[g][w] * groups[g].worth[w];
                taken[w] += together.share[g][w] * groups[g].count * groups[g].devices;
            }
            EXPECT_LE(time, 1 + 1e-6);
            EXPECT_GE(worth, together.least * (1 - 1e-5));
        }
        for (std::size_t w = 0; w < capacity.size(); ++w)
            EXPECT_LE(taken[w], capacity[w] * (1 + 1e-5));
    }
}

}  // namespace
}  // namespace muster::simulator::reference
