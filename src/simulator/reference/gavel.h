// The simulated cluster of the Gavel paper (OSDI '20) as its authors published it: for comparison
// only.
//
// A policy gives each job a share of time on each kind. Time goes in rounds: in each, kind by kind,
// jobs run in order of their share over the part of that kind's time which they received since the
// last reset; what is left goes to jobs without a share. A job that runs makes its steps at the
// measured speed; moving costs nothing. Shares are made anew when jobs came or went, at most every
// `reset_s`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "simulator/models/throughputs.h"
#include "simulator/traces/gavel.h"

namespace muster::simulator::reference {

enum class GavelPolicy : std::uint8_t {
    Las,       // Max-min of time; kinds are alike to it.
    GavelLas,  // Max-min of progress, measured against an equal part of every kind.
    FifoPerf,  // In order of arrival, each on the fastest kind that has room; who lacks it blocks.
};
std::string_view to_string(GavelPolicy policy);  // "las", "gavel", "fifo_perf".

struct GavelRules {
    struct Kind {
        std::string name;
        int devices = 0;
    };
    /// In the order in which they are filled; that of Las is drawn anew each round.
    std::vector<Kind> kinds = {{"v100", 36}, {"p100", 36}, {"k80", 36}};
    double round_s = 360, reset_s = 1920;
    /// The jobs whose completion times count: those in a steady state. The run ends with them.
    std::size_t first = 4000, last = 4999;
    std::uint64_t seed = 0;
};
struct GavelResult {
    double mean_jct_s = 0;  // Of the jobs from first to last.
    std::int64_t rounds = 0, resets = 0;
    bool exhausted = false;  // The stream ended before they did: arrivals were missing.
};
/// Errors: a job whose type was not measured, or that no kind can hold; too short a stream.
Result<GavelResult> run_gavel(const GavelRules& rules, GavelPolicy policy,
                              const models::Throughputs& table,
                              std::span<const traces::GavelJob> jobs,
                              std::span<const double> arrivals);

}  // namespace muster::simulator::reference
