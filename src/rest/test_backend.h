// For tests: the REST API over a real core, stepped synchronously, with a history, an event log
// and nodes' logs in memory, and a client without sockets that waits for conditions.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/shape.h"
#include "core/test_world.h"
#include "net/http_client.h"
#include "rest/api.h"
#include "rest/archive.h"
#include "rest/body.h"

namespace muster::rest {

class MemoryHistory final : public ports::History {
public:
    Status append(const std::vector<ports::EndedJob>& jobs) override {
        const std::lock_guard lock(mutex_);
        for (const ports::EndedJob& job : jobs) jobs_[job.job.value] = job;
        return Ok{};
    }
    Result<std::optional<ports::EndedJob>> find(JobId job) override {
        const std::lock_guard lock(mutex_);
        const auto at = jobs_.find(job.value);
        if (at == jobs_.end()) return std::optional<ports::EndedJob>();
        return std::optional(at->second);
    }
    Result<std::vector<ports::EndedJob>> list(const ports::HistoryFilter& filter) override {
        const std::lock_guard lock(mutex_);
        std::vector<ports::EndedJob> out;
        for (auto at = jobs_.rbegin(); at != jobs_.rend() && out.size() < filter.limit; ++at) {
            const ports::EndedJob& job = at->second;
            if (filter.before != 0 && job.job.value >= filter.before) continue;
            if (!filter.user.empty() && job.user != filter.user) continue;
            if (!filter.queue.empty() && job.queue != filter.queue) continue;
            if (!filter.state.empty() && job.state != filter.state) continue;
            if (!filter.name.empty() && job.name != filter.name) continue;
            if (job.ended_ms < filter.since_ms) continue;
            if (filter.array_job != 0 && job.array_job != filter.array_job) continue;
            out.push_back(job);
        }
        return out;
    }
    JobId newest() override { return {jobs_.empty() ? 0 : jobs_.rbegin()->first}; }

private:
    std::mutex mutex_;
    std::map<std::uint64_t, ports::EndedJob> jobs_;
};

class TestBackend final : public Backend {
public:
    TestBackend() {
        world_.now = Time{1'800'000'000'000};
        publish();
    }

    // ---- driven by the test ----

    /// Runs `work(world)` as the controller's loop would, then publishes.
    template <class Work>
    auto with_world(Work&& work) {
        struct Publish {
            TestBackend& self;
            ~Publish() { self.publish(); }
        };
        const std::lock_guard lock(loop_);
        const Publish publish{*this};
        return work(world_);
    }
    void append_log(const protocol::TaskKey& key, std::string_view text) {
        std::vector<std::pair<Chunk, protocol::LogChunk>> calls;
        {
            const std::lock_guard lock(mutex_);
            std::string& log = logs_[key];
            for (auto& reader : readers_) {
                if (reader.second.key != key) continue;
                calls.emplace_back(
                    reader.second.out,
                    protocol::LogChunk{.offset = static_cast<std::int64_t>(log.size()),
                                       .bytes = std::string(text),
                                       .error = {}});
            }
            log.append(text);
        }
        for (auto& [out, chunk] : calls) out(std::move(chunk));
    }
    /// The task is over (or its node's link breaks: `error`): readers that follow hear of it.
    void end_log(const protocol::TaskKey& key, const std::string& error = {}) {
        std::vector<Chunk> calls;
        {
            const std::lock_guard lock(mutex_);
            ended_logs_[key] = true;
            for (auto& reader : readers_) {
                if (reader.second.key == key) calls.push_back(reader.second.out);
            }
        }
        for (auto& out : calls) out(protocol::LogChunk{.bytes = {}, .end = true, .error = error});
    }
    void cut(NodeId node) {
        const std::lock_guard lock(mutex_);
        cut_.push_back(node);
    }
    void mend() {
        const std::lock_guard lock(mutex_);
        cut_.clear();
    }
    void keep_tail(protocol::LogTail tail) {
        const std::lock_guard lock(mutex_);
        tails_[tail.key] = std::move(tail);
    }
    std::size_t readers() {
        const std::lock_guard lock(mutex_);
        return readers_.size();
    }
    /// Writes ended jobs to history and lets their live records go, as the controller does.
    void archive() {
        const auto view = this->view();
        std::vector<ports::EndedJob> rows;
        std::vector<JobId> ids;
        view->jobs.for_each([&](std::uint64_t id, const core::Job& job) {
            if (!model::ended(job.state)) return;
            if (auto row = ended_job(*view, JobId{id})) rows.push_back(*std::move(row));
            ids.push_back(JobId{id});
        });
        ASSERT_TRUE(history_.append(rows));
        with_world([&](core::World& world) { world.must(core::Archived{ids}); });
    }
    void compact_events(std::uint64_t oldest) {
        const std::lock_guard lock(mutex_);
        oldest_ = oldest;
    }
    /// While it is set, what the loop does is not published; clearing it publishes. As when a
    /// reader comes between a batch and its view.
    void hold_back(bool on) {
        const std::lock_guard lock(loop_);
        held_back_ = on;
        if (!on) publish();
    }
    std::optional<Error> refuse_submits;  // Set before use from other threads.
    Health health_now;
    bool planner_late = false;
    std::int64_t longest_read = 0;
    protocol::OpenTunnel tunnel_asked;
    std::vector<protocol::TunnelInput> tunnel_inputs;
    Chunk tunnel_out;
    bool tunnel_closed = false;

