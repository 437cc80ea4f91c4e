// Why a job can never start here: each thing that it asks for and that too few nodes have, with the
// most that there is.
#pragma once

#include <string>

#include "core/state.h"
#include "scheduler/plan.h"

namespace muster::rest {

/// "asks 500 CPUs a node; 0 of 3 nodes have that, the most is 64 (n2)". Looks at every node.
std::string never_fits_text(const core::View& view, const scheduler::Shape& shape);

}  // namespace muster::rest
