// A request's body as a job.
#pragma once

#include <variant>

#include "rest/api.h"

namespace muster::rest {

/// The normal form, or all that is wrong with it.
std::variant<model::JobSpec, Problem> parse_job_body(const Call& call);

}  // namespace muster::rest
