#include "simulator/agent.h"

#include <algorithm>
#include <utility>

namespace muster::simulator {
namespace {

constexpr Duration kBackoffMin{200};

}  // namespace

std::function<void()> ModelAgent::of_this_process(std::function<void()> action) {
    return [this, incarnation = incarnation_, action = std::move(action)] {
        if (alive_ && incarnation_ == incarnation) action();
    };
}

void ModelAgent::power_on() {
    if (powered_) return;
    powered_ = true;
    ++boots_;
    facts_.boot_id = facts_.name + "-" + std::to_string(boots_);
    start();
}

void ModelAgent::power_off(bool keep_folders) {
    if (!powered_) return;
    if (alive_ && session_ != 0) network_.vanish(session_, Network::End::Agent);
    alive_ = powered_ = false;
    session_ = 0;
    ++incarnation_;
    runtime_.set_sink({});
    runtime_.power_off(keep_folders);
    kept_.reset();  // Its times are of another boot.
}

void ModelAgent::start() {
    if (!powered_ || alive_) return;
    alive_ = true;
    ++incarnation_;
    session_ = 0;
    backoff_ = kBackoffMin;
    armed_ = kNever;
    clock_.restart();
    node::Started started{.facts = facts_, .found = runtime_.list(), .kept = {}};
    if (!started.found.empty()) tally_.hit("agent.adopts");
    if (kept_) {
        started.kept = *kept_;
        started.kept->until = clock_.carry_over(kept_->until, kept_offset_);
    }
    // What the runtime sees takes a moment to reach the agent's loop, in order.
    runtime_.set_sink([this, incarnation = incarnation_](protocol::AgentMessage message) {
        queue_.after({1}, [this, incarnation, message = std::move(message)] {
            if (alive_ && incarnation_ == incarnation) feed(node::FromRuntime{message});
        });
    });
    feed(std::move(started));
    queue_.after({random_.between(1, 200)}, of_this_process([this] { dial(); }));
}

void ModelAgent::crash() {
    if (!alive_) return;
    alive_ = false;
    ++incarnation_;
    runtime_.set_sink({});
    if (session_ != 0) network_.close(std::exchange(session_, 0), Network::End::Agent, true);
}

void ModelAgent::relabel(std::vector<std::pair<std::string, std::string>> labels) {
    facts_.labels = std::move(labels);
    if (alive_) feed(node::FactsRead{facts_});
}

std::optional<protocol::PeerWord> ModelAgent::word() const {
    if (!alive_) return std::nullopt;
    return node::word_for_peer(state_, now());
}

void ModelAgent::dial() {
    if (session_ != 0) return;
    session_ = network_.dial(host_);
    if (session_ == 0) dial_later();
}

void ModelAgent::dial_later() {
    const Duration wait{random_.between(backoff_.ms / 2, backoff_.ms)};
    backoff_ = std::min(Duration{backoff_.ms * 2}, protocol::redial_pause_max(state_.rules));
    queue_.after(wait, of_this_process([this] { dial(); }));
}

void ModelAgent::opened(std::uint64_t session) {
    if (!alive_ || session != session_) return;
    feed(node::LinkOpened{});
}

void ModelAgent::got(std::uint64_t session, const protocol::ControllerMessage& message) {
    if (!alive_ || session != session_) return;
    backoff_ = kBackoffMin;
    feed(node::FromController{message});
}

void ModelAgent::closed(std::uint64_t session) {
    if (!alive_ || session != session_) return;
    session_ = 0;
    feed(node::LinkClosed{});
    dial_later();
}

void ModelAgent::feed(node::Event event) {
    const node::Input input{now(), std::move(event)};
    const node::Step made = node::step(state_, input);
    surroundings_.agent_stepped(host_, state_, input, made);
    for (const node::Command& command : made.commands) carry_out(command);
    runtime_.set_lease(node::absence_allowed(state_), clock_.when(state_.lease_until));
    arm();
}

void ModelAgent::carry_out(const node::Command& command) {
    if (const auto* up = std::get_if<node::SendUp>(&command)) {
        network_.send_up(session_, up->message);
    } else if (const auto* start = std::get_if<node::StartRun>(&command)) {
        runtime_.start(start->order);
    } else if (const auto* release = std::get_if<node::ReleaseRun>(&command)) {
        runtime_.release(release->go);
    } else if (const auto* notice = std::get_if<node::NoticeRun>(&command)) {
        runtime_.notice(notice->notice);
    } else if (const auto* stop = std::get_if<node::StopRun>(&command)) {
        runtime_.stop(stop->key, stop->cause, stop->grace);
    } else if (const auto* clean = std::get_if<node::CleanRun>(&command)) {
        runtime_.clean(clean->key);
    } else if (const auto* ask = std::get_if<node::AskPeer>(&command)) {
        tally_.hit("agent.asks-peer");
        surroundings_.ask_peer(host_, ask->peer.name,
                               [this, incarnation = incarnation_,
                                peer = ask->peer.name](std::optional<protocol::PeerWord> word) {
                                   if (alive_ && incarnation_ == incarnation)
                                       feed(node::PeerAnswered{peer, word});
                               });
    } else if (const auto* keep_it = std::get_if<node::KeepLease>(&command)) {
        keep(keep_it->lease);
    } else if (session_ != 0) {  // DropLink.
        tally_.hit("agent.drops-link");
        network_.close(std::exchange(session_, 0), Network::End::Agent, true);
        queue_.after({0}, of_this_process([this] {
                         feed(node::LinkClosed{});
                         dial_later();
                     }));
    }
}

void ModelAgent::keep(const node::KeptLease& lease) {
    kept_ = lease;
    kept_offset_ = clock_.offset();
}

void ModelAgent::arm() {
    const Time wake = clock_.when(node::next_wake(state_));
    if (wake == armed_) return;
    armed_ = wake;
    const std::uint64_t timer = ++timer_;
    if (wake == kNever) return;
    queue_.at(wake, of_this_process([this, timer] {
                  if (timer != timer_) return;
                  armed_ = kNever;
                  feed(node::Tick{});
              }));
}

}  // namespace muster::simulator
