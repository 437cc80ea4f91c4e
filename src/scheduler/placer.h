// Where a job's nodes go, in a draft: whole or not at all, as near together as they fit.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/draft.h"
#include "scheduler/index.h"

namespace muster::scheduler {

/// Whose bookings bind the one who asks.
class BookingRule {
public:
    virtual ~BookingRule() = default;
    virtual bool binds(JobId booked) = 0;
};
/// Who asks, and what binds him.
struct Request {
    ShapeEntry* shape = nullptr;
    JobId job;
    UserId user;
    Prediction predicted;
    Time now;
    std::span<const NodeId> avoid;
    BookingRule* rule = nullptr;  // Null: all do, but his own.
    bool ignore_bookings = false;
    bool ignore_limits = false;
    std::int64_t elastic_extra = 0;  // Nodes of the first group beyond the least.
};
struct Placement {
    std::vector<Slot> slots;
    Demand demand;
    std::int64_t speed = 1000;  // Of the slowest kind chosen.
};
/// Why the last placement failed: what was met on the way.
struct Refusal {
    std::optional<Blocked> limit;
    QueueEntry* limiting = nullptr;  // Whose bound; null: what others keep.
    bool searched = false;           // Some choice was within the limits.
    bool booked = false;
    JobId behind;
    bool window = false;
    ReservationId reservation;
    Time window_end = kNever;
    bool topology = false;                        // Enough nodes, but in no one domain.
    std::uint32_t level = kNone, domain = kNone;  // The one that was nearest.
    std::int64_t fit = 0;                         // In it.
};

/// What one node gives to one slot. kNone: no devices.
struct Fit {
    std::uint32_t pool = kNone;    // Index into NodeEntry::pools.
    std::uint32_t device = kNone;  // Part of one: which, by index of facts.
    std::int64_t left = 0;         // Part: what is left of it.
};

class Placer {
public:
    Placer(PlanIndex::State& state, Draft& draft) : state_(state), draft_(draft) {}

    /// Takes capacity and use in the draft; or nothing, and leaves the draft as it was.
    std::optional<Placement> place(const Request& request);
    /// Takes just these slots, as a promise names them.
    std::optional<Placement> place_on(const Request& request, std::span<const Slot> slots);
    const Refusal& refusal() const { return refusal_; }
    /// Whether one more share fits on the node now, bookings and windows looked at.
    std::optional<Fit> fits(NodeEntry& node, const GroupAsk& group, const Choice& choice);
    /// Begins to ask for a request with fits().
    void begin(const Request& request);

private:
    bool place_group(std::uint32_t group, Placement& out);
    bool place_choice(std::uint32_t group, const Choice& choice, std::int64_t nodes,
                      Placement& out);
    bool place_single(std::uint32_t group, std::span<const Choice> choices, Placement& out);
    bool may_have(std::uint32_t group, const Choice& choice, std::int64_t nodes);
    bool as_good(const Choice& a, const Choice& b) const;
    // ---- single.cc
    struct Single;
    std::pair<NodeEntry*, const Choice*> single(const GroupAsk& group,
                                                std::span<const Choice* const> choices);
    void offer(Single& best, NodeEntry& node, const Choice& choice, std::int64_t rank);
    void on_parts(Single& best, const Choice& choice);
    void on_devices(Single& best, const Choice& choice);
    void without_devices(Single& best, const Choice& choice);
    NodeEntry* idle_node(const GroupAsk& group, const Choice& choice, const Shelf& shelf);
    // ---- placer.cc
    bool gang(const GroupAsk& group, const Choice& choice, std::int64_t nodes,
              std::vector<NodeEntry*>& out);
    bool gather(const GroupAsk& group, const Choice& choice, std::uint32_t level,
                std::uint32_t domain, std::int64_t nodes, std::vector<NodeEntry*>& out);
    std::int64_t collect(const GroupAsk& group, const Choice& choice, std::uint32_t level,
                         std::uint32_t domain, std::int64_t wanted, std::int64_t multiple,
                         std::vector<NodeEntry*>& out);
    std::int64_t scan(const GroupAsk& group, const Choice& choice, std::uint32_t first,
                      std::uint32_t last, std::int64_t wanted, std::vector<NodeEntry*>& out);
    std::int64_t bound(const Choice& choice, std::uint32_t level, std::uint32_t domain) const;
    bool slots_of(std::uint32_t group, const Choice& choice, std::vector<NodeEntry*>& nodes,
                  std::int64_t spares, Placement& out);
    bool may_use(NodeEntry& node, const GroupAsk& group, const Choice& choice, const Fit& fit);
    Take take_for(const NodeEntry& node, const GroupAsk& group, const Choice& choice,
                  const Fit& fit) const;
    MilliCpu cpus_for(const NodeEntry& node, const GroupAsk& group, const Choice& choice) const;
    bool within_limits(const Demand& demand, std::uint32_t group);

    PlanIndex::State& state_;
    Draft& draft_;
    const Request* request_ = nullptr;
    Refusal refusal_;
    std::uint64_t mark_ = 0;
    enum class Island { Any, Link, Numa } island_ = Island::Any;
    std::uint32_t required_ = kNone, slice_level_ = kNone;
    bool impossible_ = false;  // Names a level that there is not.
};

/// Cells that `count` devices come from: the smallest link group that holds them, else the
/// smallest NUMA node, else the cells with most. Empty: there is no such island.
std::vector<std::pair<std::uint16_t, std::int32_t>> pick_cells(const std::vector<Cell>& cells,
                                                               std::int32_t count, bool need_link,
                                                               bool need_numa);
/// The first bound that `demand` more would break, if any; as a reason with numbers. `counts`: it
/// is one job more.
std::optional<Blocked> limit_of(const PlanIndex::State& state, QueueEntry* queue,
                                const UserBook& user, const Demand& demand, bool preemptible,
                                bool counts, QueueEntry** blocking);
/// Whether all of it is within the guarantee of the nearest queue that has one.
/// `used`: now, or when the pass began.
bool in_guarantee(const QueueEntry* queue, const Demand& demand,
                  ResourceVec QueueEntry::*used = &QueueEntry::used);

}  // namespace muster::scheduler
