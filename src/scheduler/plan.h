// The scheduler's door: an index kept current by changes, and a plan made from it.
//
// plan() never changes State: core commits a plan, re-checking each item. It is pure: the same
// index contents and the same `now` give the same plan, whatever the order in which the changes
// came. PlanIndex built from nothing by rebuild equals the incremental one (digest()).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/quantity.h"
#include "model/job_spec.h"
#include "model/node.h"
#include "model/queue.h"
#include "model/reservation.h"

namespace muster::scheduler {

/// What one node of a group must offer. Alternatives in order; empty: no device.
struct GroupAsk {
    std::int64_t nodes = 1;
    std::vector<model::DeviceAsk> devices;
    MilliCpu cpus;  // 0: the default share, see node_cpus() in place/.
    Bytes memory;
    Bytes disk;
    std::int64_t nodes_max = 0;  // More than `nodes`: elastic.
    friend bool operator==(const GroupAsk&, const GroupAsk&) = default;
};
/// What jobs with the same ask in the same queue have in common.
struct Shape {
    ShapeId id;
    QueueId queue;
    std::vector<GroupAsk> groups;
    std::vector<model::ConstraintTerm> constraint;
    model::TopologyAsk topology;
    bool exclusive = false;
    bool mixed_kinds = false;
    bool preemptible = true;  // False: starts within its queue's guarantee only.
    bool share_unenforced = false;
    Duration time;           // Limit; 0: none.
    Duration expected_time;  // 0: unknown.
    friend bool operator==(const Shape&, const Shape&) = default;
};
/// All but the id: shapes with equal bytes are one shape. Old versions are read for ever.
std::string encode(const Shape& shape);
std::optional<Shape> decode_shape(std::string_view bytes);

/// How long a job will run, in quantiles, on a kind of device of speed 1000. All 0: unknown.
struct Prediction {
    Duration p10, p50, p90;
    friend bool operator==(const Prediction&, const Prediction&) = default;
};

/// What a job holds, or is to hold, on one node. Counts, not ids: ids are bound when it starts.
struct Slot {
    NodeId node;
    std::uint32_t group = 0;
    std::uint32_t alternative = 0;  // Index into the group's devices.
    bool spare = false;             // Kept beside the gang: no rank runs there.
    // Filled in JobStarted only: what the node's books say.
    std::vector<std::string> devices;
    MilliCpu cpus;
    Bytes memory;
    Bytes disk;
    friend bool operator==(const Slot&, const Slot&) = default;
};

// ---- changes: everything that the index is fed ------------------------------------------------

struct NodeChanged {
    NodeId id;
    std::shared_ptr<const model::NodeFacts> facts;
    bool usable = true;             // Ready and without a hold.
    std::vector<std::string> path;  // Its domain at each level; "" = in none.
    std::int64_t risk = 0;          // Predicted failures in 1,000 node-days; 0: unknown.
};
struct NodeRemoved {
    NodeId id;
};
/// Names of the levels, from the top. Before the nodes whose paths follow them.
struct LevelsChanged {
    std::vector<std::string> levels;
};
struct RulesChanged {
    model::SchedulingRules rules;
};
/// A queue is known before its shapes, and a parent before its children.
struct QueueChanged {
    model::Queue queue;
};
struct QueueRemoved {
    QueueId id;
};
/// Use so far, decayed up to `as_of`, without what runs on since then: device-seconds weighted by
/// kind (thousandths), CPU-seconds (thousandths), GiB-seconds of memory.
struct UsageChanged {
    QueueId queue;
    UserId user;
    std::int64_t devices = 0, cpus = 0, memory = 0;
    Time as_of;
};
struct ReservationChanged {
    model::Reservation reservation;  // Users and queues by name.
};
struct ReservationRemoved {
    ReservationId id;
};
/// A user's name, for reservations. Before the first job of the user.
struct UserNamed {
    UserId id;
    std::string name;
};
struct ShapeAdded {
    Shape shape;
};
struct ShapeRemoved {
    ShapeId id;
};
/// Capacity promised to a waiting job: its own when it lost a node, or what its victims give back.
/// Others get what is left beside it. The job starts on exactly these slots when all is free.
struct Claim {
    std::vector<Slot> slots;
    Time until;  // Dropped then, should it not have started.
    friend bool operator==(const Claim&, const Claim&) = default;
};
/// Waiting and allowed to start from `eligible` on. Replaces an earlier JobQueued of the same id.
struct JobQueued {
    JobId id;
    ShapeId shape;
    UserId user;
    std::int64_t priority = 50;
    Time submitted;
    Time eligible;
    std::int64_t count = 1;     // Elements of an array that may start now (parallel applied).
    std::vector<NodeId> avoid;  // Nodes that failed it, as long as others would do.
    Prediction predicted;
    std::int64_t attained = 0;       // Device-seconds had so far, for Las.
    std::vector<NodeId> last_nodes;  // Of its last attempt: taken again if they fit.
    std::shared_ptr<const Claim> claim;
};
struct JobUnqueued {
    JobId id;
};
/// Again for a started job: replaces what was said of it, but for its slots. So comes a new
/// expected end when it runs longer than expected (twice as long each time), a new priority, and
/// that it is not being stopped after all.
struct JobStarted {
    JobId id;
    ShapeId shape;
    std::vector<Slot> slots;
    Time expected_end;  // kNever: unknown.
    UserId user;
    std::int64_t priority = 50;
    Time started;
    std::int64_t preemptions = 0;  // It suffered so far.
    Time saved;                    // Its newest checkpoint; 0: none, it would lose everything.
    Duration grace;                // Notice to kill.
    bool checkpoints = false;      // Can go on from one.
    std::int64_t attained = 0;     // Device-seconds that earlier attempts had, for Las.
    std::vector<NodeId> avoid;     // Nodes that failed it: it does not grow onto them.
};
/// A checkpoint of a started job is complete.
struct JobSaved {
    JobId id;
    Time at;
};
/// It is being stopped, and its capacity is for `beneficiary` (none: for anybody).
struct JobStopping {
    JobId id;
    JobId beneficiary;
    Time until;  // Free then at the latest.
};
/// Its capacity is free.
struct JobReleased {
    JobId id;
};
/// The window of a blocked job, as an earlier plan made it and core accepted.
struct Booking {
    JobId job;
    Time at;  // kNever: on its nodes, at a time not known.
    std::vector<Slot> slots;
    Time looked;  // When a better one was last looked for.
    friend bool operator==(const Booking&, const Booking&) = default;
};
struct BookingsChanged {
    std::vector<Booking> bookings;  // All of them.
};
/// Core did not take an item of the last plan: what slept because of it looks again.
struct PlanRefused {
    JobId job;
};
using Change = std::variant<NodeChanged, NodeRemoved, LevelsChanged, RulesChanged, QueueChanged,
                            QueueRemoved, UsageChanged, ReservationChanged, ReservationRemoved,
                            UserNamed, ShapeAdded, ShapeRemoved, JobQueued, JobUnqueued, JobStarted,
                            JobSaved, JobStopping, JobReleased, BookingsChanged, PlanRefused>;

// ---- the answer -------------------------------------------------------------------------------

/// Why a job (or every job of a shape) does not start now, with numbers.
struct Blocked {
    enum class Reason : std::uint8_t {
        NotEvaluated,   // No pass has looked at it yet.
        NeverFits,      // Not even on the empty cluster, whole as it is now.
        NoNodes,        // No node is known or usable at all.
        NotEnoughFree,  // Would fit if others ended.
        Reserved,       // Would fit now, but would delay the booking of the job `behind`.
        NotEligible,    // Its begin time or back-off has not come.
        Held,
        Dependency,
        Parallel,     // The array's own bound.
        QueueLimit,   // `resource` of queue `queue`: limit, used, wanted.
        BorrowLimit,  // Beyond what the queue may borrow.
        LendLimit,    // What is free is kept for its owner, `queue`.
        UserLimit,    // Of one user in the queue.
        MaxJobs,      // So many of the queue run.
        UserMaxJobs,  // So many of the user in the queue run.
        Guarantee,    // Not preemptible, so within the guarantee only.
        BehindFirst,  // Strict fifo: `behind` goes first.
        Window,       // Would run into the reservation `reservation`.
        Topology,     // Enough nodes fit, but no domain of the level asked for holds them.
        Victims,      // Waits until jobs that were told to stop have stopped.
    };
    Reason reason = Reason::NotEvaluated;
    std::int64_t nodes_wanted = 0;  // Of the group that is shortest.
    std::uint32_t group = 0;
    std::int64_t nodes_total = 0;     // Known.
    std::int64_t nodes_unusable = 0;  // Lost, suspect or held back.
    std::int64_t nodes_unfit = 0;     // Wrong kind, labels, or too small even when empty.
    std::int64_t nodes_busy = 0;      // Would fit when empty.
    std::int64_t nodes_fit = 0;       // Fit now.
    std::int64_t nodes_domain = 0;    // Topology: fit now in the domain that is nearest to it.
    std::int64_t devices_wanted = 0, devices_free = 0, devices_total = 0;  // Of acceptable kinds.
    JobId behind;
    std::int64_t ahead = 0;  // Jobs before it in its queue's order.
    QueueId queue;
    ReservationId reservation;
    std::string resource;  // As in model::Amount; limits: which.
    std::int64_t limit = 0, used = 0, wanted = 0;
    Time expected_start;  // 0: unknown.
    friend bool operator==(const Blocked&, const Blocked&) = default;
};

struct Start {
    JobId job;                // For an array: its parent; one Start an element.
    std::vector<Slot> slots;  // In rank order: groups in order, nodes within; spares last.
};
/// Why a job is told to stop for another.
enum class StopReason : std::uint8_t {
    Priority,    // Of its own queue, with a lower priority; with more service, where that counts.
    Reclaim,     // Its queue borrowed what the beneficiary's owns.
    Defragment,  // It fits elsewhere as well, the beneficiary does not.
    Shrink,      // Elastic: goes on with fewer nodes (its own claim).
    Grow,        // Elastic: goes on with more nodes (its own claim).
};
struct Stop {
    JobId job;
    JobId beneficiary;  // The job itself for Grow.
    StopReason reason = StopReason::Priority;
};
/// The capacity that `job` is promised; its victims are among the plan's stops. A plan's claims
/// and stops of one beneficiary hold together or not at all.
struct Promise {
    JobId job;
    std::vector<Slot> slots;
};
struct Wait {
    JobId job;
    Blocked why;
};
/// The reason of every job of a shape that has none of its own.
struct ShapeWait {
    ShapeId shape;
    Blocked why;
};
struct Plan {
    std::uint64_t revision = 0;  // Number of changes that the index had seen.
    Time at;
    std::vector<Start> starts;
    std::vector<Stop> stops;
    std::vector<Promise> promises;
    std::optional<std::vector<Booking>> bookings;  // All of them, if they changed.
    std::vector<Wait> waits;  // Those whose reason changed since the last plan: jobs with an
    std::vector<ShapeWait> shape_waits;  // avoid list one by one, all others by their shape.
    Time wake;             // Plan again then even if nothing changes (kNever: no need).
    bool complete = true;  // False: stopped at its bound; call again at once.
};
struct PlanBounds {
    std::size_t starts_max = 1000;  // A plan is cut after so many, so that starts flow,
    std::size_t tries_max = 128;    // or after so many shapes that did not fit.
};

/// Everything that `muster why` tells. Made of the same code and contents as plans.
struct Explanation {
    std::vector<Blocked> blocked;  // Every constraint that holds it back, in the order met.
    std::int64_t position = 0, queued = 0;  // In its queue's order; 1 = next.
    std::int64_t priority = 0;              // With aging.
    /// Share of the queue, and of the user in it: decayed use and present use over weight, in
    /// millionths of the cluster.
    std::int64_t queue_share = 0, user_share = 0;
    struct Holder {
        JobId job;
        std::int64_t nodes = 0, devices = 0;
        Time end;  // kNever: unknown.
    };
    std::vector<Holder> holders;  // Of what it could use; the first to end first. At most 8.
    struct Domain {
        std::string level;
        std::vector<std::string> path;
        std::int64_t nodes_fit = 0, nodes_wanted = 0;
    };
    std::optional<Domain> closest;          // If the topology is what it lacks.
    Time expected_start, earliest, latest;  // 0: unknown. p50, p10, p90.
    struct Sooner {
        enum class Change : std::uint8_t { Nodes, Devices, Kind, Time, Topology, Queue };
        Change change = Change::Nodes;
        std::string value;  // As one would write it in the job: "2", "a100:8", "90m", "none".
        Time start;         // 0: at once.
    };
    std::vector<Sooner> sooner;  // Changes that would start it sooner, the smallest first.
};
/// What would happen to a job that is not there (muster plan), or to one that is, changed.
struct Forecast {
    std::optional<Start> start;  // It would start now.
    std::vector<Stop> stops;     // It would start on what these give back.
    Explanation why;             // If it would not start now.
};
/// How a queue stands.
struct QueueStanding {
    struct Line {
        std::string resource;
        std::int64_t guarantee = 0, used = 0, borrowed = 0, lent = 0, limit = -1;
    };
    std::vector<Line> lines;  // "gpus", "cpus", "memory" and every resource that its settings name.
    std::int64_t share = 0;   // As in Explanation.
    std::int64_t position = 0;  // Among its siblings: 1 = served next.
    std::int64_t running = 0, pending = 0;
    JobId next;  // What would start next; none: nothing waits.
};

class PlanIndex {
public:
    struct State;  // Its inside: scheduler/ alone looks at it.

    PlanIndex();
    ~PlanIndex();
    PlanIndex(PlanIndex&&) noexcept;
    PlanIndex& operator=(PlanIndex&&) noexcept;

    /// A change that does not fit (unknown job, node taken twice) is a bug: it stops the process.
    void apply(const Change& change);
    Plan plan(Time now, const PlanBounds& bounds = {});
    /// The present reason of a waiting job, evaluated now; the same code that plan() uses. Of one
    /// that does not wait: NotEvaluated.
    Blocked why(JobId job, Time now) const;
    /// Would a job of this shape ever start on the nodes known (Blocked::NeverFits if not), and if
    /// it could start now on the free ones: an empty optional-like Blocked with nodes_fit enough.
    Blocked feasible(const Shape& shape) const;
    Explanation explanation(JobId job, Time now) const;
    /// `job` may be one that waits: then it is taken as if it had this shape.
    Forecast forecast(const Shape& shape, const JobQueued& job, Time now) const;
    std::optional<QueueStanding> standing(QueueId queue, Time now) const;
    std::uint64_t revision() const;
    std::uint64_t digest() const;

private:
    std::unique_ptr<State> state_;
};

}  // namespace muster::scheduler
