// One planning pass: jobs in order, each placed whole or told why not; one reservation; backfill.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/draft.h"
#include "scheduler/index.h"

namespace muster::scheduler {

/// Where a gang fits, in a draft. Candidates are kept sorted for the length of a pass: within one,
/// capacity only shrinks, so a node that did not fit is not asked again for the same share.
class Placer {
public:
    using Filter = std::function<bool(NodeEntry&, const Choice&)>;
    Placer(PlanIndex::State& state, Draft& draft, bool usable_only)
        : state_(state), draft_(draft), usable_only_(usable_only) {}

    /// Takes the capacity in the draft; or nothing, and leaves the draft as it was.
    /// `shrinking`: no capacity came back since the last call with this shape.
    std::optional<std::vector<Slot>> place(const Shape& shape, const std::vector<NodeId>& avoid,
                                           const Filter& filter = {}, bool shrinking = false);
    const std::vector<Choice>& last_choices() const { return choices_; }

private:
    struct Candidates {
        std::vector<NodeEntry*> nodes;
        std::size_t first = 0;  // Those before do not fit any more.
    };
    Candidates& candidates(const Shape& shape, const Choice& choice, bool shrinking);
    bool place_group(const Shape& shape, std::uint32_t group, const std::vector<NodeId>& avoid,
                     const Filter& filter, bool shrinking, std::vector<Slot>& slots);

    PlanIndex::State& state_;
    Draft& draft_;
    bool usable_only_;
    std::map<std::tuple<ShapeId, std::uint32_t, std::uint32_t, std::string>, Candidates> known_;
    std::vector<Choice> choices_;
};

class Pass {
public:
    Pass(PlanIndex::State& state, Time now);
    /// At most `starts_max` starts, or until `until` was looked at.
    void run(std::size_t starts_max, JobId until);
    Plan take();
    /// Of the job given as `until`.
    const std::optional<Blocked>& found() const { return found_; }

private:
    struct Reservation {
        JobId job;
        Time at;                        // kNever: not known.
        std::map<NodeId, Load> shadow;  // What is left of its nodes at that time.
    };
    /// False when the plan is full.
    bool try_shape_head(ShapeEntry& entry, const Order& order);
    void blocked(ShapeEntry& entry, Queued& queued, Blocked why, bool shape_wide);
    std::optional<std::vector<Slot>> place(const Shape& shape, const std::vector<NodeId>& avoid,
                                           bool& reserved);
    bool ends_in_time(const Shape& shape) const;
    /// False: the plan is to be cut here.
    bool reserve(const Shape& shape, JobId job);
    std::vector<NodeId> avoidable(const Shape& shape, const std::vector<NodeId>& avoid);

    PlanIndex::State& state_;
    Time now_;
    Draft draft_;
    Placer placer_;
    Plan plan_;
    std::optional<Reservation> reservation_;
    bool head_blocked_ = false;
    std::size_t starts_max_ = 0;
    JobId until_;
    std::optional<Blocked> found_;
    std::map<JobId, std::vector<Slot>> begun_;  // In this pass, by job.
};

/// Numbers for people: what the shape wants, what is there, what stands in the way.
Blocked explain(PlanIndex::State& state, Draft& draft, const Shape& shape);
/// Whether the shape fits on the nodes known when nothing runs; on the usable ones without `avoid`.
bool ever_fits(PlanIndex::State& state, const Shape& shape, bool usable_only,
               const std::vector<NodeId>& avoid);

}  // namespace muster::scheduler
