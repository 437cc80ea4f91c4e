// Decay against known values, and the laws that a share relies on.
#include "base/decay.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr Duration kWeek{std::int64_t{7} * 24 * 3600 * 1000};

struct Known {
    const char* name;
    std::int64_t age, half_life;
    std::uint64_t want;  // round(2^32 · 2^-(age/half_life)), by 60-digit arithmetic.
    friend void PrintTo(const Known& row, std::ostream* out) { *out << row.name; }
};
const Known kKnown[] = {
    {"now", 0, 1000, 4'294'967'296},
    {"before", -5, 1000, 4'294'967'296},
    {"one_half_life", 1000, 1000, 2'147'483'648},
    {"ten_half_lives", 10'000, 1000, 4'194'304},
    {"half_of_one", 500, 1000, 3037000500},
    {"a_third", 1, 3, 3408917802},
    {"a_day_of_a_week", 86'400'000, kWeek.ms, 3890053517},
    {"three_and_a_bit", 3'141'592, 1'000'000, 486683290},
    {"a_hundred_half_lives", 100'000, 1000, 0},
    {"never_forgotten", 1'000'000, 0, 4'294'967'296},
};
class Decay : public testing::TestWithParam<Known> {};
TEST_P(Decay, is_as_known) {
    const Known& row = GetParam();
    const std::uint64_t got = decay_q32({row.age}, {row.half_life});
    EXPECT_LE(got, row.want);
    EXPECT_GE(got + 1, row.want);
}
INSTANTIATE_TEST_SUITE_P(Table, Decay, testing::ValuesIn(kKnown),
                         [](const auto& row) { return row.param.name; });

TEST(Decay, never_rises_with_age) {
    std::uint64_t last = std::uint64_t{1} << 32;
    for (std::int64_t age = 0; age < 20'000; age += 7) {
        const std::uint64_t now = decay_q32({age}, {1234});
        ASSERT_LE(now, last) << age;
        last = now;
    }
}

TEST(Accrued, without_forgetting_it_is_rate_times_time) {
    EXPECT_EQ(accrued(8000, {90'000}, {0}), 720'000);
    EXPECT_EQ(accrued(8000, {1}, kWeek), 7);  // A hair is forgotten already: rounded down.
    EXPECT_EQ(accrued(0, kWeek, kWeek), 0);
    EXPECT_EQ(accrued(5, {-1}, kWeek), 0);
}

TEST(Accrued, in_the_long_run_is_bounded_by_half_life_over_ln_2) {
    // 1000 a second for ever, half-life 1,000 s: 1000 · 1000 / ln 2 = 1,442,695.04.
    EXPECT_NEAR(static_cast<double>(accrued(1000, kDurationMax, {1'000'000})), 1'442'695.0, 2.0);
    EXPECT_EQ(accrued(INT64_MAX, kDurationMax, {0}), INT64_MAX);
}

TEST(Accrued, in_two_steps_is_as_in_one) {
    for (std::int64_t cut = 1; cut < 3'600'000; cut += 333'333) {
        const std::int64_t first = accrued(64'000, {cut}, {600'000});
        const Duration rest{3'600'000 - cut};
        const std::int64_t sum = decayed(first, rest, {600'000}) + accrued(64'000, rest, {600'000});
        EXPECT_NEAR(static_cast<double>(sum),
                    static_cast<double>(accrued(64'000, {3'600'000}, {600'000})), 3.0);
    }
}

}  // namespace
}  // namespace muster
