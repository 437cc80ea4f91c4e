// Windows for blocked jobs: when and where one could start if nothing new came before it.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/index.h"
#include "scheduler/placer.h"

namespace muster::scheduler {

/// The earliest moment by the expected ends of what runs, and the nodes; `at` kNever: on these
/// nodes, at a moment nobody knows. Nothing: it does not fit even when all has ended.
std::optional<Booking> find_window(PlanIndex::State& state, const Request& request);
/// How the booking lies on its nodes.
void lay(PlanIndex::State& state, const Booking& booking, const ShapeEntry& shape,
         const Prediction& predicted);
/// Whether the site has such a level, or every site has.
bool known_level(const PlanIndex::State& state, const std::string& name);
/// Whether the shape fits on the nodes known when nothing runs. `usable_only`: on those that may
/// be used now, without `avoid`.
bool ever_fits(PlanIndex::State& state, ShapeEntry& entry, bool usable_only,
               std::span<const NodeId> avoid);
/// The node meets the shape's constraint and is big enough when nothing runs on it.
bool fits_empty(const PlanIndex::State& state, const NodeEntry& node, const ShapeEntry& entry,
                const GroupAsk& group, const Choice& choice);

}  // namespace muster::scheduler
