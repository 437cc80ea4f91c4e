#include "node/lease.h"

#include <algorithm>

namespace muster::node {
namespace {

constexpr Duration kAskAgain{1'000};

void ask_peers(const State& state, Step& step) {
    for (const protocol::PeerAddress& peer : state.peers) step.commands.push_back(AskPeer{peer});
}

/// More than half of the named peers answered, and none has a controller. Half would not do: an
/// island of a few nodes, cut off together, would take itself for the cluster.
bool outage_confirmed(const State& state) {
    std::size_t lost_too = 0;
    for (const protocol::PeerAddress& peer : state.peers) {
        const auto word = state.words.find(peer.name);
        if (word == state.words.end() || !word->second) continue;
        if (word->second->has_controller) return false;
        ++lost_too;
    }
    return lost_too * 2 > state.peers.size();
}

void cut_off(State& state, Step& step) {
    state.lease = Lease::CutOff;
    state.words.clear();
    step.notes.push_back("cut off: the lease ran out, and no majority of the " +
                         std::to_string(state.peers.size()) +
                         " named peers confirms an outage; stopping the tasks of gangs");
    for (auto& [key, task] : state.tasks) {
        if (!task.gang() || task.ended()) continue;
        stop_task(task, model::Cause::Fenced, protocol::kFenceGrace, step);
    }
}

void begin_round(State& state, Time now, Duration until_next, Step& step) {
    state.words.clear();
    state.ask_next = now + until_next;
    ask_peers(state, step);
}

/// At every gain: what a restarted agent loses of its lease is then less than the time that it
/// asks its peers, and in an outage it does not take their longer leases for a controller.
void keep_lease(State& state, Step& step) {
    if (!state.granted || state.lease_until <= state.kept_until) return;
    state.kept_until = state.lease_until;
    step.commands.push_back(KeepLease{{.term = state.term,
                                       .until = state.lease_until,
                                       .rules = state.rules,
                                       .peers = state.peers}});
}

}  // namespace

bool gang_aboard(const State& state) {
    return std::any_of(state.tasks.begin(), state.tasks.end(), [](const auto& entry) {
        return entry.second.gang() && !entry.second.ended();
    });
}

void stop_task(Task& task, model::Cause cause, Duration grace, Step& step) {
    if (!task.stop_asked) task.stop_cause = cause;
    task.stop_asked = true;
    if (task.held_back) {  // The runtime never heard of it.
        task.held_back = false;
        task.status.state = protocol::TaskState::Ended;
        task.status.end.cause = task.stop_cause;
        task.status.end.message = "stopped before it was started";
        task.told = {};
        return;
    }
    step.commands.push_back(StopRun{task.order.key, task.stop_cause, grace});
}

void extend_lease(State& state, Time sent) {
    const Time until = sent + state.rules.fence;
    if (state.granted && until <= state.lease_until) return;
    state.lease_until = until;
    state.granted = true;
}

void review_lease(State& state, Time now, Step& step) {
    const bool aboard = gang_aboard(state);
    if (aboard) keep_lease(state, step);
    if (now < state.lease_until || !aboard) {
        if (state.lease != Lease::Live) {
            state.lease = Lease::Live;
            state.words.clear();
            if (now < state.lease_until) step.notes.push_back("the lease is live again");
        }
        return;
    }
    switch (state.lease) {
        case Lease::Live:
            state.lease = Lease::Asking;
            state.ask_until = now + protocol::ask_time(state.rules);
            step.notes.push_back("the lease ran out; asking peers whether they have a controller");
            begin_round(state, now, kAskAgain, step);
            return;
        case Lease::Asking:
            if (now >= state.ask_until) {
                if (!outage_confirmed(state)) return cut_off(state, step);
                state.lease = Lease::Outage;
                state.confirmed = now;
                step.notes.push_back("the controller is down for our peers too: running on");
                begin_round(state, now, protocol::ask_time(state.rules), step);
            } else if (now >= state.ask_next) {
                state.ask_next = now + kAskAgain;  // The same round: the newest word counts.
                ask_peers(state, step);
            }
            return;
        case Lease::Outage:
            if (now < state.ask_next) return;
            if (outage_confirmed(state)) state.confirmed = now;
            // A controller that came back counts silence from then on: there is time to link again.
            if (now - state.confirmed >= state.rules.lost) return cut_off(state, step);
            begin_round(state, now, protocol::ask_time(state.rules), step);
            return;
        case Lease::CutOff: return;
    }
}

Time lease_wake(const State& state) {
    if (!gang_aboard(state)) return kNever;
    switch (state.lease) {
        case Lease::Live: return state.lease_until;
        case Lease::Asking: return std::min(state.ask_next, state.ask_until);
        case Lease::Outage: return state.ask_next;
        case Lease::CutOff: return kNever;
    }
    return kNever;
}

}  // namespace muster::node
