// How fast a job works on what it was given: the seam for tables of kinds, placements and links.
//
// A rate is in parts per million of the job's reference speed, a whole number, so that every run of
// the same seed is the same on every machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace muster::simulator::models {

constexpr std::int64_t kMillion = 1'000'000;

/// One node's part of an allocation.
struct PlacedNode {
    std::uint32_t node = 0;  // Index into Cluster::nodes.
    std::string_view kind;   // Of its devices; "" without devices.
    std::int64_t devices = 0;
    std::int64_t share = 1000;  // Thousandths of a device, when it has less than one.
};
/// A job that runs, as its rate is asked for. What the views point to lives as long as the job.
struct RunningJob {
    JobId id;
    std::string_view profile;       // JobModel::profile.
    std::vector<PlacedNode> nodes;  // In rank order, without spares.
    std::int64_t nodes_asked = 1;   // The least that it asked for.
    std::int64_t devices() const {
        std::int64_t sum = 0;
        for (const PlacedNode& node : nodes) sum += node.devices;
        return sum;
    }
};
struct Rate {
    std::int64_t ppm = kMillion;  // 0: it makes no progress.
    /// It is asked again when so much of the job's work (work_ms) is done.
    std::int64_t until = std::numeric_limits<std::int64_t>::max();
};

class RateModel {
public:
    virtual ~RateModel() = default;
    /// With `done` of its `work` (milliseconds on the reference) behind it.
    virtual Rate rate(const RunningJob& job, std::int64_t done, std::int64_t work) = 0;
    /// The job begins or ends to run. Answers whose rates changed by that, besides its own.
    virtual std::vector<JobId> began(const RunningJob&) { return {}; }
    virtual std::vector<JobId> ended(const RunningJob&) { return {}; }
};

/// Speed 1 on what was asked for, whatever the kind; an elastic job's grows with its nodes, each
/// node beyond those asked for adding `scaling` thousandths of one.
class UniformRate : public RateModel {
public:
    explicit UniformRate(std::int64_t scaling = 1000) : scaling_(scaling) {}
    Rate rate(const RunningJob& job, std::int64_t, std::int64_t) override {
        const auto held = static_cast<std::int64_t>(job.nodes.size());
        const std::int64_t asked = std::max<std::int64_t>(job.nodes_asked, 1);
        return {kMillion + std::max<std::int64_t>(held - asked, 0) * scaling_ * 1000 / asked};
    }

private:
    std::int64_t scaling_;
};

}  // namespace muster::simulator::models
