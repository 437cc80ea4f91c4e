// The simulated cluster of the Pollux paper (OSDI '21) under Tiresias with tuned jobs, as its
// authors published it: for comparison only.
//
// Time goes in ticks. A tick lets every job work on what it holds, then takes in arrivals and
// allocates anew. A job whose allocation changed stands still for `restart_s` first. It ends when
// all its epochs are done; ends are rounded to whole seconds, halves to even.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/models/application.h"
#include "simulator/traces/pollux.h"

namespace muster::simulator::reference {

struct PolluxRules {
    int nodes = 16, devices = 4;
    std::int64_t tick_s = 60, restart_s = 30;
    /// Attained service, in device-seconds, from which on a job queues behind those below it.
    std::int64_t demote_device_s = std::int64_t{3600} * 16;
};

/// Two queues by attained service, first in first out within each; a job that does not fit is
/// passed over. Devices are counted, not places, to decide who runs; who starts anew gets them
/// from the node with the most free, the first of those with as many.
class Tiresias {
public:
    struct Job {
        std::uint32_t id = 0;
        int devices = 0;
    };
    /// Node of each device, ascending in the order they were taken.
    using Allocations = std::map<std::uint32_t, std::vector<int>>;

    explicit Tiresias(const PolluxRules& rules) : rules_(rules) {}
    /// `jobs`: those that have arrived and not ended, by arrival. `held`: what they hold now.
    Allocations allocate(std::int64_t now_s, std::span<const Job> jobs, Allocations held);

private:
    struct Record {
        bool running = false;
        std::int64_t checked_s = 0, executed_s = 0;
    };
    PolluxRules rules_;
    std::map<std::uint32_t, Record> records_;
    std::vector<Job> queues_[2];
};

struct PolluxOutcome {
    std::string name;
    std::int64_t submit_s = 0, end_s = 0;
    int restarts = 0;
};
/// Errors: a job asks for more than the cluster has, or its profile does not cover what it got.
Result<std::vector<PolluxOutcome>> run_pollux_tiresias(
    const PolluxRules& rules, std::span<const traces::PolluxJob> jobs,
    const std::map<std::string, models::Application>& applications);

}  // namespace muster::simulator::reference
