// Joining the terminal of a job, for `attach` and `run --pty`.
#pragma once

#include <cstdint>
#include <string>

#include "cli/app.h"

namespace muster::cli {

/// The task's own exit code, or 125.
int attach_to(App& app, const std::string& job, std::int64_t rank, bool terminal);

}  // namespace muster::cli
