// One modelled host: clock, runtime and, while its process lives, the agent: the real core of
// src/node behind a shell that dials, keeps timers and asks peers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/prng.h"
#include "node/step.h"
#include "simulator/clock.h"
#include "simulator/event_queue.h"
#include "simulator/network.h"
#include "simulator/runtime.h"
#include "simulator/tally.h"

namespace muster::simulator {

/// What the world tells and does for its agents.
class Surroundings {
public:
    virtual ~Surroundings() = default;
    virtual void ask_peer(HostIndex asker, const std::string& peer,
                          std::function<void(std::optional<protocol::PeerWord>)> answer) = 0;
    virtual void agent_stepped(HostIndex host, const node::State& state, const node::Input& input,
                               const node::Step& step) = 0;
};

class ModelAgent {
public:
    ModelAgent(HostIndex host, model::NodeFacts facts, std::int64_t drift_ppm, EventQueue& queue,
               Prng& random, Tally& tally, Network& network, ModelRuntime runtime,
               Surroundings& surroundings)
        : host_(host),
          facts_(std::move(facts)),
          clock_(drift_ppm),
          queue_(queue),
          random_(random),
          tally_(tally),
          network_(network),
          runtime_(std::move(runtime)),
          surroundings_(surroundings) {}

    HostIndex host() const { return host_; }
    const std::string& name() const { return facts_.name; }
    bool powered() const { return powered_; }
    bool alive() const { return alive_; }
    const node::State& state() const { return state_; }
    const ModelRuntime& runtime() const { return runtime_; }
    HostClock& clock() { return clock_; }

    void power_on();  // Boots, then starts the agent.
    void power_off(bool keep_folders);
    void start();  // The agent's process.
    void crash();  // It dies; tasks live on.
    void relabel(std::vector<std::pair<std::string, std::string>> labels);  // As by a reload.
    std::optional<protocol::PeerWord> word() const;

    // From the network.
    void opened(std::uint64_t session);
    void got(std::uint64_t session, const protocol::ControllerMessage& message);
    void closed(std::uint64_t session);

private:
    void feed(node::Event event);
    void carry_out(const node::Command& command);
    void keep(const node::KeptLease& lease);
    void arm();
    void dial();
    void dial_later();
    Time now() const { return clock_.read(queue_.now()); }
    std::function<void()> of_this_process(std::function<void()> action);

    HostIndex host_;
    model::NodeFacts facts_;
    HostClock clock_;
    EventQueue& queue_;
    Prng& random_;
    Tally& tally_;
    Network& network_;
    ModelRuntime runtime_;
    Surroundings& surroundings_;
    bool powered_ = false, alive_ = false;
    std::uint64_t boots_ = 0;
    std::uint64_t incarnation_ = 0;  // Of the agent's process.
    node::State state_;
    std::uint64_t session_ = 0;
    Duration backoff_;
    Time armed_ = kNever;  // In world time.
    std::uint64_t timer_ = 0;
    // The folder of the agent's state; on the node's disk.
    std::optional<node::KeptLease> kept_;
    std::int64_t kept_offset_ = 0;
};

}  // namespace muster::simulator
