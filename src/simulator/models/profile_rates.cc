#include "simulator/models/profile_rates.h"

#include <algorithm>
#include <charconv>

namespace muster::simulator::models {
namespace {

std::optional<int> number(std::string_view text) {
    int value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc{} || end != text.data() + text.size() || value < 1) return std::nullopt;
    return value;
}

std::int64_t ppm(double part, double whole) {
    return static_cast<std::int64_t>(part / whole * static_cast<double>(kMillion) + 0.5);
}

}  // namespace

std::string application_profile(const std::string& application, int batch, int replicas) {
    return application + "/" + std::to_string(batch) + "/" + std::to_string(replicas);
}

std::optional<ApplicationProfile> parse_application_profile(const Applications& applications,
                                                            std::string_view profile) {
    const std::size_t last = profile.rfind('/');
    if (last == std::string_view::npos || last == 0) return std::nullopt;
    const std::size_t first = profile.rfind('/', last - 1);
    if (first == std::string_view::npos) return std::nullopt;
    const auto found = applications.find(std::string(profile.substr(0, first)));
    const auto batch = number(profile.substr(first + 1, last - first - 1));
    const auto replicas = number(profile.substr(last + 1));
    if (found == applications.end() || !batch || !replicas) return std::nullopt;
    return ApplicationProfile{&found->second, *batch, *replicas,
                              found->second.split(*batch, *replicas)};
}

Placement packed(int replicas, int per_node) {
    Placement out(static_cast<std::size_t>(replicas / per_node), per_node);
    if (replicas % per_node != 0) out.push_back(replicas % per_node);
    return out;
}

Rate MeasuredRate::rate(const RunningJob& job, std::int64_t done, std::int64_t work) {
    if (const auto measured = by_placement(job)) return {*measured};
    const Rate elastic = elastic_.rate(job, done, work);
    return {
        static_cast<std::int64_t>(static_cast<__int128>(elastic.ppm) * by_kind(job) / kMillion)};
}

std::int64_t MeasuredRate::by_kind(const RunningJob& job) const {
    const auto devices = static_cast<int>(job.devices());
    std::int64_t slowest = -1;
    for (const PlacedNode& node : job.nodes) {
        std::int64_t speed = kMillion;
        for (const auto& [kind, thousandths] : rules_.speeds)
            if (kind == node.kind) speed = thousandths * 1000;
        const Throughputs* table = rules_.throughputs;
        if (table != nullptr && table->knows(job.profile, devices)) {
            const double whole = table->steps_per_s(rules_.reference, job.profile, devices);
            if (whole > 0) speed = ppm(table->steps_per_s(node.kind, job.profile, devices), whole);
        }
        if (slowest < 0 || speed < slowest) slowest = speed;
    }
    return std::max<std::int64_t>(slowest, 0);
}

std::optional<std::int64_t> MeasuredRate::by_placement(const RunningJob& job) {
    if (rules_.applications == nullptr) return std::nullopt;
    const auto profile = parse_application_profile(*rules_.applications, job.profile);
    if (!profile) return std::nullopt;
    Placement placement;
    for (const PlacedNode& node : job.nodes)
        if (node.devices > 0) placement.push_back(static_cast<int>(node.devices));
    const auto [at, fresh] = known_.try_emplace({std::string(job.profile), placement}, kMillion);
    if (!fresh) return at->second;
    // The worth of a step is the same in both: the epoch does not matter.
    const Application& application = *profile->application;
    const auto here = application.goodput(placement, profile->split, 0);
    const auto there =
        application.goodput(packed(profile->replicas, rules_.devices_per_node), profile->split, 0);
    if (here && there && *there > 0) at->second = ppm(*here, *there);
    return at->second;
}

}  // namespace muster::simulator::models
