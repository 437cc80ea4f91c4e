#include "simulator/traces/mersenne.h"

#include <algorithm>

namespace muster::simulator::traces {
namespace {

// What random.Random(seed) and numpy.random.RandomState(seed) of Python give.
TEST(Mersenne, draws_as_python_does) {
    Mersenne zero = Mersenne::of_python(0);
    EXPECT_EQ(zero.bits(32), 3626764237u);
    EXPECT_EQ(zero.bits(32), 1654615998u);
    Mersenne wide = Mersenne::of_python(1);
    EXPECT_EQ(wide.bits(33), 4872057333u);
    Mersenne some = Mersenne::of_python(6);
    std::vector<std::uint64_t> got;
    for (const std::uint64_t n : {4, 1, 7, 2, 100}) got.push_back(some.below(n));
    EXPECT_EQ(got, (std::vector<std::uint64_t>{0, 0, 6, 1, 4}));
}

TEST(Mersenne, is_the_published_generator) {
    Mersenne random = Mersenne::of_numpy(5489);  // The reference implementation's own seed.
    std::uint32_t last = 0;
    for (int i = 0; i < 10'000; ++i) last = random.next();
    EXPECT_EQ(last, 4123659995u);
}

TEST(Mersenne, a_permutation_holds_each_once) {
    const auto order = Mersenne::of_numpy(3).permutation(1000);
    std::vector<bool> seen(1000);
    for (const auto i : order) seen[i] = true;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 1000);
    EXPECT_EQ(Mersenne::of_numpy(3).permutation(10),
              (std::vector<std::uint32_t>{5, 4, 1, 2, 9, 6, 7, 0, 3, 8}));
    EXPECT_EQ(Mersenne::of_numpy(3).permutation(1), std::vector<std::uint32_t>{0});
    EXPECT_EQ(Mersenne::of_numpy(3).permutation(0), std::vector<std::uint32_t>{});
}

}  // namespace
}  // namespace muster::simulator::traces
