// What PlanIndex holds. Nodes stand in topology order, so that a domain is a range of positions;
// for each pool of equal devices there is a shelf: a bitmap of the nodes with just k free ones,
// and a count of those with k or more in each domain. Everything here follows from the changes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/bitmap.h"
#include "scheduler/fragmentation.h"
#include "scheduler/plan.h"

namespace muster::scheduler {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// ---- nodes ------------------------------------------------------------------------------------

/// Devices of one pool on one node that share a link group and a NUMA node.
struct Cell {
    std::string link;
    int numa = -1;
    std::int32_t free = 0;
    std::int32_t healthy = 0;
};
/// A device of which parts are given away.
struct PartBook {
    std::uint32_t device = 0;  // Index into NodeFacts::devices.
    std::int64_t milli = 0;    // Given away.
    Bytes memory;
    std::int32_t owners = 0;
};
struct NodePool {
    std::uint32_t pool = 0;
    std::int32_t healthy = 0;
    std::int32_t free = 0;   // Healthy, without an owner, not promised. Below 0: promised twice.
    std::int32_t shown = 0;  // On its shelf.
    std::vector<Cell> cells;
    std::vector<PartBook> parts;  // By device.
};
struct CellTake {
    std::uint16_t pool = 0, cell = 0;  // Indexes into NodeEntry::pools and its cells.
    std::int32_t count = 0;
};
/// What one slot takes of its node.
struct Take {
    MilliCpu cpus;
    Bytes memory, disk;
    std::vector<CellTake> cells;
    // Part of a device; kNone: none.
    std::uint32_t part_pool = kNone;    // Index into NodeEntry::pools.
    std::uint32_t part_device = kNone;  // Index into NodeFacts::devices.
    std::int64_t part_milli = 0;
    Bytes part_memory;
    bool exclusive = false;
};
struct StartedJob;
/// One slot of a started job on the node.
struct NodeHold {
    StartedJob* job = nullptr;
    std::uint32_t slot = 0;
    Take take;
};
struct NodeClaim {
    JobId job;
    Take take;
};
struct NodeWindow {
    ReservationId id;
    Time start, end;
    const model::Reservation* reservation = nullptr;
};
struct NodeBooking {
    JobId job;
    Time at, end;
    std::uint32_t pool = kNone;  // Index into NodeEntry::pools; kNone: no devices.
    std::int32_t devices = 0;
    MilliCpu cpus;
    Bytes memory;
    bool exclusive = false;
};
struct NodeEntry {
    NodeId id;
    std::uint32_t at = kNone;  // Its position; kNone while the layout is stale.
    std::shared_ptr<const model::NodeFacts> facts;
    std::vector<std::string> path;
    std::vector<std::uint32_t> domains;  // By level; kNone: in none.
    bool usable = false;
    std::int64_t risk = 0;
    // Free of both what is held and what is promised.
    MilliCpu cpus;
    Bytes memory, disk;
    std::int32_t slots = 0;  // Held or promised.
    bool exclusive = false;
    std::vector<NodePool> pools;
    std::vector<CellTake> cell_of;    // By device: its pool and cell; count 1 if it is healthy.
    std::int32_t cpu_step = 0;        // As shown on its shelf; devices: NodePool::shown.
    bool visible = false;             // On its shelves.
    std::vector<NodeHold> held;       // By expected end, then job, then slot.
    std::vector<NodeClaim> claims;    // By job.
    std::vector<NodeWindow> windows;  // By start.
    std::vector<NodeBooking> bookings;
    std::uint64_t mark = 0;  // Of the placement that has taken it.
};

struct Lane;
struct ShapeEntry;
/// An entry of a waiting list: a shape, or one lane of it. Void once it was woken.
struct Sleeper {
    ShapeEntry* shape = nullptr;
    Lane* lane = nullptr;
    std::uint64_t slept = 0;
};
/// Usable nodes by how much of one thing is free: devices of a pool, or steps of CPUs.
struct Shelf {
    std::int32_t most = 0;      // On one node.
    std::vector<Bitmap> exact;  // [k-1]: nodes with just k.
    /// [level][k-1][domain]: how many nodes have k or more.
    std::vector<std::vector<std::vector<std::int32_t>>> counts;
    std::vector<std::int32_t> all;  // [k-1]: of the whole cluster.
    /// The same of nodes that would have k if nothing ran, usable or not.
    std::vector<std::vector<std::vector<std::int32_t>>> empty_counts;
    std::vector<std::int32_t> empty_all;
    MilliCpu least_cpus;  // Of any node on it.
    Bytes least_memory, least_disk;
    std::vector<std::vector<Sleeper>> waiting;  // [k-1]: lanes that need k on a node.
};
/// Shelves of work without devices: nodes without devices, nodes with some. Step k: at least
/// 2^(k-1) / 8 free CPUs.
constexpr std::uint32_t kCpuShelf = 0, kCpuShelfOfDeviceNodes = 1, kFirstPoolShelf = 2;
constexpr std::int32_t kCpuSteps = 16;
std::int32_t cpu_step(MilliCpu cpus);

/// Equal devices, over all nodes. Its shelf: kFirstPoolShelf and its index.
struct Pool {
    std::string kind, device_class, vendor;
    Bytes memory;
    std::string profile;
    bool share_enforced = false;
    std::int64_t weight = 1000, speed = 1000;  // By the rules, in thousandths.
    std::int64_t total = 0;                    // Healthy ones on known nodes.
    Bitmap partly;  // Usable nodes with a device that is given away in parts.
};
struct Domain {
    std::vector<std::string> path;
    std::uint32_t first = 0, last = 0;  // Positions, half open.
    std::uint32_t parent = kNone;       // One level up that it is in; kNone: none.
    std::int32_t spanning = 0;          // Started gangs with nodes here and outside.
};

// ---- queues -----------------------------------------------------------------------------------

/// By resource (State::resources).
using ResourceVec = std::vector<std::int64_t>;
using Demand = std::vector<std::pair<std::uint32_t, std::int64_t>>;

/// Decayed use, and what runs now.
struct UsageBook {
    std::int64_t devices = 0, cpus = 0, memory = 0;  // Up to as_of.
    Time as_of;
    std::int64_t devices_rate = 0, cpus_rate = 0, memory_rate = 0;  // A second, from then on.
};
struct QueueEntry;
struct UserBook {
    ResourceVec used;
    std::int64_t running = 0;
    UsageBook usage;
    double share = 0;            // Of this pass.
    std::uint64_t share_of = 0;  // The pass.
    double share_before = 0;     // When the pass QueueEntry::frozen began.
};
struct QueuedJob {
    JobQueued ask;
    ShapeEntry* shape = nullptr;
    Lane* lane = nullptr;                 // Null: not eligible yet.
    std::int64_t rank = 0;                // In its lane.
    std::unique_ptr<const Blocked> told;  // Of a job with reasons of its own: the last one told.
};
/// Order inside a lane.
struct LaneKey {
    std::int64_t rank = 0;  // Predicted duration or level of service, by the queue's policy.
    Time submitted;
    JobId id;
    QueuedJob* job = nullptr;
    friend bool operator<(const LaneKey& a, const LaneKey& b) {
        return std::tie(a.rank, a.submitted, a.id) < std::tie(b.rank, b.submitted, b.id);
    }
};
/// Waiting jobs of one shape and priority; of one user, where users are told apart.
struct Lane {
    ShapeEntry* shape = nullptr;
    UserBook* user_book = nullptr;  // Where users are told apart.
    std::int64_t priority = 0;
    std::set<LaneKey> jobs;
    bool asleep = false;      // Its user has all that he may have.
    std::uint64_t slept = 0;  // How often it fell asleep.
    Blocked blocked;          // Why it sleeps.
    // Of the pass under way.
    std::set<LaneKey>::iterator cursor;
    std::int64_t used = 0;  // Elements of the job at the cursor that started.
};
struct LaneId {
    UserId user;  // None: users are not told apart.
    std::int64_t priority = 0;
    friend auto operator<=>(const LaneId&, const LaneId&) = default;
};
/// Position in a queue, by its policy. Smaller goes first.
struct OrderKey {
    double share = 0;          // Of the user (fair).
    std::int64_t level = 0;    // Duration or service (shortest, las), else falling priority.
    std::int64_t falling = 0;  // Falling priority, for those with a level.
    Time submitted;
    JobId job;
    friend bool operator<(const OrderKey& a, const OrderKey& b) {
        return std::tie(a.share, a.level, a.falling, a.submitted, a.job) <
               std::tie(b.share, b.level, b.falling, b.submitted, b.job);
    }
};
struct HeapItem {
    OrderKey key;  // Of its first job; never above what it is by now.
    ShapeEntry* shape = nullptr;
};
struct QueueEntry {
    model::Queue queue;
    QueueEntry* parent = nullptr;
    std::vector<QueueEntry*> children;                                   // By id.
    ResourceVec guarantee, limit, borrow_limit, lend_limit, user_limit;  // -1: not named.
    bool has_guarantee = false;
    bool lends = false;             // Has a limit of what it lends.
    std::uint64_t keeps = 0;        // Of which resources it keeps some by it: when last looked at.
    ResourceVec used, used_before;  // Before: when the pass began; where it has a guarantee.
    std::int64_t running = 0;
    std::map<std::int64_t, std::int64_t> priorities;  // Of its started jobs: how many of each.
    std::map<UserId, UserBook> users;
    bool by_user = false;  // Fair, or with bounds for each user.
    std::map<ShapeId, ShapeEntry*> shapes;
    std::vector<ShapeEntry*> awake;
    std::vector<Sleeper> limited;  // Until this queue uses less.
    std::int64_t pending = 0;
    Sleeper first;  // Strict fifo: what everything waits behind.
    /// Its users in the order of their shares when they were last frozen, each with whether the one
    /// before has as much; and when that was.
    std::vector<std::pair<UserId, bool>> ranking;
    Time ranked;
    // Of the pass under way.
    double share = 0, history = 0;
    std::uint64_t share_of = 0, history_of = 0;  // The pass; 0: to be computed again.
    std::uint64_t frozen = 0;                    // The pass that knows UserBook::share_before.
    std::uint64_t reordered = 0;                 // The pass that found its jobs in another order.
    std::vector<HeapItem> heap;
    std::int32_t active = 0;  // Leaves below (or itself) with something in their heap.
};

// ---- shapes and jobs --------------------------------------------------------------------------

/// One way to meet a group's ask: which pools, in which alternative.
struct Choice {
    std::uint32_t alternative = 0;
    std::string kind;
    std::vector<std::uint32_t> shelves;
    std::int32_t step = 1;   // Of a shelf: the least that may do.
    std::int64_t count = 0;  // Whole devices a node; 0: none, or part of one.
    std::int64_t part_milli = 0;
    Bytes part_memory;
    Demand demand;  // Of one node: devices only (CPUs and memory differ by node).
};
struct GroupPlan {
    std::vector<Choice> choices;  // In order of preference.
};
/// Nodes that meet a constraint, shared by all shapes with equal ones.
struct Constraint {
    std::vector<model::ConstraintTerm> terms;
    Bitmap nodes;
};
struct ShapeEntry {
    Shape shape;
    QueueEntry* queue = nullptr;
    std::uint64_t prepared = 0;  // State::pools_version that the rest follows from.
    std::vector<GroupPlan> groups;
    std::vector<Typical*> typical;  // By group.

