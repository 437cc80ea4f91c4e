#include "node/state.h"

#include <algorithm>

#include "base/hash.h"
#include "base/require.h"

namespace muster::node {
namespace {

void add(Fnv& fnv, const protocol::TaskKey& key) {
    fnv.add(key.job.value);
    fnv.add(key.epoch);
    fnv.add(key.rank);
}

void add(Fnv& fnv, Time time) {
    fnv.add(static_cast<std::uint64_t>(time.ms));
}
void add(Fnv& fnv, std::int64_t value) {
    fnv.add(static_cast<std::uint64_t>(value));
}

void add(Fnv& fnv, const Task& task) {
    add(fnv, task.order.key);
    fnv.add(task.order.term);
    for (const std::string& device : task.order.devices) fnv.add(device);
    fnv.add(static_cast<std::uint64_t>(task.status.state));
    fnv.add(static_cast<std::uint64_t>(task.status.end.cause));
    add(fnv, static_cast<std::int64_t>(task.status.end.exit_code));
    add(fnv, task.status.done);
    fnv.add(task.stop_asked);
    fnv.add(static_cast<std::uint64_t>(task.stop_cause));
    fnv.add(task.notice_given);
    fnv.add(task.forget_asked);
    fnv.add(task.held_back);
    fnv.add(task.go.has_value());
    add(fnv, task.told);
    add(fnv, task.progress ? task.progress->step : -1);
    add(fnv, task.checkpoint ? task.checkpoint->step : -1);
    fnv.add(task.matches.size());
}

}  // namespace

bool Task::gang() const {
    if (!order.gang || order.gang->empty()) return false;
    const std::string& first = order.gang->front().name;
    return std::any_of(order.gang->begin(), order.gang->end(),
                       [&](const protocol::GangMember& member) { return member.name != first; });
}

void check(const State& state) {
    for (const auto& [key, task] : state.tasks) {
        MUSTER_REQUIRE(task.order.key == key);
        MUSTER_REQUIRE(task.status.key == key);
        MUSTER_REQUIRE(!task.go || task.go->key == key);
        MUSTER_REQUIRE(!(task.ended() && task.forget_asked));
        MUSTER_REQUIRE(!(task.held_back && task.ended()));
        MUSTER_REQUIRE(task.order.term <= state.term);
        MUSTER_REQUIRE(state.lease != Lease::CutOff || !task.gang() || task.ended() ||
                       task.stop_asked);
    }
    MUSTER_REQUIRE(state.open || !state.linked);
    for (const auto& [sequence, sent] : state.heartbeats)
        MUSTER_REQUIRE(sequence <= state.sequence);
}

std::uint64_t digest(const State& state) {
    Fnv fnv;
    fnv.add(state.facts.name);
    fnv.add(state.facts.boot_id);
    fnv.add(state.term);
    fnv.add(state.open);
    fnv.add(state.linked);
    fnv.add(state.ever_linked);
    fnv.add(state.sequence);
    for (const auto& [sequence, sent] : state.heartbeats) {
        fnv.add(sequence);
        add(fnv, sent);
    }
    add(fnv, state.lease_until);
    fnv.add(state.granted);
    fnv.add(static_cast<std::uint64_t>(state.lease));
    add(fnv, state.hello_sent);
    add(fnv, state.next_heartbeat);
    for (const protocol::PeerAddress& peer : state.peers) fnv.add(peer.name);
    for (const auto& [peer, word] : state.words) {
        fnv.add(peer);
        fnv.add(word ? 1 + static_cast<std::uint64_t>(word->has_controller) : 0);
    }
    for (const auto& [key, task] : state.tasks) add(fnv, task);
    return fnv.hash();
}

}  // namespace muster::node
