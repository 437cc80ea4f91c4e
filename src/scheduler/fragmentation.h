// What the jobs that wait and run now typically ask of one node, and what that says of a node: how
// much of its idle devices such asks could not use. A job goes where it leaves least out of reach
// of those to come.
//
// The measure is that of Weng et al. (ATC 2023), idle thousandths of devices that the next ask
// could not use, in the mean over what is asked; and with a smaller weight what would be out of
// reach were the node filled with one such ask after the other, which CPUs and memory bound too.
//
// A function of the index's contents; what is kept besides is only saved work.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/plan.h"

namespace muster::scheduler {

struct Constraint;
struct NodeEntry;

/// Equal groups of all shapes: what one node of them must offer.
struct Typical {
    GroupAsk ask;
    std::vector<model::ConstraintTerm> constraint;
    bool exclusive = false, share_unenforced = false;
    std::int64_t count = 0;   // Nodes that jobs ask for in such groups, or have.
    std::int64_t shapes = 0;  // That have such a group.
};

/// What a node has left for jobs with devices.
struct Room {
    static constexpr std::size_t kSharesMax = 4, kPartsMax = 32;
    struct Share {
        std::uint32_t pool = 0;
        std::int64_t idle = 0;  // Whole devices.
    };
    struct Part {
        std::uint32_t device = 0;  // Index into NodeFacts::devices.
        std::uint16_t share = 0;   // Index into shares.
        std::int16_t left = 0;     // Thousandths.
    };
    const NodeEntry* node = nullptr;
    std::int64_t cpus = 0, memory = 0;  // Thousandths, bytes.
    std::size_t shares = 0, parts = 0;
    std::array<Share, kSharesMax> share;
    std::array<Part, kPartsMax> part;
    bool known = true;  // False: the node has more than fits in here.

    explicit Room(const NodeEntry& of);
    std::int64_t idle() const;  // Thousandths of devices.
    /// Part of a device that is in use already, or else of an idle one.
    void take_part(std::uint32_t of_share, std::uint32_t device, std::int64_t milli);
};

class Fragmentation {
public:
    std::vector<Typical*> enter(const Shape& shape);
    void leave(const Shape& shape);
    /// So many jobs of a shape came (below 0: went).
    void count(const Shape& shape, const std::vector<Typical*>& groups, std::int64_t jobs);

    /// Looks at what is asked now. False: nothing with devices is, and there is no measure.
    bool current(PlanIndex::State& state);
    /// The more, the more is out of reach. Only differences mean something. `look` is the room's.
    std::int64_t out_of_reach(const Room& room, std::uint64_t look);
    /// Differences below this are none: whichever is tighter is then better.
    static constexpr std::int64_t kStep = 256 * 6 * 32;
    /// Rooms with equal looks have as much out of reach.
    std::uint64_t look(const Room& room) const;

private:
    /// How an ask is met from one pool.
    struct Need {
        std::int64_t count = 0;  // Whole devices; 0: part of one, or not at all.
        std::int64_t milli = 0;  // Of one; 0: no device of the pool will do.
        std::uint32_t alternative = 0;
    };
    struct Asked {
        const Typical* what = nullptr;
        std::int64_t weight = 0;
        std::vector<Need> needs;  // By pool.
        std::shared_ptr<Constraint> constraint;
    };
    std::int64_t measure(const Room& room) const;
    static std::int64_t left_out(const Asked& asked, const Room& room, std::int64_t idle);

    std::map<std::string, Typical> all_;
    bool changed_ = true;
    std::uint64_t pools_version_ = 0, nodes_version_ = 0;
    std::vector<Asked> asked_;                                   // The most frequent.
    std::vector<const Constraint*> constraints_;                 // Of those that have one.
    std::vector<std::pair<std::uint64_t, std::int64_t>> known_;  // By look: what it came to.
};

}  // namespace muster::scheduler