    // ---- Backend ----

    std::shared_ptr<const core::View> view() override {
        const std::lock_guard lock(mutex_);
        return view_;
    }
    void when_published(std::uint64_t revision, std::function<void()> then) override {
        {
            const std::lock_guard lock(mutex_);
            if (view_->revision < revision) {
                waiting_.emplace(revision, std::move(then));
                return;
            }
        }
        then();
    }
    void submit(core::Event event, std::function<void(Result<Answered>)> then) override {
        if (refuse_submits) return then(*refuse_submits);
        Result<core::Step> done = core::Step{};
        std::uint64_t revision = 0;
        {
            const std::lock_guard lock(loop_);
            done = world_.step(std::move(event));
            publish();
            revision = this->view()->revision + (held_back_ ? 1 : 0);
        }
        if (!done) return then(std::move(done).error());
        then(Answered{done->answer, revision});
    }
    void ask(Question question) override {
        if (planner_late)
            return question(numbered(errors::kNotReady, "the planner is late"), Time{});
        const std::lock_guard lock(loop_);
        question(&world_.index, world_.now);
    }
    ports::History& history() override { return history_; }
    Result<std::vector<ports::LoggedEvent>> events_after(std::uint64_t after,
                                                         std::size_t limit) override {
        const std::lock_guard lock(mutex_);
        if (after + 1 < oldest_) {
            return numbered(errors::kCompacted, "events after " + std::to_string(after) +
                                                    " are gone; the oldest kept is " +
                                                    std::to_string(oldest_));
        }
        std::vector<ports::LoggedEvent> out;
        for (const ports::LoggedEvent& event : events_) {
            if (event.sequence > after && out.size() < limit) out.push_back(event);
        }
        return out;
    }
    std::uint64_t last_event() override {
        const std::lock_guard lock(mutex_);
        return events_.size();
    }
    std::shared_ptr<void> on_event(std::uint64_t after, std::function<void()> then) override {
        auto handle = std::make_shared<std::function<void()>>(std::move(then));
        {
            const std::lock_guard lock(mutex_);
            if (events_.size() <= after) {
                event_waiters_.push_back(handle);
                return handle;
            }
        }
        (*handle)();
        return handle;
    }
    Result<std::unique_ptr<AgentStream>> read_log(NodeId node, protocol::ReadLog ask,
                                                  Chunk out) override;
    Result<std::unique_ptr<AgentStream>> open_tunnel(NodeId, protocol::OpenTunnel ask,
                                                     Chunk out) override;
    protocol::LogTail tail(const protocol::TaskKey& key) override {
        const std::lock_guard lock(mutex_);
        const auto at = tails_.find(key);
        return at == tails_.end() ? protocol::LogTail{key, 0, {}} : at->second;
    }
    Health health() override { return health_now; }

private:
    struct Reader {
        protocol::TaskKey key;
        Chunk out;
    };
    struct LogReading final : AgentStream {
        TestBackend& backend;
        std::uint64_t number;
        LogReading(TestBackend& b, std::uint64_t n) : backend(b), number(n) {}
        ~LogReading() override {
            const std::lock_guard lock(backend.mutex_);
            backend.readers_.erase(number);
        }
        void input(const protocol::TunnelInput&) override {}
    };
    struct TunnelEnd final : AgentStream {
        TestBackend& backend;
        explicit TunnelEnd(TestBackend& b) : backend(b) {}
        ~TunnelEnd() override { backend.tunnel_closed = true; }
        void input(const protocol::TunnelInput& input) override {
            backend.tunnel_inputs.push_back(input);
        }
    };
    void publish() {
        if (held_back_) return;
        auto next = std::make_shared<core::View>(world_.state.tables);
        std::vector<std::function<void()>> due;
        {
            const std::lock_guard lock(mutex_);
            next->revision = view_ ? view_->revision + 1 : 1;
            next->at = world_.now;
            view_ = next;
            while (!waiting_.empty() && waiting_.begin()->first <= next->revision) {
                due.push_back(std::move(waiting_.begin()->second));
                waiting_.erase(waiting_.begin());
            }
            for (const core::Notice& notice : world_.notices) {
                events_.push_back(
                    {.sequence = events_.size() + 1, .at_ms = world_.now.ms, .json = notice.json});
            }
            if (!world_.notices.empty()) {
                for (const auto& weak : event_waiters_) {
                    if (const auto handle = weak.lock()) due.push_back(*handle);
                }
                event_waiters_.clear();
            }
        }
        world_.clear();
        for (const auto& then : due) then();
    }

