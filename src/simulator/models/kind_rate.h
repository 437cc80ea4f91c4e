// The rate of jobs by kind of device: steps a second of a type of jobs on so many devices of it.
//
// A job's profile is its type; its work is what it takes on the reference kind, with the devices
// that it asks for. Devices of several kinds work at the slowest one's pace.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "simulator/models/rate.h"
#include "simulator/models/throughputs.h"

namespace muster::simulator::models {

class KindRate : public RateModel {
public:
    KindRate(const Throughputs& table, std::string reference)
        : table_(table), reference_(std::move(reference)) {}

    /// 0: its type was not measured there.
    Rate rate(const RunningJob& job, std::int64_t, std::int64_t) override {
        const auto devices = static_cast<int>(job.devices());
        const double reference = table_.steps_per_s(reference_, job.profile, devices);
        if (reference <= 0 || job.nodes.empty()) return {0};
        double slowest = table_.steps_per_s(job.nodes[0].kind, job.profile, devices);
        for (const PlacedNode& node : job.nodes)
            slowest = std::min(slowest, table_.steps_per_s(node.kind, job.profile, devices));
        return {static_cast<std::int64_t>(slowest / reference * kMillion)};
    }

private:
    const Throughputs& table_;
    std::string reference_;
};

}  // namespace muster::simulator::models
