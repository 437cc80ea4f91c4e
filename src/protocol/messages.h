// What controller and agents say to each other, as values. The net room carries them.
//
// Everything is level-triggered: a message may be lost with its link, repeated or late, and the
// next reconciliation makes up for it. Every order and report names its (job, epoch) and the
// leader's term; each end refuses what is stale.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/quantity.h"
#include "model/job.h"
#include "model/node.h"

namespace muster::protocol {

/// Grows with every controller that becomes leader.
using Term = std::uint64_t;

/// One task: the part of one attempt of a job that runs on one node.
struct TaskKey {
    JobId job;
    std::uint32_t epoch = 0;  // The attempt, from 0 (MUSTER_ATTEMPT).
    std::uint32_t rank = 0;   // The node's rank in the gang.
    friend auto operator<=>(const TaskKey&, const TaskKey&) = default;
};

enum class TaskState : std::uint8_t {
    Accepted,   // The order is on the node's disk.
    Pulling,    // The image; `done`/`total` bytes where known. Has a time-out of its own (F49).
    Preparing,  // Container, setup.
    Ready,      // At the barrier.
    Running,
    Stopping,
    Ended,  // The cgroup is empty; `end` says how.
};
std::string_view to_text(TaskState state);

struct GangMember {
    std::string name;
    std::string address;
    std::uint32_t role = 0;
    std::uint32_t slots = 1;  // Ranks on this node.
    /// Its domain at each of the order's levels, "" where it is in none; empty: not told.
    std::vector<std::string> path;
    friend bool operator==(const GangMember&, const GangMember&) = default;
};
/// In rank order, without spares; shared by all orders of one attempt.
using Gang = std::vector<GangMember>;
/// Where a task's supervisor takes commands of the other nodes of its own gang (`launch: mpi`).
/// The secret is the supervisor's, of this attempt: to be shown and logged nowhere.
struct LaunchPoint {
    int port = 0;  // 0: it takes none.
    std::string secret;
    friend bool operator==(const LaunchPoint&, const LaunchPoint&) = default;
};

// ---- controller to agent ---------------------------------------------------------------------

/// How long what lasts. The agent gets them with every Welcome.
struct LeaseRules {
    Duration heartbeat{1'000};
    Duration suspect{5'000};
    Duration lost{15'000};
    Duration fence{30'000};
    friend bool operator==(const LeaseRules&, const LeaseRules&) = default;
};
/// How long an agent without a controller asks its peers before it decides: long enough that in a
/// controller's outage every peer's own lease has run out too.
constexpr Duration ask_time(const LeaseRules& rules) {
    return {std::max<std::int64_t>(3'000, 2 * rules.heartbeat.ms + 1'000)};
}
/// SIGTERM to kill when an agent stops the gangs of a node that is cut off.
constexpr Duration kFenceGrace{2'000};
/// How long after a node was last *heard* its part of a gang is certainly gone, if it was cut off:
/// lease, asking, stopping, and 3 s for drift of clocks and slow kills.
constexpr Duration gone_after(const LeaseRules& rules) {
    return rules.fence + ask_time(rules) + kFenceGrace + Duration{3'000};
}
/// How long its peers must have been heard, without a gap, before a silent node's word is done
/// without: an outage that it believed in before is then no longer confirmed, and its gangs are
/// stopped. `suspect`: until then a peer takes its new leader for a newcomer.
constexpr Duration vouched_after(const LeaseRules& rules) {
    return rules.suspect + rules.heartbeat + rules.lost + ask_time(rules) + ask_time(rules) +
           kFenceGrace + Duration{3'000};
}
/// The longest pause between two tries to reach the controller: one that comes back counts silence
/// from then on, and several tries have to fit in before it takes a node for lost.
constexpr Duration redial_pause_max(const LeaseRules& rules) {
    return {std::clamp<std::int64_t>(rules.lost.ms / 3, 50, 5'000)};
}
struct PeerAddress {
    std::string name;
    std::string address;
    int port = 0;
    friend bool operator==(const PeerAddress&, const PeerAddress&) = default;
};
/// First answer to a Hello. `wanted` is complete: a task that the agent has and that is not in it
/// is stopped, unless `adopt_all` (a controller that must not judge yet).
struct Welcome {
    Term term = 0;
    NodeId node;
    LeaseRules rules;
    std::vector<TaskKey> wanted;
    bool adopt_all = false;
    friend bool operator==(const Welcome&, const Welcome&) = default;
};
/// Answer to a Heartbeat: the lease runs `rules.fence` from when that heartbeat was *sent*.
struct LeaseGrant {
    Term term = 0;
    std::uint64_t sequence = 0;      // The heartbeat's.
    std::vector<PeerAddress> peers;  // A few, on other leaves; empty: as before.
    friend bool operator==(const LeaseGrant&, const LeaseGrant&) = default;
};
struct StartTask {
    Term term = 0;
    TaskKey key;
    std::string user;  // Resolved to a uid on the node.
    std::string job_name;
    std::string queue;
    std::shared_ptr<const std::string> spec;  // model::encode(JobSpec), as stored.
    std::shared_ptr<const Gang> gang;
    std::uint32_t role = 0;
    std::uint32_t role_index = 0;
    std::int64_t array_job = 0;        // 0: not an element.
    std::int64_t array_element = 0;    // 0-based.
    std::vector<std::string> devices;  // By stable id.
    MilliCpu cpus;
    Bytes memory;  // 0: no limit.
    std::uint32_t restart_count = 0;
    std::string latest_checkpoint;  // "" = none yet.
    std::int64_t checkpoint_step = -1;
    Time deadline;                  // 0: none.
    bool barrier = false;           // Stay Ready until Go.
    std::int64_t device_share = 0;  // Thousandths of its one device; 0: whole devices.
    Bytes device_memory;            // So much of its memory; 0: whole devices.
    std::vector<std::string> levels;  // Of the gang's paths, from the top down.
};
struct Go {
    Term term = 0;
    TaskKey key;
    std::string master_address;
    int master_port = 0;
    std::vector<LaunchPoint> launch;  // In rank order; empty unless `launch: mpi`.
    friend bool operator==(const Go&, const Go&) = default;
};
/// The preemption contract's notice: signal, file, then time to save.
struct NoticeTask {
    Term term = 0;
    TaskKey key;
    model::Cause cause = model::Cause::Preempted;
    Duration grace;
    std::string reason;
    friend bool operator==(const NoticeTask&, const NoticeTask&) = default;
};
/// SIGTERM, then `grace`, then the cgroup is killed and confirmed empty.
struct StopTask {
    Term term = 0;
    TaskKey key;
    model::Cause cause = model::Cause::Cancelled;
    Duration grace;
    friend bool operator==(const StopTask&, const StopTask&) = default;
};
/// The task's end is durable at the controller: its scratch may go; its log stays a while.
struct ForgetTask {
    Term term = 0;
    TaskKey key;
    friend bool operator==(const ForgetTask&, const ForgetTask&) = default;
};
/// Bytes of a task's log from `offset` on (negative: so many before its end), but not before
/// `since`.
struct ReadLog {
    std::uint64_t request = 0;
    TaskKey key;
    int local_rank = -1;  // -1: all.
    std::int64_t offset = 0;
    std::int64_t limit = 1 << 20;
    bool follow = false;  // Until CancelRequest, the task's end or `limit`.
    Time since{};         // Only what was written at or after; 0: all.
    friend bool operator==(const ReadLog&, const ReadLog&) = default;
};
/// A process (or the task's own terminal) inside a running task, tunnelled to a client.
struct OpenTunnel {
    std::uint64_t request = 0;
    TaskKey key;
    enum class Kind : std::uint8_t { Attach, Exec } kind = Kind::Exec;
    std::vector<std::string> argv;
    bool tty = false;
    std::uint16_t columns = 80, rows = 24;
    std::int64_t window = 0;  // Bytes of output that may be under way; 0: no bound.
    friend bool operator==(const OpenTunnel&, const OpenTunnel&) = default;
};
struct TunnelInput {
    std::uint64_t request = 0;
    std::string bytes;
    bool end = false;                     // The client's stdin ended.
    std::uint16_t columns = 0, rows = 0;  // Non-zero: the terminal's size changed.
    std::int64_t taken = 0;               // Bytes of output that the client took since the last.
    friend bool operator==(const TunnelInput&, const TunnelInput&) = default;
};
/// Ends a ReadLog or a tunnel.
struct CancelRequest {
    std::uint64_t request = 0;
    friend bool operator==(const CancelRequest&, const CancelRequest&) = default;
};
using ControllerMessage = std::variant<Welcome, LeaseGrant, StartTask, Go, NoticeTask, StopTask,
                                       ForgetTask, ReadLog, OpenTunnel, TunnelInput, CancelRequest>;

// ---- agent to controller ---------------------------------------------------------------------

struct TaskStatus {
    TaskKey key;
    Term term = 0;  // Of the order it was started by.
    TaskState state = TaskState::Accepted;
    std::int64_t done = 0, total = 0;  // Bytes pulled, while Pulling.
    int port = 0;                      // Ready on rank 0: a port that is free on its node.
    model::TaskEnd end;                // When Ended.
    LaunchPoint launch;                // From Ready on, in gangs of `launch: mpi`.
    friend bool operator==(const TaskStatus&, const TaskStatus&) = default;
};
/// First message of every link: everything the agent has.
struct Hello {
    Term last_term = 0;
    model::NodeFacts facts;
    std::vector<TaskStatus> tasks;
    friend bool operator==(const Hello&, const Hello&) = default;
};
struct Heartbeat {
    std::uint64_t sequence = 0;
    friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
/// The node changed (device health, labels reloaded).
struct FactsChanged {
    model::NodeFacts facts;
    friend bool operator==(const FactsChanged&, const FactsChanged&) = default;
};
struct Progress {
    TaskKey key;
    int local_rank = 0;
    std::int64_t step = 0;
    std::int64_t total = 0;                               // 0: unknown.
    std::vector<std::pair<std::string, double>> metrics;  // "loss", "samples_per_s", …
    friend bool operator==(const Progress&, const Progress&) = default;
};
/// A complete checkpoint: checked by the agent to be there, and not half-written.
struct CheckpointDone {
    TaskKey key;
    std::int64_t step = 0;
    std::string path;
    friend bool operator==(const CheckpointDone&, const CheckpointDone&) = default;
};
/// The newest end of a task's log, so that a dead node's last words are known.
struct LogTail {
    TaskKey key;
    std::int64_t offset = 0;  // Of the first byte.
    std::string bytes;
    friend bool operator==(const LogTail&, const LogTail&) = default;
};
/// A line of a task's log matched a log rule of the job.
struct LogMatch {
    TaskKey key;
    std::uint32_t rule = 0;
    std::string line;
    friend bool operator==(const LogMatch&, const LogMatch&) = default;
};
struct LogChunk {
    std::uint64_t request = 0;
    std::int64_t offset = 0;
    std::string bytes;
    bool end = false;
    std::string error;  // "" = none.
    friend bool operator==(const LogChunk&, const LogChunk&) = default;
};
struct TunnelOutput {
    std::uint64_t request = 0;
    std::string bytes;
    bool is_stderr = false;
    bool end = false;
    int exit_code = 0;  // When `end`: 128 + signal; with `error` 127 or 126 when there is no
                        // such program or it cannot be run, 125 when it never came to that.
    std::string error;
    std::int64_t taken = 0;  // Bytes of input that the process took since the last.
    friend bool operator==(const TunnelOutput&, const TunnelOutput&) = default;
};
using AgentMessage = std::variant<Hello, Heartbeat, FactsChanged, TaskStatus, Progress,
                                  CheckpointDone, LogTail, LogMatch, LogChunk, TunnelOutput>;

// ---- agent to agent --------------------------------------------------------------------------

struct PeerAsk {
    std::string asker;
    friend bool operator==(const PeerAsk&, const PeerAsk&) = default;
};
struct PeerWord {
    bool has_controller = false;  // Its own lease is live.
    friend bool operator==(const PeerWord&, const PeerWord&) = default;
};

}  // namespace muster::protocol
