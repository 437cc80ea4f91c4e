#include "simulator/models/application_rate.h"

#include <algorithm>
#include <charconv>

namespace muster::simulator::models {
namespace {

constexpr double kMsPerStep = 1000;

/// Rounded up, so that what it marks is reached when so much is done.
std::int64_t ms_of(double progress) {
    const auto whole = static_cast<std::int64_t>(progress * kMsPerStep);
    return static_cast<double>(whole) < progress * kMsPerStep ? whole + 1 : whole;
}

}  // namespace

std::optional<ApplicationRate::Profile> ApplicationRate::find(std::string_view profile) const {
    const std::size_t slash = std::min(profile.find('/'), profile.size());
    const auto at = applications_.find(std::string(profile.substr(0, slash)));
    if (at == applications_.end()) return std::nullopt;
    Profile found{&at->second};
    if (slash == profile.size()) return found;
    const std::string_view batch = profile.substr(slash + 1);
    const auto read = std::from_chars(batch.data(), batch.data() + batch.size(), found.batch);
    if (read.ptr != batch.data() + batch.size() || found.batch <= 0) return std::nullopt;
    return found;
}

std::int64_t ApplicationRate::work_ms(std::string_view profile) const {
    const auto found = find(profile);
    return found ? ms_of(found->application->total_progress()) : 0;
}

Placement ApplicationRate::placement_of(const RunningJob& job) const {
    Placement placement;
    std::vector<std::uint32_t> machines;
    for (const PlacedNode& node : job.nodes) {
        const std::uint32_t machine = machine_[node.node];
        const auto at = std::ranges::find(machines, machine);
        const auto index = static_cast<std::size_t>(at - machines.begin());
        if (at == machines.end()) {
            machines.push_back(machine);
            placement.push_back(0);
        }
        placement[index] += static_cast<int>(node.devices);
    }
    return placement;
}

double ApplicationRate::goodput(const Key& key) {
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    const Application& application = *key.application;
    int replicas = 0;
    for (const int count : key.placement) replicas += count;
    double best = 0;
    const auto try_batch = [&](int batch) {
        const auto found =
            application.goodput(key.placement, application.split(batch, replicas), key.epoch);
        best = std::max(best, found.value_or(0));
    };
    if (key.batch > 0) {
        try_batch(key.batch);
    } else {
        // Steps of a twelfth; every batch that was measured is near one of them.
        for (int batch = application.batch_min(); batch < application.batch_max();
             batch += std::max(1, batch / 12))
            try_batch(batch);
        try_batch(application.batch_max());
    }
    known_.emplace(key, best);
    return best;
}

Rate ApplicationRate::rate(const RunningJob& job, std::int64_t done, std::int64_t) {
    const auto profile = find(job.profile);
    if (!profile || job.nodes.empty()) return {0};
    const Application& application = *profile->application;
    int epoch = 0;
    while (epoch + 1 < application.epochs() && ms_of(application.progress_after(epoch)) <= done)
        ++epoch;
    const double steps_per_s = goodput({&application, placement_of(job), profile->batch, epoch});
    if (steps_per_s <= 0) ++uncovered_;
    return {static_cast<std::int64_t>(steps_per_s * kMillion),
            ms_of(application.progress_after(epoch))};
}

}  // namespace muster::simulator::models