    std::shared_ptr<Constraint> constraint;  // Null: none.
    bool never = false;                      // Does not fit on the empty cluster.
    bool never_known = false;
    std::uint64_t nodes_version = 0;  // State::nodes_version that `never` follows from.
    std::int64_t jobs = 0;            // Queued.
    Blocked told;                     // The last reason told.
    Time told_at;
    std::map<LaneId, Lane> lanes;
    std::int64_t avoiders = 0;    // Of its jobs in lanes: those that avoid nodes.
    std::int64_t waiting = 0;     // Of its jobs in lanes, each element of an array counted.
    bool asleep = false;          // If its first job does not fit, none does.
    std::uint64_t slept = 0;      // How often it fell asleep: an older entry of a list is void.
    Blocked blocked;              // Why it sleeps.
    JobId first;                  // For whom it fell asleep.
    bool privileged = false;      // Then: others' windows did not bind it, but for owned ones.
    bool listed = false;          // In its queue's `awake`.
    Time timer;                   // Its entry in `timed`; 0: none.
    bool untried = false;         // Listed for a search.
    bool preempt_tried = false;   // Since it fell asleep.
    std::int64_t booked = 0;      // Of the pass under way: jobs of it with a window.
    std::uint64_t listed_in = 0;  // The last pass that set its lanes' cursors.
};
struct StartedJob {
    JobStarted start;
    ShapeEntry* shape = nullptr;
    UserBook* user_book = nullptr;
    Demand demand;                                              // Of the whole job.
    std::int64_t weight_devices = 0, cpus = 0, memory_gib = 0;  // Rates, for usage.
    std::int64_t devices = 0;                                   // Thousandths.
    bool stopping = false;
    JobId beneficiary;
    Time until;
    bool spans = false;         // Counted in Domain::spanning.
    std::uint64_t drafted = 0;  // The draft that released it.
};

/// An ask's thousandths of a device with so much memory; 1000: all of it.
std::int64_t part_milli(const model::DeviceAsk& ask, Bytes device_memory);
/// Levels of attained service, 0 the first: an hour of one device, then 32 times as much each. Most
/// jobs end in the first, and few large ones take turns.
constexpr std::int64_t kLasLevels = 8;
std::int64_t las_level(std::int64_t device_seconds);
/// The service at which a job leaves the level for the next; the last is not left.
std::int64_t las_bound(std::int64_t level);
/// A job's place in the line: its level, and in that who asks for fewer devices first.
constexpr int kLasDeviceBits = 20;
std::int64_t las_rank(const Shape& shape, std::int64_t device_seconds);

/// One of those who have a window, in the order in which these bind one another.
struct Turn {
    JobId job;
    bool owned = false;  // With those of its queue before it, within the guarantee.
};

struct PlanIndex::State {
    State();
    ~State();

