// What history keeps of an ended job, made from the view before its live record
// goes.
#pragma once

#include <optional>

#include "core/state.h"
#include "ports/history.h"

namespace muster::rest {

/// Empty: there is no such job, or it has not ended. Nothing is masked: what
/// readers may not see is masked when it is served.
std::optional<ports::EndedJob> ended_job(const core::View& view, JobId job);

}  // namespace muster::rest
