// Judges a run by the truth about processes, disks and answers, which no part of Muster sees whole.
// The first thing that must never be is kept as the run's failure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/world.h"

namespace muster::swarm {

using simulator::HostIndex;

class Referee final : public simulator::Judge {
public:
    /// `no_fence`: nothing in this run cuts a node off, so no task may be stopped as fenced.
    explicit Referee(bool no_fence, bool verbose) : no_fence_(no_fence), verbose_(verbose) {}
    void attach(simulator::World& world) { world_ = &world; }

    const std::string& failure() const { return failure_; }
    void fail(const std::string& what);

    void acknowledged(const std::string& key, JobId job);
    void cancel_acknowledged(JobId job);
    /// The next recovery must find exactly this state.
    void expect_digest(std::uint64_t digest) { expected_digest_ = digest; }
    std::size_t running_tasks() const { return running_.size(); }

    // Watcher: the truth about processes.
    void holds_devices(HostIndex host, const protocol::StartTask& order) override;
    void ready(HostIndex host, const protocol::StartTask& order) override;
    void runs(HostIndex host, const protocol::StartTask& order) override;
    void killed(HostIndex host, const protocol::StartTask& order) override;
    void gone(HostIndex host, const protocol::StartTask& order, const model::TaskEnd& end) override;
    // ControllerWatcher
    void stepped(const core::State& state, const core::Input& input,
                 const Result<core::Step>& result) override;
    void stored(const std::vector<simulator::StoredJob>& jobs) override;
    void recovered(const core::State& state) override;
    // Agents
    void agent_stepped(HostIndex host, const node::State& state, const node::Input& input,
                       const node::Step& step) override;

private:
    using Attempt = std::pair<JobId, std::uint32_t>;
    void check_acknowledged(const core::State& state);
    void tally_changes(const core::Step& step);
    void judge_job(const core::State& state, const core::Job& job, Time now);
    void judge_start(const core::State& state, const core::Job& job, Time now);
    void log(const std::string& line) const;
    static std::string name(const protocol::TaskKey& key);

    simulator::World* world_ = nullptr;
    bool no_fence_, verbose_;
    std::string failure_;

    /// Who holds how many thousandths of a device.
    std::map<std::pair<HostIndex, std::string>, std::map<protocol::TaskKey, std::int64_t>> devices_;
    std::map<JobId, std::uint32_t> newest_;                 // Epoch that ever held devices.
    std::map<Attempt, std::set<std::uint32_t>> ready_;      // Ranks that came to the barrier.
    std::map<Attempt, std::set<std::uint32_t>> succeeded_;  // Ranks that ended well.
    std::map<Attempt, std::size_t> sizes_;
    std::map<JobId, std::map<std::uint32_t, std::set<std::uint32_t>>> alive_;  // Epoch, ranks.
    std::set<protocol::TaskKey> running_;

    std::map<std::string, JobId> acknowledged_;
    std::map<JobId, std::string> key_of_;
    std::map<JobId, std::uint32_t> forbidden_;  // Cancelled: no attempt from this epoch on.
    std::map<JobId, model::JobState> ended_;    // Durably.
    std::set<Attempt> started_, preempted_;     // As the core decided, durable or not.
    std::uint64_t expected_digest_ = 0;
    std::map<HostIndex, std::pair<std::uint64_t, node::Lease>> leases_;
    std::map<HostIndex, protocol::Term> terms_;
};

}  // namespace muster::swarm
