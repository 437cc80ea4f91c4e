#include "simulator/faults.h"

#include <utility>

namespace muster::simulator {

Faults::Faults(World& world, const FaultRates& rates) : world_(world), rates_(rates) {
    kinds_ = {
        {"fault.controller-crash", rates.controller_crash, &Faults::controller_crash},
        {"fault.controller-outage", rates.controller_outage, &Faults::controller_outage},
        {"fault.controller-power", rates.controller_power, &Faults::controller_power},
        {"fault.controller-stall", rates.controller_stall, &Faults::controller_stall},
        {"fault.sync-failure", rates.sync_failure, &Faults::sync_failure},
        {"fault.disk-full", rates.disk_full, &Faults::disk_full},
        {"fault.slow-disk", rates.slow_disk, &Faults::slow_disk},
        {"fault.agent-crash", rates.agent_crash, &Faults::agent_crash},
        {"fault.node-reboot", rates.node_reboot, &Faults::node_reboot},
        {"fault.node-death", rates.node_death, &Faults::node_death},
        {"fault.link-reset", rates.link_reset, &Faults::link_reset},
        {"fault.partition-node", rates.partition_node, &Faults::partition_node},
        {"fault.partition-leaf", rates.partition_leaf, &Faults::partition_leaf},
        {"fault.partition-controller", rates.partition_controller, &Faults::partition_controller},
        {"fault.partition-one-way", rates.partition_one_way, &Faults::partition_one_way},
        {"fault.partition-peers", rates.partition_peers, &Faults::partition_peers},
        {"fault.partition-island", rates.partition_island, &Faults::partition_island},
        {"fault.clock-jump", rates.clock_jump, &Faults::clock_jump},
        {"fault.relabel", rates.relabel, &Faults::relabel},
    };
}

void Faults::begin() {
    healed_ = false;
    world_.controller.on_death(
        [this] { then(some(100, 3'000), [this] { world_.controller.start(); }); });
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        if (kinds_[kind].mean.ms != 0) schedule(kind);
    }
}

void Faults::schedule(std::size_t kind) {
    // Uniform in (0, 2 × mean]: the same mean as an exponential, without a logarithm.
    world_.queue.after(some(1, 2 * kinds_[kind].mean.ms), [this, kind] {
        if (healed_) return;
        world_.tally.hit(kinds_[kind].name);
        (this->*kinds_[kind].strike)();
        schedule(kind);
    });
}

void Faults::heal() {
    healed_ = true;
    ++era_;
    world_.network.calm();
    world_.clients.set_loss(0);
    world_.disk.set_full(false);
    world_.controller.set_slow_commits(0);
    world_.controller.start();
    for (HostIndex host = 1; host <= world_.hosts(); ++host) {
        world_.host(host).power_on();
        world_.host(host).start();
    }
}

HostIndex Faults::any_host() {
    return static_cast<HostIndex>(1 + world_.random.below(world_.hosts()));
}

Duration Faults::some(std::int64_t low_ms, std::int64_t high_ms) {
    return {world_.random.between(low_ms, high_ms)};
}

void Faults::then(Duration wait, std::function<void()> repair) {
    world_.queue.after(wait, [this, era = era_, repair = std::move(repair)] {
        if (era_ == era) repair();
    });
}

void Faults::cut_one_way(HostIndex from, HostIndex to, Duration time) {
    world_.network.block(from, to);
    then(time, [this, from, to] { world_.network.unblock(from, to); });
}

void Faults::cut(HostIndex a, HostIndex b, Duration time) {
    cut_one_way(a, b, time);
    cut_one_way(b, a, time);
}

void Faults::controller_dies(bool silent, Duration down) {
    world_.controller.crash(silent);
    then(down, [this] { world_.controller.start(); });
}

void Faults::controller_crash() {
    controller_dies(false, some(50, 3'000));
}
void Faults::controller_outage() {
    controller_dies(false, some(20'000, rates_.outage_max.ms));
}
void Faults::controller_power() {
    controller_dies(true, some(2'000, 30'000));
}
void Faults::controller_stall() {
    world_.controller.stall(some(500, 12'000));
}
void Faults::sync_failure() {
    world_.controller.fail_next_sync();
}

void Faults::disk_full() {
    world_.disk.set_full(true);
    then(some(500, 15'000), [this] { world_.disk.set_full(false); });
}

void Faults::slow_disk() {
    world_.controller.set_slow_commits(300);
    then(some(1'000, 20'000), [this] { world_.controller.set_slow_commits(0); });
}

void Faults::agent_crash() {
    const HostIndex host = any_host();
    world_.host(host).crash();
    then(some(50, rates_.agent_down_max.ms), [this, host] { world_.host(host).start(); });
}

void Faults::node_reboot() {
    const HostIndex host = any_host();
    world_.host(host).power_off(world_.random.chance(500));
    then(some(3'000, 60'000), [this, host] { world_.host(host).power_on(); });
}

void Faults::node_death() {
    const HostIndex host = any_host();
    world_.host(host).power_off(world_.random.chance(500));
    then(some(60'000, 600'000), [this, host] { world_.host(host).power_on(); });
}

void Faults::link_reset() {
    const std::uint64_t session = world_.network.session_of(any_host());
    if (session != 0) world_.network.reset(session);
}

void Faults::partition_node() {
    const HostIndex host = any_host();
    const Duration time = some(2'000, 120'000);
    for (HostIndex other = 0; other <= world_.hosts(); ++other) {
        if (other != host) cut(host, other, time);
    }
}

void Faults::cut_off(const std::set<HostIndex>& island, Duration time) {
    for (const HostIndex inside : island) {
        for (HostIndex outside = kControllerHost; outside <= world_.hosts(); ++outside) {
            if (!island.contains(outside)) cut(inside, outside, time);
        }
    }
}

void Faults::partition_leaf() {
    const std::string leaf = world_.leaf(any_host());
    std::set<HostIndex> inside;
    for (HostIndex host = 1; host <= world_.hosts(); ++host) {
        if (world_.leaf(host) == leaf) inside.insert(host);
    }
    cut_off(inside, some(2'000, 120'000));
}

/// A host where a task of a gang runs, if there is one.
HostIndex Faults::gang_host() {
    std::vector<HostIndex> hosts;
    for (HostIndex host = 1; host <= world_.hosts(); ++host) {
        for (const auto& [key, task] : world_.host(host).state().tasks) {
            if (!task.gang() || task.status.state != protocol::TaskState::Running) continue;
            hosts.push_back(host);
            break;
        }
    }
    return hosts.empty() ? any_host() : hosts[world_.random.below(hosts.size())];
}

/// A node and just so many of its peers, of other leaves, that they could take themselves for the
/// cluster; or one too few.
void Faults::partition_island() {
    const HostIndex first = gang_host();
    std::set<HostIndex> island{first};
    const auto& peers = world_.host(first).state().peers;
    const std::size_t most = peers.size() / 2 + (world_.random.chance(750) ? 1 : 0);
    for (const protocol::PeerAddress& peer : peers) {
        if (island.size() > most) break;
        if (const HostIndex host = world_.find(peer.name); host != 0) island.insert(host);
    }
    cut_off(island, some(40'000, 180'000));
}

void Faults::partition_controller() {
    const Duration time = some(2'000, 90'000);
    if (world_.random.chance(300)) {  // The controller loses its uplink.
        for (HostIndex host = 1; host <= world_.hosts(); ++host) cut(kControllerHost, host, time);
    } else {
        cut(kControllerHost, any_host(), time);
    }
}

void Faults::partition_one_way() {
    const HostIndex host = any_host();
    const Duration time = some(2'000, 90'000);
    if (world_.random.chance(500))
        cut_one_way(host, kControllerHost, time);
    else
        cut_one_way(kControllerHost, host, time);
}

void Faults::partition_peers() {
    const HostIndex a = any_host();
    const HostIndex b = any_host();
    if (a != b) cut(a, b, some(2'000, 90'000));
}

/// A node takes another's labels, its leaf among them: many nodes' peers are others from then on.
void Faults::relabel() {
    const auto& labels = world_.host(any_host()).state().facts.labels;
    if (!labels.empty()) world_.host(any_host()).relabel(labels);
}

void Faults::clock_jump() {
    const Duration by{world_.random.between(-600'000, 600'000)};
    const auto host = static_cast<HostIndex>(world_.random.below(world_.hosts() + 1));
    if (host == kControllerHost)
        world_.controller.clock().jump(by);
    else
        world_.host(host).clock().jump(by);
}

}  // namespace muster::simulator
