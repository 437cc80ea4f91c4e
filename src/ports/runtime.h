// The seam to whatever runs tasks on a node.
//
// Calls return at once; what happens is told through the sink, from the runtime's own threads.
// Each task outlives the process that started it; list() finds the living and the ended again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/node.h"
#include "protocol/messages.h"

namespace muster::ports {

struct FoundTask {
    protocol::StartTask order;
    protocol::TaskStatus status;
    bool released = false;
};

/// One open log reading or tunnel.
class RuntimeStream {
public:
    virtual ~RuntimeStream() = default;  // Closes it.
    virtual void input(const protocol::TunnelInput& input) = 0;
};

class Runtime {
public:
    virtual ~Runtime() = default;
    /// TaskStatus, Progress, CheckpointDone, LogTail, LogMatch.
    using Sink = std::function<void(protocol::AgentMessage)>;
    virtual void set_sink(Sink sink) = 0;
    /// What this node can do: limits, containers, and why not.
    virtual void describe(model::NodeFacts& facts) = 0;
    virtual std::vector<FoundTask> list() = 0;  // Also watches them from now on.
    virtual void start(const protocol::StartTask& order) = 0;
    virtual void release(const protocol::Go& go) = 0;
    virtual void notice(const protocol::NoticeTask& notice) = 0;
    virtual void stop(const protocol::TaskKey& key, model::Cause cause, Duration grace) = 0;
    virtual void clean(const protocol::TaskKey& key) = 0;
    /// `out` gets LogChunk or TunnelOutput until one says `end`.
    virtual std::unique_ptr<RuntimeStream> read_log(const protocol::ReadLog& ask, Sink out) = 0;
    virtual std::unique_ptr<RuntimeStream> open_tunnel(const protocol::OpenTunnel& ask,
                                                       Sink out) = 0;
};

}  // namespace muster::ports
