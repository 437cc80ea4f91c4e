// The few lines of SQLite that the stores need: a connection, a statement, and one map of errors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::store {

/// One connection. Not thread-safe: one thread at a time uses it.
class Database {
public:
    struct Options {
        std::string vfs;  // "" = the operating system's.
        bool read_only = false;
    };
    static Result<std::unique_ptr<Database>> open(const std::string& path, const Options& options);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    Status run(const char* sql);  // One or more statements, without results.
    Result<std::int64_t> number(const char* sql);
    /// NoSpace for a full disk; Corrupt for EIO, failed syncs and damage; Unavailable when busy.
    Error error(int code, std::string_view doing) const;
    sqlite3* handle() const { return db_; }

private:
    Database(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
    sqlite3* db_;
    std::string path_;
};

/// A prepared statement that is used again and again.
class Statement {
public:
    static Result<std::unique_ptr<Statement>> prepare(Database& database, const char* sql);
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    /// The bytes must live until the next reset().
    Statement& bind(int index, std::int64_t value);
    Statement& bind_text(int index, std::string_view value);
    Statement& bind_blob(int index, std::string_view value);
    /// True: a row is there; false: done. Resets itself when done or failed.
    Result<bool> step();
    void reset();
    std::int64_t number(int column) const;
    std::string text(int column) const;  // Blobs too.

private:
    Statement(Database& database, sqlite3_stmt* statement)
        : database_(database), statement_(statement) {}
    Database& database_;
    sqlite3_stmt* statement_;
};

}  // namespace muster::store
