// The clocks of a host: one that drifts and never jumps, and a wall clock that people set.
#pragma once

#include "base/id.h"

namespace muster::simulator {

/// The world's own time starts at 0; hosts begin in the year 2026.
constexpr std::int64_t kEpochMs = 1'767'225'600'000;

class HostClock {
public:
    explicit HostClock(std::int64_t drift_ppm = 0) : drift_ppm_(drift_ppm) {}

    /// Of the process that last called restart(): monotonic, offset to the wall clock once.
    Time read(Time world) const { return {steady(world) + offset_}; }
    /// The earliest world time at which read() gives at least `local`.
    Time when(Time local) const {
        if (local == kNever) return kNever;
        const std::int64_t ms = local.ms - offset_;
        Time guess{ms * 1'000'000 / (1'000'000 + drift_ppm_) - 1};
        while (steady(guess) < ms) ++guess.ms;
        return guess;
    }
    /// A process starts: it takes the wall clock as it is now.
    void restart() { offset_ = wall_; }
    /// Somebody sets the wall clock.
    void jump(Duration by) { wall_ += by.ms; }
    /// What a time that the process before wrote down is for the present one.
    Time carry_over(Time written, std::int64_t offset_then) const {
        return {written.ms - offset_then + offset_};
    }
    std::int64_t offset() const { return offset_; }

private:
    std::int64_t steady(Time world) const { return world.ms + world.ms * drift_ppm_ / 1'000'000; }
    std::int64_t drift_ppm_;
    std::int64_t wall_ = kEpochMs, offset_ = kEpochMs;
};

}  // namespace muster::simulator
