#include "judge.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/step.h"

namespace muster::swarm {
namespace {

using protocol::TaskKey;
using protocol::TaskState;

constexpr std::array kJobStates = {"job.pending", "job.starting",  "job.running", "job.stopping",
                                   "job.fencing", "job.succeeded", "job.failed",  "job.cancelled"};
constexpr std::array kTaskStates = {"task.accepted", "task.pulling", "task.preparing",
                                    "task.ready",    "task.running", "task.stopping",
                                    "task.ended"};
constexpr std::array kHealth = {"node.unknown", "node.ready", "node.suspect", "node.lost"};
constexpr std::array kLeases = {"lease.live", "lease.asking", "lease.outage", "lease.cut-off"};
constexpr std::array kReasons = {
    "wait.not-evaluated", "wait.never-fits",   "wait.no-nodes",      "wait.not-enough-free",
    "wait.reserved",      "wait.not-eligible", "wait.held",          "wait.dependency",
    "wait.parallel",      "wait.queue-limit",  "wait.borrow-limit",  "wait.lend-limit",
    "wait.user-limit",    "wait.max-jobs",     "wait.user-max-jobs", "wait.guarantee",
    "wait.behind-first",  "wait.window",       "wait.topology",      "wait.victims"};
constexpr std::array kCauses = {"cause.none",      "cause.success",      "cause.user-error",
                                "cause.oom",       "cause.time-limit",   "cause.deadline",
                                "cause.log-rule",  "cause.image",        "cause.launch",
                                "cause.node-lost", "cause.device-fault", "cause.preempted",
                                "cause.requeued",  "cause.cancelled",    "cause.fenced",
                                "cause.peer",      "cause.vanished",     "cause.resized"};

template <class Names, class Value>
const char* named(const Names& names, Value value) {
    return names.at(static_cast<std::size_t>(value));
}

/// A heartbeat or a report of progress changes no book: those need no audit.
bool books_touched(const core::Step& step) {
    for (const core::Change& change : step.changes) {
        if (!std::holds_alternative<core::NodeLivePut>(change) &&
            !std::holds_alternative<core::JobLivePut>(change)) {
            return true;
        }
    }
    return false;
}

}  // namespace

void Referee::fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
}

std::string Referee::name(const TaskKey& key) {
    return std::to_string(key.job.value) + "." + std::to_string(key.epoch) + "." +
           std::to_string(key.rank);
}

void Referee::log(const std::string& line) const {
    if (!verbose_) return;
    std::printf("%10.3f %s\n", static_cast<double>(world_->queue.now().ms) / 1000, line.c_str());
}

// ---- processes --------------------------------------------------------------------------------

void Referee::holds_devices(HostIndex host, const protocol::StartTask& order) {
    const TaskKey& key = order.key;
    log("host " + std::to_string(host) + " prepares task " + name(key));
    for (const std::string& device : order.devices) {
        auto& owners = devices_[{host, device}];
        owners[key] = order.device_share != 0 ? order.device_share : 1'000;
        std::int64_t sum = 0;
        for (const auto& [owner, share] : owners) sum += share;
        if (sum > 1'000) {
            fail("device " + device + " of host " + std::to_string(host) + " is given to task " +
                 name(key) + ", and of its 1000 thousandths " + std::to_string(sum) +
                 " are given to " + std::to_string(owners.size()) + " tasks");
        }
    }
    std::uint32_t& newest = newest_.try_emplace(key.job, key.epoch).first->second;
    if (key.epoch < newest) {
        fail("task " + name(key) + " begins after epoch " + std::to_string(newest) + " began");
    }
    newest = std::max(newest, key.epoch);
    const auto forbidden = forbidden_.find(key.job);
    if (forbidden != forbidden_.end() && key.epoch >= forbidden->second) {
        fail("task " + name(key) + " begins after its job's cancel was acknowledged");
    }
    const auto ended = ended_.find(key.job);
    if (ended != ended_.end()) fail("task " + name(key) + " begins after its job's durable end");
}

