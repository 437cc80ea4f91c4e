#include "simulator/controller.h"

#include <algorithm>

#include "base/hash.h"
#include "base/require.h"

namespace muster::simulator {

ModelController::ModelController(EventQueue& queue, Prng& random, Tally& tally, Network& network,
                                 Disk& disk, ControllerRules rules, Sabotage sabotage,
                                 NameOf name_of, ControllerWatcher& watcher)
    : queue_(queue),
      random_(random),
      tally_(tally),
      network_(network),
      disk_(disk),
      rules_(std::move(rules)),
      sabotage_(std::move(sabotage)),
      name_of_(std::move(name_of)),
      watcher_(watcher) {}

std::function<void()> ModelController::of_this_process(std::function<void()> action) {
    return [this, incarnation = incarnation_, action = std::move(action)] {
        if (alive_ && incarnation_ == incarnation) action();
    };
}

void ModelController::note(std::uint64_t value) {
    trace_ = (trace_ ^ value) * 0x100000001b3;
}

// ---- life and death ---------------------------------------------------------------------------

void ModelController::start() {
    if (alive_) return;
    alive_ = true;
    ++incarnation_;
    clock_.restart();
    last_ = {};
    state_ = std::make_unique<core::State>();
    state_->settings = rules_.settings;
    for (const auto& [key, bytes] : disk_.recover()) {
        const core::RecordName name{static_cast<core::RecordKind>(key.kind), key.id};
        const Result<core::Change> change = core::decode_record(name, bytes);
        MUSTER_REQUIRE(static_cast<bool>(change));
        core::apply_change(*state_, *change);
    }
    const Status loaded = core::finish_load(*state_);
    MUSTER_REQUIRE(static_cast<bool>(loaded));
    watcher_.recovered(*state_);
    index_ = std::make_unique<scheduler::PlanIndex>();
    for (const scheduler::Change& change : core::feed_all(*state_)) index_->apply(change);
    const std::uint64_t term = disk_.term() + 1;
    disk_.take_term(term);
    feed(core::BecomeLeader{term}, {});
    ask_for_plan();
}

void ModelController::crash(bool silent) {
    if (!alive_) return;
    alive_ = false;
    ++incarnation_;
    sessions_.clear();
    network_.controller_dies(silent);
    disk_.crash();
    if (in_flight_) tally_.hit("controller.dies-in-commit");
    outbox_ = {};
    in_flight_.reset();
    waiting_.clear();
    unplanned_.clear();
    stalled_until_ = {};
    armed_ = kNever;
    pump_asked_ = plan_wanted_ = planning_ = sync_fails_ = false;
    archiving_ = 0;
    state_.reset();
    index_.reset();
}

bool ModelController::settled() const {
    return alive_ && outbox_.empty() && !in_flight_ && waiting_.empty() && !plan_wanted_ &&
           !planning_ && archiving_ == 0;
}

bool ModelController::planner_agrees() const {
    if (!unplanned_.empty()) return true;  // It has not been told yet.
    scheduler::PlanIndex made;
    for (const scheduler::Change& change : core::feed_all(*state_)) made.apply(change);
    return made.digest() == index_->digest();
}

// ---- inputs -----------------------------------------------------------------------------------

void ModelController::request(core::Event event, Reply reply) {
    if (!alive_) return;
    if (auto* submit = std::get_if<core::SubmitJob>(&event)) {
        if (disk_.full()) {
            tally_.hit("client.refused-full");
            return reply(Error{Code::NoSpace, "the controller's disk is full"});
        }
        refill(*submit);
    }
    feed(std::move(event), std::move(reply));
}

void ModelController::refill(core::SubmitJob& submit) const {
    submit.ended.clear();
    for (const model::Dependency& dependency : submit.spec.depends) {
        const auto ended = history_.find(dependency.job);
        if (ended != history_.end()) submit.ended.push_back({ended->first, ended->second});
    }
}

void ModelController::got(std::uint64_t session, HostIndex host,
                          const protocol::AgentMessage& message) {
    if (!alive_) return;
    protocol::AgentMessage heard = message;
    if (sabotage_.up) sabotage_.up(*state_, heard);
    if (const auto* hello = std::get_if<protocol::Hello>(&heard)) {
        if (!sessions_.emplace(session, host).second) return;
        return feed(core::LinkOpened{session, name_of_(host), "", *hello}, {});
    }
    if (sessions_.contains(session)) feed(core::FromAgent{session, std::move(heard)}, {});
}

void ModelController::closed(std::uint64_t session) {
    if (alive_ && sessions_.erase(session) != 0) feed(core::LinkClosed{session}, {});
}

void ModelController::stall(Duration time) {
    if (!alive_ || queue_.now() < stalled_until_) return;
    stalled_until_ = queue_.now() + time;
    queue_.at(stalled_until_, of_this_process([this] {
                  const std::deque<Waiting> waiting = std::exchange(waiting_, {});
                  for (const Waiting& one : waiting) feed(one.event, one.reply);
                  armed_ = kNever;
                  arm();
              }));
}

void ModelController::feed(core::Event event, Reply reply) {
    if (!alive_) return;
    if (queue_.now() < stalled_until_) {
        waiting_.push_back({std::move(event), std::move(reply)});
        return;
    }
    last_ = std::max(last_, clock_.read(queue_.now()));
    const core::Input input{last_, std::move(event)};
    Result<core::Step> result = core::step(*state_, input);
    ++steps_;
    note(input.event.index());
    note(static_cast<std::uint64_t>(last_.ms));
    watcher_.stepped(*state_, input, result);
    if (!result) {
        note(static_cast<std::uint64_t>(result.error().code));
        if (reply) outbox_.answers.push_back({std::move(reply), std::move(result).error()});
    } else {
        note(result->changes.size() << 16 | result->commands.size());
        collect(*std::move(result), std::move(reply));
    }
    if (!pump_asked_ && !outbox_.empty()) {
        pump_asked_ = true;
        queue_.after(rules_.group, of_this_process([this] {
                         pump_asked_ = false;
                         pump();
                     }));
    }
    arm();
}

void ModelController::collect(core::Step step, Reply reply) {
    if (sabotage_.step) sabotage_.step(step);
    for (const core::Change& change : step.changes) {
        if (const auto name = core::record_of(change)) outbox_.touched.insert(*name);
    }
    for (const core::Notice& notice : step.notices) tally_.hit("notice." + notice.type);
    std::move(step.commands.begin(), step.commands.end(), std::back_inserter(outbox_.commands));
    std::move(step.planning.begin(), step.planning.end(), std::back_inserter(outbox_.planning));
    if (!reply) return;
    if (sabotage_.acknowledge_early) return reply(step.answer);
    outbox_.answers.push_back({std::move(reply), std::move(step.answer)});
}

void ModelController::arm() {
    const Time wake = clock_.when(core::next_wake(*state_));
    if (wake == armed_) return;
    armed_ = wake;
    const std::uint64_t timer = ++timer_;
    if (wake == kNever) return;
    queue_.at(wake, of_this_process([this, timer] {
                  if (timer != timer_ || queue_.now() < stalled_until_) return;
                  armed_ = kNever;
                  feed(core::Tick{}, {});
              }));
}

// ---- group commit -----------------------------------------------------------------------------

void ModelController::pump() {
    if (in_flight_ || outbox_.empty()) return;
    in_flight_jobs_.clear();
    auto batch = std::make_shared<const ports::Batch>(batch_of(outbox_, in_flight_jobs_));
    in_flight_ = std::exchange(outbox_, {});
    if (batch->puts.empty() && batch->drops.empty()) {
        release(*std::exchange(in_flight_, std::nullopt));
        return;
    }
    write(std::move(batch));
}

ports::Batch ModelController::batch_of(const Outbox& outbox, std::vector<StoredJob>& jobs) const {
    ports::Batch batch;
    batch.term = state_->tables.meta.term;
    for (const core::RecordName& name : outbox.touched) {
        const ports::RecordKey key{static_cast<ports::RecordKind>(name.kind), name.id};
        std::optional<std::string> bytes = core::encode_record(*state_, name);
        if (name.kind == core::RecordKind::Job) {
            StoredJob stored{.job = {name.id}, .state = {}};
            if (const core::Job* job = state_->tables.jobs.find(name.id)) {
                stored.state = job->state;
                stored.epoch = job->epoch;
            }
            jobs.push_back(stored);
        }
        if (bytes)
            batch.puts.push_back({key, *std::move(bytes)});
        else
            batch.drops.push_back(key);
    }
    return batch;
}

void ModelController::write(std::shared_ptr<const ports::Batch> batch) {
    const Status status = disk_.write(*batch);
    if (!status) {
        MUSTER_REQUIRE(status.error().code == Code::NoSpace);
        tally_.hit("disk.no-space");
        queue_.after({200}, of_this_process([this, batch] { write(batch); }));
        return;
    }
    Duration latency{random_.between(rules_.commit_min.ms, rules_.commit_max.ms)};
    if (rules_.slow_commit_per_mille != 0 && random_.chance(rules_.slow_commit_per_mille)) {
        tally_.hit("disk.slow");
        latency = {random_.between(rules_.commit_max.ms, rules_.slow_commit_max.ms)};
    }
    queue_.after(latency, of_this_process([this] { synced(); }));
}

void ModelController::synced() {
    if (std::exchange(sync_fails_, false)) {
        tally_.hit("disk.sync-fails");
        crash(false);  // What the disk holds now is not to be believed: end, and recover.
        if (on_death_) on_death_();
        return;
    }
    disk_.sync();
    watcher_.stored(in_flight_jobs_);
    release(*std::exchange(in_flight_, std::nullopt));
    pump();
}

void ModelController::release(Outbox outbox) {
    for (core::Command& command : outbox.commands) carry_out(command);
    if (!outbox.planning.empty()) {
        std::move(outbox.planning.begin(), outbox.planning.end(), std::back_inserter(unplanned_));
        if (!(planning_ && sabotage_.lose_wakeups)) ask_for_plan();
    }
    for (auto& [reply, answer] : outbox.answers) reply(answer);
}

void ModelController::carry_out(const core::Command& command) {
    if (const auto* send = std::get_if<core::Send>(&command)) {
        protocol::ControllerMessage message = send->message;
        if (sabotage_.down) sabotage_.down(message);
        network_.send_down(send->session, std::move(message));
    } else if (const auto* close = std::get_if<core::CloseLink>(&command)) {
        tally_.hit("controller.closes-link");
        network_.close(close->session, Network::End::Controller, true);
        if (sessions_.erase(close->session) != 0) feed(core::LinkClosed{close->session}, {});
    } else {
        archive(std::get<core::Archive>(command).job);
    }
}

void ModelController::archive(JobId id) {
    const core::Job* job = state_->tables.jobs.find(id.value);
    if (job == nullptr) return;  // Archived meanwhile.
    MUSTER_REQUIRE(model::ended(job->state));
    const model::JobState state = job->state;
    ++archiving_;
    const Duration latency{random_.between(rules_.archive_min.ms, rules_.archive_max.ms)};
    queue_.after(latency, of_this_process([this, id, state] {
                     --archiving_;
                     const auto kept = history_.emplace(id, state).first;
                     MUSTER_REQUIRE(kept->second == state);
                     feed(core::Archived{{id}}, {});
                 }));
}

// ---- the planner ------------------------------------------------------------------------------

void ModelController::ask_for_plan() {
    if (plan_wanted_ || !alive_) return;
    plan_wanted_ = true;
    if (!planning_) queue_.after({1}, of_this_process([this] { plan(); }));
}

void ModelController::plan() {
    if (planning_ || !plan_wanted_) return;
    plan_wanted_ = false;
    planning_ = true;
    for (const scheduler::Change& change : std::exchange(unplanned_, {})) index_->apply(change);
    const Time at = std::max(last_, clock_.read(queue_.now()));
    scheduler::Plan made = index_->plan(at);
    const Duration latency{random_.between(rules_.plan_min.ms, rules_.plan_max.ms)};
    if (made.wake != kNever) {
        queue_.at(clock_.when(made.wake), of_this_process([this] { ask_for_plan(); }));
    }
    queue_.after(latency, of_this_process([this, made = std::move(made)] {
                     planning_ = false;
                     if (!made.complete) plan_wanted_ = true;
                     feed(core::PlanProposed{made}, {});
                     if (plan_wanted_) queue_.after({1}, of_this_process([this] { plan(); }));
                 }));
}

}  // namespace muster::simulator
