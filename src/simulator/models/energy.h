// What devices and nodes draw, and so what a run used. Milliwatts and millijoules, whole numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::simulator::models {

struct KindPower {
    std::string kind;
    std::int64_t idle_mw = 60'000;
    std::int64_t busy_mw =
        400'000;  // While its job makes progress, under the limit if there is one.
    std::int64_t speed_ppm = 1'000'000;  // What the limit leaves of its speed.
};
struct PowerRules {
    std::vector<KindPower> kinds;          // By name; others draw KindPower's defaults.
    std::int64_t node_mw = 300'000;        // A node that is up, besides its devices.
    std::int64_t pue_thousandths = 1'200;  // Cooling and losses: 1.2 times what the nodes draw.

    KindPower of(std::string_view kind) const {
        for (const KindPower& known : kinds)
            if (known.kind == kind) return known;
        return {};
    }
};

}  // namespace muster::simulator::models
