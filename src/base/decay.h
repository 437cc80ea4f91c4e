// Exponential decay in whole numbers: the same on every machine, for shares of past use.
#pragma once

#include <cstdint>

#include "base/id.h"

namespace muster {

/// 2^-(age ÷ half_life) in 32-bit fixed point: 2^32 is one. An age below 0 counts as 0. Without a
/// half-life (0 or less) nothing is ever forgotten.
std::uint64_t decay_q32(Duration age, Duration half_life);
/// What is left of `value` (at least 0) after `age`, rounded down.
std::int64_t decayed(std::int64_t value, Duration age, Duration half_life);
/// What a constant `rate` (at least 0, per second) has added up to at the end of `length`, with
/// what came early decayed by then: rate × half_life ÷ ln 2 × (1 - 2^-(length ÷ half_life)), in
/// rate-seconds, rounded down. Never more than the largest std::int64_t.
std::int64_t accrued(std::int64_t rate, Duration length, Duration half_life);

}  // namespace muster