void Referee::ready(HostIndex, const protocol::StartTask& order) {
    const Attempt attempt{order.key.job, order.key.epoch};
    ready_[attempt].insert(order.key.rank);
    sizes_[attempt] = order.gang ? order.gang->size() : 1;
}

void Referee::runs(HostIndex host, const protocol::StartTask& order) {
    const TaskKey& key = order.key;
    log("host " + std::to_string(host) + " runs task " + name(key));
    const Attempt attempt{key.job, key.epoch};
    if (ready_[attempt].size() != sizes_[attempt]) {
        fail("task " + name(key) + " passes the barrier when " +
             std::to_string(ready_[attempt].size()) + " of " + std::to_string(sizes_[attempt]) +
             " ranks have come to it");
    }
    auto& epochs = alive_[key.job];
    for (const auto& [epoch, ranks] : epochs) {
        if (epoch == key.epoch || ranks.empty()) continue;
        fail("task " + name(key) + " runs while rank " + std::to_string(*ranks.begin()) +
             " of epoch " + std::to_string(epoch) + " still runs");
    }
    epochs[key.epoch].insert(key.rank);
    if (!running_.insert(key).second) fail("task " + name(key) + " runs twice");
    world_->tally.hit("truth.task-runs");
    if (sizes_[attempt] > 1) world_->tally.hit("truth.gang-task-runs");
}

void Referee::killed(HostIndex, const protocol::StartTask& order) {
    running_.erase(order.key);
    alive_[order.key.job][order.key.epoch].erase(order.key.rank);
}

void Referee::gone(HostIndex host, const protocol::StartTask& order, const model::TaskEnd& end) {
    const TaskKey& key = order.key;
    log("host " + std::to_string(host) + " lost task " + name(key) + " to " +
        named(kCauses, end.cause));
    killed(host, order);
    for (const std::string& device : order.devices) {
        devices_[{host, device}].erase(key);
    }
    if (end.cause == model::Cause::Success) succeeded_[{key.job, key.epoch}].insert(key.rank);
    if (end.cause == model::Cause::Fenced &&
        (no_fence_ || (order.gang && order.gang->size() < 2) || !order.gang)) {
        fail("task " + name(key) + " was stopped as fenced, though nothing cut its node off");
    }
}

// ---- answers ----------------------------------------------------------------------------------

void Referee::acknowledged(const std::string& key, JobId job) {
    const auto [known, fresh] = acknowledged_.try_emplace(key, job);
    if (!fresh && known->second != job) {
        fail("key " + key + " was acknowledged as job " + std::to_string(known->second.value) +
             " and as job " + std::to_string(job.value));
    }
    const auto [owner, first] = key_of_.try_emplace(job, key);
    if (!first && owner->second != key) {
        fail("job id " + std::to_string(job.value) + " was given to " + owner->second + " and to " +
             key);
    }
}

void Referee::cancel_acknowledged(JobId id) {
    if (!world_->controller.alive()) return;
    const core::Job* job = world_->controller.state().tables.jobs.find(id.value);
    if (job == nullptr || core::extra_of(*job).array) return;
    forbidden_.try_emplace(id, model::active(job->state) ? job->epoch + 1 : job->epoch);
}

void Referee::check_acknowledged(const core::State& state) {
    const auto& history = world_->controller.history();
    for (const auto& [key, job] : acknowledged_) {
        if (state.tables.jobs.contains(job.value) || history.contains(job)) continue;
        fail("job " + std::to_string(job.value) + " (" + key + ") was acknowledged and is lost");
    }
}

// ---- the controller ---------------------------------------------------------------------------

