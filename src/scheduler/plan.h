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

namespace muster::scheduler {

/// What one node of a group must offer. Alternatives in order; empty: no device.
struct GroupAsk {
    std::int64_t nodes = 1;
    std::vector<model::DeviceAsk> devices;
    MilliCpu cpus;  // 0: the default share, see node_cpus() in place/.
    Bytes memory;
    Bytes disk;
    friend bool operator==(const GroupAsk&, const GroupAsk&) = default;
};
/// What jobs with the same ask in the same queue have in common.
struct Shape {
    ShapeId id;
    QueueId queue;
    std::vector<GroupAsk> groups;
    std::vector<model::ConstraintTerm> constraint;
    bool exclusive = false;
    Duration time;           // Limit; 0: none.
    Duration expected_time;  // 0: unknown.
    friend bool operator==(const Shape&, const Shape&) = default;
};
/// All but the id: shapes with equal bytes are one shape. Old versions are read for ever.
std::string encode(const Shape& shape);
std::optional<Shape> decode_shape(std::string_view bytes);

/// What a started job holds on one node. Counts, not ids: ids are bound when it starts.
struct Slot {
    NodeId node;
    std::uint32_t group = 0;
    std::uint32_t alternative = 0;  // Index into the group's devices.
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
    bool usable = true;  // Ready and without a hold.
};
struct NodeRemoved {
    NodeId id;
};
struct ShapeAdded {
    Shape shape;
};
struct ShapeRemoved {
    ShapeId id;
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
};
struct JobUnqueued {
    JobId id;
};
struct JobStarted {
    JobId id;
    ShapeId shape;
    std::vector<Slot> slots;
    Time expected_end;  // kNever: unknown.
};
/// Its capacity is free.
struct JobReleased {
    JobId id;
};
using Change = std::variant<NodeChanged, NodeRemoved, ShapeAdded, ShapeRemoved, JobQueued,
                            JobUnqueued, JobStarted, JobReleased>;

// ---- the answer -------------------------------------------------------------------------------

/// Why a job (or every job of a shape) does not start now, with numbers.
struct Blocked {
    enum class Reason : std::uint8_t {
        NotEvaluated,   // No pass has looked at it yet.
        NeverFits,      // Not even on the empty cluster, whole as it is now.
        NoNodes,        // No node is known or usable at all.
        NotEnoughFree,  // Would fit if others ended.
        Reserved,       // Would fit now, but would delay a reservation.
        NotEligible,    // Its begin time or back-off has not come.
        Held,
        Dependency,
        Parallel,  // The array's own bound.
    };
    Reason reason = Reason::NotEvaluated;
    std::int64_t nodes_wanted = 0;  // Of the group that is shortest.
    std::uint32_t group = 0;
    std::int64_t nodes_total = 0;     // Known.
    std::int64_t nodes_unusable = 0;  // Lost, suspect or held back.
    std::int64_t nodes_unfit = 0;     // Wrong kind, labels, or too small even when empty.
    std::int64_t nodes_busy = 0;      // Would fit when empty.
    std::int64_t nodes_fit = 0;       // Fit now.
    std::int64_t devices_wanted = 0, devices_free = 0, devices_total = 0;  // Of acceptable kinds.
    JobId behind;            // Reserved: whose reservation.
    std::int64_t ahead = 0;  // Jobs before it in order.
    Time expected_start;     // 0: unknown.
    friend bool operator==(const Blocked&, const Blocked&) = default;
};

struct Start {
    JobId job;                // For an array: its parent; one Start an element.
    std::vector<Slot> slots;  // In rank order: groups in order, nodes within.
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
    std::vector<Wait> waits;  // Those whose reason changed since the last plan: jobs with an
    std::vector<ShapeWait> shape_waits;  // avoid list one by one, all others by their shape.
    Time wake;             // Plan again then even if nothing changes (kNever: no need).
    bool complete = true;  // False: stopped at its bound; call again at once.
};
struct PlanBounds {
    std::size_t starts_max = 1000;  // A plan is cut after so many, so that starts flow.
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
    /// The present reason of a waiting job, evaluated now; the same code that plan() uses.
    Blocked why(JobId job, Time now) const;
    /// Would a job of this shape ever start on the nodes known (Blocked::NeverFits if not), and if
    /// it could start now on the free ones: an empty optional-like Blocked with nodes_fit enough.
    Blocked feasible(const Shape& shape) const;
    std::uint64_t revision() const;
    std::uint64_t digest() const;

private:
    std::unique_ptr<State> state_;
};

}  // namespace muster::scheduler
