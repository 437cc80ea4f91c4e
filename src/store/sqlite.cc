#include "store/sqlite.h"

#include <sqlite3.h>

namespace muster::store {
namespace {

Code code_of(int extended) {
    switch (extended) {
        case SQLITE_FULL:
        case SQLITE_IOERR_SHMSIZE:  // The shared index could not grow: the disk is full.
            return Code::NoSpace;
        default: break;
    }
    switch (extended & 0xff) {
        case SQLITE_FULL: return Code::NoSpace;
        case SQLITE_BUSY:
        case SQLITE_LOCKED: return Code::Unavailable;
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
        case SQLITE_READONLY: return Code::Denied;
        default: return Code::Corrupt;
    }
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::string& path, const Options& options) {
    sqlite3* db = nullptr;
    const int flags =
        SQLITE_OPEN_NOMUTEX |
        (options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    const int code = sqlite3_open_v2(path.c_str(), &db, flags,
                                     options.vfs.empty() ? nullptr : options.vfs.c_str());
    std::unique_ptr<Database> database(new Database(db, path));
    if (code != SQLITE_OK) return database->error(code, "open");
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, 10'000);
    return database;
}

Database::~Database() {
    sqlite3_close(db_);
}

Error Database::error(int code, std::string_view doing) const {
    Error error{code_of(code), "store " + path_ + ": " + std::string(doing) + " failed"};
    error.cause = db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(code);
    error.cause += " (SQLite code " + std::to_string(code) + ")";
    if (error.code == Code::NoSpace) error.fix = "make room on the disk that holds " + path_;
    if (error.code == Code::Denied) error.fix = "check the owner and mode of " + path_;
    return error;
}

Status Database::run(const char* sql) {
    const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return error(code, sql);
    return Ok{};
}

Result<std::int64_t> Database::number(const char* sql) {
    MUSTER_LET(statement, Statement::prepare(*this, sql));
    MUSTER_LET(row, statement->step());
    return row ? statement->number(0) : 0;
}

Result<std::unique_ptr<Statement>> Statement::prepare(Database& database, const char* sql) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(database.handle(), sql, -1, SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) return database.error(code, sql);
    return std::unique_ptr<Statement>(new Statement(database, statement));
}

Statement::~Statement() {
    sqlite3_finalize(statement_);
}

Statement& Statement::bind(int index, std::int64_t value) {
    sqlite3_bind_int64(statement_, index, value);
    return *this;
}
Statement& Statement::bind_text(int index, std::string_view value) {
    sqlite3_bind_text(statement_, index, value.data(), static_cast<int>(value.size()),
                      SQLITE_STATIC);
    return *this;
}
Statement& Statement::bind_blob(int index, std::string_view value) {
    sqlite3_bind_blob(statement_, index, value.data(), static_cast<int>(value.size()),
                      SQLITE_STATIC);
    return *this;
}

Result<bool> Statement::step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    sqlite3_reset(statement_);
    if (code == SQLITE_DONE) return false;
    return database_.error(code, sqlite3_sql(statement_));
}

void Statement::reset() {
    sqlite3_reset(statement_);
}

std::int64_t Statement::number(int column) const {
    return sqlite3_column_int64(statement_, column);
}

std::string Statement::text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return bytes == nullptr
               ? std::string()
               : std::string(bytes,
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

}  // namespace muster::store
