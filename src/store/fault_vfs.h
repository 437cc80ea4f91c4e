// Test only: a SQLite file system in memory that can lose power and fail.
//
// It keeps, beside each file's contents, what a disk would still have after a power cut: the
// contents at the last completed sync, plus whatever part of the later writes the cut lets through.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"

namespace muster::store {

class FaultVfs {
public:
    enum class Fault { None, IoError, DiskFull };

    /// Registers itself with SQLite under `name()`; unregisters when destroyed.
    FaultVfs();
    ~FaultVfs();
    FaultVfs(const FaultVfs&) = delete;
    FaultVfs& operator=(const FaultVfs&) = delete;
    const std::string& name() const { return name_; }

    /// What the disk holds after a cut now: `keep_per_mille` of the unsynced writes (each torn at a
    /// sector boundary now and then) survive, in any combination.
    using Image = std::map<std::string, std::string>;
    Image power_cut(Prng& prng, unsigned keep_per_mille) const;
    void restore(const Image& image);

    /// The operation (write, sync, truncate) number `n` from now fails; and all later ones if
    /// `stuck`.
    void fail_after(std::uint64_t n, Fault fault, bool stuck);
    std::uint64_t operations() const { return operations_; }
    std::uint64_t syncs() const { return syncs_; }
    bool struck() const { return struck_; }

    struct File;  // Internal, public for the C callbacks.
    Fault next_operation();
    std::shared_ptr<File> open(const std::string& path, bool create);
    void remove(const std::string& path);
    bool exists(const std::string& path) const { return files_.contains(path); }
    void count_sync() { ++syncs_; }

private:
    std::string name_;
    void* vfs_;
    std::map<std::string, std::shared_ptr<File>> files_;
    std::uint64_t operations_ = 0, syncs_ = 0, fail_at_ = 0;
    Fault fault_ = Fault::None;
    bool stuck_ = false, struck_ = false;
};

}  // namespace muster::store
