#include "simulator/world.h"

#include <utility>

#include "base/hash.h"

namespace muster::simulator {
namespace {

constexpr Duration kPeerTimeout{2'500};

}  // namespace

World::World(WorldConfig config, Judge& judge)
    : random(config.seed),
      network(queue, random, tally, config.network, *this),
      disk(random, tally),
      controller(
          queue, random, tally, network, disk, std::move(config.controller),
          std::move(config.sabotage), [this](HostIndex index) { return host(index).name(); },
          judge),
      clients(queue, random, tally,
              [this](core::Event event, Clients::Done reply) {
                  controller.request(std::move(event), std::move(reply));
              }),
      judge_(judge) {
    controller.clock() = HostClock(config.controller_drift_ppm);
    for (HostConfig& one : config.hosts) {
        const auto index = static_cast<HostIndex>(hosts_.size() + 1);
        leaves_.emplace_back(model::label(one.facts, "leaf"));
        hosts_.push_back(std::make_unique<ModelAgent>(
            index, std::move(one.facts), one.drift_ppm, queue, random, tally, network,
            ModelRuntime(index, queue, random, tally, config.script_of, judge),
            static_cast<Surroundings&>(*this)));
    }
}

void World::boot() {
    controller.start();
    for (const auto& agent : hosts_) agent->power_on();
}

std::uint64_t World::digest() const {
    Fnv fnv;
    fnv.add(static_cast<std::uint64_t>(queue.now().ms));
    fnv.add(queue.fired());
    fnv.add(controller.trace());
    if (controller.alive()) fnv.add(core::digest(controller.state()));
    for (const auto& agent : hosts_) fnv.add(node::digest(agent->state()));
    return fnv.hash();
}

void World::agent_opened(HostIndex index, std::uint64_t session) {
    host(index).opened(session);
}

void World::agent_got(HostIndex index, std::uint64_t session,
                      const protocol::ControllerMessage& message) {
    host(index).got(session, message);
}

void World::agent_closed(HostIndex index, std::uint64_t session) {
    host(index).closed(session);
}

void World::controller_got(std::uint64_t session, HostIndex index,
                           const protocol::AgentMessage& message) {
    controller.got(session, index, message);
}

void World::controller_closed(std::uint64_t session) {
    controller.closed(session);
}

bool World::controller_listens() const {
    return controller.alive();
}

HostIndex World::find(const std::string& name) const {
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        if (hosts_[i]->name() == name) return static_cast<HostIndex>(i + 1);
    }
    return 0;
}

void World::ask_peer(HostIndex asker, const std::string& peer,
                     std::function<void(std::optional<protocol::PeerWord>)> answer) {
    const HostIndex asked = find(peer);
    const Time give_up = queue.now() + kPeerTimeout;
    // One of the two answers: the word, or the time-out.
    auto open = std::make_shared<bool>(true);
    const auto once = [open, answer = std::move(answer)](std::optional<protocol::PeerWord> word) {
        if (std::exchange(*open, false)) answer(word);
    };
    queue.at(give_up, [once] { once(std::nullopt); });
    queue.after(network.delay(), [this, asker, asked, once] {
        if (asked == 0 || network.blocked(asker, asked)) return;
        const auto word = host(asked).word();
        if (!word) return;
        queue.after(network.delay(), [this, asker, asked, once, word] {
            if (!network.blocked(asked, asker)) once(word);
        });
    });
}

void World::agent_stepped(HostIndex index, const node::State& state, const node::Input& input,
                          const node::Step& step) {
    judge_.agent_stepped(index, state, input, step);
}

}  // namespace muster::simulator
