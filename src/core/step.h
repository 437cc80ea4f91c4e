// The one door into the core: an input goes in; changes, commands and notices come out.
//
// Neither step() nor anything that it calls reads a clock, draws a random number, does I/O or
// blocks. Controller, simulator and fault tests are shells round this function.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "core/state.h"
#include "protocol/messages.h"
#include "scheduler/plan.h"

namespace muster::core {

/// Who asks: from the connection, never from the request's body (F29).
struct Caller {
    std::string user;
    bool admin = false;
    std::vector<std::string> groups;  // Of the operating system. Sorted.
};

// ---- events -----------------------------------------------------------------------------------

/// First input after the records are loaded. Silence before `at` is nobody's fault.
struct BecomeLeader {
    protocol::Term term = 0;
};
struct SubmitJob {
    Caller caller;
    model::JobSpec spec;
    std::string idempotency_key;  // "" = none.
    std::uint64_t request_hash = 0;
    /// How dependencies that are no longer live ended, looked up in history by the shell.
    std::vector<std::pair<JobId, model::JobState>> ended;
};
enum class JobAction : std::uint8_t { Cancel, Hold, Release, Requeue };
struct ActOnJob {
    Caller caller;
    JobId job;
    std::int64_t element = -1;  // >= 0: that element of the array `job`.
    JobAction action = JobAction::Cancel;
    std::string reason;
    std::uint64_t if_revision = 0;  // 0: any; else refused when the job changed since (412).
};
struct UpdateJob {
    Caller caller;
    JobId job;
    std::int64_t priority = -1;     // -1: as it is.
    std::string queue;              // "": as it is.
    std::uint64_t if_revision = 0;  // As in ActOnJob.
};
enum class NodeAction : std::uint8_t { Drain, Resume, Fenced, Forget };
/// Fenced: a person or a power controller confirms that the node is off.
struct ActOnNode {
    Caller caller;
    std::string node;
    NodeAction action = NodeAction::Drain;
    std::string reason;
};
struct CreateToken {
    Caller caller;
    Token token;  // id and created are filled in here.
};
struct RevokeToken {
    Caller caller;
    std::uint64_t id = 0;
};
/// A join token was used: its name is bound to the certificate from now on.
struct NodeJoined {
    std::uint64_t token = 0;
    std::string name;
    std::string certificate;
};
struct LinkOpened {
    std::uint64_t session = 0;
    std::string name;  // From the certificate (or the local socket).
    std::string certificate;
    protocol::Hello hello;
};
struct LinkClosed {
    std::uint64_t session = 0;
};
/// Anything later on a link. Hello, LogChunk and TunnelOutput do not come this way.
struct FromAgent {
    std::uint64_t session = 0;
    protocol::AgentMessage message;
};
struct PlanProposed {
    scheduler::Plan plan;
};
/// History has it: the live record may go.
struct Archived {
    std::vector<JobId> jobs;
};
struct SettingsChanged {
    Settings settings;
};
/// One queue as it is to be. A queue that is not there is made.
struct QueueWish {
    std::string name;  // From the top: "research/nlp". Its parent has to be there, or be named too.
    model::QueueSettings settings;
    bool drop = false;  // It is to go. So are all that `whole` does not name.
};
/// All of it or nothing. Admins only.
struct ApplyQueues {
    Caller caller;
    std::vector<QueueWish> queues;
    bool whole = false;  // These are all queues, besides "default".
};
struct SetTopology {
    Caller caller;
    model::Topology topology;
};
struct SetRules {
    Caller caller;
    model::SchedulingRules rules;
};
/// Made, or changed if one of that name is there. Admins only.
struct PutReservation {
    Caller caller;
    /// Without id, nodes and created_by. `windows` are expanded from `recurrence` by the caller;
    /// empty: the first alone.
    model::Reservation reservation;
    std::vector<std::string> nodes;  // By name; or…
    std::int64_t count = 0;          // …so many, those with the least use…
    std::string kind;                // …that have devices of this kind or class; "": any.
};
struct DropReservation {
    Caller caller;
    std::string name;
};
/// The windows of a recurring one, expanded further.
struct RefreshWindows {
    ReservationId id;
    std::vector<model::Window> windows;
};
/// Something in next_wake() is due.
struct Tick {};

using Event = std::variant<BecomeLeader, SubmitJob, ActOnJob, UpdateJob, ActOnNode, CreateToken,
                           RevokeToken, NodeJoined, LinkOpened, LinkClosed, FromAgent, PlanProposed,
                           Archived, SettingsChanged, ApplyQueues, SetTopology, SetRules,
                           PutReservation, DropReservation, RefreshWindows, Tick>;
struct Input {
    Time at;
    Event event;
};

// ---- what comes out ---------------------------------------------------------------------------

/// Send `message` on `session`, after the changes are durable. Lost with its link; repeated after
/// Hello.
struct Send {
    std::uint64_t session = 0;
    protocol::ControllerMessage message;
};
/// This link is not (or no longer) the node's: hang up.
struct CloseLink {
    std::uint64_t session = 0;
    std::string reason;
};
/// The job has ended: write it to history, then say Archived.
struct Archive {
    JobId job;
};
using Command = std::variant<Send, CloseLink, Archive>;

/// Something that people or watchers want to know. `json` is one object with at least
/// {"type","at"} and, where it applies, "job", "node", "user", "message".
struct Notice {
    std::string
        type;  // "job.queued", "job.started", "job.lost", "node.lost", …: docs/events in README.
    JobId job;
    NodeId node;
    std::string json;
};

/// What the asker is told. Job ids of a submit (one), or nothing.
struct Answer {
    JobId job;
    bool repeated = false;  // The idempotency key was known.
    std::uint64_t id = 0;   // A token's.
    std::vector<std::string> warnings;
};

struct Step {
    std::vector<Change> changes;              // Make durable (those that are), first;
    std::vector<Command> commands;            // then carry these out,
    std::vector<Notice> notices;              // log these (with the changes),
    Answer answer;                            // and answer.
    std::vector<scheduler::Change> planning;  // What the PlanIndex must be told, in order.
};

/// Refuses a bad input before it changes anything.
Result<Step> step(State& state, const Input& input);

/// When step() wants a Tick; kNever: not before the next event.
Time next_wake(const State& state);

}  // namespace muster::core
