// Laws of failures against their own means, and the arithmetic below them.
#include "simulator/models/failures.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace muster::simulator::models {
namespace {

constexpr double kOne = 4294967296.0;

TEST(Failures, logarithms_and_powers_are_those_of_mathematics) {
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits = bits * 3 / 2 + 1) {
        const double u = (static_cast<double>(bits) + 1) / kOne;
        EXPECT_NEAR(static_cast<double>(negative_log(static_cast<std::uint32_t>(bits))) / kOne,
                    -std::log(u), 4e-9)
            << bits;
    }
    for (const std::int64_t p : {100, 500, 1000, 1429, 3000}) {
        for (const double x : {0.001, 0.3, 1.0, 1.7, 9.5}) {
            const double want = std::pow(x, static_cast<double>(p) / 1000);
            const double got =
                static_cast<double>(power(static_cast<std::uint64_t>(x * kOne), p)) / kOne;
            EXPECT_NEAR(got, want, 1e-7 * std::max(want, 0.1)) << x << "^" << p;
        }
    }
}

struct Law {
    const char* name;
    FailureLaw law;
    std::int64_t rate, shape;
    bool lemon;
    double days;    // Mean life.
    double spread;  // Standard deviation over mean.
};
void PrintTo(const Law& row, std::ostream* out) {
    *out << row.name;
}
class Laws : public testing::TestWithParam<Law> {};

TEST_P(Laws, have_their_nominal_mean_and_spread) {
    const Law& row = GetParam();
    FailureRules rules;
    rules.law = row.law;
    rules.rate = row.rate;
    rules.shape = row.shape;
    const FailureModel model(rules);
    Prng random(5);
    constexpr int kDraws = 200'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
        const double days = static_cast<double>(model.life(random, row.lemon)->ms) / 86.4e6;
        sum += days, squares += days * days;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean / row.days, 1, 0.01);
    EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean) / mean / row.spread, 1, 0.03);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Laws,
    testing::Values(Law{"exponential", FailureLaw::Exponential, 3800, 0, false, 1000 / 3.8, 1},
                    Law{"exponential_lemon", FailureLaw::Exponential, 3800, 0, true, 100 / 3.8, 1},
                    Law{"weibull_early", FailureLaw::Weibull, 6500, 700, false, 1000 / 6.5, 1.462},
                    Law{"weibull_wear", FailureLaw::Weibull, 6500, 2000, false, 1000 / 6.5,
                        0.5227}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Failures, no_law_and_no_rate_mean_no_failure) {
    Prng random(1);
    EXPECT_FALSE(FailureModel({}).life(random, false));
    EXPECT_FALSE(FailureModel({}).leaf_life(random));
    EXPECT_FALSE(FailureModel({.law = FailureLaw::Exponential, .rate = 0}).life(random, false));
}

TEST(Failures, replayed_lifetimes_are_those_of_the_list) {
    const FailureModel model({.law = FailureLaw::Replayed, .lifetimes = {{5'000}, {7'000}}});
    Prng random(3);
    int fives = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::int64_t ms = model.life(random, false)->ms;
        EXPECT_TRUE(ms == 5'000 || ms == 7'000);
        fives += ms == 5'000 ? 1 : 0;
    }
    EXPECT_NEAR(fives, 500, 60);
}

TEST(Failures, a_seed_draws_the_same_on_every_machine) {
    const FailureModel model({.law = FailureLaw::Weibull, .rate = 6500, .shape = 700});
    Prng random(42);
    std::uint64_t sum = 0;
    for (int i = 0; i < 1000; ++i)
        sum = sum * 31 + static_cast<std::uint64_t>(model.life(random, false)->ms);
    EXPECT_EQ(sum, 2686119308619928271u);
}

}  // namespace
}  // namespace muster::simulator::models
