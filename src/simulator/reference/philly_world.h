// The cluster of the Philly trace as others used it: virtual clusters with sizes, on nodes of eight
// devices; and the ways to share it that are compared.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/study/study.h"
#include "simulator/traces/trace.h"

namespace muster::simulator::reference {

/// Waits of an hour matter here: a plan at most so often is soon enough.
constexpr Duration kPhillyPlanEvery{30'000};

struct VirtualCluster {
    std::string name;
    std::int64_t nodes = 0;
};
struct PhillyWorld {
    std::vector<VirtualCluster> clusters;
    traces::Trace trace;  // Without jobs of virtual clusters that have no size.
    std::int64_t nodes() const;
    std::int64_t devices() const { return nodes() * 8; }
    /// Of all jobs, over all devices during the span of arrivals, in millionths.
    std::int64_t offered_ppm() const;
};
/// `folder` holds philly.csv(.gz) and philly_vc.csv.
Result<PhillyWorld> read_philly_world(const std::string& folder);

enum class Sharing : std::uint8_t {
    Static,  // Each virtual cluster's nodes are its own; strict first in, first out.
    Fifo,    // One queue for all, in order of submission, with backfill.
    Muster,  // Guarantees of those sizes, lent and given back; backfill, packing, defragmentation.
};
std::string_view to_text(Sharing sharing);
study::Cluster philly_cluster(const PhillyWorld& world, Sharing sharing);
/// The jobs with arrivals `compress` thousandths as fast, in the queues of that sharing.
class PhillyJobs : public study::JobSource {
public:
    PhillyJobs(const PhillyWorld& world, Sharing sharing, std::int64_t compress);
    std::optional<study::TraceJob> next() override;

private:
    traces::TraceSource source_;
    Sharing sharing_;
};

}  // namespace muster::simulator::reference
