// Rates from measurements: by kind of device, from a table of job types (throughputs.h) or one
// factor a kind; and by placement, from measured applications (application.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/models/application.h"
#include "simulator/models/rate.h"
#include "simulator/models/throughputs.h"

namespace muster::simulator::models {

using Applications = std::map<std::string, Application>;

/// A profile that names what an application runs as: "cifar10/2048/6" (application, batch,
/// replicas).
struct ApplicationProfile {
    const Application* application = nullptr;
    int batch = 0, replicas = 0;
    BatchSplit split;
};
std::string application_profile(const std::string& application, int batch, int replicas);
/// Empty: it names no application that is known.
std::optional<ApplicationProfile> parse_application_profile(const Applications& applications,
                                                            std::string_view profile);
/// Devices spread over as few nodes as hold them, the last perhaps not full: {4, 4, 1}.
Placement packed(int replicas, int per_node);

struct MeasuredRules {
    /// Thousandths of the reference's speed; kinds that are not named: 1000.
    std::vector<std::pair<std::string, std::int64_t>> speeds;
    const Throughputs* throughputs = nullptr;    // Not owned; may be null.
    std::string reference;                       // The kind that its jobs' work is told on.
    const Applications* applications = nullptr;  // Not owned; may be null.
    int devices_per_node = 8;                    // Of the placement that work is told on.
};

/// A job on several kinds goes as fast as the slowest. What no table knows goes by `speeds`.
class MeasuredRate : public RateModel {
public:
    explicit MeasuredRate(MeasuredRules rules) : rules_(std::move(rules)) {}
    Rate rate(const RunningJob& job, std::int64_t done, std::int64_t work) override;

private:
    std::int64_t by_kind(const RunningJob& job) const;
    std::optional<std::int64_t> by_placement(const RunningJob& job);

    MeasuredRules rules_;
    UniformRate elastic_;
    std::map<std::pair<std::string, Placement>, std::int64_t> known_;
};

}  // namespace muster::simulator::models
