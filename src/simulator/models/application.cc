#include "simulator/models/application.h"

#include <algorithm>
#include <array>

#include "base/require.h"

namespace muster::simulator::models {
namespace {

/// More nodes than that were not measured; the last shape stands for them.
constexpr int kNodesMeasured = 16;

/// Rounded up.
int per(int whole, int parts) {
    return (whole + parts - 1) / parts;
}
Placement least_rotation(const Placement& placement) {
    Placement least = placement, rotated = placement;
    for (std::size_t i = 1; i < placement.size(); ++i) {
        std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
        least = std::min(least, rotated);
    }
    return least;
}
int devices(const Placement& placement) {
    int sum = 0;
    for (const int count : placement) sum += count;
    return sum;
}
Error missing(const std::string& name, const std::string& what) {
    return {Code::Invalid, "profile '" + name + "' has no " + what};
}

}  // namespace

Result<Application> Application::of(ApplicationTables tables) {
    Application made;
    made.name_ = tables.name;
    if (tables.placed.empty()) return missing(tables.name, "measured placements");
    if (tables.validation.empty()) return missing(tables.name, "validation by epoch");

    // The mean of all placements with the same counts, ascending, then what was measured by counts.
    struct Sum {
        StepTime time;
        double count = 0;
    };
    std::map<std::array<int, 3>, Sum> means;
    made.local_min_ = made.local_max_ = tables.placed.front().local_batch;
    for (const auto& row : tables.placed) {
        made.placed_[row.placement].emplace_back(row.local_batch, row.time);
        made.local_min_ = std::min(made.local_min_, row.local_batch);
        made.local_max_ = std::max(made.local_max_, row.local_batch);
        Sum& sum = means[{static_cast<int>(row.placement.size()), devices(row.placement),
                          row.local_batch}];
        sum.time.step_s += row.time.step_s;
        sum.time.sync_s += row.time.sync_s;
        sum.count += 1;
    }
    if (tables.local_batch_max > 0) made.local_max_ = tables.local_batch_max;
    for (auto& [placement, curve] : made.placed_) {
        std::sort(curve.begin(), curve.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    std::vector<Point3> points;
    const auto add = [&](double nodes, double replicas, double local, const StepTime& time) {
        points.push_back({nodes, replicas, local});
        made.shape_times_.push_back(time);
    };
    for (const auto& [shape, sum] : means)
        add(shape[0], shape[1], shape[2],
            {sum.time.step_s / sum.count, sum.time.sync_s / sum.count});
    for (const auto& row : tables.scaled) add(row.nodes, row.replicas, row.local_batch, row.time);
    if (!tables.scaled.empty()) {
        MUSTER_LET(shapes, Scattered::of(points));
        made.shapes_ = std::move(shapes);
    }

    made.epochs_ = static_cast<int>(tables.validation.begin()->second.size());
    for (const auto& [batch, epochs] : tables.validation)
        made.epochs_ = std::min(made.epochs_, static_cast<int>(epochs.size()));
    if (made.epochs_ == 0) return missing(tables.name, "epochs");
    for (int epoch = 0; epoch < made.epochs_; ++epoch) {
        const auto at = static_cast<std::size_t>(epoch);
        double least = tables.validation.begin()->second[at].progress;
        for (const auto& [batch, epochs] : tables.validation)
            least = std::min(least, epochs[at].progress);
        made.progress_.push_back(least);
    }
    made.validation_ = std::move(tables.validation);
    return made;
}

std::vector<int> Application::batches() const {
    std::vector<int> all;
    for (const auto& [batch, epochs] : validation_) all.push_back(batch);
    return all;
}

std::optional<double> Application::iterations(int batch) const {
    const auto found = validation_.find(batch);
    if (found == validation_.end()) return std::nullopt;
    return found->second[static_cast<std::size_t>(epochs_ - 1)].iteration;
}

BatchSplit Application::split(int batch, int replicas) const {
    MUSTER_REQUIRE(replicas > 0);
    const int share = per(batch, replicas);
    BatchSplit split;
    split.accumulation = per(share, local_max_) - 1;
    // One device alone cannot measure the gradient's noise without a second pass.
    if (replicas == 1 && batch > batch_min()) split.accumulation = std::max(1, split.accumulation);
    split.local = per(share, split.accumulation + 1);
    split.local = std::min(split.local, batch_max() / (replicas * (split.accumulation + 1)));
    return split;
}

std::optional<StepTime> Application::step_time(const Placement& placement, int local_batch) const {
    const auto found = placed_.find(least_rotation(placement));
    if (found == placed_.end()) return between_shapes(placement, local_batch);
    const Curve& curve = found->second;
    auto above = std::lower_bound(curve.begin(), curve.end(), local_batch,
                                  [](const auto& row, int batch) { return row.first < batch; });
    if (above == curve.end()) return std::nullopt;
    if (above == curve.begin()) {
        if (above->first != local_batch) return std::nullopt;
        if (curve.size() == 1) return above->second;
        ++above;
    }
    const auto& [low, a] = *(above - 1);
    const auto& [high, b] = *above;
    const double run = high - low, along = local_batch - low;
    return StepTime{(b.step_s - a.step_s) / run * along + a.step_s,
                    (b.sync_s - a.sync_s) / run * along + a.sync_s};
}

std::optional<StepTime> Application::between_shapes(const Placement& placement,
                                                    int local_batch) const {
    if (!shapes_) return std::nullopt;
    const int nodes = std::min(static_cast<int>(placement.size()), kNodesMeasured);
    const auto weights =
        shapes_->at({static_cast<double>(nodes), static_cast<double>(devices(placement)),
                     static_cast<double>(local_batch)});
    if (!weights) return std::nullopt;
    StepTime time;
    for (std::size_t i = 0; i < 4; ++i) {
        time.step_s += weights->weight[i] * shape_times_[weights->point[i]].step_s;
        time.sync_s += weights->weight[i] * shape_times_[weights->point[i]].sync_s;
    }
    return time;
}

double Application::gain(int batch, int epoch) const {
    const auto at = static_cast<std::size_t>(std::clamp(epoch, 0, epochs_ - 1));
    const int inside = std::clamp(batch, batch_min(), batch_max());
    const auto upper = validation_.lower_bound(inside);
    auto sqr = upper->second[at].grad_sqr, var = upper->second[at].grad_var;
    if (upper->first != inside) {
        const auto lower = std::prev(upper);
        const double up = inside - lower->first, down = upper->first - inside;
        const double run = upper->first - lower->first;
        sqr = (up * sqr + down * lower->second[at].grad_sqr) / run;
        var = (up * var + down * lower->second[at].grad_var) / run;
    }
    const double scale = static_cast<double>(inside) / batch_min();
    return (var + sqr) / (var / scale + sqr);
}

std::optional<double> Application::goodput(const Placement& placement, const BatchSplit& split,
                                           int epoch) const {
    const auto time = step_time(placement, split.local);
    if (!time) return std::nullopt;
    const double step = time->step_s + (time->step_s - time->sync_s) * split.accumulation;
    return gain(split.batch(devices(placement)), epoch) / step;
}

}  // namespace muster::simulator::models
