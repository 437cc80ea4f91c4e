// Everything an agent knows: which tasks are wanted and which are seen, its lease, its peers.
//
// Nothing of it needs to be stored by the agent itself: the orders and ends of tasks lie in each
// task's own folder, kept by the runtime, and the wishes come again with every Welcome.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "model/node.h"
#include "protocol/messages.h"

namespace muster::node {

enum class Lease : std::uint8_t {
    Live,      // Granted, not run out.
    Asking,    // Run out without a controller: peers are being asked.
    Outage,    // Peers lost it too: run on.
    CutOff,    // A peer still has it, or nobody answers: this node's gangs are stopped.
};

struct Task {
    protocol::StartTask order;
    protocol::TaskStatus status;      // As last seen from the runtime.
    bool stop_asked = false;
    model::Cause stop_cause = model::Cause::None;  // Why, if this end or the controller stopped it.
    bool notice_given = false;
    bool forget_asked = false;
    std::optional<protocol::Go> go;
    /// More than one node: then it must not outlive its lease.
    bool gang() const { return order.gang && order.gang->size() > 1; }
};

struct State {
    model::NodeFacts facts;
    protocol::LeaseRules rules;
    protocol::Term term = 0;          // The greatest heard of; orders of smaller ones are refused.
    bool linked = false;              // A Welcome came on the present link.
    bool ever_linked = false;         // Since this agent started.
    std::uint64_t sequence = 0;       // Of the last heartbeat sent.
    std::map<std::uint64_t, Time> heartbeats;  // Sent, not granted yet.
    Time lease_until;                 // 0: never granted one.
    Lease lease = Lease::Live;
    Time next_heartbeat, ask_until;
    std::vector<protocol::PeerAddress> peers;
    std::map<std::string, std::optional<protocol::PeerWord>> words;  // By peer; empty: no answer yet.
    std::map<protocol::TaskKey, Task> tasks;
};

void check(const State& state);
std::uint64_t digest(const State& state);

}  // namespace muster::node
