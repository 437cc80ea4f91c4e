// The agent: the loop that owns node's State, between the link to the controller and the runtime.
//
// Starting it adopts every task that an earlier agent left running; ending it leaves them running.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/config.h"
#include "agent/identity.h"
#include "base/result.h"

namespace muster::agent {

struct AgentHooks {
    std::function<void(const std::string&)> log = [](const std::string&) {};
    std::string version;
    std::string program_dir;  // Where muster-task is looked for when the configuration names none.
};

class Agent {
public:
    /// `identity`: of load_identity() or join().
    static Result<std::unique_ptr<Agent>> start(const Config& config, const Identity& identity,
                                                AgentHooks hooks);
    virtual ~Agent() = default;
    /// Takes over what is live: labels, devices, cpus, memory.
    virtual void reload(const Config& config) = 0;
    virtual const std::string& name() const = 0;
    virtual bool linked() const = 0;
    virtual int peer_port() const = 0;
};

}  // namespace muster::agent