void Referee::stepped(const core::State& state, const core::Input& input,
                      const Result<core::Step>& result) {
    if (!result) {
        world_->tally.hit("core.refuses");
        if (verbose_) log("refused: " + result.error().message);
        // A link that was replaced a moment ago may still speak.
        if (!std::holds_alternative<core::FromAgent>(input.event) &&
            !std::holds_alternative<core::ActOnJob>(input.event) &&
            !std::holds_alternative<core::SubmitJob>(input.event) &&
            !std::holds_alternative<core::UpdateJob>(input.event) &&
            !std::holds_alternative<core::PutReservation>(input.event) &&
            !std::holds_alternative<core::DropReservation>(input.event) &&
            !std::holds_alternative<core::ActOnNode>(input.event)) {
            fail("the core refused an event of kind " + std::to_string(input.event.index()) + ": " +
                 result.error().message);
        }
        return;
    }
    if (books_touched(*result)) core::check(state);
    tally_changes(*result);
    for (const core::Change& change : result->changes)
        if (const auto* put = std::get_if<core::JobPut>(&change))
            judge_job(state, put->job, input.at);
    if (verbose_) {
        for (const core::Notice& notice : result->notices) log(notice.json);
    }
}

/// Whatever a planner that is late proposed: what a start or a stop must never be.
void Referee::judge_job(const core::State& state, const core::Job& job, Time now) {
    const Attempt attempt{job.id, job.epoch};
    if (job.state == model::JobState::Starting && started_.insert(attempt).second)
        judge_start(state, job, now);
    const bool preempted =
        job.state == model::JobState::Stopping && job.cause == model::Cause::Preempted;
    if (!preempted || !preempted_.insert(attempt).second) return;
    const core::View& tables = state.tables;
    const bool may = tables.shapes.at(job.shape.value).preemptible &&
                     tables.queues.at(job.queue).settings.preemptible;
    if (!may)
        fail("job " + std::to_string(job.id.value) + " is preempted, though its queue " +
             tables.queues.at(job.queue).name + " or its spec says never");
}

void Referee::judge_start(const core::State& state, const core::Job& job, Time now) {
    const core::View& tables = state.tables;
    const std::string name = "job " + std::to_string(job.id.value);
    const core::Allocation& allocation = *core::extra_of(job).allocation;
    for (const QueueId id : core::chain_of(tables, {job.queue})) {
        const core::Queue& queue = tables.queues.at(id.value);
        const core::QueueUse& use = tables.queue_use.at(id.value);
        const std::int64_t most = queue.settings.max_jobs;
        if (most >= 0 && use.active > most)
            fail(name + " starts as one of " + std::to_string(use.active) + " in queue " +
                 queue.name + ", which may run " + std::to_string(most));
        for (const model::Amount& limit : queue.settings.limit) {
            const auto of = [&](const model::Amounts& amounts) {
                const auto found =
                    std::ranges::find(amounts, limit.resource, &model::Amount::resource);
                return found == amounts.end() ? 0 : found->value;
            };
            const std::int64_t used = of(use.running);
            if (used <= limit.value || of(allocation.devices) == 0) continue;
            fail(name + " starts, and queue " + queue.name + " uses " + std::to_string(used) +
                 " of " + std::to_string(limit.value) + " " + limit.resource);
        }
    }
    const scheduler::Shape& shape = tables.shapes.at(job.shape.value);
    std::set<std::vector<std::string>> domains;
    for (const core::Placed& slot : allocation.slots) {
        auto path = model::path_of(*tables.topology, *tables.nodes.at(slot.node.value).facts);
        if (shape.topology.required != tables.topology->levels.back()) path.pop_back();
        domains.insert(std::move(path));
    }
    if (!shape.topology.required.empty() && domains.size() > 1)
        fail(name + " starts in " + std::to_string(domains.size()) + " domains of " +
             shape.topology.required);
    const auto contains = [](const std::vector<std::string>& names, const std::string& one) {
        return std::ranges::find(names, one) != names.end();
    };
    tables.reservations.for_each([&](std::uint64_t, const model::Reservation& kept) {
        const bool now_on = std::ranges::any_of(kept.windows, [&](const auto& window) {
            return window.start <= now && now < window.end;
        });
        if (!now_on) return;
        bool his = contains(kept.users, tables.users.at(job.user).name);
        for (const QueueId id : core::chain_of(tables, {job.queue}))
            his = his || contains(kept.queues, tables.queues.at(id.value).name);
        if (his && !kept.maintenance) return;
        for (const core::Placed& slot : allocation.slots) {
            if (!std::ranges::binary_search(kept.nodes, slot.node)) continue;
            fail(name + " starts on a node that reservation " + kept.name + " keeps from it");
        }
    });
}

