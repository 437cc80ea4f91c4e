// Faults planted on purpose. Each falsifies what goes into or comes out of the real cores, so that
// production code has no hook for it; a run that does not notice one is worth nothing.
#pragma once

#include <string_view>

#include "workload.h"

namespace muster::swarm {

/// "fence", "acknowledge", "leak", "epoch", "wakeup", "peers".
constexpr std::string_view kPlants[] = {"fence", "acknowledge", "leak", "epoch", "wakeup", "peers"};
/// False: no such plant.
bool plant(Plan& plan, std::string_view name);

}  // namespace muster::swarm
