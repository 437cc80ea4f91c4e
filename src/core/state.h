// Everything the controller knows: tables of records, and indexes that follow from them.
//
// Durable tables are what the store holds, one record an entity; soft ones are re-learnt from the
// agents after a restart. Both change through apply_change() alone. Tables are copy-on-write, so
// that a View for readers is a handful of pointers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/cow_tree.h"
#include "base/id.h"
#include "base/quantity.h"
#include "base/result.h"
#include "model/job.h"
#include "model/job_spec.h"
#include "model/node.h"
#include "model/queue.h"
#include "model/reservation.h"
#include "model/topology.h"
#include "protocol/messages.h"
#include "scheduler/plan.h"

namespace muster::core {

// ---- durable records --------------------------------------------------------------------------

struct Meta {
    protocol::Term term = 0;
    std::uint64_t next_job = 1, next_node = 1, next_queue = 1, next_user = 1, next_token = 1;
    std::uint64_t next_spec = 1, next_shape = 1, next_idempotency = 1;
    /// Ids below it were given out by a state that was lost: such tasks are adopted, never stopped.
    std::uint64_t first_job = 1;
    std::uint64_t next_reservation = 1, next_run_times = 1;
    friend bool operator==(const Meta&, const Meta&) = default;
};

/// What one rank's node gives the attempt. Device numbers index NodeFacts::devices (id order) of
/// the facts at that time; `devices` therefore holds stable ids.
struct Placed {
    NodeId node;
    std::uint32_t group = 0;
    std::uint32_t alternative = 0;
    std::vector<std::string> devices;
    MilliCpu cpus;
    Bytes memory;
    Bytes disk;
    bool spare = false;      // Held beside the gang: no task runs there. The last slots.
    std::int64_t share = 0;  // Thousandths of its one device; 0: whole devices.
    Bytes share_memory;      // Of that device, with `share`.
    friend bool operator==(const Placed&, const Placed&) = default;
};
/// In rank order, spares last. Immutable while the attempt lives, but for `expected_end`.
struct Allocation {
    std::uint32_t epoch = 0;
    Time at;
    std::vector<Placed> slots;
    /// What it takes of queues' limits, and of shares: devices by "gpus", kind and class in
    /// thousandths, and their sum weighted by kind. As the node's facts and the rules were then.
    model::Amounts devices;
    std::int64_t weight = 0;
    Time expected_end = kNever;  // By limit or prediction; doubled each time it was wrong.
    friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// An optional value that its copies share: records are copied for every edit.
template <class T>
class Shared {
public:
    Shared() = default;
    Shared(T value)
        : value_(std::make_shared<const T>(std::move(value))) {}  // NOLINT: as optional.

