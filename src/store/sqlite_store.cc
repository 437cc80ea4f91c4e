#include "store/sqlite_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/require.h"
#include "base/thread_name.h"
#include "store/sqlite.h"

namespace muster::store {
namespace {

constexpr std::size_t kEventsInMemory = 4096;

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS record(kind INTEGER NOT NULL, id INTEGER NOT NULL, bytes BLOB NOT "
    "NULL,"
    " PRIMARY KEY(kind, id)) WITHOUT ROWID;"
    // One row a batch: watchers' events cost one insert, however many there are.
    "CREATE TABLE IF NOT EXISTS event(last INTEGER PRIMARY KEY, bytes BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS fence(one INTEGER PRIMARY KEY CHECK(one = 1), term INTEGER NOT "
    "NULL);"
    "INSERT OR IGNORE INTO fence VALUES(1, 0);";

std::string encode_events(const std::vector<ports::LoggedEvent>& events) {
    Writer out;
    for (const auto& event : events) {
        out.number(event.sequence);
        out.signed_number(event.at_ms);
        out.text(event.json);
    }
    return std::move(out).bytes();
}

void decode_events(std::string_view bytes, std::uint64_t after, std::size_t limit,
                   std::vector<ports::LoggedEvent>& out) {
    Reader in(bytes);
    while (!in.at_end() && in.ok() && out.size() < limit) {
        ports::LoggedEvent event;
        event.sequence = in.number();
        event.at_ms = in.signed_number();
        event.json = in.text();
        if (in.ok() && event.sequence > after) out.push_back(std::move(event));
    }
}

/// A file that is there only to be given up when the disk is full.
class Ballast {
public:
    Ballast(std::string path, std::int64_t bytes) : path_(std::move(path)), bytes_(bytes) {}
    /// True if it gave something up.
    bool drop() {
        struct stat info {};
        if (bytes_ == 0 || ::stat(path_.c_str(), &info) != 0 || info.st_blocks == 0) return false;
        return ::truncate(path_.c_str(), 0) == 0;
    }
    /// Takes the room back, if it is there with as much again to spare.
    void restore(std::int64_t free_bytes) {
        struct stat info {};
        const bool whole = ::stat(path_.c_str(), &info) == 0 && info.st_blocks * 512 >= bytes_;
        if (bytes_ == 0 || whole || free_bytes < 3 * bytes_) return;
        const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) return;
        if (::posix_fallocate(fd, 0, bytes_) != 0) (void)!::ftruncate(fd, 0);
        ::close(fd);
    }

private:
    std::string path_;
    std::int64_t bytes_;
};

class Impl final : public SqliteStore {
public:
    explicit Impl(const SqliteStoreOptions& options)
        : options_(options), ballast_(options.path + ".ballast", options.ballast_bytes) {}

    ~Impl() override {
        {
            const std::lock_guard lock(checkpoint_mutex_);
            stopping_ = true;
        }
        checkpoint_due_.notify_all();
        if (checkpointer_.joinable()) checkpointer_.join();
    }

    Status start() {
        MUSTER_LET(writer, Database::open(options_.path, {options_.vfs}));
        writer_ = std::move(writer);
        MUSTER_TRY(writer_->run(
            "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-8000; PRAGMA temp_store=MEMORY;"));
        MUSTER_TRY(writer_->run(kSchema));
        MUSTER_TRY(prepare());
        MUSTER_LET(fence, writer_->number("SELECT term FROM fence"));
        term_ = static_cast<std::uint64_t>(fence);
        MUSTER_LET(last, writer_->number("SELECT coalesce(max(last), 0) FROM event"));
        last_event_ = static_cast<std::uint64_t>(last);
        MUSTER_LET(reader, Database::open(options_.path, {options_.vfs}));
        reader_ = std::move(reader);
        MUSTER_LET(read_events,
                   Statement::prepare(
                       *reader_, "SELECT bytes FROM event WHERE last > ? ORDER BY last LIMIT 64"));
        read_events_ = std::move(read_events);
        MUSTER_LET(first, reader_->number("SELECT coalesce(min(last), 0) FROM event"));
        first_kept_ = first == 0 ? last_event_.load() : static_cast<std::uint64_t>(first) - 1;
        free_space_now();
        if (options_.checkpoint_thread) checkpointer_ = std::thread([this] { checkpoint_loop(); });
        return Ok{};
    }

    Status take_term(std::uint64_t term) override {
        MUSTER_TRY(writer_->run("BEGIN IMMEDIATE"));
        Status done = [&]() -> Status {
            MUSTER_LET(now, writer_->number("SELECT term FROM fence"));
            if (static_cast<std::uint64_t>(now) >= term) {
                return Error{Code::Conflict, "term " + std::to_string(term) +
                                                 " is not newer than the store's " +
                                                 std::to_string(now)};
            }
            set_term_->bind(1, static_cast<std::int64_t>(term));
            MUSTER_LET(row, set_term_->step());
            (void)row;
            return writer_->run("COMMIT");
        }();
        if (!done) return rolled_back(std::move(done).error());
        term_ = term;
        return Ok{};
    }

