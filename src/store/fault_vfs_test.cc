#include "store/fault_vfs.h"

#include <algorithm>
#include <cstring>

#include <sqlite3.h>

namespace muster::store {

struct FaultVfs::File {
    struct Pending {
        std::int64_t offset;
        std::string bytes;
        std::int64_t truncate_to;  // >= 0: a truncation instead.
    };
    std::string now, synced;
    std::vector<Pending> pending;
    std::vector<std::unique_ptr<char[]>>
        shared;                            // The WAL index: lost in a cut, as on a real machine.
    int shm_locks[SQLITE_SHM_NLOCK] = {};  // > 0 readers, -1 one writer.
    int lock_shared = 0, lock_reserved = 0, lock_exclusive = 0;
};

namespace {

constexpr std::int64_t kSector = 512;

void apply_write(std::string& contents, const FaultVfs::File::Pending& change) {
    if (change.truncate_to >= 0) {
        contents.resize(static_cast<std::size_t>(change.truncate_to));
        return;
    }
    const auto end = static_cast<std::size_t>(change.offset) + change.bytes.size();
    if (contents.size() < end) contents.resize(end);
    contents.replace(static_cast<std::size_t>(change.offset), change.bytes.size(), change.bytes);
}

struct Handle {
    sqlite3_file base;
    FaultVfs* vfs;
    std::shared_ptr<FaultVfs::File>* file;
    int level;
    int shm_held[SQLITE_SHM_NLOCK];
};
Handle& handle(sqlite3_file* file) {
    return *reinterpret_cast<Handle*>(file);
}
FaultVfs::File& contents(sqlite3_file* file) {
    return **handle(file).file;
}

int code_of(FaultVfs::Fault fault, int io_error) {
    switch (fault) {
        case FaultVfs::Fault::IoError: return io_error;
        case FaultVfs::Fault::DiskFull: return SQLITE_FULL;
        default: return SQLITE_OK;
    }
}

int io_lock(sqlite3_file* file, int level) {
    auto& h = handle(file);
    auto& f = contents(file);
    if (level <= h.level) return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED) {
        if (f.lock_exclusive != 0) return SQLITE_BUSY;
        ++f.lock_shared;
    } else if (level == SQLITE_LOCK_RESERVED) {
        if (f.lock_reserved != 0) return SQLITE_BUSY;
        f.lock_reserved = 1;
    } else if (level == SQLITE_LOCK_EXCLUSIVE) {
        if (f.lock_shared > 1 || (f.lock_reserved != 0 && h.level < SQLITE_LOCK_RESERVED))
            return SQLITE_BUSY;
        f.lock_reserved = 1, f.lock_exclusive = 1;
    }
    h.level = level;
    return SQLITE_OK;
}
int io_unlock(sqlite3_file* file, int level) {
    auto& h = handle(file);
    auto& f = contents(file);
    if (h.level >= SQLITE_LOCK_RESERVED && level < SQLITE_LOCK_RESERVED)
        f.lock_reserved = f.lock_exclusive = 0;
    if (h.level >= SQLITE_LOCK_SHARED && level == SQLITE_LOCK_NONE) --f.lock_shared;
    h.level = std::min(h.level, level);
    return SQLITE_OK;
}
int io_close(sqlite3_file* file) {
    io_unlock(file, SQLITE_LOCK_NONE);
    delete handle(file).file;
    handle(file).file = nullptr;
    return SQLITE_OK;
}
int io_read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
    const std::string& now = contents(file).now;
    const auto from = std::min(static_cast<std::size_t>(offset), now.size());
    const auto have = std::min(static_cast<std::size_t>(size), now.size() - from);
    std::memcpy(out, now.data() + from, have);
    if (have == static_cast<std::size_t>(size)) return SQLITE_OK;
    std::memset(static_cast<char*>(out) + have, 0, static_cast<std::size_t>(size) - have);
    return SQLITE_IOERR_SHORT_READ;
}
int change(sqlite3_file* file, FaultVfs::File::Pending pending, int io_error) {
    const auto fault = handle(file).vfs->next_operation();
    if (fault != FaultVfs::Fault::None) return code_of(fault, io_error);
    apply_write(contents(file).now, pending);
    contents(file).pending.push_back(std::move(pending));
    return SQLITE_OK;
}
int io_write(sqlite3_file* file, const void* in, int size, sqlite3_int64 offset) {
    return change(
        file,
        {offset, std::string(static_cast<const char*>(in), static_cast<std::size_t>(size)), -1},
        SQLITE_IOERR_WRITE);
}
int io_truncate(sqlite3_file* file, sqlite3_int64 size) {
    return change(file, {0, {}, size}, SQLITE_IOERR_TRUNCATE);
}
int io_sync(sqlite3_file* file, int) {
    const auto fault = handle(file).vfs->next_operation();
    if (fault != FaultVfs::Fault::None) return SQLITE_IOERR_FSYNC;
    auto& f = contents(file);
    f.synced = f.now;
    f.pending.clear();
    handle(file).vfs->count_sync();
    return SQLITE_OK;
}
int io_size(sqlite3_file* file, sqlite3_int64* size) {
    *size = static_cast<sqlite3_int64>(contents(file).now.size());
    return SQLITE_OK;
}
int io_check_reserved(sqlite3_file* file, int* out) {
    *out = contents(file).lock_reserved;
    return SQLITE_OK;
}
int io_control(sqlite3_file*, int, void*) {
    return SQLITE_NOTFOUND;
}
int io_sector(sqlite3_file*) {
    return kSector;
}
int io_characteristics(sqlite3_file*) {
    return 0;
}  // Nothing is atomic, nothing is in order.
int shm_map(sqlite3_file* file, int region, int size, int extend, volatile void** out) {
    auto& shared = contents(file).shared;
    while (extend != 0 && shared.size() <= static_cast<std::size_t>(region)) {
        shared.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
    }
    *out = shared.size() > static_cast<std::size_t>(region)
               ? shared[static_cast<std::size_t>(region)].get()
               : nullptr;
    return SQLITE_OK;
}
int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
    auto& h = handle(file);
    auto& locks = contents(file).shm_locks;
    for (int i = offset; i < offset + count; ++i) {
        if ((flags & SQLITE_SHM_UNLOCK) != 0) continue;
        const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
        if (exclusive ? locks[i] - h.shm_held[i] != 0 : locks[i] < 0) return SQLITE_BUSY;
    }
    for (int i = offset; i < offset + count; ++i) {
        if ((flags & SQLITE_SHM_UNLOCK) != 0) {
            locks[i] -= h.shm_held[i], h.shm_held[i] = 0;
        } else if ((flags & SQLITE_SHM_EXCLUSIVE) != 0) {
            locks[i] = h.shm_held[i] = -1;
        } else if (h.shm_held[i] == 0) {
            ++locks[i], h.shm_held[i] = 1;
        }
    }
    return SQLITE_OK;
}
void shm_barrier(sqlite3_file*) {
    __sync_synchronize();
}
int shm_unmap(sqlite3_file*, int) {
    return SQLITE_OK;
}

