// The generator that Python's random and NumPy's older RandomState draw from (MT19937 by Matsumoto
// and Nishimura), seeded as each of the two does, for workloads that were published as a program
// and a seed.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace muster::simulator::traces {

class Mersenne {
public:
    /// numpy.random.RandomState(seed).
    static Mersenne of_numpy(std::uint32_t seed);
    /// random.Random(seed).
    static Mersenne of_python(std::uint32_t seed);

    std::uint32_t next();
    /// Python's getrandbits, up to 64.
    std::uint64_t bits(int count);
    /// Python's randrange(n), choice of n; n > 0.
    std::uint64_t below(std::uint64_t n);
    /// NumPy's permutation(n).
    std::vector<std::uint32_t> permutation(std::uint32_t n);

private:
    static constexpr std::size_t kWords = 624;
    Mersenne() = default;

    std::array<std::uint32_t, kWords> state_{};
    std::size_t at_ = kWords;
};

}  // namespace muster::simulator::traces