    Status load(const std::function<Status(ports::Record)>& each) override {
        MUSTER_LET(all, Statement::prepare(*reader_,
                                           "SELECT kind, id, bytes FROM record ORDER BY kind, id"));
        for (;;) {
            MUSTER_LET(row, all->step());
            if (!row) return Ok{};
            MUSTER_TRY(each({{static_cast<ports::RecordKind>(all->number(0)),
                              static_cast<std::uint64_t>(all->number(1))},
                             all->text(2)}));
        }
    }

    Status commit(const ports::Batch& batch) override {
        Status done = try_commit(batch);
        if (!done && done.error().code == Code::NoSpace && ballast_.drop())
            done = try_commit(batch);
        free_space_now();
        if (!done) return done;
        remember(batch.events);
        ++commits_;
        records_ += batch.puts.size() + batch.drops.size();
        return done;
    }

    Result<std::vector<ports::LoggedEvent>> events_after(std::uint64_t after,
                                                         std::size_t limit) override {
        std::vector<ports::LoggedEvent> found;
        const std::lock_guard lock(events_mutex_);
        if (after < first_kept_) {
            return Error{Code::Gone, "events after " + std::to_string(after) +
                                         " are no longer kept; the oldest is " +
                                         std::to_string(first_kept_ + 1)};
        }
        if (!recent_.empty() && recent_.front().sequence <= after + 1) {
            auto at = std::ranges::upper_bound(recent_, after, {}, &ports::LoggedEvent::sequence);
            for (; at != recent_.end() && found.size() < limit; ++at) found.push_back(*at);
            return found;
        }
        read_events_->bind(1, static_cast<std::int64_t>(after));
        while (found.size() < limit) {
            auto row = read_events_->step();
            if (!row) return std::move(row).error();
            if (!*row) return found;
            decode_events(read_events_->text(0), after, limit, found);
        }
        read_events_->reset();
        return found;
    }

    std::uint64_t last_event() override { return last_event_; }
    std::uint64_t term() override { return term_; }