    std::vector<std::string> levels = {"leaf"};  // As model::Topology has it.
    model::SchedulingRules rules;
    std::map<NodeId, NodeEntry> nodes;
    std::map<ShapeId, ShapeEntry> shapes;
    std::map<QueueId, QueueEntry> queues;
    std::map<JobId, QueuedJob> queued;
    std::map<JobId, StartedJob> started;
    std::map<UserId, std::string> users;
    std::map<ReservationId, model::Reservation> reservations;
    std::vector<Booking> bookings;
    std::vector<Booking> assumed;               // What those that sleep were held back by.
    std::vector<Turn> turns;                    // The same: in which order these bind one another.
    std::set<std::pair<Time, JobId>> sleeping;  // Not eligible yet.
    std::set<JobId> claimants;                  // Queued, with a claim.
    std::set<JobId> elastic;                    // Started, may grow.

    // Layout.
    bool stale = true;
    std::vector<NodeEntry*> order;             // By position.
    std::vector<std::vector<Domain>> domains;  // By level.
    std::vector<Pool> pools;
    std::vector<Shelf> shelves;
    Bitmap booked;  // Nodes with a window or a booking.
    /// Visible nodes with devices, of which nothing is idle.
    Bitmap used_up;
    Fragmentation fragmentation;
    std::uint64_t pools_version = 1, nodes_version = 1;
    std::map<std::string, std::weak_ptr<Constraint>> constraints;
    std::int64_t cpus_total = 0, memory_total = 0, devices_total = 0;  // Of known nodes; GiB.
    std::int64_t weights_total = 0;  // Of devices, by kind weight, thousandths.

