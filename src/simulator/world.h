// A whole cluster in one process and in virtual time: one controller, its disk and history, the
// network, the hosts with their agents and runtimes, and the users. One seed decides everything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "simulator/agent.h"
#include "simulator/client.h"
#include "simulator/controller.h"
#include "simulator/disk.h"
#include "simulator/event_queue.h"
#include "simulator/network.h"
#include "simulator/runtime.h"
#include "simulator/tally.h"

namespace muster::simulator {

struct HostConfig {
    model::NodeFacts facts;
    std::int64_t drift_ppm = 0;
};
struct WorldConfig {
    std::uint64_t seed = 1;
    std::vector<HostConfig> hosts;
    std::int64_t controller_drift_ppm = 0;
    NetworkRules network;
    ControllerRules controller;
    Sabotage sabotage;
    ModelRuntime::ScriptOf script_of;
};

/// Sees everything that happens, and judges.
class Judge : public Watcher, public ControllerWatcher {
public:
    virtual void agent_stepped(HostIndex host, const node::State& state, const node::Input& input,
                               const node::Step& step) = 0;
};

class World final : StreamEnds, Surroundings {
public:
    World(WorldConfig config, Judge& judge);

    EventQueue queue;
    Prng random;
    Tally tally;
    Network network;
    Disk disk;
    ModelController controller;
    Clients clients;

    ModelAgent& host(HostIndex index) { return *hosts_.at(index - 1); }
    HostIndex hosts() const { return static_cast<HostIndex>(hosts_.size()); }  // 1..hosts().
    const std::string& leaf(HostIndex index) const { return leaves_.at(index - 1); }
    HostIndex find(const std::string& name) const;  // 0: no such host.
    /// Switches everything on.
    void boot();
    /// Of the whole world as it is now.
    std::uint64_t digest() const;

private:
    void agent_opened(HostIndex host, std::uint64_t session) override;
    void agent_got(HostIndex host, std::uint64_t session,
                   const protocol::ControllerMessage& message) override;
    void agent_closed(HostIndex host, std::uint64_t session) override;
    void controller_got(std::uint64_t session, HostIndex host,
                        const protocol::AgentMessage& message) override;
    void controller_closed(std::uint64_t session) override;
    bool controller_listens() const override;
    void ask_peer(HostIndex asker, const std::string& peer,
                  std::function<void(std::optional<protocol::PeerWord>)> answer) override;
    void agent_stepped(HostIndex host, const node::State& state, const node::Input& input,
                       const node::Step& step) override;

    Judge& judge_;
    std::vector<std::unique_ptr<ModelAgent>> hosts_;
    std::vector<std::string> leaves_;
};

}  // namespace muster::simulator
