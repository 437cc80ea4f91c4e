// ports::Store on one SQLite file (WAL, synchronous=FULL): no set-up, one sync a batch.
//
// Checkpoints of the WAL run on a thread of their own, never on the commit path. A ballast file
// keeps room for the ends and cancels that a full disk must still take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ports/store.h"

namespace muster::store {

struct SqliteStoreOptions {
    std::string path;                         // Of the database file; its folder must exist.
    std::string vfs;                          // Tests only. "" = the operating system's.
    std::size_t events_kept = 100'000;        // Older ones are dropped.
    std::int64_t ballast_bytes = 16 << 20;    // 0: none.
    std::int64_t watermark_bytes = 64 << 20;  // nearly_full() below so much free.
    std::int64_t checkpoint_bytes = 8 << 20;  // WAL size from which a checkpoint is made.
    bool checkpoint_thread = true;            // Tests that count writes switch it off.
};

struct SqliteStoreStats {
    std::uint64_t commits = 0, records = 0, checkpoints = 0;
};

class SqliteStore : public ports::Store {
public:
    static Result<std::unique_ptr<SqliteStore>> open(const SqliteStoreOptions& options);
    virtual SqliteStoreStats stats() = 0;
    /// Runs one WAL checkpoint now. For tests and for a clean stop.
    virtual Status checkpoint() = 0;
};

}  // namespace muster::store
