// What goes wrong in a modelled cluster, at random times, until it is healed.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "simulator/world.h"

namespace muster::simulator {

/// Mean time between two faults of a kind, in the whole cluster; 0: never.
struct FaultRates {
    Duration controller_crash, controller_outage, controller_power, controller_stall;
    Duration sync_failure, disk_full, slow_disk;
    Duration agent_crash, node_reboot, node_death;
    Duration link_reset;
    Duration partition_node, partition_leaf, partition_controller, partition_one_way;
    Duration partition_peers, partition_island;
    Duration clock_jump, relabel;
    Duration outage_max{120'000};
    Duration agent_down_max{8'000};
};

class Faults {
public:
    Faults(World& world, const FaultRates& rates);
    void begin();
    /// Repairs everything; nothing strikes after it.
    void heal();

private:
    struct Kind {
        const char* name;
        Duration mean;
        void (Faults::*strike)();
    };
    void schedule(std::size_t kind);
    HostIndex any_host();
    HostIndex gang_host();
    Duration some(std::int64_t low_ms, std::int64_t high_ms);
    void then(Duration wait, std::function<void()> repair);
    void cut(HostIndex a, HostIndex b, Duration time);  // Both ways.
    /// From the controller and from everybody else, together.
    void cut_off(const std::set<HostIndex>& island, Duration time);
    void cut_one_way(HostIndex from, HostIndex to, Duration time);
    void controller_dies(bool silent, Duration down);

    void controller_crash();
    void controller_outage();
    void controller_power();
    void controller_stall();
    void sync_failure();
    void disk_full();
    void slow_disk();
    void agent_crash();
    void node_reboot();
    void node_death();
    void link_reset();
    void partition_node();
    void partition_leaf();
    void partition_controller();
    void partition_one_way();
    void partition_peers();
    void partition_island();
    void clock_jump();
    void relabel();

    World& world_;
    FaultRates rates_;
    std::vector<Kind> kinds_;
    bool healed_ = true;
    std::uint64_t era_ = 0;  // Repairs of an earlier one are void.
};

}  // namespace muster::simulator
