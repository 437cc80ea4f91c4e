// The controller whole: state on disk, the loop, the planner, the links, the REST server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "controller/config.h"
#include "net/agent_link.h"

namespace muster::controller {

struct ControllerHooks {
    std::function<void(const std::string&)> log;
    /// The state on disk is not known or not ours any more: end the process at once.
    std::function<void(const Error&)> fatal;
    std::string version;
};

class Controller {
public:
    /// Recovers, takes the next term, and serves before it returns.
    static Result<std::unique_ptr<Controller>> start(const Config& config, ControllerHooks hooks);
    virtual ~Controller() = default;  // Stops; what was acknowledged is on disk already.

    virtual std::uint16_t rest_port() const = 0;   // 0: off.
    virtual std::uint16_t agent_port() const = 0;  // 0: off.
    /// For the agent of this machine: its certificate, without a token.
    virtual Result<net::LinkTls> admit_local_node(const std::string& name) = 0;
    /// In the published view.
    virtual bool node_ready(const std::string& name) const = 0;
    virtual void reload(const Config& config) = 0;  // The live fields.
};

}  // namespace muster::controller
