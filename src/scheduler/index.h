// What PlanIndex holds: nodes with what is taken of them, shapes with their queues, started jobs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/plan.h"

namespace muster::scheduler {

/// Equal devices of one node. Order: as they first appear by kind, class, vendor, memory.
struct Bucket {
    std::string kind, device_class, vendor;
    Bytes memory;
    std::int64_t healthy = 0;
    friend bool operator==(const Bucket&, const Bucket&) = default;
};
/// What is taken of a node.
struct Load {
    MilliCpu cpus;
    Bytes memory;
    Bytes disk;
    std::vector<std::int64_t> free;  // By bucket: healthy and without an owner.
    std::int64_t slots = 0;
    bool exclusive = false;
    friend bool operator==(const Load&, const Load&) = default;
};
struct Held {
    Slot slot;
    bool exclusive = false;
    std::vector<std::int64_t> devices;  // By bucket: healthy ones that it owns.
};
struct NodeEntry {
    NodeId id;
    std::shared_ptr<const model::NodeFacts> facts;
    bool usable = false;
    std::vector<Bucket> buckets;
    Load load;
    std::map<JobId, std::vector<Held>> held;
    /// Of the drafts under way, one from the present and one from the empty cluster, if their
    /// numbers are `draft`.
    std::array<Load, 2> drafted;
    std::array<std::uint64_t, 2> draft{};
};

struct Order {
    std::int64_t falling_priority = 0;
    Time submitted;
    JobId job;
    friend auto operator<=>(const Order&, const Order&) = default;
};
struct Queued {
    JobQueued ask;
    Blocked told;  // Of a job with an avoid list: its last reason told.
};
struct ShapeEntry {
    Shape shape;
    std::set<Order> ready;         // Eligible jobs.
    Blocked told;                  // The last reason told.
    std::uint64_t blocked_at = 0;  // `freed` when it last did not fit; 0: look at it.
    Blocked blocked;
};
struct Started {
    JobStarted start;
};

struct PlanIndex::State {
    std::map<NodeId, NodeEntry> nodes;
    std::map<ShapeId, ShapeEntry> shapes;
    std::map<JobId, Queued> queued;
    std::map<JobId, Started> started;
    std::set<std::pair<Time, JobId>> sleeping;  // Not eligible yet.
    std::map<std::string, std::int64_t> kinds;  // Of devices: how many nodes have some.
    std::uint64_t revision = 0;
    std::uint64_t freed = 1;  // Grows when something may fit that did not.
    std::uint64_t drafts = 0;

    void wake(Time now);
};

Order order_of(const JobQueued& ask);

}  // namespace muster::scheduler
