// When nodes fail and for how long: per node, with lemons, and whole leaves at once.
//
// Pure arithmetic on integers (logarithms and roots from fixed-point tables), so that a seed means
// the same failures on every machine and compiler.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"
#include "base/prng.h"

namespace muster::simulator::models {

enum class FailureLaw : std::uint8_t {
    None,
    Exponential,
    Weibull,   // Shape below 1: most fail early after a repair.
    Replayed,  // Lifetimes drawn from `lifetimes`, with replacement.
};
struct FailureRules {
    FailureLaw law = FailureLaw::None;
    /// Of a node that is no lemon, in thousandths of a failure in 1,000 node-days: 3.8 is 3800.
    std::int64_t rate = 3800;
    std::int64_t shape = 700;         // Weibull's, in thousandths.
    std::vector<Duration> lifetimes;  // Replayed.
    std::int64_t lemons = 0;          // So many of 1,000 nodes are lemons…
    std::int64_t lemon_factor = 10;   // …which fail so many times as often.
    std::int64_t leaf_rate = 0;       // Whole leaves: as `rate`, in 1,000 leaf-days.
    Duration repair{3'600'000};       // Mean; exponential, at least a minute.
    /// From the failure until the controller takes the node's tasks for ended.
    Duration detection{15'000};
};

/// Draws from the laws. What a node's generator yields does not depend on what the cluster does.
class FailureModel {
public:
    explicit FailureModel(FailureRules rules);
    const FailureRules& rules() const { return rules_; }
    bool lemon(Prng& random) const;
    /// From a start or a repair to the next failure; empty: never.
    std::optional<Duration> life(Prng& random, bool lemon) const;
    std::optional<Duration> leaf_life(Prng& random) const;
    Duration repair(Prng& random) const;

private:
    FailureRules rules_;
    std::int64_t weibull_mean_ = 0;  // Of scale 1, in units of 2^-32.
};

/// -ln(u) of u = (bits + 1) / 2^32, in units of 2^-32, for bits below 2^32. Exact to 2^-28.
std::uint64_t negative_log(std::uint32_t bits);
/// x^(p / 1000) of x in units of 2^-32, in the same units; p from 1 to 10,000.
std::uint64_t power(std::uint64_t x, std::int64_t p);

}  // namespace muster::simulator::models
