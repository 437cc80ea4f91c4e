// From a plan's counts to devices by id: what of a node is free, and which of it an attempt gets.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/indexes.h"

namespace muster::core {

/// What a node has left, device by device.
struct Room {
    struct Left {
        std::int64_t share = 1000;  // Thousandths.
        Bytes memory;
    };
    MilliCpu cpus;
    Bytes memory, disk;
    std::vector<Left> devices;  // As NodeFacts::devices.
    std::size_t slots = 0;      // Held there.
    bool exclusive = false;
};

/// Whether each group stands in one domain of the level that it requires, and its slices likewise,
/// as the topology and the nodes' labels are now.
bool near_enough(const View& tables, const scheduler::Shape& shape,
                 const std::vector<Placed>& placed);

/// Binds one or more attempts beside each other; what it has bound is taken from what it sees, the
/// state itself stays as it is.
class Binder {
public:
    /// `gone`: jobs whose capacity counts as free.
    explicit Binder(const State& state, std::vector<JobId> gone = {});

    /// Slots in the order of a plan: groups in order, spares last. Empty: they do not fit, with the
    /// state as it is, its nodes and others' promises.
    std::optional<std::vector<Placed>> bind(JobId job, const scheduler::Shape& shape,
                                            const std::vector<scheduler::Slot>& slots);

private:
    struct Job {
        JobId id;
        const scheduler::Shape* shape;
        std::vector<Placed> placed;
        std::set<NodeId> nodes;  // Of the group at hand.
    };
    bool bind_group(Job& job, std::span<const scheduler::Slot> slots, std::uint32_t group);
    bool bind_kind(Job& job, std::span<const scheduler::Slot> slots, const std::string& kind);
    std::optional<Placed> bind_slot(Job& job, const scheduler::Slot& slot, const std::string& kind);
    bool keeps_promises(JobId job, NodeId node, const Room& before, const Room& after) const;
    bool holds_claim(Room room, NodeId node, JobId claimant) const;
    void give_back(Room& room, const Placed& placed) const;
    void give_back(Room& room, NodeId node, JobId job) const;
    /// Undoes what was bound last, down to `mark` slots.
    void undo(Job& job, std::size_t mark);
    Room& room_of(NodeId node);
    const model::NodeFacts& facts(NodeId node) const {
        return *state_.tables.nodes.at(node.value).facts;
    }

    const State& state_;
    std::vector<JobId> gone_;
    std::map<NodeId, Room> rooms_;
};

}  // namespace muster::core
