// A seeded generator (xoshiro256**, public domain algorithm by Blackman and Vigna): the same
// numbers on every machine and compiler, which <random>'s distributions do not promise.
#pragma once

#include <cstdint>

namespace muster {

class Prng {
public:
    explicit Prng(std::uint64_t seed) {
        for (auto& word : s_) word = split_mix(seed);
    }
    std::uint64_t next() {
        const std::uint64_t result = rotate(s_[1] * 5, 7) * 9;
        const std::uint64_t t = s_[1] << 17;
        s_[2] ^= s_[0];
        s_[3] ^= s_[1];
        s_[1] ^= s_[2];
        s_[0] ^= s_[3];
        s_[2] ^= t;
        s_[3] = rotate(s_[3], 45);
        return result;
    }
    /// Uniform in [0, n); n > 0.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
    }
    /// Uniform in [low, high].
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    /// True with probability per_mille / 1000.
    bool chance(unsigned per_mille) { return below(1000) < per_mille; }

private:
    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    static std::uint64_t split_mix(std::uint64_t& x) {
        std::uint64_t z = (x += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::uint64_t s_[4];
};

}  // namespace muster
