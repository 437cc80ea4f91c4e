// Logs of ended tasks: what is kept, for how long, and how much.
#pragma once

#include <string>

#include "base/id.h"
#include "base/quantity.h"

namespace muster::os {

/// Removes all but the log from a cleaned task's folder, and the folder if there is no log.
void keep_log_only(const std::string& folder);
/// Drops logs older than `keep`, then the oldest until all fit into `bytes_max`.
void sweep_kept_logs(const std::string& logs_dir, Duration keep, Bytes bytes_max);

}  // namespace muster::os
