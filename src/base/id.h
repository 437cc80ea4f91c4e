// Strong identifiers and time: a NodeId is never a JobId, and every Id has one total order.
#pragma once

#include <compare>
#include <cstdint>

namespace muster {

template <class Tag>
struct Id {
    std::uint64_t value = 0;  // 0 is "none"; real ids start at 1.
    explicit operator bool() const { return value != 0; }
    friend auto operator<=>(const Id&, const Id&) = default;
};

using JobId = Id<struct JobTag>;  // Always below 2^31: frameworks call int() on it.
using NodeId = Id<struct NodeTag>;
using QueueId = Id<struct QueueTag>;
using UserId = Id<struct UserTag>;
using SpecId = Id<struct SpecTag>;    // One immutable job spec, shared by equal submits.
using ShapeId = Id<struct ShapeTag>;  // What the scheduler needs of a spec, in one queue.

constexpr std::uint64_t kJobIdMax = (std::uint64_t{1} << 31) - 1;

/// A length of time in milliseconds.
struct Duration {
    std::int64_t ms = 0;
    friend auto operator<=>(const Duration&, const Duration&) = default;
};

/// Milliseconds since the Unix epoch. Only a shell reads a clock; a core is told the time.
struct Time {
    std::int64_t ms = 0;
    friend auto operator<=>(const Time&, const Time&) = default;
};

/// "Never": far beyond every bound, yet safe to add a bounded Duration to.
constexpr Time kNever{std::int64_t{1} << 60};
/// No limit, age or window is longer (10 years), so that no sum of times can overflow (F30).
constexpr Duration kDurationMax{std::int64_t{10} * 365 * 24 * 3600 * 1000};

constexpr Time operator+(Time at, Duration by) {
    return {at.ms + by.ms};
}
constexpr Time operator-(Time at, Duration by) {
    return {at.ms - by.ms};
}
constexpr Duration operator-(Time a, Time b) {
    return {a.ms - b.ms};
}
constexpr Duration operator+(Duration a, Duration b) {
    return {a.ms + b.ms};
}
constexpr Duration seconds(std::int64_t s) {
    return {s * 1000};
}

}  // namespace muster
