#include "simulator/models/failures.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace muster::simulator::models {
namespace {

using Wide = unsigned __int128;

constexpr std::int64_t kNodeDaysMs = std::int64_t{1000} * 86'400'000;
constexpr std::uint64_t kOne = std::uint64_t{1} << 32;
constexpr std::uint64_t kLn2 = 2'977'044'472;  // Times 2^32.
constexpr Duration kRepairMin{60'000};

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(Wide{a} * b >> 32);
}
/// ln(m / 2^32) of m from 2^32 to 2^33, by the series of the inverse hyperbolic tangent.
std::uint64_t log_of_mantissa(std::uint64_t m) {
    const auto z = static_cast<std::uint64_t>((Wide{m - kOne} << 40) / (m + kOne));  // Q40.
    const auto squared = static_cast<std::uint64_t>(Wide{z} * z >> 40);
    std::uint64_t power = z, sum = 0;
    for (std::uint64_t k = 1; k <= 27 && power > 0; k += 2) {
        sum += power / k;
        power = static_cast<std::uint64_t>(Wide{power} * squared >> 40);
    }
    return sum >> 7;  // Twice it, in Q32.
}
/// ln(x / 2^32) in units of 2^-32, with its sign; x > 0.
std::int64_t log_q32(std::uint64_t x) {
    const int exponent = static_cast<int>(std::bit_width(x)) - 1;
    const std::uint64_t m = exponent >= 32 ? x >> (exponent - 32) : x << (32 - exponent);
    return static_cast<std::int64_t>(kLn2) * (exponent - 32) +
           static_cast<std::int64_t>(log_of_mantissa(m));
}
/// e^(x / 2^32) in units of 2^-32; what would be too large is the largest.
std::uint64_t exp_q32(std::int64_t x) {
    const auto ln2 = static_cast<std::int64_t>(kLn2);
    std::int64_t halvings = x / ln2;
    if (x % ln2 < 0) --halvings;
    const auto rest = static_cast<std::uint64_t>(x - halvings * ln2);
    std::uint64_t term = kOne, sum = kOne;
    for (std::uint64_t k = 1; k <= 16 && term > 0; ++k) {
        term = times(term, rest) / k;
        sum += term;
    }
    if (halvings >= 30) return std::numeric_limits<std::int64_t>::max();
    if (halvings >= 0) return sum << halvings;
    return halvings <= -63 ? 0 : sum >> -halvings;
}
std::uint32_t bits(Prng& random) {
    return static_cast<std::uint32_t>(random.next() >> 32);
}
Duration scaled(std::int64_t mean_ms, std::uint64_t factor) {
    const Wide ms = Wide{static_cast<std::uint64_t>(mean_ms)} * factor >> 32;
    return {static_cast<std::int64_t>(
        std::clamp<Wide>(ms, 1, static_cast<std::uint64_t>(kDurationMax.ms) * 10))};
}

}  // namespace

std::uint64_t negative_log(std::uint32_t value) {
    return static_cast<std::uint64_t>(-log_q32(std::uint64_t{value} + 1));
}

std::uint64_t power(std::uint64_t x, std::int64_t p) {
    if (x == 0) return 0;
    return exp_q32(static_cast<std::int64_t>(static_cast<__int128>(log_q32(x)) * p / 1000));
}

FailureModel::FailureModel(FailureRules rules) : rules_(std::move(rules)) {
    rules_.shape = std::clamp<std::int64_t>(rules_.shape, 100, 10'000);
    if (rules_.law != FailureLaw::Weibull) return;
    // The mean of (-ln u)^(1/shape), by the middles of 2^14 equal parts.
    constexpr std::uint64_t kParts = std::uint64_t{1} << 14;
    Wide sum = 0;
    for (std::uint64_t i = 0; i < kParts; ++i) {
        const auto u = static_cast<std::uint32_t>((2 * i + 1) * (kOne / kParts / 2) - 1);
        sum += power(negative_log(u), 1'000'000 / rules_.shape);
    }
    weibull_mean_ = static_cast<std::int64_t>(std::max<Wide>(sum / kParts, 1));
}

bool FailureModel::lemon(Prng& random) const {
    return static_cast<std::int64_t>(random.below(1000)) < rules_.lemons;
}

std::optional<Duration> FailureModel::life(Prng& random, bool lemon) const {
    const std::int64_t rate = rules_.rate * (lemon ? rules_.lemon_factor : 1);
    const std::int64_t mean = rate > 0 ? kNodeDaysMs / rate * 1000 : 0;
    switch (rules_.law) {
        case FailureLaw::None: return std::nullopt;
        case FailureLaw::Exponential:
            if (mean == 0) return std::nullopt;
            return scaled(mean, negative_log(bits(random)));
        case FailureLaw::Weibull: {
            if (mean == 0) return std::nullopt;
            const std::uint64_t drawn = power(negative_log(bits(random)), 1'000'000 / rules_.shape);
            return scaled(mean,
                          static_cast<std::uint64_t>((Wide{drawn} << 32) /
                                                     static_cast<std::uint64_t>(weibull_mean_)));
        }
        case FailureLaw::Replayed: {
            const Duration drawn = rules_.lifetimes[random.below(rules_.lifetimes.size())];
            return Duration{
                std::max<std::int64_t>(1, drawn.ms / (lemon ? rules_.lemon_factor : 1))};
        }
    }
    return std::nullopt;
}

std::optional<Duration> FailureModel::leaf_life(Prng& random) const {
    if (rules_.leaf_rate <= 0) return std::nullopt;
    return scaled(kNodeDaysMs / rules_.leaf_rate * 1000, negative_log(bits(random)));
}

Duration FailureModel::repair(Prng& random) const {
    if (rules_.repair <= kRepairMin) return kRepairMin;
    return std::max(kRepairMin, scaled(rules_.repair.ms, negative_log(bits(random))));
}

}  // namespace muster::simulator::models