    std::mutex loop_;
    bool held_back_ = false;
    core::World world_;
    std::mutex mutex_;
    std::shared_ptr<const core::View> view_;
    std::multimap<std::uint64_t, std::function<void()>> waiting_;
    std::vector<ports::LoggedEvent> events_;
    std::uint64_t oldest_ = 1;
    std::vector<std::weak_ptr<std::function<void()>>> event_waiters_;
    std::map<protocol::TaskKey, std::string> logs_;
    std::map<protocol::TaskKey, bool> ended_logs_;
    std::map<protocol::TaskKey, protocol::LogTail> tails_;
    std::map<std::uint64_t, Reader> readers_;
    std::vector<NodeId> cut_;
    std::uint64_t next_reader_ = 1;
    MemoryHistory history_;
};

inline Result<std::unique_ptr<AgentStream>> TestBackend::read_log(NodeId node,
                                                                  protocol::ReadLog ask,
                                                                  Chunk out) {
    protocol::LogChunk chunk{.bytes = {}, .error = {}};
    std::unique_ptr<AgentStream> reading;
    {
        const std::lock_guard lock(mutex_);
        if (std::ranges::find(cut_, node) != cut_.end()) {
            return Error{.code = Code::Unavailable, .message = "the node has no link"};
        }
        const auto at = logs_.find(ask.key);
        const std::string log = at != logs_.end() ? at->second : std::string();
        const auto size = static_cast<std::int64_t>(log.size());
        const std::int64_t from =
            std::clamp<std::int64_t>(ask.offset < 0 ? size + ask.offset : ask.offset, 0, size);
        chunk.offset = from;
        chunk.bytes = log.substr(static_cast<std::size_t>(from),
                                 static_cast<std::size_t>(std::min(ask.limit, size - from)));
        longest_read = std::max(longest_read, ask.limit);
        chunk.end = !ask.follow || ended_logs_[ask.key] || ask.limit <= size - from;
        const std::uint64_t number = next_reader_++;
        if (!chunk.end) readers_[number] = {ask.key, out};
        reading = std::make_unique<LogReading>(*this, number);
    }
    out(chunk);
    return reading;
}

inline Result<std::unique_ptr<AgentStream>> TestBackend::open_tunnel(NodeId,
                                                                     protocol::OpenTunnel ask,
                                                                     Chunk out) {
    tunnel_asked = std::move(ask);
    tunnel_out = std::move(out);
    return std::unique_ptr<AgentStream>(std::make_unique<TunnelEnd>(*this));
}

}  // namespace muster::rest
