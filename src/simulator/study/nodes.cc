// Nodes that fail, are missed, are repaired and come back.
#include <algorithm>

#include "simulator/study/engine.h"

namespace muster::simulator::study {

void Engine::power_on(std::uint32_t number) {
    Host& host = hosts_[number];
    ledger_.advance(now_);
    host.up = true;
    ++host.serial;
    ++host.boots;
    host.armed = kNever;
    host.facts.boot_id = std::to_string(host.boots);
    ledger_.up += static_cast<std::int64_t>(host.facts.devices.size()) * 1000;
    ++ledger_.nodes_up;
    ledger_.draw_mw += host.idle_mw;
    under_way_.push_back(ToHost{number, 0, node::Started{.facts = host.facts, .found = {}}});
    open_link(number);
    drain();
    expect_failure(number);
}

void Engine::expect_failure(std::uint32_t number) {
    Host& host = hosts_[number];
    const std::optional<Duration> life = failures_.life(host.random, host.lemon);
    if (life && now_ + *life < horizon_)
        calendar_.put(now_ + *life, Happening::NodeFails, number, 0, host.serial);
}

/// Its tasks are gone at once, and their gangs hang until it is missed.
void Engine::node_fails(std::uint32_t number, Duration repair) {
    Host& host = hosts_[number];
    if (!host.up) return;
    ledger_.advance(now_);
    ++summary_.node_failures;
    for (const auto& [id, rank] : std::exchange(host.tasks, {})) {
        LiveJob* job = find(id);
        if (job == nullptr || rank >= job->tasks.size() || job->tasks[rank].host != number)
            continue;
        halt(*job);
        job->tasks[rank].ended = true;
    }
    host.up = false;
    ++host.serial;
    ledger_.up -= static_cast<std::int64_t>(host.facts.devices.size()) * 1000;
    --ledger_.nodes_up;
    ledger_.draw_mw -= host.idle_mw;
    calendar_.put(now_ + failures_.rules().detection, Happening::NodeMissed, number, 0,
                  host.serial);
    calendar_.put(now_ + repair, Happening::NodeBack, number, 0, host.serial);
}

/// As when a power controller confirms that the node is off.
void Engine::node_missed(std::uint32_t number) {
    Host& host = hosts_[number];
    under_way_.push_back(ToCore{core::LinkClosed{std::exchange(host.session, 0)}});
    under_way_.push_back(ToCore{
        core::ActOnNode{{"root", true, {}}, host.facts.name, core::NodeAction::Fenced, "failed"}});
}

void Engine::expect_leaf_failure(std::uint32_t number) {
    const std::optional<Duration> life = failures_.leaf_life(leaves_[number].random);
    if (life && now_ + *life < horizon_) calendar_.put(now_ + *life, Happening::LeafFails, number);
}

void Engine::leaf_fails(std::uint32_t number) {
    ++summary_.leaf_failures;
    Leaf& leaf = leaves_[number];
    const Duration repair = failures_.repair(leaf.random);
    for (const std::uint32_t host : leaf.hosts) node_fails(host, repair);
    expect_leaf_failure(number);
}

}  // namespace muster::simulator::study
