#include "rest/log_session.h"

#include <algorithm>

#include "rest/ids.h"

namespace muster::rest {
namespace {

constexpr std::int64_t kPiece = 1 << 20;
/// So much of a followed log may be under way: a link must not drown in one reader's log.
constexpr std::int64_t kFollowedPiece = 4 << 20;
constexpr std::int64_t kLookBackFirst = 64 * 1024;
constexpr std::int64_t kLookBackMax = 16 * 1024 * 1024;
constexpr Duration kRetry = seconds(2);
constexpr Duration kSilent{500};  // A log that says nothing yet is answered with its head.
constexpr Duration kNodeAnswer = seconds(15);

}  // namespace

LogSession::LogSession(CallPtr call, JobId job, LogAsk ask, LogFormat::Kind kind)
    : call_(std::move(call)), job_(job), ask_(std::move(ask)), format_(kind) {}

void LogSession::start(LogSources sources, std::optional<ports::EndedJob> ended) {
    ended_ = std::move(ended);
    if (ask_.follow && !ended_) {
        auto joined = call_->api->hub.listen([weak = weak_from_this()](const Round& round) {
            const auto self = weak.lock();
            if (self == nullptr) return;
            if (std::ranges::binary_search(round.jobs, self->job_.value)) {
                self->look_at_job(*round.after);
            }
        });
        listener_ = std::move(joined.handle);
    }
    if (sources.started) return begin_attempt(std::move(sources));
    if (!ask_.follow || ended_) return finish(ended_ ? ended_->state : "pending", -1);
    attempt_done_ = true;  // Nothing yet: the next attempt is waited for.
    if (ensure_stream()) look_at_job(*call_->api->backend.view());
}

void LogSession::begin_attempt(LogSources sources) {
    sources_ = std::move(sources);
    attempt_done_ = false;
    ranks_.clear();
    const bool resumed = first_attempt_ && ask_.resume_attempt == sources_.attempt;
    for (const LogRank& place : sources_.ranks) {
        if (ask_.rank && place.rank != *ask_.rank) continue;
        Rank& rank = ranks_.emplace_back();
        rank.place = place;
        if (first_attempt_) rank.next = ask_.from;
        const auto at = ask_.resume.find(place.rank);
        if (resumed && at != ask_.resume.end()) rank.next = at->second;
    }
    if (ranks_.empty()) {
        if (stream_ == nullptr) {
            const bool wrong_rank = ask_.rank && !sources_.ranks.empty();
            return fail(wrong_rank ? numbered(errors::kNoSuchRank,
                                              "job " + call_->args[0] + " has ranks 0 to " +
                                                  std::to_string(sources_.ranks.size() - 1) +
                                                  ", not " + std::to_string(*ask_.rank))
                                   : numbered(errors::kLogGone, "where job " + call_->args[0] +
                                                                    " ran is not known any more"));
        }
        return attempt_over();
    }
    format_.set_prefixed(ranks_.size() > 1);
    std::string head = format_.attempt(sources_.attempt, !first_attempt_);
    if (!head.empty()) send(std::move(head));
    if (stream_ == nullptr) expect_answer();
    const std::size_t at_once = ask_.follow ? ranks_.size() : 1;
    for (std::size_t i = 0; i < at_once; ++i) open(i);
}

/// Keeps the session until a stream does.
void LogSession::expect_answer() {
    call_->api->watches->after(ask_.follow ? kSilent : kNodeAnswer, [self = shared_from_this()] {
        if (self->stream_ != nullptr || self->over_ || self->closed_) return;
        if (self->ask_.follow) {
            self->ensure_stream();
        } else {
            self->fail(numbered(errors::kNodeUnreachable,
                                "node " + self->ranks_.front().place.node_name +
                                    " has not answered for " +
                                    std::to_string(kNodeAnswer.ms / 1000) + " s"));
        }
    });
}

void LogSession::fail(Error error) {
    over_ = true;
    call_->fail(std::move(error));
    close();
}

void LogSession::open(std::size_t i) {
    if (closed_ || over_) return;
    Rank& rank = ranks_[i];
    if (blocked_) {
        rank.stalled = true;
        return;
    }
    rank.stalled = false;
    const bool looks_back = rank.phase == Phase::Waiting && ask_.tail && first_attempt_ &&
                            rank.next == 0 && ask_.since.ms == 0;
    if (looks_back || rank.phase == Phase::LookingBack) {
        const auto lines = static_cast<std::int64_t>(std::min<std::size_t>(*ask_.tail, 100'000));
        if (rank.look_back == 0) rank.look_back = std::max(kLookBackFirst, lines * 200);
        rank.look_back = std::min(rank.look_back, kLookBackMax);
        rank.phase = Phase::LookingBack;
        rank.looked.clear();
        return ask_node(i, -rank.look_back, rank.look_back, false);
    }
    rank.phase = Phase::Reading;
    ask_node(i, rank.next, ask_.follow ? kFollowedPiece : kPiece, ask_.follow);
}

void LogSession::ask_node(std::size_t i, std::int64_t offset, std::int64_t limit, bool follow) {
    Rank& rank = ranks_[i];
    const std::uint64_t generation = rank.generation = next_generation_++;
    rank.stream.reset();
    rank.asked_from = offset;
    rank.got = 0;
    if (!rank.place.node) return use_tail(i, "its node is not known any more");
    protocol::ReadLog ask{
        .key = {.job = sources_.job, .epoch = sources_.attempt, .rank = rank.place.rank},
        .local_rank = ask_.local_rank,
        .offset = offset,
        .limit = limit,
        .follow = follow,
        .since = ask_.since};
    auto opened = call_->api->backend.read_log(
        rank.place.node, ask,
        [weak = weak_from_this(), worker = call_->api->watches, i,
         generation](const protocol::AgentMessage& message) {
            const auto* chunk = std::get_if<protocol::LogChunk>(&message);
            if (chunk == nullptr) return;
            worker->post([weak, i, generation, copy = *chunk] {
                if (const auto self = weak.lock()) self->on_chunk(i, generation, copy);
            });
        });
    if (!opened) return use_tail(i, opened.error().message);
    rank.stream = *std::move(opened);
}

void LogSession::on_chunk(std::size_t i, std::uint64_t generation,
                          const protocol::LogChunk& chunk) {
    if (closed_ || over_ || i >= ranks_.size() || ranks_[i].generation != generation) return;
    Rank& rank = ranks_[i];
    if (!chunk.error.empty()) return use_tail(i, chunk.error);
    rank.from_tail = false;  // The node is there again.
    rank.got += static_cast<std::int64_t>(chunk.bytes.size());
    if (rank.phase == Phase::LookingBack) {
        if (rank.looked.empty() && !chunk.bytes.empty()) rank.asked_from = chunk.offset;
        rank.looked += chunk.bytes;
        if (chunk.end) looked_back(i);
        return;
    }
    if (blocked_ && !chunk.bytes.empty()) {  // Not taken: it is read again from rank.next.
        rank.stream.reset();
        rank.generation = next_generation_++;
        rank.stalled = true;
        return;
    }
    if (!chunk.bytes.empty()) {
        rank.next = chunk.offset + static_cast<std::int64_t>(chunk.bytes.size());
        send(format_.piece(rank.place.rank, chunk.offset, chunk.bytes));
    }
    if (!chunk.end || closed_) return;
    rank.next = std::max(rank.next, chunk.offset);
    rank.stream.reset();
    rank.generation = next_generation_++;
    if (rank.got >= (ask_.follow ? kFollowedPiece : kPiece))
        open(i);
    else
        rank_done(i);
}

void LogSession::looked_back(std::size_t i) {
    Rank& rank = ranks_[i];
    const std::size_t start = start_of_last_lines(rank.looked, *ask_.tail);
    const bool all_there = rank.asked_from <= 0 || rank.looked.empty();
    if (start == 0 && !all_there && rank.look_back<kLookBackMax&& * ask_.tail> 0) {
        rank.look_back *= 4;
        return open(i);
    }
    const std::int64_t from = std::max<std::int64_t>(0, rank.asked_from);
    rank.next = from + static_cast<std::int64_t>(rank.looked.size());
    rank.phase = Phase::Reading;
    const std::string text = rank.looked.substr(start);
    const std::int64_t offset = from + static_cast<std::int64_t>(start);
    rank.looked.clear();
    rank.looked.shrink_to_fit();
    if (!text.empty()) send(format_.piece(rank.place.rank, offset, text));
    if (ask_.follow)
        open(i);
    else
        rank_done(i);
}

void LogSession::use_tail(std::size_t i, const std::string& why) {
    Rank& rank = ranks_[i];
    rank.stream.reset();
    rank.generation = next_generation_++;
    rank.why = why;
    const protocol::LogTail tail = call_->api->backend.tail(
        {.job = sources_.job, .epoch = sources_.attempt, .rank = rank.place.rank});
    const std::int64_t end = tail.offset + static_cast<std::int64_t>(tail.bytes.size());
    rank.failed = tail.bytes.empty() && rank.next == 0;
    const bool told_before = rank.from_tail;
    rank.from_tail = true;
    if (end > rank.next) {
        std::int64_t from = std::max(rank.next, tail.offset);
        std::string_view text =
            std::string_view(tail.bytes).substr(static_cast<std::size_t>(from - tail.offset));
        if (ask_.tail && rank.phase != Phase::Reading) {
            const std::size_t start = start_of_last_lines(text, *ask_.tail);
            text.remove_prefix(start);
            from += static_cast<std::int64_t>(start);
        }
        rank.phase = Phase::Reading;
        rank.next = end;
        if (ensure_stream() && !told_before) {
            send(format_.note(rank.place.rank, why + "; this is the kept end of its log"));
        }
        if (!text.empty()) send(format_.piece(rank.place.rank, from, text));
    } else if (stream_ != nullptr && !told_before) {
        send(format_.note(rank.place.rank, why));
    }
    if (closed_) return;
    if (!ask_.follow || !sources_.active) return rank_done(i);
    // The node may come back, or the job start elsewhere: both are seen.
    const std::uint64_t generation = rank.generation;
    call_->api->watches->after(kRetry, [weak = weak_from_this(), i, generation] {
        const auto self = weak.lock();
        if (self == nullptr || i >= self->ranks_.size()) return;
        if (self->ranks_[i].generation == generation) self->open(i);
    });
}

void LogSession::rank_done(std::size_t i) {
    Rank& rank = ranks_[i];
    if (rank.phase == Phase::Done) return;
    rank.phase = Phase::Done;
    std::string held = format_.rest(rank.place.rank);
    if (!held.empty()) send(std::move(held));
    if (closed_) return;
    if (!ask_.follow && i + 1 < ranks_.size()) return open(i + 1);
    const bool all =
        std::ranges::all_of(ranks_, [](const Rank& each) { return each.phase == Phase::Done; });
    if (all) attempt_over();
}

void LogSession::attempt_over() {
    attempt_done_ = true;
    first_attempt_ = false;
    if (ended_) return finish(ended_->state, ended_->exit_code);
    look_at_job(*call_->api->backend.view());
}

void LogSession::look_at_job(const core::View& view) {
    if (closed_ || over_) return;
    const core::Job* job = view.jobs.find(job_.value);
    if (job == nullptr) {  // Archived meanwhile: its end was in an earlier view.
        if (attempt_done_ || !sources_.started) return finish("ended", -1);
        return end_tails();
    }
    const bool newest = !ask_.attempt;
    const core::JobExtra& extra = core::extra_of(*job);
    const bool another =
        extra.allocation && (!sources_.started || extra.allocation->epoch != sources_.attempt);
    if (!attempt_done_) {
        // Nodes that answer end their logs themselves; what only has a tail is over now.
        if (another || model::ended(job->state)) end_tails();
        return;
    }
    if (ask_.follow && newest && another) {
        auto next = log_sources(view, *job, std::nullopt);
        if (next) return begin_attempt(*std::move(next));
    }
    if (model::ended(job->state) || !ask_.follow || !newest) {
        finish(model::to_text(job->state), extra.exit_code);
    }
}

void LogSession::end_tails() {
    if (!sources_.active) return;
    sources_.active = false;  // From now on a rank whose node does not answer is done.
    const std::uint32_t attempt = sources_.attempt;
    // The last one may begin the next attempt, with ranks of its own.
    for (std::size_t i = 0; sources_.attempt == attempt && i < ranks_.size(); ++i) {
        // A node that came back since the last try has the rest.
        if (ranks_[i].from_tail && ranks_[i].phase != Phase::Done) open(i);
    }
}

void LogSession::finish(std::string_view state, int exit_code) {
    if (closed_ || over_) return;
    over_ = true;
    const bool nothing = stream_ == nullptr && !ranks_.empty() &&
                         std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.failed; });
    if (nothing) {
        const Rank& rank = ranks_.front();
        const int number = sources_.active ? errors::kNodeUnreachable : errors::kLogGone;
        return fail(numbered(
            number, "the log of job " + call_->args[0] + " cannot be read",
            (rank.place.node_name.empty() ? std::string("rank ") + std::to_string(rank.place.rank)
                                          : "node " + rank.place.node_name) +
                ": " + rank.why));
    }
    std::string last = format_.end(state, exit_code);
    if (ensure_stream() && !last.empty()) send(std::move(last));
    if (!blocked_) close();
}

std::string LogSession::source() const {
    bool node = false, tail = false;
    for (const Rank& rank : ranks_) {
        if (rank.failed) continue;
        if (rank.from_tail)
            tail = true;
        else
            node = true;
    }
    if (node && tail) return "mixed";
    return node ? "node" : tail ? "tail" : "none";
}

bool LogSession::ensure_stream() {
    if (stream_ != nullptr) return !closed_;
    if (closed_) return false;
    const bool events = format_.kind() == LogFormat::Kind::Events;
    net::StreamOptions options{
        .content_type = events ? "text/event-stream" : "text/plain; charset=utf-8",
        .headers = call_->stream_headers()};
    // Comments are no part of plain text.
    if (!events) options.heartbeat.clear();
    options.headers.push_back({"Muster-Log-Source", source()});
    stream_ = call_->reply->stream(std::move(options));
    if (stream_ == nullptr) {
        close();
        return false;
    }
    // The stream keeps the session: it lives as long as the client stays.
    stream_->on_closed([self = shared_from_this(), worker = call_->api->watches] {
        worker->post([self] { self->close(); });
    });
    stream_->on_drain([weak = weak_from_this(), worker = call_->api->watches] {
        worker->post([weak] {
            if (const auto self = weak.lock()) self->drained();
        });
    });
    return true;
}

bool LogSession::send(std::string chunk) {
    if (chunk.empty() || !ensure_stream()) return false;
    if (blocked_) {
        refused_ += chunk;
        return false;
    }
    switch (stream_->write(chunk)) {
        case net::Write::Accepted: return true;
        case net::Write::Full:
            blocked_ = true;
            refused_ = std::move(chunk);
            return false;
        case net::Write::Closed: close(); return false;
    }
    return false;
}

void LogSession::drained() {
    if (closed_) return;
    blocked_ = false;
    std::string chunk = std::move(refused_);
    refused_.clear();
    if (!chunk.empty()) send(std::move(chunk));
    if (blocked_ || closed_) return;
    if (over_) return close();
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (ranks_[i].stalled) open(i);
    }
}

void LogSession::close() {
    if (closed_) return;
    closed_ = true;
    listener_.reset();
    for (Rank& rank : ranks_) rank.stream.reset();
    if (stream_ != nullptr) stream_->close();
}

}  // namespace muster::rest
