#include "simulator/traces/mersenne.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace muster::simulator::traces {

Mersenne Mersenne::of_numpy(std::uint32_t seed) {
    Mersenne made;
    made.state_[0] = seed;
    for (std::uint32_t i = 1; i < kWords; ++i) {
        const std::uint32_t last = made.state_[i - 1];
        made.state_[i] = 1812433253u * (last ^ (last >> 30)) + i;
    }
    return made;
}

Mersenne Mersenne::of_python(std::uint32_t seed) {
    // Seeding by an array, of one word.
    Mersenne made = of_numpy(19650218u);
    auto& s = made.state_;
    std::size_t i = 1;
    const auto step = [&] {
        if (++i < kWords) return;
        s[0] = s[kWords - 1];
        i = 1;
    };
    for (std::size_t k = 0; k < kWords; ++k) {
        s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1664525u)) + seed;
        step();
    }
    for (std::size_t k = 1; k < kWords; ++k) {
        s[i] =
            (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1566083941u)) - static_cast<std::uint32_t>(i);
        step();
    }
    s[0] = 0x80000000u;
    return made;
}

std::uint32_t Mersenne::next() {
    constexpr std::size_t kMiddle = 397;
    if (at_ == kWords) {
        for (std::size_t i = 0; i < kWords; ++i) {
            const std::uint32_t y =
                (state_[i] & 0x80000000u) | (state_[(i + 1) % kWords] & 0x7fffffffu);
            state_[i] = state_[(i + kMiddle) % kWords] ^ (y >> 1) ^ ((y & 1u) * 0x9908b0dfu);
        }
        at_ = 0;
    }
    std::uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

std::uint64_t Mersenne::bits(int count) {
    std::uint64_t out = 0;
    for (int have = 0; have < count; have += 32) {
        const int wanted = std::min(32, count - have);
        out |= static_cast<std::uint64_t>(next() >> (32 - wanted)) << have;
    }
    return out;
}

std::uint64_t Mersenne::below(std::uint64_t n) {
    const int count = 64 - std::countl_zero(n);
    for (;;)
        if (const std::uint64_t drawn = bits(count); drawn < n) return drawn;
}

std::vector<std::uint32_t> Mersenne::permutation(std::uint32_t n) {
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    for (std::uint32_t i = n; i-- > 1;) {
        const std::uint32_t mask = ~0u >> std::countl_zero(i);
        std::uint32_t j = next() & mask;
        while (j > i) j = next() & mask;
        std::swap(order[i], order[j]);
    }
    return order;
}

}  // namespace muster::simulator::traces
