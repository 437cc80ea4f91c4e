// What the people who run a seed's cluster set up and change: queues, rules, levels, reservations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/job_spec.h"
#include "simulator/world.h"

namespace muster::swarm {

/// Nothing in it: one default queue, and nobody changes it.
struct Site {
    std::vector<std::string> parents, leaves;  // Queues; jobs wait in leaves.
    std::vector<std::string> levels;
    bool empty() const { return leaves.empty(); }
};
/// Of its own random numbers: jobs and faults of the seed are those of a seed without a site.
Site make_site(std::uint64_t seed);
/// Who submits job `number`, and what he asks of the site: queue, levels, spares, a range of
/// nodes, a part of a device.
std::string add_site_asks(const Site& site, std::uint64_t seed, int number, model::JobSpec& spec);

class Operators {
public:
    Operators(simulator::World& world, Site site, std::uint64_t seed)
        : world_(world), site_(std::move(site)), random_(seed) {}
    void begin(Duration span);
    /// Takes away every bound and window that a job could wait for for ever.
    void finish();
    /// Again, where a late request has put one back.
    void look_again();

private:
    void change();
    void apply_queues(bool bounded);
    core::QueueWish wish(const std::string& name, bool bounded);
    void put_rules();
    void reserve();
    void ask(core::Event event, const char* what);

    simulator::World& world_;
    Site site_;
    Prng random_;
    int reservations_ = 0;
    bool finished_ = false;
};

}  // namespace muster::swarm