    std::vector<std::string> resources;  // Interned names: "gpus", "cpus", "memory", …
    ResourceVec capacity;                // Of known nodes, by resource.
    ResourceVec used;                    // By all.

    std::deque<Sleeper> untried;       // Blocked, and not looked for victims for yet.
    bool searched_for_owner = false;   // The last search was for a guarantee.
    std::vector<Sleeper> waiting_any;  // Whatever changes.
    std::map<std::string, std::vector<Sleeper>> waiting_window;  // By kind: for one to be had.
    std::vector<Sleeper> waiting_node;                           // For a node to be there again.
    std::vector<Sleeper> reserved;                               // Held back by somebody's window.
    std::vector<ShapeEntry*> woken;            // Since the pass under way last looked.
    std::set<std::pair<Time, ShapeId>> timed;  // For a moment.
    Time seen;  // Of the last pass: what is eligible by then waits in its lane at once.
    std::uint64_t marks = 0;
    std::int64_t unusable = 0;  // Nodes.
    std::uint64_t revision = 0;
    std::uint64_t passes = 0;

    // ---- layout.cc
    void lay_out();  // If it is stale.
    std::uint32_t pool_of(const model::Device& device);
    void prepare(ShapeEntry& entry);  // If it is stale.
    std::shared_ptr<Constraint> constraint_of(const std::vector<model::ConstraintTerm>& terms);
    std::uint32_t level_of(const std::string& name) const;  // kNone: no such level.
    void place_bookings();
    void count_spans();
    void count_span(StartedJob& job, int sign);

