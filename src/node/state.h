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
    Live,    // Granted and not run out; or nobody is aboard whom it concerns.
    Asking,  // Run out without a controller: peers are being asked.
    Outage,  // Peers lost it too: run on.
    CutOff,  // A peer still has it, or nobody answers: this node's gangs are stopped.
};

struct Task {
    protocol::StartTask order;
    protocol::TaskStatus status;  // As last seen from the runtime.
    bool stop_asked = false;
    model::Cause stop_cause = model::Cause::None;  // Why, if this end or the controller stopped it.
    bool notice_given = false;
    bool forget_asked = false;
    std::optional<protocol::Go> go;
    bool held_back = false;  // Not started before an older attempt here has ended.
    Time told;               // When `status` was last sent; 0: not on this link.
    std::optional<protocol::Progress> progress;  // Newest, waits for the throttle or the link.
    Time progress_sent;
    std::optional<protocol::CheckpointDone> checkpoint;  // Newest; told again on each link.
    std::vector<protocol::LogMatch> matches;             // Not sent yet; bounded.
    /// On more than one node: then it must not outlive its lease.
    bool gang() const;
    bool ended() const { return status.state == protocol::TaskState::Ended; }
};

struct State {
    model::NodeFacts facts;
    protocol::LeaseRules rules;
    protocol::Term term = 0;     // The greatest heard of; orders of smaller ones are refused.
    Time term_since;             // When `term` was first obeyed here; 0: ever since the start.
    bool open = false;           // There is a link; Hello was its first message.
    bool linked = false;         // A Welcome came on the present link.
    bool ever_linked = false;    // Since this agent started.
    std::uint64_t sequence = 0;  // Of the last heartbeat sent.
    std::map<std::uint64_t, Time> heartbeats;  // Sent, not granted yet.
    Time lease_until;                          // 0: not started.
    bool granted = false;  // A controller gave it, rather than the start of this agent.
    Lease lease = Lease::Live;
    Time hello_sent, next_heartbeat;
    Time kept_until;           // The lease that KeepLease last named.
    Time ask_next, ask_until;  // While Asking or in an Outage.
    Time confirmed;            // When peers last confirmed the outage.
    std::vector<protocol::PeerAddress> peers;
    std::map<std::string, std::optional<protocol::PeerWord>>
        words;  // By peer; empty: no answer yet.
    std::map<protocol::TaskKey, Task> tasks;
};

void check(const State& state);
std::uint64_t digest(const State& state);

}  // namespace muster::node
