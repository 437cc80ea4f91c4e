// One client that reads a job's log: piece by piece from the nodes, from the
// kept tail where a node is gone, through restarts when it follows. On the
// watches thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rest/api.h"
#include "rest/log_format.h"
#include "rest/log_sources.h"

namespace muster::rest {

struct LogAsk {
    std::optional<std::uint32_t> rank;     // Empty: all.
    std::optional<std::uint32_t> attempt;  // Empty: the newest, and with `follow` those after it.
    int local_rank = -1;
    bool follow = false;
    std::optional<std::size_t> tail;  // Lines.
    Time since{};
    std::int64_t from = 0;
    // Last-Event-ID: of which attempt, and where each rank goes on.
    std::optional<std::uint32_t> resume_attempt;
    std::map<std::uint32_t, std::int64_t> resume = {};
};

class LogSession : public std::enable_shared_from_this<LogSession> {
public:
    LogSession(CallPtr call, JobId job, LogAsk ask, LogFormat::Kind kind);
    /// `ended`: the job is known from the history alone.
    void start(LogSources sources, std::optional<ports::EndedJob> ended);

private:
    enum class Phase : std::uint8_t { Waiting, LookingBack, Reading, Done };
    struct Rank {
        LogRank place;
        Phase phase = Phase::Waiting;
        std::int64_t next = 0;
        std::int64_t asked_from = 0, got = 0;  // Of the piece under way.
        std::int64_t look_back = 0;
        std::string looked;            // What looking back has read.
        std::uint64_t generation = 0;  // Of the reading under way: what comes of others is late.
        std::unique_ptr<AgentStream> stream;
        bool stalled = false;  // To be opened again when the client has drained.
        bool failed = false;   // Nothing could be read at all.
        bool from_tail = false;
        std::string why;  // It failed, or is read from the tail.
    };

    void begin_attempt(LogSources sources);
    void open(std::size_t i);
    void ask_node(std::size_t i, std::int64_t offset, std::int64_t limit, bool follow);
    void on_chunk(std::size_t i, std::uint64_t generation, const protocol::LogChunk& chunk);
    void looked_back(std::size_t i);
    void use_tail(std::size_t i, const std::string& why);
    void rank_done(std::size_t i);
    void attempt_over();
    void end_tails();
    void look_at_job(const core::View& view);
    void finish(std::string_view state, int exit_code);
    void fail(Error error);
    void expect_answer();
    bool send(std::string chunk);
    bool ensure_stream();
    std::string source() const;
    void drained();
    void close();

    const CallPtr call_;
    const JobId job_;
    const LogAsk ask_;
    LogFormat format_;
    LogSources sources_;
    std::optional<ports::EndedJob> ended_;
    std::vector<Rank> ranks_;
    std::shared_ptr<Stream> stream_;
    std::shared_ptr<void> listener_;
    std::string refused_;  // The chunk that was Full.
    bool blocked_ = false, closed_ = false, over_ = false, attempt_done_ = false;
    bool first_attempt_ = true;
    std::uint64_t next_generation_ = 1;
};

}  // namespace muster::rest