    // ---- books.cc: every change of what a node has free goes through these.
    void take(NodeEntry& node, const Take& take, int sign);  // +1: taken, -1: given back.
    void show(NodeEntry& node);                              // Puts it on its shelves as it is now.
    void recount(NodeEntry& node);                           // From held and claims.
    void use(QueueEntry* queue, UserBook& user, const Demand& demand, int sign, int jobs = 1);

    // ---- wake.cc
    void wake_at(const NodeEntry& node);
    void wake_on(const Booking& booking);  // Those that could use its nodes now.
    void wake_all();
    void wake_limited(QueueEntry* queue);
    void wake(ShapeEntry& entry);
    void reopen(const ShapeEntry& entry);  // Its strict queue, if it goes before the first.
    void rouse(const Sleeper& sleeper);
    void wake_list(std::vector<Sleeper>& list);
    void sleep(ShapeEntry& entry, std::vector<Sleeper>& list);

    // ---- index.cc
    void recount_use(std::uint32_t resource);
    void enter(QueuedJob& job);  // Into its lane.
    void leave(QueuedJob& job);
    void eligible(Time now);
    std::uint32_t resource_of(const std::string& name);
    void bounds_of(QueueEntry& entry);
};

/// What a slot that names its devices takes of its node. Unhealthy devices are not counted.
Take take_of(const NodeEntry& node, const Slot& slot, const Shape& shape);
/// What a promise takes away from others: not what its own victims still hold.
Take effect_of(const NodeEntry& node, const NodeClaim& claim);
/// Whether the pool's devices are such that the ask accepts.
bool matches_pool(const model::DeviceAsk& ask, const Pool& pool, bool share_unenforced);
/// Whether the reservation's nodes are for this user, or for this queue's jobs.
bool allowed(const PlanIndex::State& state, const model::Reservation& reservation, UserId user,
             const QueueEntry* queue);
/// How long a job of this shape runs on such devices: its limit, else its prediction's p90. 0: not
/// known.
Duration length_of(const Shape& shape, const Prediction& predicted, std::int64_t speed);
/// Decayed use at `now`, with what has run since.
UsageBook usage_at(const UsageBook& book, Time now, Duration half_life);

}  // namespace muster::scheduler
