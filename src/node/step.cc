#include "node/step.h"

#include <algorithm>
#include <set>

#include "base/require.h"
#include "node/lease.h"

namespace muster::node {
namespace {

using protocol::TaskKey;
using protocol::TaskState;
using protocol::TaskStatus;

constexpr Duration kProgressEvery{250};    // At most four a second and task.
constexpr Duration kTellEndAgain{10'000};  // An end not forgotten yet is told again.
constexpr Duration kUnwantedGrace{5'000};
constexpr Duration kAbsence{2'000};      // For an agent to start again, and no more.
constexpr std::size_t kMatchesMax = 16;  // Of one task, waiting for a link.

class Stepper {
public:
    Stepper(State& state, Time at) : state_(state), at_(at) {}

    void operator()(const Started& event);
    void operator()(const LinkOpened&);
    void operator()(const LinkClosed&);
    void operator()(const FromController& event) {
        std::visit([this](const auto& message) { on(message); }, event.message);
    }
    void operator()(const FromRuntime& event) {
        std::visit([this](const auto& message) { seen(message); }, event.message);
    }
    void operator()(const PeerAnswered& event);
    void operator()(const FactsRead& event);
    void operator()(const Tick&) {}

    /// What is due at this time, whatever the event was.
    void settle();
    Step take() { return std::move(step_); }

private:
    void on(const protocol::Welcome& message);
    void on(const protocol::LeaseGrant& message);
    void on(const protocol::StartTask& message);
    void on(const protocol::Go& message);
    void on(const protocol::NoticeTask& message);
    void on(const protocol::StopTask& message);
    void on(const protocol::ForgetTask& message);
    // Streams of bytes do not go through the core.
    void on(const protocol::ReadLog&) {}
    void on(const protocol::OpenTunnel&) {}
    void on(const protocol::TunnelInput&) {}
    void on(const protocol::CancelRequest&) {}

    void seen(const TaskStatus& status);
    void seen(const protocol::Progress& progress);
    void seen(const protocol::CheckpointDone& done);
    void seen(const protocol::LogTail& tail);
    void seen(const protocol::LogMatch& match);
    void seen(const protocol::Hello&) {}
    void seen(const protocol::Heartbeat&) {}
    void seen(const protocol::FactsChanged&) {}
    void seen(const protocol::LogChunk&) {}
    void seen(const protocol::TunnelOutput&) {}

    /// Takes the term in; false: it is an older controller's, and the link goes.
    bool obey(protocol::Term term);
    Task* find(const TaskKey& key);
    void send(protocol::AgentMessage message);
    void tell(Task& task);
    void tell_vanished(const TaskKey& key);
    void start(Task& task);
    void start_held_back(JobId job);
    bool older_attempt_alive(const TaskKey& key) const;
    void stop_older_attempts(const TaskKey& key);
    void clean(const TaskKey& key);

    State& state_;
    Time at_;
    Step step_;
};

void Stepper::operator()(const Started& event) {
    state_ = State{};
    state_.facts = event.facts;
    state_.lease_until = at_ + state_.rules.fence;
    for (const Started::Found& found : event.found) {
        Task task;
        task.order = found.order;
        task.status = found.status;
        task.status.key = found.order.key;
        task.status.term = found.order.term;
        if (found.released)
            task.go = protocol::Go{.term = found.order.term, .key = found.order.key};
        state_.term = std::max(state_.term, found.order.term);
        state_.tasks.insert_or_assign(found.order.key, std::move(task));
    }
    if (event.kept) {
        state_.term = std::max(state_.term, event.kept->term);
        state_.rules = event.kept->rules;
        state_.peers = event.kept->peers;
        state_.lease_until = std::min(event.kept->until, at_ + state_.rules.fence);
        state_.kept_until = event.kept->until;
        state_.granted = true;
    }
}

void Stepper::operator()(const LinkOpened&) {
    state_.open = true;
    state_.linked = false;
    state_.heartbeats.clear();
    protocol::Hello hello{.last_term = state_.term, .facts = state_.facts, .tasks = {}};
    for (auto& [key, task] : state_.tasks) {
        if (task.held_back) continue;
        hello.tasks.push_back(task.status);
        task.told = at_;
        task.progress_sent = {};
    }
    state_.hello_sent = at_;
    state_.next_heartbeat = at_ + state_.rules.heartbeat;
    send(std::move(hello));
}

void Stepper::operator()(const LinkClosed&) {
    state_.open = false;
    state_.linked = false;
    state_.heartbeats.clear();
}

void Stepper::operator()(const PeerAnswered& event) {
    if (state_.lease != Lease::Asking && state_.lease != Lease::Outage) return;
    if (event.word) state_.words[event.peer] = event.word;
}

void Stepper::operator()(const FactsRead& event) {
    if (event.facts == state_.facts) return;
    state_.facts = event.facts;
    send(protocol::FactsChanged{event.facts});
}

// ---- orders -----------------------------------------------------------------------------------

bool Stepper::obey(protocol::Term term) {
    if (term < state_.term) {
        const std::string reason = "a message of term " + std::to_string(term) + ", but term " +
                                   std::to_string(state_.term) + " is known";
        step_.notes.push_back("refused: " + reason);
        step_.commands.push_back(DropLink{reason});
        return false;
    }
    if (term > state_.term && state_.term != 0) state_.term_since = at_;
    state_.term = term;
    return true;
}

void Stepper::on(const protocol::Welcome& message) {
    if (!state_.open || !obey(message.term)) return;
    state_.rules = message.rules;
    const bool first = !state_.linked;
    state_.linked = state_.ever_linked = true;
    extend_lease(state_, state_.hello_sent);
    if (message.adopt_all) return;
    const std::set<TaskKey> wanted(message.wanted.begin(), message.wanted.end());
    for (auto& [key, task] : state_.tasks) {
        if (task.ended() || wanted.contains(key)) continue;
        stop_task(task, model::Cause::Cancelled, kUnwantedGrace, step_);
    }
    if (!first) return;
    for (auto& [key, task] : state_.tasks) {
        if (task.checkpoint) send(*task.checkpoint);
        for (protocol::LogMatch& match : task.matches) send(std::move(match));
        task.matches.clear();
    }
}

void Stepper::on(const protocol::LeaseGrant& message) {
    if (!obey(message.term)) return;
    if (!message.peers.empty()) state_.peers = message.peers;
    const auto sent = state_.heartbeats.find(message.sequence);
    if (sent == state_.heartbeats.end()) return;
    const Time at = sent->second;
    state_.heartbeats.erase(state_.heartbeats.begin(), std::next(sent));
    extend_lease(state_, at);
}

void Stepper::on(const protocol::StartTask& message) {
    if (!obey(message.term)) return;
    const TaskKey& key = message.key;
    if (Task* task = find(key)) {  // A repeated order: told again what became of it.
        if (!task->held_back) tell(*task);
        return;
    }
    for (const auto& [other, task] : state_.tasks) {
        if (other.job != key.job || other.epoch <= key.epoch) continue;
        step_.notes.push_back("refused: job " + std::to_string(key.job.value) + " epoch " +
                              std::to_string(key.epoch) + " is older than its epoch " +
                              std::to_string(other.epoch) + " here");
        return;
    }
    Task task;
    task.order = message;
    task.status.key = key;
    task.status.term = message.term;
    stop_older_attempts(key);
    const bool cut_off = state_.lease == Lease::CutOff && task.gang();
    task.held_back = cut_off || older_attempt_alive(key);
    Task& kept = state_.tasks.insert_or_assign(key, std::move(task)).first->second;
    if (cut_off) {
        stop_task(kept, model::Cause::Fenced, {}, step_);
    } else if (!kept.held_back) {
        start(kept);
    }
}

void Stepper::on(const protocol::Go& message) {
    if (!obey(message.term)) return;
    Task* task = find(message.key);
    if (task == nullptr) return tell_vanished(message.key);
    if (task->ended()) return tell(*task);
    if (task->stop_asked) return;
    task->go = message;
    // Repeated to the runtime until it is seen to run: it keeps the first.
    if (!task->held_back && task->status.state < TaskState::Running) {
        step_.commands.push_back(ReleaseRun{message});
    }
}

void Stepper::on(const protocol::NoticeTask& message) {
    if (!obey(message.term)) return;
    Task* task = find(message.key);
    if (task == nullptr) return tell_vanished(message.key);
    if (task->ended()) return tell(*task);
    if (task->notice_given || task->stop_asked || task->held_back) return;
    task->notice_given = true;
    step_.commands.push_back(NoticeRun{message});
}

void Stepper::on(const protocol::StopTask& message) {
    if (!obey(message.term)) return;
    Task* task = find(message.key);
    if (task == nullptr) return tell_vanished(message.key);
    if (task->ended()) return tell(*task);
    stop_task(*task, message.cause, message.grace, step_);
}

void Stepper::on(const protocol::ForgetTask& message) {
    if (!obey(message.term)) return;
    Task* task = find(message.key);
    if (task == nullptr) return;
    if (task->ended()) return clean(message.key);
    task->forget_asked = true;
    stop_task(*task, model::Cause::Cancelled, kUnwantedGrace, step_);
    if (task->ended()) clean(message.key);
}

// ---- what the runtime saw ---------------------------------------------------------------------

void Stepper::seen(const TaskStatus& status) {
    Task* task = find(status.key);
    if (task == nullptr) {  // Forgotten already.
        if (status.state == TaskState::Ended) {
            step_.commands.push_back(CleanRun{status.key});
        } else {
            step_.commands.push_back(StopRun{status.key, model::Cause::Cancelled, kUnwantedGrace});
        }
        return;
    }
    if (task->ended()) return;  // An end stays.
    TaskStatus next = status;
    next.term = task->order.term;
    if (next == task->status && task->told > Time{}) return;
    task->status = std::move(next);
    if (task->ended()) {
        if (task->progress && state_.open) send(*std::exchange(task->progress, std::nullopt));
        if (task->forget_asked) {
            clean(status.key);
        } else {
            tell(*task);
        }
        return start_held_back(status.key.job);
    }
    tell(*task);
    // Its Go came before it was ready, or the release was lost with a restart.
    if (task->status.state == TaskState::Ready && task->go && !task->stop_asked) {
        step_.commands.push_back(ReleaseRun{*task->go});
    }
}

void Stepper::seen(const protocol::Progress& progress) {
    Task* task = find(progress.key);
    if (task == nullptr || task->ended()) return;
    // One a task waits; that of its first process says most.
    if (task->progress && task->progress->local_rank < progress.local_rank) return;
    task->progress = progress;
}

void Stepper::seen(const protocol::CheckpointDone& done) {
    Task* task = find(done.key);
    if (task == nullptr) return;
    task->checkpoint = done;
    if (state_.linked) send(done);
}

void Stepper::seen(const protocol::LogTail& tail) {
    if (find(tail.key) != nullptr && state_.linked) send(tail);
}

void Stepper::seen(const protocol::LogMatch& match) {
    Task* task = find(match.key);
    if (task == nullptr) return;
    if (state_.linked) {
        send(match);
    } else if (task->matches.size() < kMatchesMax) {
        task->matches.push_back(match);
    }
}

// ---- helpers ----------------------------------------------------------------------------------

Task* Stepper::find(const TaskKey& key) {
    const auto task = state_.tasks.find(key);
    return task == state_.tasks.end() ? nullptr : &task->second;
}

void Stepper::send(protocol::AgentMessage message) {
    if (state_.open) step_.commands.push_back(SendUp{std::move(message)});
}

void Stepper::tell(Task& task) {
    if (!state_.open) {
        task.told = {};
        return;
    }
    task.told = at_;
    send(task.status);
}

void Stepper::tell_vanished(const TaskKey& key) {
    TaskStatus status{.key = key, .term = state_.term, .state = TaskState::Ended};
    status.end.cause = model::Cause::Vanished;
    status.end.message = "node " + state_.facts.name + " has no such task";
    send(std::move(status));
}

void Stepper::start(Task& task) {
    step_.commands.push_back(StartRun{task.order});
    if (task.go) step_.commands.push_back(ReleaseRun{*task.go});
}

bool Stepper::older_attempt_alive(const TaskKey& key) const {
    for (const auto& [other, task] : state_.tasks) {
        if (other.job == key.job && other.epoch < key.epoch && !task.ended()) return true;
    }
    return false;
}

void Stepper::stop_older_attempts(const TaskKey& key) {
    for (auto& [other, task] : state_.tasks) {
        if (other.job != key.job || other.epoch >= key.epoch || task.ended()) continue;
        stop_task(task, model::Cause::Cancelled, kUnwantedGrace, step_);
    }
}

void Stepper::start_held_back(JobId job) {
    for (auto& [key, task] : state_.tasks) {
        if (key.job != job || !task.held_back || older_attempt_alive(key)) continue;
        task.held_back = false;
        start(task);
    }
}

void Stepper::clean(const TaskKey& key) {
    state_.tasks.erase(key);
    step_.commands.push_back(CleanRun{key});
}

void Stepper::settle() {
    if (state_.open && at_ >= state_.next_heartbeat) {
        state_.heartbeats.emplace(++state_.sequence, at_);
        state_.next_heartbeat = at_ + state_.rules.heartbeat;
        send(protocol::Heartbeat{state_.sequence});
        const auto old = [&](const auto& entry) { return entry.second < at_ - state_.rules.fence; };
        std::erase_if(state_.heartbeats, old);  // A grant of one would be of no use.
    }
    for (auto& [key, task] : state_.tasks) {
        if (task.held_back || !state_.open) continue;
        if (task.ended() && at_ >= task.told + kTellEndAgain) tell(task);
        if (task.progress && state_.linked && at_ >= task.progress_sent + kProgressEvery) {
            task.progress_sent = at_;
            send(*std::exchange(task.progress, std::nullopt));
        }
    }
    review_lease(state_, at_, step_);
}

}  // namespace

Step step(State& state, const Input& input) {
    Stepper stepper(state, input.at);
    std::visit(stepper, input.event);
    stepper.settle();
    return stepper.take();
}

Time next_wake(const State& state) {
    Time wake = lease_wake(state);
    if (!state.open) return wake;
    wake = std::min(wake, state.next_heartbeat);
    for (const auto& [key, task] : state.tasks) {
        if (task.held_back) continue;
        if (task.ended()) wake = std::min(wake, task.told + kTellEndAgain);
        if (task.progress && state.linked)
            wake = std::min(wake, task.progress_sent + kProgressEvery);
    }
    return wake;
}

Duration absence_allowed(const State& state) {
    if (state.lease != Lease::Outage) return kAbsence;
    return state.rules.suspect + protocol::ask_time(state.rules);
}

std::optional<protocol::PeerWord> word_for_peer(const State& state, Time now) {
    if (now >= state.lease_until) return protocol::PeerWord{.has_controller = false};
    if (!state.granted) return std::nullopt;
    // A new leader counts silence from its own beginning: one that lived for a moment only, in a
    // loop of crashes perhaps, has replaced nothing, and the asker has time to find it.
    const Time heard = state.lease_until - state.rules.fence;
    const bool newcomer =
        state.term_since.ms != 0 && heard - state.term_since < state.rules.suspect;
    return protocol::PeerWord{.has_controller = !newcomer};
}

}  // namespace muster::node
