#include "simulator/network.h"

#include <algorithm>
#include <vector>

namespace muster::simulator {
namespace {

std::size_t index(Network::End end) {
    return static_cast<std::size_t>(end);
}
Network::End other(Network::End end) {
    return end == Network::End::Agent ? Network::End::Controller : Network::End::Agent;
}

}  // namespace

void Network::block(HostIndex from, HostIndex to) {
    ++blocks_[{from, to}];
}

void Network::unblock(HostIndex from, HostIndex to) {
    const auto block = blocks_.find({from, to});
    if (block == blocks_.end()) return;
    if (--block->second == 0) blocks_.erase(block);
    flush();
}

void Network::calm() {
    rules_.slow_per_mille = 0;
    rules_.duplicate_per_mille = 0;
    blocks_.clear();
    flush();
}

Duration Network::delay() {
    if (rules_.slow_per_mille != 0 && random_.chance(rules_.slow_per_mille)) {
        tally_.hit("net.slow");
        return {random_.between(rules_.delay_max.ms, rules_.slow_max.ms)};
    }
    return {random_.between(rules_.delay_min.ms, rules_.delay_max.ms)};
}

bool Network::blocked(const Session& session, End from) const {
    return from == End::Agent ? blocked(session.host, kControllerHost)
                              : blocked(kControllerHost, session.host);
}

std::uint64_t Network::dial(HostIndex host) {
    if (!ends_.controller_listens() || blocked(host, kControllerHost) ||
        blocked(kControllerHost, host)) {
        return 0;
    }
    const std::uint64_t id = next_session_++;
    sessions_[id].host = host;
    queue_.after(delay(), [this, id] {
        const Session* session = find(id);
        if (session != nullptr && session->open[index(End::Agent)]) {
            ends_.agent_opened(session->host, id);
        }
    });
    return id;
}

void Network::send_up(std::uint64_t session, protocol::AgentMessage message) {
    send(session, End::Agent, std::move(message));
}

void Network::send_down(std::uint64_t session, protocol::ControllerMessage message) {
    send(session, End::Controller, std::move(message));
}

Network::Session* Network::find(std::uint64_t session) {
    const auto found = sessions_.find(session);
    return found == sessions_.end() ? nullptr : &found->second;
}

std::uint64_t Network::session_of(HostIndex host) const {
    for (const auto& [id, session] : sessions_) {
        if (session.host == host && session.open[index(End::Agent)]) return id;
    }
    return 0;
}

void Network::send(std::uint64_t id, End from, Item item) {
    Session* session = find(id);
    if (session == nullptr || !session->open[index(from)] || session->broken) return;
    Direction& direction = session->direction[index(from)];
    direction.last_arrival = std::max(direction.last_arrival, queue_.now() + delay());
    const bool twice = rules_.duplicate_per_mille != 0 && !std::holds_alternative<Fin>(item) &&
                       random_.chance(rules_.duplicate_per_mille);
    for (int i = 0; i < (twice ? 2 : 1); ++i) {
        ++direction.under_way;
        queue_.at(direction.last_arrival, [this, id, from, generation = direction.generation,
                                           item] { arrive(id, from, generation, item); });
    }
    if (twice) tally_.hit("net.duplicate");
}

void Network::arrive(std::uint64_t id, End from, std::uint32_t generation, Item item) {
    Session* session = find(id);
    if (session == nullptr) return;
    Direction& direction = session->direction[index(from)];
    if (direction.generation != generation) return;
    --direction.under_way;
    if (direction.stalled.empty() && !blocked(*session, from)) return hand(id, other(from), item);
    if (direction.stalled.empty()) {
        direction.stalled_since = queue_.now();
        const Time since = queue_.now();
        queue_.after(rules_.keepalive, [this, id, from, since] {
            Session* still = find(id);
            if (still == nullptr) return;
            const Direction& stalled = still->direction[index(from)];
            if (!stalled.stalled.empty() && stalled.stalled_since == since) reset(id);
        });
    }
    direction.stalled.push_back(std::move(item));
}

void Network::hand(std::uint64_t id, End to, const Item& item) {
    Session* session = find(id);
    if (session == nullptr || !session->open[index(to)]) return;
    if (std::holds_alternative<Fin>(item)) return close_end(id, to);
    if (to == End::Agent) {
        ends_.agent_got(session->host, id, std::get<protocol::ControllerMessage>(item));
    } else {
        ends_.controller_got(id, session->host, std::get<protocol::AgentMessage>(item));
    }
}

void Network::flush() {
    std::vector<std::pair<std::uint64_t, End>> ready;
    for (const auto& [id, session] : sessions_) {
        for (const End from : {End::Agent, End::Controller}) {
            if (session.direction[index(from)].stalled.empty() || blocked(session, from)) continue;
            ready.push_back({id, from});
        }
    }
    for (const auto& [id, from] : ready) {
        while (Session* session = find(id)) {
            std::deque<Item>& stalled = session->direction[index(from)].stalled;
            if (stalled.empty()) break;
            const Item item = std::move(stalled.front());
            stalled.pop_front();
            hand(id, other(from), item);
        }
    }
}

void Network::lose(Direction& direction) {
    const auto lost = static_cast<std::int64_t>(direction.under_way + direction.stalled.size());
    if (lost != 0) tally_.hit("net.lost", lost);
    ++direction.generation;
    direction.under_way = 0;
    direction.stalled.clear();
}

void Network::close(std::uint64_t id, End end, bool abrupt) {
    Session* session = find(id);
    if (session == nullptr || !session->open[index(end)]) return;
    if (abrupt) lose(session->direction[index(end)]);
    send(id, end, Fin{});
    session->open[index(end)] = false;
    if (!session->open[index(other(end))]) sessions_.erase(id);
}

void Network::vanish(std::uint64_t id, End end) {
    Session* session = find(id);
    if (session == nullptr) return;
    session->open[index(end)] = false;
    lose(session->direction[index(end)]);
    tally_.hit("net.half-open");
    queue_.after(rules_.keepalive, [this, id, end] { close_end(id, other(end)); });
}

void Network::controller_dies(bool silent) {
    std::vector<std::uint64_t> open;
    for (const auto& [id, session] : sessions_) {
        if (session.open[index(End::Controller)]) open.push_back(id);
    }
    for (const std::uint64_t id : open) {
        if (silent)
            vanish(id, End::Controller);
        else
            close(id, End::Controller, true);
    }
}

void Network::reset(std::uint64_t id) {
    Session* session = find(id);
    if (session == nullptr || session->broken) return;
    session->broken = true;
    tally_.hit("net.reset");
    for (Direction& direction : session->direction) lose(direction);
    for (const End end : {End::Agent, End::Controller}) {
        queue_.after({random_.between(0, 2'000)}, [this, id, end] { close_end(id, end); });
    }
}

void Network::close_end(std::uint64_t id, End end) {
    Session* session = find(id);
    if (session == nullptr) return;
    const bool was_open = std::exchange(session->open[index(end)], false);
    const HostIndex host = session->host;
    if (!session->open[index(other(end))]) sessions_.erase(id);
    if (!was_open) return;
    if (end == End::Agent)
        ends_.agent_closed(host, id);
    else
        ends_.controller_closed(id);
}

}  // namespace muster::simulator