    explicit operator bool() const { return value_ != nullptr; }
    bool has_value() const { return value_ != nullptr; }
    const T& operator*() const { return *value_; }
    const T* operator->() const { return value_.get(); }
    void reset() { value_.reset(); }
    /// A copy of its own, to be changed; it must be there.
    T& edit() {
        auto own = std::make_shared<T>(*value_);
        T& value = *own;
        value_ = std::move(own);
        return value;
    }
    friend bool operator==(const Shared& a, const Shared& b) {
        return a.value_ == b.value_ || (a && b && *a == *b);
    }

private:
    std::shared_ptr<const T> value_;
};

/// One past attempt, for the timeline: at most the last 32 are kept, and counted beyond.
struct Attempt {
    std::uint32_t epoch = 0;
    Time queued, started, running, ended;  // 0: never came.
    model::Cause cause = model::Cause::None;
    int exit_code = -1;
    std::uint32_t rank = 0;  // Of the task that decided it.
    std::string node;        // Its node's name.
    std::string message;
    Time fault;                      // When what ended it happened; a lost node: last heard of.
    std::int64_t last_step = -1;     // Progress when it ended.
    std::int64_t resumed_step = -1;  // The checkpoint that it began from.
    Duration lost;                   // From the fault to the next attempt's running.
    int signal = 0;                  // That ended the task which decided it; 0: none.
    JobId beneficiary;               // Preempted or resized: for this job (F23).
    scheduler::StopReason reason = scheduler::StopReason::Priority;  // With a beneficiary.
    friend bool operator==(const Attempt&, const Attempt&) = default;
};

/// Elements of an array not started yet: half-open ranges, ascending.
struct ElementRange {
    std::int64_t first = 0, last = 0;
    friend bool operator==(const ElementRange&, const ElementRange&) = default;
};
struct ArrayBook {
    std::vector<ElementRange> waiting;
    std::vector<std::int64_t> held;  // Waiting too, but held one by one. Ascending.
    std::int64_t live = 0, succeeded = 0, failed = 0, cancelled = 0;
    friend bool operator==(const ArrayBook&, const ArrayBook&) = default;
};

/// What most queued jobs do not have. Immutable and shared: an edit makes a new one.
struct JobExtra {
    Shared<Allocation> allocation;  // Exactly while active(state).
    std::vector<Attempt> attempts;  // Ended ones, oldest first.
    std::int64_t attempts_total = 0;
    std::vector<model::Dependency> waiting_for;  // Dependencies still open.
    Shared<ArrayBook> array;                     // A parent's.
    std::vector<NodeId> avoid;                   // Nodes that failed it.
    std::string checkpoint;                      // Newest complete one; "" = none.
    std::int64_t checkpoint_step = -1;
    Time checkpoint_at;
    std::string hold_owner;  // "" = not held; "user" or "admin:NAME".
    std::string message;     // Of the end, for people.
    int exit_code = -1;
    Bytes peak_memory;
    Duration lost_time;  // Sum over attempts.
    std::int64_t steps_repeated = 0;
    Time first_started;
    Time deadline;  // As the spec has it; 0: none.
    // Of the attempt under way.
    Time queued_at, running_at, fault_at;
    std::int64_t resumed_step = -1;
    std::uint32_t decided_rank = 0;  // Of the task whose end decided it.
    std::string decided_node;        // Its node's name.
    std::vector<NodeId> last_nodes;  // Of the newest ended attempt, by rank: they have its log.
    /// Of the rank that was furthest when the last attempt ended.
    Shared<protocol::Progress> last_progress;
    // Of preemption and resizing.
    Shared<scheduler::Claim> claim;  // What it is promised, while it waits or is resized.
    JobId beneficiary;               // For whom it is being stopped.
    scheduler::StopReason stop_reason = scheduler::StopReason::Priority;  // With a beneficiary.
    std::int64_t preemptions = 0;                                         // Suffered so far.
    std::int64_t attained = 0;  // Thousandths of weighted device-seconds, of ended attempts.
    friend bool operator==(const JobExtra&, const JobExtra&) = default;
};

/// Hot: at most 96 bytes.
struct Job {
    JobId id;
    SpecId spec;
    ShapeId shape;
    std::uint32_t user = 0, queue = 0;  // UserId, QueueId values.
    std::uint32_t array_job = 0;        // Parent's id, for an element.
    std::uint32_t array_element = 0;
    model::JobState state = model::JobState::Pending;
    model::Cause cause = model::Cause::None;  // Of the last end, or of the stop under way.
    std::uint8_t priority = 50;
    bool held = false;
    std::uint32_t epoch = 0;     // Of the present or next attempt.
    std::uint32_t restarts = 0;  // The user's own failures.
    std::uint32_t faults = 0;    // Node faults and preemptions.
    Time submitted;
    Time since;                             // Entered `state`.
    Time eligible;                          // Not before (begin, back-off).
    std::shared_ptr<const JobExtra> extra;  // Null: all defaults.
};
static_assert(sizeof(Job) <= 96);
const JobExtra& extra_of(const Job& job);

struct Spec {
    std::shared_ptr<const std::string> bytes;  // model::encode(JobSpec).
    std::shared_ptr<const std::string> name;
    std::uint64_t content = 0;  // Hash of bytes.
    std::uint32_t uses = 0;     // Derived: jobs that refer to it.
};
using PeerSets = std::vector<std::vector<NodeId>>;
struct Node {
    NodeId id;
    std::shared_ptr<const model::NodeFacts> facts;
    std::vector<model::NodeHold> holds;
    std::string certificate;  // Fingerprint that its name is bound to; "" = local.
    Time joined;
    bool forgotten = false;
    /// The sets of peers that its agent may hold, the newest last; null: it was told none. Durable
    /// before it is told: the next controller must know whom a node would ask that stays silent.
    std::shared_ptr<const PeerSets> peers = nullptr;
};
using model::Queue;
struct User {
    UserId id;
    std::string name;
    bool admin = false;
};
enum class TokenKind : std::uint8_t { Api, Join };
struct Token {
    std::uint64_t id = 0;
    TokenKind kind = TokenKind::Api;
    std::string hash;  // SHA-256 hex of the secret. The secret itself is never kept.
    std::string user;  // Api: whom it speaks for. Join: the node name it is for, "" = any.
    bool admin = false;
    std::int64_t uses_left = -1;  // -1: no bound.
    Time created, expires;        // expires kNever: does not.
    std::string created_by;
};
/// An answered submit, kept 24 h, so that a repeat gets the same answer (F34).
struct Idempotency {
    std::uint64_t id = 0;
    std::uint64_t key_high = 0, key_low = 0;  // 128-bit hash of user and key.
    std::uint64_t body = 0;                   // Hash of the request.
    JobId job;
    Time expires;
};

/// What a user's jobs in one queue have used, decayed to `as_of`, without what runs on since then.
struct Usage {
    QueueId queue;
    UserId user;
    std::int64_t devices = 0;  // Thousandths of device-seconds, weighted by kind.
    std::int64_t cpus = 0;     // Thousandths of CPU-seconds.
    std::int64_t memory = 0;   // MiB-seconds.
    Time as_of;
    friend bool operator==(const Usage&, const Usage&) = default;
};
/// How long jobs of one user and name ran, for predictions. The least recently used go first.
struct RunTimes {
    std::uint64_t id = 0;
    UserId user;
    std::string name;
    std::vector<Duration> last;  // Of those that succeeded, the newest last. At most kRunTimesKept.
    Time at;                     // The newest one's end.
    friend bool operator==(const RunTimes&, const RunTimes&) = default;
};
constexpr std::size_t kRunTimesKept = 16;

// ---- soft records -----------------------------------------------------------------------------

/// The living part of an active job, re-learnt from agents.
struct JobLive {
    std::vector<protocol::TaskStatus> tasks;   // By rank; state Accepted until heard of.
    std::vector<protocol::Progress> progress;  // By rank; step -1 until heard of.
    std::int64_t best_step = -1;
    std::string master_address;
    int master_port = 0;
    Time stop_sent, kill_at, fence_at;  // 0: not under way.
    model::Cause stop_cause = model::Cause::None;
    Time running_since;
    Duration stop_grace;  // Of the stop under way.
    bool stuck = false;   // The stop is overdue, and that was told (F45).
};
struct NodeLive {
    model::NodeHealth health = model::NodeHealth::Unknown;
    std::uint64_t session = 0;  // 0: no link.
    Time heard;                 // Last heartbeat, or since when we wait for one.
    Time since;                 // Entered `health`.
    bool fenced = false;        // Known to be dead: its word, a power fence, or the fence time.
    Time peers_at;              // When it was last told its peers; 0: not on this link.
    std::uint64_t peers_change = 0;  // Indexes::leaves_changes then.
    Time peers_since;  // When it was first told the newest of its sets on this link; 0: never.
    Time fence_again;  // Its peers were silent too: when that is looked at again; 0: not so.
    /// Tasks that it has and that nobody wants: until they have ended it gets nothing new.
    std::vector<protocol::TaskKey> strays;
    Time strays_since;  // When the oldest of them was told to stop; 0: none was.
    std::vector<std::pair<Time, JobId>> launch_failures;  // Within the window, oldest first.
};
/// Why pending, from the last plan. Per job only where it differs from its shape's.
using WaitTable = CowTree<scheduler::Blocked>;

/// A job's part of a device, or all of it.
struct DeviceShare {
    std::string device;
    JobId job;
    std::int64_t share = 1000;  // Thousandths; 1000: whole.
    Bytes memory;               // Of a part.
    friend auto operator<=>(const DeviceShare&, const DeviceShare&) = default;
};
/// What a node has given away; derived from the allocations of active jobs.
struct NodeUse {
    MilliCpu cpus;
    Bytes memory;
    Bytes disk;
    std::vector<DeviceShare> devices;  // Sorted: by device, then job.
    std::vector<JobId> jobs;           // Sorted; one entry a slot.
    bool exclusive = false;

