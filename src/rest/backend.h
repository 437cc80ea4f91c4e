// What the REST handlers need of the controller, and nothing else of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/state.h"
#include "core/step.h"
#include "ports/history.h"
#include "ports/store.h"
#include "protocol/messages.h"
#include "scheduler/plan.h"

namespace muster::rest {

/// An open log reading or tunnel towards an agent. Destroying it cancels it.
class AgentStream {
public:
    virtual ~AgentStream() = default;
    virtual void input(const protocol::TunnelInput& input) = 0;
};

/// Thread-safe. Callbacks come on the controller's threads and must not block.
class Backend {
public:
    virtual ~Backend() = default;

    /// The newest published view; immutable.
    virtual std::shared_ptr<const core::View> view() = 0;
    /// Calls back when a view of at least `revision` is published (at once if it
    /// is).
    virtual void when_published(std::uint64_t revision, std::function<void()> then) = 0;

    struct Answered {
        core::Answer answer;
        std::uint64_t revision = 0;  // The view that shows it.
    };
    /// Steps the event; calls back after its changes are durable.
    virtual void submit(core::Event event, std::function<void(Result<Answered>)> then) = 0;

    /// Puts a question to the planner's index, between two plans: why, what if, how a queue stands.
    /// Asked once, with the index or with an error when the planner is late.
    using Question = std::function<void(Result<const scheduler::PlanIndex*>, Time now)>;
    virtual void ask(Question question) = 0;

    virtual ports::History& history() = 0;
    /// Events with sequence > after (Gone when compacted); and a call when there
    /// are newer ones.
    virtual Result<std::vector<ports::LoggedEvent>> events_after(std::uint64_t after,
                                                                 std::size_t limit) = 0;
    virtual std::uint64_t last_event() = 0;
    /// Runs once, when last_event() > after. Cancel by dropping the handle.
    virtual std::shared_ptr<void> on_event(std::uint64_t after, std::function<void()> then) = 0;

    /// Streams of a task that is on a node. NotFound / Unavailable when its node
    /// has no link.
    using Chunk = std::function<void(const protocol::AgentMessage&)>;  // LogChunk, TunnelOutput.
    virtual Result<std::unique_ptr<AgentStream>> read_log(NodeId node, protocol::ReadLog ask,
                                                          Chunk out) = 0;
    virtual Result<std::unique_ptr<AgentStream>> open_tunnel(NodeId node, protocol::OpenTunnel ask,
                                                             Chunk out) = 0;
    /// The last words of a task that the controller kept (bounded); "" = none.
    virtual protocol::LogTail tail(const protocol::TaskKey& key) = 0;

    struct Health {
        protocol::Term term = 0;
        std::string version, state_dir, store;
        std::int64_t uptime_ms = 0, loop_lag_ms = 0, planner_lag_ms = 0;
        bool disk_full = false, frozen = false;
        std::string ca_pem, ca_sha256;  // Of the own CA; "" = no TLS listener.
        std::string agent_address;      // host:port agents dial; "" = local only.
    };
    virtual Health health() = 0;
};

}  // namespace muster::rest
