// Logs of ended tasks: what is kept, for how long, and how much.
#pragma once

#include <cstdint>
#include <string>

#include "base/id.h"
#include "base/quantity.h"

namespace muster::os {

/// Names in place of logs: an empty file says that a task wrote nothing, which is not "no longer
/// kept". All names of an hour are of one file, so that each costs a name and no more; their age is
/// the file's.
class SilentLogs {
public:
    void add(const std::string& path);

private:
    std::string file_;
    std::int64_t made_ms_ = 0;
};
/// Removes all but the log from a cleaned task's folder, and the folder if there is no log.
void keep_log_only(const std::string& folder);
/// Drops logs older than `keep`, then the oldest until all fit into `bytes_max`.
void sweep_kept_logs(const std::string& logs_dir, Duration keep, Bytes bytes_max);

}  // namespace muster::os