    bool nearly_full() override {
        const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
        if (now - space_read_at_ > 1'000'000'000) free_space_now();
        return nearly_full_;
    }

    SqliteStoreStats stats() override { return {commits_, records_, checkpoints_}; }

    Status checkpoint() override {
        MUSTER_LET(own, Database::open(options_.path, {options_.vfs}));
        return checkpoint_with(*own, "PRAGMA wal_checkpoint(PASSIVE)");
    }

private:
    Status prepare() {
        const auto make = [&](std::unique_ptr<Statement>& statement, const char* sql) -> Status {
            MUSTER_LET(made, Statement::prepare(*writer_, sql));
            statement = std::move(made);
            return Ok{};
        };
        MUSTER_TRY(make(put_,
                        "INSERT INTO record VALUES(?, ?, ?) ON CONFLICT(kind, id) DO UPDATE SET "
                        "bytes = excluded.bytes"));
        MUSTER_TRY(make(drop_, "DELETE FROM record WHERE kind = ? AND id = ?"));
        MUSTER_TRY(make(put_event_, "INSERT INTO event VALUES(?, ?)"));
        MUSTER_TRY(make(drop_events_, "DELETE FROM event WHERE last <= ?"));
        MUSTER_TRY(make(get_term_, "SELECT term FROM fence"));
        return make(set_term_, "UPDATE fence SET term = ?");
    }

    Error rolled_back(Error error) {
        // A rollback that fails means that the connection is beyond use; the caller's code tells.
        (void)writer_->run("ROLLBACK");
        return error;
    }

    Status try_commit(const ports::Batch& batch) {
        MUSTER_TRY(writer_->run("BEGIN IMMEDIATE"));
        Status done = write(batch);
        if (!done) return rolled_back(std::move(done).error());
        return done;
    }

    Status write(const ports::Batch& batch) {
        MUSTER_LET(fenced, get_term_->step());
        MUSTER_REQUIRE(fenced);
        const auto term = static_cast<std::uint64_t>(get_term_->number(0));
        get_term_->reset();
        if (term != batch.term) {
            return Error{Code::Conflict, "this controller's term " + std::to_string(batch.term) +
                                             " is fenced: the store is at " + std::to_string(term)};
        }
        for (const auto& record : batch.puts) {
            put_->bind(1, static_cast<std::int64_t>(record.key.kind))
                .bind(2, static_cast<std::int64_t>(record.key.id));
            put_->bind_blob(3, record.bytes);
            MUSTER_LET(row, put_->step());
            (void)row;
        }
        for (const auto& key : batch.drops) {
            drop_->bind(1, static_cast<std::int64_t>(key.kind))
                .bind(2, static_cast<std::int64_t>(key.id));
            MUSTER_LET(row, drop_->step());
            (void)row;
        }
        MUSTER_TRY(write_events(batch.events));
        return writer_->run("COMMIT");
    }

    Status write_events(const std::vector<ports::LoggedEvent>& events) {
        if (events.empty()) return Ok{};
        const std::string bytes = encode_events(events);
        const std::uint64_t last = events.back().sequence;
        put_event_->bind(1, static_cast<std::int64_t>(last)).bind_blob(2, bytes);
        MUSTER_LET(row, put_event_->step());
        (void)row;
        // Compacted a tenth at a time: a delete in every batch would cost a page each.
        const std::uint64_t kept = options_.events_kept;
        if (last > first_kept_ + kept + kept / 10) {
            drop_events_->bind(1, static_cast<std::int64_t>(last - kept));
            MUSTER_LET(dropped, drop_events_->step());
            (void)dropped;
            pending_first_kept_ = last - kept;
        }
        return Ok{};
    }

    void remember(const std::vector<ports::LoggedEvent>& events) {
        if (events.empty()) return;
        const std::lock_guard lock(events_mutex_);
        for (const auto& event : events) recent_.push_back(event);
        while (recent_.size() > kEventsInMemory) recent_.pop_front();
        first_kept_ = std::max(first_kept_.load(), pending_first_kept_);
        last_event_ = events.back().sequence;
        wake_checkpointer();
    }

    void free_space_now() {
        if (!options_.vfs.empty()) return;
        struct statvfs info {};
        const std::string folder = options_.path.substr(0, options_.path.find_last_of('/') + 1);
        if (::statvfs(folder.empty() ? "." : folder.c_str(), &info) != 0) return;
        const auto free_bytes =
            static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
        nearly_full_ = free_bytes < options_.watermark_bytes;
        if (!nearly_full_) ballast_.restore(free_bytes);
        space_read_at_ = std::chrono::steady_clock::now().time_since_epoch().count();
    }

    // ---- checkpoints, on their own thread ------------------------------------------------------

    std::int64_t wal_bytes() const {
        struct stat info {};
        return ::stat((options_.path + "-wal").c_str(), &info) == 0 ? info.st_size : 0;
    }
    void wake_checkpointer() {
        if (++since_checkpoint_ % 64 == 0) checkpoint_due_.notify_one();
    }
    Status checkpoint_with(Database& own, const char* how) {
        MUSTER_LET(busy, own.number(how));
        (void)busy;  // A reader was in the way: the next one gets further.
        ++checkpoints_;
        return Ok{};
    }
    void checkpoint_loop() {
        name_thread("checkpoint");
        auto own = Database::open(options_.path, {options_.vfs});
        if (!own) return;
        if (!(*own)->run("PRAGMA synchronous=FULL")) return;
        std::unique_lock lock(checkpoint_mutex_);
        while (!stopping_) {
            checkpoint_due_.wait_for(lock, std::chrono::seconds(1));
            const std::int64_t bytes = wal_bytes();
            if (stopping_ || bytes < options_.checkpoint_bytes) continue;
            lock.unlock();
            // Passive never waits for the writer. When the WAL has outgrown it sixteenfold, one
            // that makes the writer start over is cheaper than a WAL without end.
            const bool huge = bytes > 16 * options_.checkpoint_bytes;
            (void)checkpoint_with(
                **own, huge ? "PRAGMA wal_checkpoint(RESTART)" : "PRAGMA wal_checkpoint(PASSIVE)");
            lock.lock();
        }
    }

    const SqliteStoreOptions options_;
    Ballast ballast_;
    std::unique_ptr<Database> writer_, reader_;
    std::unique_ptr<Statement> put_, drop_, put_event_, drop_events_, get_term_, set_term_,
        read_events_;
    std::atomic<std::uint64_t> term_ = 0, last_event_ = 0, first_kept_ = 0;
    std::uint64_t pending_first_kept_ = 0;
    std::atomic<std::uint64_t> commits_ = 0, records_ = 0, checkpoints_ = 0;
    std::atomic<bool> nearly_full_ = false;
    std::atomic<std::int64_t> space_read_at_ = 0;
    std::mutex events_mutex_;
    std::deque<ports::LoggedEvent> recent_;
    std::mutex checkpoint_mutex_;
    std::condition_variable checkpoint_due_;
    std::atomic<std::uint64_t> since_checkpoint_ = 0;
    bool stopping_ = false;
    std::thread checkpointer_;
};

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const SqliteStoreOptions& options) {
    auto store = std::make_unique<Impl>(options);
    MUSTER_TRY(store->start());
    return std::unique_ptr<SqliteStore>(std::move(store));
}

}  // namespace muster::store
