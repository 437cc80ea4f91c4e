// The agent as one deterministic function, of the same shape as the controller's core.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "node/state.h"
#include "protocol/messages.h"

namespace muster::node {

// ---- events -----------------------------------------------------------------------------------

/// What outlives the agent of its lease, so that a restart neither lengthens it nor forgets whom
/// to ask. Times are on Input's clock; a shell that cannot tell how they relate after a restart
/// (another boot_id) passes nothing.
struct KeptLease {
    protocol::Term term = 0;
    Time until;
    protocol::LeaseRules rules;
    std::vector<protocol::PeerAddress> peers;
    friend bool operator==(const KeptLease&, const KeptLease&) = default;
};
/// First input. `found`: tasks whose supervisors or folders the runtime found; they are adopted.
struct Started {
    struct Found {
        protocol::StartTask order;
        protocol::TaskStatus status;
        bool released = false;  // Its Go is on disk.
    };
    model::NodeFacts facts;
    std::vector<Found> found;
    std::optional<KeptLease> kept = {};
};
struct LinkOpened {};
struct LinkClosed {};
struct FromController {
    protocol::ControllerMessage message;  // ReadLog, tunnels and the like do not come this way.
};
/// What the runtime saw: TaskStatus, Progress, CheckpointDone, LogTail, LogMatch.
struct FromRuntime {
    protocol::AgentMessage message;
};
/// A peer's answer; no word: not reached.
struct PeerAnswered {
    std::string peer;
    std::optional<protocol::PeerWord> word;
};
struct FactsRead {
    model::NodeFacts facts;
};
struct Tick {};
using Event = std::variant<Started, LinkOpened, LinkClosed, FromController, FromRuntime,
                           PeerAnswered, FactsRead, Tick>;
struct Input {
    Time at;  // Of a clock that never jumps back (monotonic, offset to the epoch once).
    Event event;
};

// ---- commands ---------------------------------------------------------------------------------

struct SendUp {
    protocol::AgentMessage message;
};
struct StartRun {
    protocol::StartTask order;  // The runtime writes it to disk before it reports Accepted.
};
struct ReleaseRun {
    protocol::Go go;
};
struct NoticeRun {
    protocol::NoticeTask notice;
};
/// Again, with an earlier end: the earlier one holds. A task that ended before is left as it is.
struct StopRun {
    protocol::TaskKey key;
    model::Cause cause = model::Cause::Cancelled;
    Duration grace;
};
/// Remove scratch and folder; the log stays until its retention ends.
struct CleanRun {
    protocol::TaskKey key;
};
struct AskPeer {
    protocol::PeerAddress peer;
};
/// The controller's word is older than ours: hang up and dial again.
struct DropLink {
    std::string reason;
};
/// Write it where the next Started finds it, replacing the last; needs no sync. With every grant
/// while a gang is aboard.
struct KeepLease {
    KeptLease lease;
};
using Command = std::variant<SendUp, StartRun, ReleaseRun, NoticeRun, StopRun, CleanRun, AskPeer,
                             DropLink, KeepLease>;

struct Step {
    std::vector<Command> commands;   // Idempotent; in order.
    std::vector<std::string> notes;  // For the agent's log.
};

Step step(State& state, const Input& input);
/// When step() wants a Tick; kNever: not before the next event.
Time next_wake(const State& state);
/// How long a gang's task may run without its agent once the lease is over: time to restart, no
/// more. In an outage there is more time, as a returning controller counts silence anew. The
/// runtime sees to it, since no agent is there to do so.
Duration absence_allowed(const State& state);
/// What this agent answers a peer that asks: its lease is live, and its leader is no newcomer.
/// Nothing: it has just started, and has had no time yet to find a controller; it does not answer.
std::optional<protocol::PeerWord> word_for_peer(const State& state, Time now);

}  // namespace muster::node
