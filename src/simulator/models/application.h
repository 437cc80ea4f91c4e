// A training application as it was measured: how long a step takes by placement and batch, and how
// much a step is worth by epoch and batch (its statistical efficiency). The profiles of the Pollux
// paper (OSDI '21) are such; its simulator's arithmetic is reproduced to the digit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "simulator/models/scattered.h"

namespace muster::simulator::models {

/// Devices a node, in ring order, without empty nodes: {4, 4, 1}.
using Placement = std::vector<int>;

struct StepTime {
    double step_s = 0;  // Of one step: computation and synchronisation.
    double sync_s = 0;  // The synchronisation's part.
};

/// What was measured.
struct ApplicationTables {
    struct Placed {
        Placement placement;  // The least of its rotations, as digits.
        int local_batch = 0;
        StepTime time;
    };
    struct Scaled {
        int nodes = 0, replicas = 0, local_batch = 0;
        StepTime time;
    };
    struct Epoch {
        double progress = 0;   // At its end, in steps of the smallest batch.
        double iteration = 0;  // At its end.
        double grad_sqr = 0, grad_var = 0;
    };
    std::string name;
    std::vector<Placed> placed;
    std::vector<Scaled> scaled;
    std::map<int, std::vector<Epoch>> validation;  // By batch size.
    int local_batch_max = 0;                       // 0: the largest that was measured.
};

/// How a batch is split: `local` samples a device, added up over so many more passes.
struct BatchSplit {
    int local = 0;
    int accumulation = 0;
    int batch(int replicas) const { return replicas * local * (accumulation + 1); }
    friend bool operator==(const BatchSplit&, const BatchSplit&) = default;
};

class Application {
public:
    /// Errors name the table that lacks something.
    static Result<Application> of(ApplicationTables tables);

    const std::string& name() const { return name_; }
    int batch_min() const { return validation_.begin()->first; }
    int batch_max() const { return validation_.rbegin()->first; }
    int local_min() const { return local_min_; }
    int local_max() const { return local_max_; }
    /// It ends when so many are done.
    int epochs() const { return epochs_; }
    /// Progress at which epoch `epoch` (from 0) ends.
    double progress_after(int epoch) const { return progress_[static_cast<std::size_t>(epoch)]; }
    double total_progress() const { return progress_.back(); }
    std::vector<int> batches() const;  // That were measured, ascending.
    /// Iterations of a measured batch size until the end.
    std::optional<double> iterations(int batch) const;

    BatchSplit split(int batch, int replicas) const;
    /// Measured placements (in any rotation) by interpolating the local batch, others between
    /// node counts, device counts and batches. Empty: outside what was measured.
    std::optional<StepTime> step_time(const Placement& placement, int local_batch) const;
    /// What a step of so many samples is worth, in steps of the smallest batch.
    double gain(int batch, int epoch) const;
    /// Progress a second.
    std::optional<double> goodput(const Placement& placement, const BatchSplit& split,
                                  int epoch) const;

private:
    using Curve = std::vector<std::pair<int, StepTime>>;  // By local batch, ascending.
    Application() = default;
    std::optional<StepTime> between_shapes(const Placement& placement, int local_batch) const;

    std::string name_;
    std::map<Placement, Curve> placed_;
    std::vector<StepTime> shape_times_;  // Of the points of shapes_.
    std::optional<Scattered> shapes_;    // Over (nodes, replicas, local batch).
    std::map<int, std::vector<ApplicationTables::Epoch>> validation_;
    std::vector<double> progress_;
    int epochs_ = 0, local_min_ = 0, local_max_ = 0;
};

}  // namespace muster::simulator::models