const sqlite3_io_methods kMethods = {2,
                                     io_close,
                                     io_read,
                                     io_write,
                                     io_truncate,
                                     io_sync,
                                     io_size,
                                     io_lock,
                                     io_unlock,
                                     io_check_reserved,
                                     io_control,
                                     io_sector,
                                     io_characteristics,
                                     shm_map,
                                     shm_lock,
                                     shm_barrier,
                                     shm_unmap,
                                     nullptr,
                                     nullptr};

FaultVfs& self(sqlite3_vfs* vfs) {
    return *static_cast<FaultVfs*>(vfs->pAppData);
}

int vfs_open(sqlite3_vfs* vfs, const char* path, sqlite3_file* out, int flags, int* out_flags) {
    auto& h = handle(out);
    std::memset(&h, 0, sizeof h);
    static int anonymous = 0;
    const std::string name = path != nullptr ? path : "temporary-" + std::to_string(++anonymous);
    auto file = self(vfs).open(name, (flags & SQLITE_OPEN_CREATE) != 0 || path == nullptr);
    if (!file) return SQLITE_CANTOPEN;
    h.base.pMethods = &kMethods;
    h.vfs = &self(vfs);
    h.file = new std::shared_ptr<FaultVfs::File>(std::move(file));
    if (out_flags != nullptr) *out_flags = flags;
    return SQLITE_OK;
}
int vfs_delete(sqlite3_vfs* vfs, const char* path, int) {
    self(vfs).remove(path);
    return SQLITE_OK;
}
int vfs_access(sqlite3_vfs* vfs, const char* path, int, int* out) {
    *out = self(vfs).exists(path) ? 1 : 0;
    return SQLITE_OK;
}
int vfs_full_path(sqlite3_vfs*, const char* path, int size, char* out) {
    sqlite3_snprintf(size, out, "%s", path);
    return SQLITE_OK;
}

}  // namespace

