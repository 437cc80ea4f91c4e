// The rate of training jobs whose applications were measured: by placement, batch and epoch.
//
// A job's profile is "APPLICATION/BATCH": it trains with that batch whatever it holds; or
// "APPLICATION": it takes the batch that makes most progress on what it holds, anew each epoch. Its
// work is the application's whole progress, a thousand milliseconds for each step of the smallest
// batch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/models/application.h"
#include "simulator/models/rate.h"

namespace muster::simulator::models {

class ApplicationRate : public RateModel {
public:
    /// `machine`: of each node of the cluster; nodes of one machine share its memory and its link.
    ApplicationRate(const std::map<std::string, Application>& applications,
                    std::vector<std::uint32_t> machine)
        : applications_(applications), machine_(std::move(machine)) {}

    Rate rate(const RunningJob& job, std::int64_t done, std::int64_t work) override;

    /// Milliseconds; 0 for an application that is not known.
    std::int64_t work_ms(std::string_view profile) const;
    /// Jobs that held what their profile does not cover: they stood still.
    std::int64_t uncovered() const { return uncovered_; }

private:
    struct Profile {
        const Application* application = nullptr;
        int batch = 0;  // 0: any.
    };
    struct Key {
        const Application* application;
        Placement placement;
        int batch, epoch;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    std::optional<Profile> find(std::string_view profile) const;
    Placement placement_of(const RunningJob& job) const;
    double goodput(const Key& key);

    const std::map<std::string, Application>& applications_;
    std::vector<std::uint32_t> machine_;
    std::map<Key, double> known_;
    std::int64_t uncovered_ = 0;
};

}  // namespace muster::simulator::models