    /// Those who have the device or a part of it.
    std::span<const DeviceShare> shares_of(std::string_view device) const;
    bool uses(std::string_view device) const { return !shares_of(device).empty(); }
    friend bool operator==(const NodeUse&, const NodeUse&) = default;
};
/// What runs and waits in a queue and below it, or of one user there. Derived.
struct QueueUse {
    model::Amounts running;  // Devices, "cpus", "memory". Nothing at 0.
    std::int64_t active = 0, pending = 0;
    std::int64_t jobs = 0;  // Records of any state.
    friend bool operator==(const QueueUse&, const QueueUse&) = default;
};

// ---- changes ----------------------------------------------------------------------------------

struct MetaPut {
    Meta meta;
};
struct JobPut {
    Job job;
};
struct JobDropped {
    JobId id;
};
struct SpecPut {
    SpecId id;
    Spec spec;
};
struct SpecDropped {
    SpecId id;
};
struct ShapePut {
    scheduler::Shape shape;
};
struct ShapeDropped {
    ShapeId id;
};
struct NodePut {
    Node node;
};
struct NodeDropped {
    NodeId id;
};
struct QueuePut {
    Queue queue;
};
struct QueueDropped {
    QueueId id;
};
struct TopologyPut {
    std::shared_ptr<const model::Topology> topology;
};
struct RulesPut {
    model::SchedulingRules rules;
};
struct ReservationPut {
    model::Reservation reservation;
};
struct ReservationDropped {
    ReservationId id;
};
struct UsagePut {
    Usage usage;
};
struct UsageDropped {
    QueueId queue;
    UserId user;
};
struct RunTimesPut {
    RunTimes times;
};
struct RunTimesDropped {
    std::uint64_t id;
};
struct UserPut {
    User user;
};
struct TokenPut {
    Token token;
};
struct TokenDropped {
    std::uint64_t id;
};
struct IdempotencyPut {
    Idempotency entry;
};
struct IdempotencyDropped {
    std::uint64_t id;
};
// Soft from here on: never stored.
struct JobLivePut {
    JobId id;
    JobLive live;
};
struct JobLiveDropped {
    JobId id;
};
struct NodeLivePut {
    NodeId id;
    NodeLive live;
};
struct WaitPut {
    JobId id;
    scheduler::Blocked why;
};
struct WaitDropped {
    JobId id;
};
struct FreezePut {
    bool frozen;
    Time since;
};
struct TaskPut {
    JobId id;
    protocol::TaskStatus status;
};  // One rank of a JobLive.
struct ProgressPut {
    JobId id;
    protocol::Progress progress;
};
struct ShapeWaitPut {
    ShapeId id;
    scheduler::Blocked why;
};
/// How long a waiting job will run, by history. It goes when the job starts or ends.
struct PredictedPut {
    JobId id;
    scheduler::Prediction prediction;
};
struct BookingsPut {
    std::shared_ptr<const std::vector<scheduler::Booking>> bookings;
};
using Change =
    std::variant<MetaPut, JobPut, JobDropped, SpecPut, SpecDropped, ShapePut, ShapeDropped, NodePut,
                 NodeDropped, QueuePut, QueueDropped, UserPut, TokenPut, TokenDropped,
                 IdempotencyPut, IdempotencyDropped, TopologyPut, RulesPut, ReservationPut,
                 ReservationDropped, UsagePut, UsageDropped, RunTimesPut, RunTimesDropped,
                 JobLivePut, JobLiveDropped, NodeLivePut, WaitPut, WaitDropped, FreezePut, TaskPut,
                 ProgressPut, ShapeWaitPut, PredictedPut, BookingsPut>;

/// What readers see: a moment, immutable. Copying it copies pointers.
struct View {
    std::uint64_t revision = 0;  // Rises with every published batch.
    Time at;
    Meta meta;
    bool frozen = false;
    CowTree<Job> jobs;
    CowTree<JobLive> live;
    CowTree<Node> nodes;
    CowTree<NodeLive> node_live;
    CowTree<NodeUse> node_use;
    CowTree<Spec> specs;
    CowTree<scheduler::Shape> shapes;
    CowTree<Queue> queues;
    CowTree<User> users;
    CowTree<Token> tokens;
    CowTree<Idempotency> idempotency;
    std::shared_ptr<const model::Topology> topology = std::make_shared<const model::Topology>();
    model::SchedulingRules rules;
    CowTree<model::Reservation> reservations;
    CowTree<Usage> usage;  // By usage_key().
    CowTree<RunTimes> run_times;
    CowTree<scheduler::Prediction> predicted;  // Waiting jobs, where history knows better.
    std::shared_ptr<const std::vector<scheduler::Booking>> bookings;  // By the last plan.
    CowTree<QueueUse> queue_use;                                      // By queue.
    WaitTable waits;                                                  // Read them with wait_of().
    WaitTable shape_waits;             // By shape: for its jobs that have none of their own.
    CowTree<CowTree<JobId>> elements;  // Parent, then element, to the job that it became.
    std::int64_t pending = 0, active = 0;
};

struct Settings {
    protocol::LeaseRules lease;
    bool bootstrap = true;  // No state: may start empty.
    Duration idempotency_life{24 * 3600 * 1000};
    Duration stop_grace{10'000};    // SIGTERM to kill, without checkpoint.grace.
    Duration retry_backoff{1'000};  // First back-off after a node's fault; doubles to 5 min.
    std::int64_t launch_failures_to_hold = 3;  // Of different jobs within launch_failures_window.
    Duration launch_failures_window{600'000};
    std::int64_t jobs_max = 2'000'000;
    std::vector<std::string> queues = {"default"};  // Made if missing; "default" always is.
};

constexpr std::uint64_t usage_key(QueueId queue, UserId user) {
    return queue.value << 32 | user.value;
}

struct Indexes;  // Derived; state.cc. By name, by content, timers, dependents, per-state sets.

struct State {
    State();
    ~State();
    State(State&&) noexcept;
    State& operator=(State&&) noexcept;

    View tables;  // Every table, live. `revision` and `at` are the shell's.
    Settings settings;
    std::unique_ptr<Indexes> indexes;
};

/// Cannot fail: a change that does not fit the state is a bug, and stops the process.
void apply_change(State& state, const Change& change);
/// What the scheduler must be told of `change`, given the state *before* it. Appends to `out`.
void feed(const State& before, const Change& change, std::vector<scheduler::Change>& out);
/// The whole state as scheduler changes, in the order that builds an equal index.
std::vector<scheduler::Change> feed_all(const State& state);

/// Stops the process if a book does not balance. After every step in tests and simulation.
void check(const State& state);
/// Of the durable part. Equal states have equal digests, on every machine and compiler.
std::uint64_t digest(const State& state);

std::optional<JobId> find_job(const View& view, std::string_view text);  // "12", "12_3".
/// Why a pending job waits: held, dependencies, its begin; else what the last plan said of it.
scheduler::Blocked wait_of(const View& view, const Job& job, Time now);
/// Changes with the job's record and with nothing else; never 0. For ETag and if_revision.
std::uint64_t revision_of(const Job& job);
/// The spec of a job; what the state keeps always decodes.
std::shared_ptr<const model::JobSpec> spec_of(const View& view, SpecId id);
std::optional<NodeId> find_node(const State& state, std::string_view name);
/// Slots on which tasks run: those that are no spares.
std::size_t ranks_of(const Allocation& allocation);
/// From the job's own queue to the top.
std::vector<QueueId> chain_of(const View& view, QueueId queue);

}  // namespace muster::core