FaultVfs::FaultVfs() {
    static int number = 0;
    name_ = "fault-" + std::to_string(++number);
    sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
    auto* vfs = new sqlite3_vfs(*real);
    vfs->szOsFile = sizeof(Handle);
    vfs->zName = name_.c_str();
    vfs->pAppData = this;
    vfs->xOpen = vfs_open;
    vfs->xDelete = vfs_delete;
    vfs->xAccess = vfs_access;
    vfs->xFullPathname = vfs_full_path;
    vfs_ = vfs;
    sqlite3_vfs_register(vfs, 0);
}
FaultVfs::~FaultVfs() {
    auto* vfs = static_cast<sqlite3_vfs*>(vfs_);
    sqlite3_vfs_unregister(vfs);
    delete vfs;
}

std::shared_ptr<FaultVfs::File> FaultVfs::open(const std::string& path, bool create) {
    auto at = files_.find(path);
    if (at == files_.end()) {
        if (!create) return nullptr;
        at = files_.emplace(path, std::make_shared<File>()).first;
    }
    return at->second;
}
void FaultVfs::remove(const std::string& path) {
    files_.erase(path);
}

FaultVfs::Fault FaultVfs::next_operation() {
    ++operations_;
    if (fault_ == Fault::None || operations_ < fail_at_) return Fault::None;
    if (operations_ > fail_at_ && !stuck_) return Fault::None;
    struck_ = true;
    return fault_;
}
void FaultVfs::fail_after(std::uint64_t n, Fault fault, bool stuck) {
    fail_at_ = operations_ + n;
    fault_ = fault;
    stuck_ = stuck;
    struck_ = false;
}

FaultVfs::Image FaultVfs::power_cut(Prng& prng, unsigned keep_per_mille) const {
    Image image;
    for (const auto& [path, file] : files_) {
        std::string left = file->synced;
        for (const auto& pending : file->pending) {
            if (!prng.chance(keep_per_mille)) continue;
            auto torn = pending;
            if (torn.truncate_to < 0 && prng.chance(300)) {
                const auto sectors = static_cast<std::int64_t>(torn.bytes.size()) / kSector;
                torn.bytes.resize(static_cast<std::size_t>(prng.between(0, sectors) * kSector));
            }
            apply_write(left, torn);
        }
        image[path] = std::move(left);
    }
    return image;
}

void FaultVfs::restore(const Image& image) {
    files_.clear();
    for (const auto& [path, bytes] : image) {
        auto file = std::make_shared<File>();
        file->now = file->synced = bytes;
        files_[path] = std::move(file);
    }
    fault_ = Fault::None;
}

}  // namespace muster::store
