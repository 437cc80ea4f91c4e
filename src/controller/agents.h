// The controller's side of all agent links: turns them into events for the loop, sends its
// commands, multiplexes log readings and tunnels, and keeps the last words of every task.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/step.h"
#include "net/agent_link.h"
#include "protocol/messages.h"
#include "rest/backend.h"

namespace muster::controller {

struct AgentsHooks {
    std::function<void(core::Event)> post;
    std::function<void(net::JoinAsk, net::JoinReply)> join;
    std::function<void(const std::string&)> log;
};

class Agents {
public:
    static Result<std::unique_ptr<Agents>> start(net::AgentLinkServerOptions options,
                                                 AgentsHooks hooks);
    ~Agents();

    std::uint16_t port() const;
    void send(std::vector<core::Send> messages);
    void close(std::uint64_t session, const std::string& reason);

    /// The stream ends with LogChunk::end or TunnelOutput::end, also when the link is lost.
    std::unique_ptr<rest::AgentStream> open(std::uint64_t session, protocol::ControllerMessage ask,
                                            rest::Backend::Chunk out);
    protocol::LogTail tail(const protocol::TaskKey& key) const;

    struct Impl;

private:
    explicit Agents(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