void Referee::tally_changes(const core::Step& step) {
    simulator::Tally& tally = world_->tally;
    for (const core::Change& change : step.changes) {
        if (const auto* put = std::get_if<core::JobPut>(&change)) {
            tally.hit(named(kJobStates, put->job.state));
            tally.hit(named(kCauses, put->job.cause));
        } else if (const auto* live = std::get_if<core::NodeLivePut>(&change)) {
            tally.hit(named(kHealth, live->live.health));
        } else if (const auto* wait = std::get_if<core::WaitPut>(&change)) {
            tally.hit(named(kReasons, wait->why.reason));
        } else if (const auto* shape = std::get_if<core::ShapeWaitPut>(&change)) {
            tally.hit(named(kReasons, shape->why.reason));
        } else if (const auto* freeze = std::get_if<core::FreezePut>(&change)) {
            if (freeze->frozen) tally.hit("cluster.frozen");
        }
    }
}

void Referee::stored(const std::vector<simulator::StoredJob>& jobs) {
    for (const simulator::StoredJob& job : jobs) {
        const auto known = ended_.find(job.job);
        if (known != ended_.end() && job.state && *job.state != known->second) {
            fail("job " + std::to_string(job.job.value) + " left " +
                 named(kJobStates, known->second) + " for " + named(kJobStates, *job.state));
        }
        if (!job.state || !model::ended(*job.state) || known != ended_.end()) continue;
        ended_.emplace(job.job, *job.state);
        if (*job.state != model::JobState::Succeeded) continue;
        const Attempt attempt{job.job, job.epoch};
        const auto size = sizes_.find(attempt);
        if (size != sizes_.end() && succeeded_[attempt].size() != size->second) {
            fail("job " + std::to_string(job.job.value) + " succeeded, but only " +
                 std::to_string(succeeded_[attempt].size()) + " of its " +
                 std::to_string(size->second) + " ranks did");
        }
    }
}

void Referee::recovered(const core::State& state) {
    check_acknowledged(state);
    for (const auto& [job, end] : ended_) {
        const core::Job* found = state.tables.jobs.find(job.value);
        if (found != nullptr && found->state != end) {
            fail("job " + std::to_string(job.value) + " is no longer " + named(kJobStates, end) +
                 " after a recovery");
        }
        if (found == nullptr && !world_->controller.history().contains(job)) {
            fail("job " + std::to_string(job.value) + " ended and is in no record");
        }
    }
    const std::uint64_t expected = std::exchange(expected_digest_, 0);
    if (expected != 0 && core::digest(state) != expected) {
        fail("the state rebuilt from the disk is not the one that was stored");
    }
    log("the controller recovered");
}

// ---- agents -----------------------------------------------------------------------------------

void Referee::agent_stepped(HostIndex host, const node::State& state, const node::Input& input,
                            const node::Step& step) {
    node::check(state);
    simulator::Tally& tally = world_->tally;
    const bool started = std::holds_alternative<node::Started>(input.event);
    if (started) leases_.erase(host), terms_.erase(host);
    auto& [count, lease] = leases_[host];
    if (lease != state.lease || count++ == 0) {
        lease = state.lease;
        tally.hit(named(kLeases, lease));
        log("host " + std::to_string(host) + " " + named(kLeases, lease));
    }
    if (state.term < terms_[host]) fail("host " + std::to_string(host) + " forgot a term");
    terms_[host] = state.term;
    if (const auto* seen = std::get_if<node::FromRuntime>(&input.event)) {
        if (const auto* status = std::get_if<protocol::TaskStatus>(&seen->message)) {
            tally.hit(named(kTaskStates, status->state));
        }
    }
    for (const node::Command& command : step.commands) {
        const auto* start = std::get_if<node::StartRun>(&command);
        if (start != nullptr && start->order.term < state.term) {
            fail("host " + std::to_string(host) + " obeyed term " +
                 std::to_string(start->order.term) + ", though it knew term " +
                 std::to_string(state.term));
        }
    }
}

}  // namespace muster::swarm
