// Successive halving over settings: many candidates on a small part of the jobs, the better half on
// twice as much, until one is left; then that one against the present settings on jobs that the
// search never saw.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "experiment/runner.h"

namespace muster::experiment {

enum class Goal { Jct, Utilisation, Fairness };

/// A setting that differs from the present one.
struct Change {
    std::string setting, now, then;
};
struct Candidate {
    std::vector<Change> changes;  // Empty: the present settings.
    sim::study::Cluster cluster;
};

struct SearchRules {
    Goal goal = Goal::Jct;
    std::size_t candidates = 48;  // With the present settings.
    std::int64_t train = 600;     // Thousandths of the jobs, the earlier ones; the rest judges.
    std::int64_t folds = 4;       // Parts of the rest, one after the other.
};

/// What the winner would have gained over the present settings on one part of the rest.
struct Gain {
    double now = 0, then = 0;
    double part = 0;  // Of what is now; above 0: better.
};
struct Found {
    Candidate best;
    std::vector<Gain> gains;  // A fold each; empty if the present settings won.
    std::size_t tried = 0, runs = 0;
    bool out_of_time = false;  // The search was cut short: the best so far.
};

/// The present settings, each single change of them, and random sets of changes; the same seed, the
/// same ones.
std::vector<Candidate> candidates_of(const sim::study::Cluster& cluster, std::size_t count,
                                     std::uint64_t seed);
/// The metric that the goal speaks of; lower is better. Empty: the run cannot be judged.
std::optional<double> score_of(const sim::report::RunReport& run, Goal goal);

/// `stop` is asked now and then, from any thread: true ends the search with what it has.
Result<Found> search(const Plan& plan, const SearchRules& rules, const std::function<bool()>& stop);

}  // namespace muster::experiment
