// Integers with a unit: bytes are never added to CPUs, and no sum wraps.
#pragma once

#include <compare>
#include <cstdint>

#include "base/require.h"

namespace muster {

template <class Tag>
struct Quantity {
    std::int64_t value = 0;

    friend auto operator<=>(const Quantity&, const Quantity&) = default;
    friend Quantity operator+(Quantity a, Quantity b) {
        MUSTER_REQUIRE(!__builtin_add_overflow(a.value, b.value, &a.value));
        return a;
    }
    friend Quantity operator-(Quantity a, Quantity b) {
        MUSTER_REQUIRE(!__builtin_sub_overflow(a.value, b.value, &a.value));
        return a;
    }
    Quantity& operator+=(Quantity other) { return *this = *this + other; }
    Quantity& operator-=(Quantity other) { return *this = *this - other; }
};

using MilliCpu = Quantity<struct MilliCpuTag>;  // 1000 = one CPU.
using MilliGpu = Quantity<struct MilliGpuTag>;  // 1000 = one whole device.
using Bytes = Quantity<struct BytesTag>;
using MilliWatt = Quantity<struct MilliWattTag>;
using MilliJoule = Quantity<struct MilliJouleTag>;

/// The largest of each that any input may name: sums over 2^20 nodes still fit in 63 bits.
constexpr std::int64_t kMilliCpuMax = std::int64_t{1} << 30;
constexpr std::int64_t kBytesMax = std::int64_t{1} << 46;  // Memory per node.
constexpr std::int64_t kDiskBytesMax = std::int64_t{1} << 50;

}  // namespace muster
