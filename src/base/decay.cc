#include "base/decay.h"

#include <algorithm>
#include <limits>

namespace muster {
namespace {

using Wide = unsigned __int128;

constexpr std::uint64_t kOne = std::uint64_t{1} << 63;
constexpr int kBits = 48;
/// 2^-(2^-k) for k = 1..48, times 2^63, rounded down.
constexpr std::uint64_t kRoots[kBits] = {
    0x5a827999fcef3242, 0x6ba27e656b4eb57a, 0x75606373ee921c97, 0x7a92be8a92436616,
    0x7d41d96db915019d, 0x7e9f06067a4360ba, 0x7f4f08ae3dc7c425, 0x7fa765aca88f6452,
    0x7fd3ab290e46d768, 0x7fe9d3a8e07bf085, 0x7ff4e9597bed93aa, 0x7ffa748dff8dc61e,
    0x7ffd3a3f50020332, 0x7ffe9d1dbc0a75a9, 0x7fff4e8e6306ed58, 0x7fffa74712c3cdfd,
    0x7fffd3a381b1fa28, 0x7fffe9d1beed0189, 0x7ffff4e8defb81d7, 0x7ffffa746f5f012f,
    0x7ffffd3a37a7d0a8, 0x7ffffe9d1bd1fc58, 0x7fffff4e8de8832d, 0x7fffffa746f422d6,
    0x7fffffd3a37a09bb, 0x7fffffe9d1bd02f1, 0x7ffffff4e8de80fd, 0x7ffffffa746f4060,
    0x7ffffffd3a37a028, 0x7ffffffe9d1bd012, 0x7fffffff4e8de808, 0x7fffffffa746f404,
    0x7fffffffd3a37a02, 0x7fffffffe9d1bd01, 0x7ffffffff4e8de80, 0x7ffffffffa746f40,
    0x7ffffffffd3a37a0, 0x7ffffffffe9d1bd0, 0x7fffffffff4e8de8, 0x7fffffffffa746f4,
    0x7fffffffffd3a37a, 0x7fffffffffe9d1bd, 0x7ffffffffff4e8de, 0x7ffffffffffa746f,
    0x7ffffffffffd3a37, 0x7ffffffffffe9d1b, 0x7fffffffffff4e8d, 0x7fffffffffffa746,
};
constexpr std::uint64_t kOneOverLn2 = 6'196'328'018;  // Times 2^32.

/// As decay_q32(), times 2^63.
std::uint64_t decay_q63(std::int64_t age, std::int64_t half_life) {
    if (age <= 0 || half_life <= 0) return kOne;
    const std::int64_t halvings = age / half_life;
    if (halvings >= 63) return 0;
    const auto rest = static_cast<std::uint64_t>(age % half_life);
    const auto part =
        static_cast<std::uint64_t>((Wide{rest} << kBits) / static_cast<std::uint64_t>(half_life));
    std::uint64_t left = kOne;
    for (int k = 0; k < kBits; ++k) {
        if ((part >> (kBits - 1 - k) & 1) == 0) continue;
        left = static_cast<std::uint64_t>(Wide{left} * kRoots[k] >> 63);
    }
    return left >> halvings;
}

std::int64_t bounded(Wide value) {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min<Wide>(value, kMax));
}

}  // namespace

std::uint64_t decay_q32(Duration age, Duration half_life) {
    return decay_q63(age.ms, half_life.ms) >> 31;
}

std::int64_t decayed(std::int64_t value, Duration age, Duration half_life) {
    if (value <= 0) return 0;
    const Wide left = Wide{static_cast<std::uint64_t>(value)} * decay_q63(age.ms, half_life.ms);
    return bounded(left >> 63);
}

std::int64_t accrued(std::int64_t rate, Duration length, Duration half_life) {
    if (rate <= 0 || length.ms <= 0) return 0;
    constexpr int kFraction = 16;
    // How long it would take without decay, in 2^-16 ms.
    Wide time = Wide{static_cast<std::uint64_t>(length.ms)} << kFraction;
    if (half_life.ms > 0) {
        const std::uint64_t gone = kOne - decay_q63(length.ms, half_life.ms);
        const Wide weighted = Wide{static_cast<std::uint64_t>(half_life.ms)} * gone;
        time = std::min(time, (weighted >> (63 - kFraction)) * kOneOverLn2 >> 32);
    }
    // `time` is below 2^56: no product is past 128 bits.
    return bounded(time * static_cast<std::uint64_t>(rate) / 1000 >> kFraction);
}

}  // namespace muster
