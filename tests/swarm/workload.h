// A random cluster, random faults and random users, all from one seed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "judge.h"
#include "site.h"
#include "simulator/faults.h"
#include "simulator/world.h"

namespace muster::swarm {

/// How the modelled program of a job behaves; what is random about one task follows from its key.
struct Behaviour {
    std::int64_t work_ms = 3'000;
    unsigned fail_per_mille = 0;  // Of attempts: some rank ends with an error.
    unsigned oom_per_mille = 0;
    unsigned image_per_mille = 0;
    unsigned launch_per_mille = 0;
    unsigned deaf_per_mille = 0;    // Ignores SIGTERM.
    unsigned sticky_per_mille = 0;  // Takes long to die of SIGKILL.
    bool pulls = false, checkpoints = false, reports = false;
};

struct Plan {
    simulator::WorldConfig world;
    simulator::FaultRates faults;
    bool outage_only = false;  // Only the controller suffers: then nothing may be fenced.
    bool islands = false;      // Groups of peers are cut off together, and gangs run for long.
    Duration safety{120'000};
    int jobs = 100;
    unsigned client_loss_per_mille = 0;
};
/// `behaviours` outlives the world; Users fills it.
Plan make_plan(std::uint64_t seed, const std::map<std::string, Behaviour>& behaviours);

/// Submits, cancels, holds, releases, requeues, drains; and stops when asked to.
class Users {
public:
    Users(simulator::World& world, Referee& referee, std::uint64_t seed, Site site,
          std::map<std::string, Behaviour>& behaviours)
        : world_(world),
          referee_(referee),
          seed_(seed),
          random_(seed),
          site_(std::move(site)),
          behaviours_(behaviours) {}
    /// Spreads `jobs` submits and some actions over `span`.
    void begin(int jobs, Duration span, bool long_gangs);
    /// Lets go of every hold and drain.
    void finish();
    /// As a person would who looks again: cancels what waits though the whole cluster, empty, would
    /// not do, releases what a late request held, takes nodes back into use.
    void give_up();
    bool content() const { return world_.clients.waiting() == 0; }

private:
    void submit(int number);
    void act();
    core::Caller caller_of(JobId job) const;
    void act_on(JobId job, core::JobAction action);
    void act_on_node(HostIndex host, core::NodeAction action);
    model::JobSpec make_spec(int number);
    void add_devices(model::Role& role);
    void add_limits(model::JobSpec& spec);

    simulator::World& world_;
    Referee& referee_;
    std::uint64_t seed_;
    Prng random_;
    Site site_;
    std::map<std::string, Behaviour>& behaviours_;
    std::vector<JobId> known_;  // Acknowledged.
    std::map<JobId, std::string> owners_;
    std::set<JobId> given_up_;
    bool finished_ = false, long_gangs_ = false;
};

}  // namespace muster::swarm
