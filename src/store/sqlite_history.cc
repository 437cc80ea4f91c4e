#include "store/sqlite_history.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "store/sqlite.h"

namespace muster::store {
namespace {

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS job(id INTEGER PRIMARY KEY, name TEXT, user TEXT, queue TEXT, "
    "state TEXT,"
    " cause TEXT, submitted INTEGER, started INTEGER, ended INTEGER, wait INTEGER, run INTEGER, "
    "lost INTEGER,"
    " device INTEGER, nodes INTEGER, devices INTEGER, attempts INTEGER, exit_code INTEGER,"
    " array_job INTEGER, array_element INTEGER, json TEXT);"
    "CREATE INDEX IF NOT EXISTS job_user ON job(user, id);"
    "CREATE INDEX IF NOT EXISTS job_ended ON job(ended);"
    "CREATE INDEX IF NOT EXISTS job_array ON job(array_job, id) WHERE array_job <> 0;";
constexpr const char* kColumns =
    "id, name, user, queue, state, cause, submitted, started, ended, wait, run, lost, device, "
    "nodes, devices,"
    " attempts, exit_code, array_job, array_element, json";

ports::EndedJob read_row(const Statement& row) {
    ports::EndedJob job;
    job.job = {static_cast<std::uint64_t>(row.number(0))};
    job.name = row.text(1), job.user = row.text(2), job.queue = row.text(3);
    job.state = row.text(4), job.cause = row.text(5);
    job.submitted_ms = row.number(6), job.started_ms = row.number(7), job.ended_ms = row.number(8);
    job.wait_ms = row.number(9), job.run_ms = row.number(10), job.lost_ms = row.number(11);
    job.device_ms = row.number(12), job.nodes = row.number(13), job.devices = row.number(14);
    job.attempts = row.number(15), job.exit_code = static_cast<int>(row.number(16));
    job.array_job = row.number(17), job.array_element = row.number(18);
    job.json = row.text(19);
    return job;
}

class SqliteHistory final : public ports::History {
public:
    Status start(const std::string& path, const std::string& vfs) {
        MUSTER_LET(writer, Database::open(path, {vfs}));
        writer_ = std::move(writer);
        MUSTER_TRY(writer_->run(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-2000;"));
        MUSTER_TRY(writer_->run(kSchema));
        MUSTER_LET(put, Statement::prepare(*writer_,
                                           "INSERT OR REPLACE INTO job VALUES"
                                           "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
        put_ = std::move(put);
        MUSTER_LET(newest, writer_->number("SELECT coalesce(max(id), 0) FROM job"));
        newest_ = static_cast<std::uint64_t>(newest);
        MUSTER_LET(reader, Database::open(path, {vfs}));
        reader_ = std::move(reader);
        return Ok{};
    }

    Status append(const std::vector<ports::EndedJob>& jobs) override {
        const std::lock_guard lock(write_mutex_);
        MUSTER_TRY(writer_->run("BEGIN IMMEDIATE"));
        Status done = [&]() -> Status {
            for (const auto& job : jobs) MUSTER_TRY(put(job));
            return writer_->run("COMMIT");
        }();
        if (!done) {
            (void)writer_->run("ROLLBACK");
            return done;
        }
        for (const auto& job : jobs) newest_ = std::max(newest_.load(), job.job.value);
        return done;
    }

    Result<std::optional<ports::EndedJob>> find(JobId job) override {
        const std::lock_guard lock(read_mutex_);
        MUSTER_LET(
            query,
            Statement::prepare(
                *reader_, (std::string("SELECT ") + kColumns + " FROM job WHERE id = ?").c_str()));
        query->bind(1, static_cast<std::int64_t>(job.value));
        MUSTER_LET(row, query->step());
        if (!row) return std::optional<ports::EndedJob>();
        return std::optional(read_row(*query));
    }

    Result<std::vector<ports::EndedJob>> list(const ports::HistoryFilter& filter) override {
        std::string sql = std::string("SELECT ") + kColumns + " FROM job WHERE id < ?";
        std::vector<std::string_view> texts;
        const auto equals = [&](const char* column, const std::string& value) {
            if (value.empty()) return;
            sql += std::string(" AND ") + column + " = ?";
            texts.push_back(value);
        };
        equals("user", filter.user);
        equals("queue", filter.queue);
        equals("state", filter.state);
        equals("name", filter.name);
        if (filter.since_ms > 0) sql += " AND ended >= " + std::to_string(filter.since_ms);
        if (filter.array_job > 0) sql += " AND array_job = " + std::to_string(filter.array_job);
        sql += " ORDER BY id DESC LIMIT " + std::to_string(filter.limit);
        const std::lock_guard lock(read_mutex_);
        MUSTER_LET(query, Statement::prepare(*reader_, sql.c_str()));
        query->bind(1, filter.before == 0 ? INT64_MAX : static_cast<std::int64_t>(filter.before));
        for (std::size_t i = 0; i < texts.size(); ++i)
            query->bind_text(static_cast<int>(i) + 2, texts[i]);
        std::vector<ports::EndedJob> jobs;
        for (;;) {
            MUSTER_LET(row, query->step());
            if (!row) return jobs;
            jobs.push_back(read_row(*query));
        }
    }

    JobId newest() override { return {newest_}; }

private:
    Status put(const ports::EndedJob& job) {
        put_->bind(1, static_cast<std::int64_t>(job.job.value))
            .bind_text(2, job.name)
            .bind_text(3, job.user);
        put_->bind_text(4, job.queue).bind_text(5, job.state).bind_text(6, job.cause);
        put_->bind(7, job.submitted_ms).bind(8, job.started_ms).bind(9, job.ended_ms);
        put_->bind(10, job.wait_ms)
            .bind(11, job.run_ms)
            .bind(12, job.lost_ms)
            .bind(13, job.device_ms);
        put_->bind(14, job.nodes)
            .bind(15, job.devices)
            .bind(16, job.attempts)
            .bind(17, job.exit_code);
        put_->bind(18, job.array_job).bind(19, job.array_element).bind_text(20, job.json);
        MUSTER_LET(row, put_->step());
        (void)row;
        return Ok{};
    }

    std::mutex write_mutex_, read_mutex_;
    std::unique_ptr<Database> writer_, reader_;
    std::unique_ptr<Statement> put_;
    std::atomic<std::uint64_t> newest_ = 0;
};

}  // namespace

Result<std::unique_ptr<ports::History>> open_sqlite_history(const std::string& path,
                                                            const std::string& vfs) {
    auto history = std::make_unique<SqliteHistory>();
    MUSTER_TRY(history->start(path, vfs));
    return std::unique_ptr<ports::History>(std::move(history));
}

}  // namespace muster::store
