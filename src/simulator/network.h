// The modelled network: streams between agents and the controller, and questions among agents.
//
// A stream keeps its order and loses nothing but its end: a reset loses what is under way. Between
// streams, and between the two ends of one that breaks, everything may come in any order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <variant>

#include "base/id.h"
#include "base/prng.h"
#include "protocol/messages.h"
#include "simulator/event_queue.h"
#include "simulator/tally.h"

namespace muster::simulator {

using HostIndex = std::uint32_t;
constexpr HostIndex kControllerHost = 0;

struct NetworkRules {
    Duration delay_min{1}, delay_max{20};
    unsigned slow_per_mille = 0;  // Of messages: delayed by up to slow_max.
    Duration slow_max{3'000};
    unsigned duplicate_per_mille = 0;  // Of messages: come twice in a row.
    Duration keepalive{10'000};        // A stalled stream breaks after this.
};

/// The two ends. Calls may come for sessions that an end closed a moment ago: it ignores them.
class StreamEnds {
public:
    virtual ~StreamEnds() = default;
    virtual void agent_opened(HostIndex host, std::uint64_t session) = 0;
    virtual void agent_got(HostIndex host, std::uint64_t session,
                           const protocol::ControllerMessage& message) = 0;
    virtual void agent_closed(HostIndex host, std::uint64_t session) = 0;
    virtual void controller_got(std::uint64_t session, HostIndex host,
                                const protocol::AgentMessage& message) = 0;
    virtual void controller_closed(std::uint64_t session) = 0;
    virtual bool controller_listens() const = 0;
};

class Network {
public:
    enum class End : std::uint8_t { Agent, Controller };

    Network(EventQueue& queue, Prng& random, Tally& tally, NetworkRules rules, StreamEnds& ends)
        : queue_(queue), random_(random), tally_(tally), rules_(rules), ends_(ends) {}

    /// Nothing travels from `from` to `to` until as many unblocks came as blocks.
    void block(HostIndex from, HostIndex to);
    void unblock(HostIndex from, HostIndex to);
    bool blocked(HostIndex from, HostIndex to) const { return blocks_.contains({from, to}); }
    /// No more chance faults: short delays, no duplicates.
    void calm();

    Duration delay();

    /// The new session's id, or 0: refused or not reached. agent_opened follows.
    std::uint64_t dial(HostIndex host);
    void send_up(std::uint64_t session, protocol::AgentMessage message);
    void send_down(std::uint64_t session, protocol::ControllerMessage message);
    /// This end hangs up; the other learns of it. `abrupt`: what it had sent may be lost.
    void close(std::uint64_t session, End end, bool abrupt);
    /// This end is gone without a word: the other finds out by keep-alive.
    void vanish(std::uint64_t session, End end);
    /// The controller's process died; `silent`: its host with it.
    void controller_dies(bool silent);
    /// Breaks the stream in the middle, for both ends.
    void reset(std::uint64_t session);
    std::size_t sessions() const { return sessions_.size(); }
    /// The open session of a host's agent; 0: none.
    std::uint64_t session_of(HostIndex host) const;

private:
    struct Fin {};
    using Item = std::variant<protocol::AgentMessage, protocol::ControllerMessage, Fin>;
    struct Direction {
        Time last_arrival;
        std::uint32_t generation = 0;  // Rises when what is under way is lost.
        std::uint32_t under_way = 0;
        std::deque<Item> stalled;
        Time stalled_since;
    };
    struct Session {
        HostIndex host = 0;
        bool broken = false;          // Nothing more gets through; the ends do not all know yet.
        bool open[2] = {true, true};  // By End.
        Direction direction[2];       // By the sending End.
    };

    Session* find(std::uint64_t session);
    void send(std::uint64_t session, End from, Item item);
    void arrive(std::uint64_t session, End from, std::uint32_t generation, Item item);
    void hand(std::uint64_t session, End to, const Item& item);
    void flush();
    void close_end(std::uint64_t session, End end);
    void lose(Direction& direction);
    bool blocked(const Session& session, End from) const;

    EventQueue& queue_;
    Prng& random_;
    Tally& tally_;
    NetworkRules rules_;
    StreamEnds& ends_;
    std::map<std::pair<HostIndex, HostIndex>, int> blocks_;
    std::map<std::uint64_t, Session> sessions_;
    std::uint64_t next_session_ = 1;
};

}  // namespace muster::simulator
