#include "simulator/reference/pollux.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/require.h"

namespace muster::simulator::reference {

using models::Application;
using models::BatchSplit;
using models::Placement;

Tiresias::Allocations Tiresias::allocate(std::int64_t now_s, std::span<const Job> jobs,
                                         Allocations held) {
    std::map<std::uint32_t, int> live;
    for (const Job& job : jobs) live.emplace(job.id, job.devices);
    const auto gone = [&](const auto& entry) { return !live.contains(entry.first); };
    std::erase_if(records_, gone);
    std::erase_if(held, gone);
    for (auto& queue : queues_)
        std::erase_if(queue, [&](const Job& job) { return !live.contains(job.id); });
    for (const Job& job : jobs)
        if (records_.try_emplace(job.id).second) queues_[0].push_back(job);

    for (const Job& job : jobs) {
        Record& record = records_[job.id];
        if (record.running) record.executed_s += now_s - record.checked_s;
        record.checked_s = now_s;
        if (!record.running || record.executed_s * job.devices < rules_.demote_device_s) continue;
        const auto at = std::find_if(queues_[0].begin(), queues_[0].end(),
                                     [&](const Job& other) { return other.id == job.id; });
        if (at == queues_[0].end()) continue;
        queues_[0].erase(at);
        queues_[1].push_back(job);
    }

    int left = rules_.nodes * rules_.devices;
    for (const auto& queue : queues_) {
        for (const Job& job : queue) {
            Record& record = records_[job.id];
            record.running = job.devices <= left;
            if (record.running)
                left -= job.devices;
            else
                held.erase(job.id);
        }
    }

    std::vector<int> free(static_cast<std::size_t>(rules_.nodes), rules_.devices);
    for (const auto& [id, nodes] : held)
        for (const int node : nodes) --free[static_cast<std::size_t>(node)];
    for (const auto& queue : queues_) {
        for (const Job& job : queue) {
            if (!records_[job.id].running || held.contains(job.id)) continue;
            std::vector<int>& nodes = held[job.id];
            for (int wanted = job.devices; wanted > 0;) {
                const auto most = std::max_element(free.begin(), free.end());
                MUSTER_REQUIRE(*most > 0);
                const int taken = std::min(*most, wanted);
                nodes.insert(nodes.end(), static_cast<std::size_t>(taken),
                             static_cast<int>(most - free.begin()));
                *most -= taken;
                wanted -= taken;
            }
        }
    }
    return held;
}

namespace {

struct Running {
    const Application* application = nullptr;
    Placement placement;  // Empty: it waits.
    BatchSplit split;
    double progress = 0;
    int epoch = 0;
    std::int64_t still_s = 0;  // Until it works again after a change.
    std::int64_t end_s = -1;
    int changes = 0;
};

/// One tick that began at `now_s`. False: its profile does not cover what it holds.
bool advance(Running& job, std::int64_t now_s, std::int64_t tick_s) {
    if (job.placement.empty() || job.end_s >= 0) return true;
    const std::int64_t still = std::min(job.still_s, tick_s);
    job.still_s -= still;
    now_s += still;
    std::int64_t left_s = tick_s - still;
    while (left_s > 0 && job.end_s < 0) {
        const auto goodput = job.application->goodput(job.placement, job.split, job.epoch);
        if (!goodput) return false;
        const double next = job.application->progress_after(job.epoch);
        const double gained = *goodput * static_cast<double>(left_s);
        if (job.progress + gained < next) {
            job.progress += gained;
            return true;
        }
        const auto spent_s =
            static_cast<std::int64_t>(std::nearbyint((next - job.progress) / *goodput));
        now_s += spent_s;
        left_s -= spent_s;
        job.progress = next;
        if (++job.epoch == job.application->epochs()) job.end_s = now_s;
    }
    return true;
}

Placement placement_of(const std::vector<int>& nodes) {
    Placement placement;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (i == 0 || nodes[i] != nodes[i - 1])
            placement.push_back(1);
        else
            ++placement.back();
    }
    return placement;
}

}  // namespace

Result<std::vector<PolluxOutcome>> run_pollux_tiresias(
    const PolluxRules& rules, std::span<const traces::PolluxJob> jobs,
    const std::map<std::string, Application>& applications) {
    const int capacity = rules.nodes * rules.devices;
    std::vector<Running> running(jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const auto found = applications.find(jobs[i].application);
        if (found == applications.end())
            return Error{Code::NotFound, "job '" + jobs[i].name + "' runs '" + jobs[i].application +
                                             "', which has no profile"};
        if (jobs[i].replicas > capacity)
            return Error{Code::Invalid,
                         "job '" + jobs[i].name + "' asks for " + std::to_string(jobs[i].replicas) +
                             " devices; the cluster has " + std::to_string(capacity)};
        running[i].application = &found->second;
    }
    Tiresias policy(rules);
    Tiresias::Allocations held;
    std::size_t ended = 0;
    for (std::int64_t now_s = 0; ended < jobs.size();) {
        for (std::size_t i = 0; i < jobs.size(); ++i) {
            const bool live = running[i].end_s < 0;
            if (!advance(running[i], now_s, rules.tick_s))
                return Error{Code::Invalid, "the profile of '" + jobs[i].application +
                                                "' does not cover batch " +
                                                std::to_string(jobs[i].batch) + " on " +
                                                std::to_string(jobs[i].replicas) + " devices"};
            if (live && running[i].end_s >= 0) ++ended;
        }
        now_s += rules.tick_s;
        std::vector<Tiresias::Job> live;
        for (std::size_t i = 0; i < jobs.size(); ++i) {
            if (jobs[i].submit_s > now_s || running[i].end_s >= 0) continue;
            live.push_back({static_cast<std::uint32_t>(i), jobs[i].replicas});
        }
        auto next = policy.allocate(now_s, live, held);
        for (const Tiresias::Job& job : live) {
            const auto before = held.find(job.id), after = next.find(job.id);
            const bool had = before != held.end(), has = after != next.end();
            if (had == has && (!had || before->second == after->second)) continue;
            Running& state = running[job.id];
            state.placement = has ? placement_of(after->second) : Placement{};
            if (!has) continue;
            state.split = state.application->split(jobs[job.id].batch, job.devices);
            state.still_s = rules.restart_s;
            ++state.changes;
        }
        held = std::move(next);
    }
    std::vector<PolluxOutcome> outcomes;
    for (std::size_t i = 0; i < jobs.size(); ++i)
        outcomes.push_back({jobs[i].name, jobs[i].submit_s, running[i].end_s,
                            std::max(0, running[i].changes - 1)});
    return outcomes;
}

}  // namespace muster::simulator::reference
