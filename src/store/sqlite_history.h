// ports::History on a SQLite file of its own, so that report queries never touch live state.
#pragma once

#include <memory>
#include <string>

#include "ports/history.h"

namespace muster::store {

/// Thread-safe: appends and queries use a connection each.
Result<std::unique_ptr<ports::History>> open_sqlite_history(const std::string& path,
                                                            const std::string& vfs = "");

}  // namespace muster::store
