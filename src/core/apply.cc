// The only mutator: one change, its table, and every index that follows from it.
#include <algorithm>

#include "base/require.h"
#include "core/indexes.h"

namespace muster::core {
namespace {

using model::active;

bool counted(const NodeLive& live) {
    return live.heard.ms != 0;
}

/// As a peer of others.
bool same_place(const model::NodeFacts& a, const model::NodeFacts& b) {
    return a.peer_port == b.peer_port && a.addresses == b.addresses &&
           model::label(a, "leaf") == model::label(b, "leaf");
}

class Apply {
public:
    explicit Apply(State& state) : state_(state), tables_(state.tables), index_(*state.indexes) {}

    void operator()(const MetaPut& change) { tables_.meta = change.meta; }
    void operator()(const JobPut& change) {
        with_timer(TimerKind::Job, change.job.id.value, [&] { put(change.job); });
    }
    void operator()(const JobDropped& change) {
        const Job job = tables_.jobs.at(change.id.value);
        MUSTER_REQUIRE(!active(job.state));
        if (!index_.live) return tables_.jobs.erase(change.id.value);
        tables_.predicted.erase(change.id.value);
        with_timer(TimerKind::Job, change.id.value, [&] {
            unlink(job);
            tables_.jobs.erase(change.id.value);
        });
    }
    void operator()(const SpecPut& change) {
        MUSTER_REQUIRE(!tables_.specs.contains(change.id.value));
        Spec spec = change.spec;
        spec.uses = 0;
        index_.spec_by_content.insert({spec.content, change.id});
        tables_.specs.upsert(change.id.value) = std::move(spec);
    }
    void operator()(const SpecDropped& change) {
        const Spec& spec = tables_.specs.at(change.id.value);
        MUSTER_REQUIRE(spec.uses == 0);
        index_.spec_by_content.erase({spec.content, change.id});
        auto& cached = index_.decoded[change.id.value % index_.decoded.size()];
        if (cached.first == change.id) cached = {};
        tables_.specs.erase(change.id.value);
    }
    void operator()(const ShapePut& change) {
        const ShapeId id = change.shape.id;
        MUSTER_REQUIRE(!tables_.shapes.contains(id.value));
        index_.shape_by_ask.emplace(scheduler::encode(change.shape), id);
        tables_.shapes.upsert(id.value) = change.shape;
    }
    void operator()(const ShapeDropped& change) {
        MUSTER_REQUIRE(!index_.shape_uses.contains(change.id));
        index_.shape_by_ask.erase(scheduler::encode(tables_.shapes.at(change.id.value)));
        tables_.shapes.erase(change.id.value);
        tables_.shape_waits.erase(change.id.value);
    }
    void operator()(const NodePut& change) {
        const NodeId id = change.node.id;
        with_timer(TimerKind::Node, id.value, [&] {
            const Node* old = tables_.nodes.find(id.value);
            if (old == nullptr || !same_place(*old->facts, *change.node.facts))
                ++index_.leaves_changes;
            if (old != nullptr) {
                forget_leaf(*old);
                index_.node_by_name.erase(old->facts->name);
            } else {
                tables_.node_use.upsert(id.value);
                tables_.node_live.upsert(id.value);
            }
            index_.node_by_name.emplace(change.node.facts->name, id);
            if (change.node.facts->peer_port != 0)
                index_.leaves[std::string(model::label(*change.node.facts, "leaf"))].insert(id);
            tables_.nodes.upsert(id.value) = change.node;
        });
    }
    void operator()(const NodeDropped& change) {
        const std::uint64_t id = change.id.value;
        MUSTER_REQUIRE(tables_.node_use.at(id).jobs.empty());
        with_timer(TimerKind::Node, id, [&] {
            forget_leaf(tables_.nodes.at(id));
            ++index_.leaves_changes;
            index_.node_by_name.erase(tables_.nodes.at(id).facts->name);
            leave(tables_.node_live.at(id), change.id);
            tables_.node_live.erase(id);
            tables_.node_use.erase(id);
            tables_.nodes.erase(id);
        });
    }
    void operator()(const QueuePut& change) {
        index_.queue_by_name[change.queue.name] = change.queue.id;
        tables_.queues.upsert(change.queue.id.value) = change.queue;
    }
    void operator()(const QueueDropped& change) {
        MUSTER_REQUIRE(!tables_.queue_use.contains(change.id.value));
        index_.queue_by_name.erase(tables_.queues.at(change.id.value).name);
        tables_.queues.erase(change.id.value);
    }
    void operator()(const TopologyPut& change) { tables_.topology = change.topology; }
    void operator()(const RulesPut& change) { tables_.rules = change.rules; }
    void operator()(const ReservationPut& change) {
        const model::Reservation& made = change.reservation;
        with_timer(TimerKind::Reservation, made.id.value, [&] {
            if (const auto* old = tables_.reservations.find(made.id.value))
                index_.reservation_by_name.erase(old->name);
            index_.reservation_by_name[made.name] = made.id;
            tables_.reservations.upsert(made.id.value) = made;
        });
    }
    void operator()(const ReservationDropped& change) {
        with_timer(TimerKind::Reservation, change.id.value, [&] {
            index_.reservation_by_name.erase(tables_.reservations.at(change.id.value).name);
            tables_.reservations.erase(change.id.value);
        });
    }
    void operator()(const UsagePut& change) {
        tables_.usage.upsert(usage_key(change.usage.queue, change.usage.user)) = change.usage;
    }
    void operator()(const UsageDropped& change) {
        tables_.usage.erase(usage_key(change.queue, change.user));
    }
    void operator()(const RunTimesPut& change) {
        const RunTimes& times = change.times;
        if (const RunTimes* old = tables_.run_times.find(times.id))
            index_.run_times_by_age.erase({old->at, old->id});
        link(times);
        tables_.run_times.upsert(times.id) = times;
    }
    void operator()(const RunTimesDropped& change) {
        const RunTimes& times = tables_.run_times.at(change.id);
        index_.run_times_by_age.erase({times.at, times.id});
        const auto user = index_.run_times_by_name.find(times.user);
        user->second.erase(times.name);
        if (user->second.empty()) index_.run_times_by_name.erase(user);
        tables_.run_times.erase(change.id);
    }
    void operator()(const PredictedPut& change) {
        tables_.predicted.upsert(change.id.value) = change.prediction;
    }
    void operator()(const BookingsPut& change) {
        tables_.bookings = change.bookings;
        index_.booked.clear();
        if (!change.bookings) return;
        for (const scheduler::Booking& booking : *change.bookings)
            index_.booked.insert(booking.job);
    }
    void operator()(const UserPut& change) {
        index_.user_by_name[change.user.name] = change.user.id;
        tables_.users.upsert(change.user.id.value) = change.user;
    }
    void operator()(const TokenPut& change) {
        with_timer(TimerKind::Token, change.token.id,
                   [&] { tables_.tokens.upsert(change.token.id) = change.token; });
    }
    void operator()(const TokenDropped& change) {
        with_timer(TimerKind::Token, change.id, [&] { tables_.tokens.erase(change.id); });
    }
    void operator()(const IdempotencyPut& change) {
        const Idempotency& entry = change.entry;
        with_timer(TimerKind::Idempotency, entry.id, [&] {
            index_.idempotency_by_key[{entry.key_high, entry.key_low}] = entry.id;
            tables_.idempotency.upsert(entry.id) = entry;
        });
    }
    void operator()(const IdempotencyDropped& change) {
        with_timer(TimerKind::Idempotency, change.id, [&] {
            const Idempotency& entry = tables_.idempotency.at(change.id);
            index_.idempotency_by_key.erase({entry.key_high, entry.key_low});
            tables_.idempotency.erase(change.id);
        });
    }
    void operator()(const JobLivePut& change) {
        MUSTER_REQUIRE(active(tables_.jobs.at(change.id.value).state));
        with_timer(TimerKind::Job, change.id.value,
                   [&] { tables_.live.upsert(change.id.value) = change.live; });
    }
    void operator()(const JobLiveDropped& change) {
        with_timer(TimerKind::Job, change.id.value, [&] { tables_.live.erase(change.id.value); });
    }
    void operator()(const TaskPut& change) {
        JobLive& live = tables_.live.edit(change.id.value);
        MUSTER_REQUIRE(change.status.key.rank < live.tasks.size());
        live.tasks[change.status.key.rank] = change.status;
    }
    void operator()(const ProgressPut& change) {
        JobLive& live = tables_.live.edit(change.id.value);
        MUSTER_REQUIRE(change.progress.key.rank < live.progress.size());
        live.progress[change.progress.key.rank] = change.progress;
        live.best_step = std::max(live.best_step, change.progress.step);
    }
    void operator()(const NodeLivePut& change) {
        with_timer(TimerKind::Node, change.id.value, [&] {
            MUSTER_REQUIRE(tables_.nodes.contains(change.id.value));
            NodeLive& live = tables_.node_live.edit(change.id.value);
            leave(live, change.id);
            live = change.live;
            if (counted(live)) ++index_.health[static_cast<std::size_t>(live.health)];
            if (live.session != 0) index_.node_by_session[live.session] = change.id;
        });
    }
    void operator()(const WaitPut& change) { tables_.waits.upsert(change.id.value) = change.why; }
    void operator()(const WaitDropped& change) { tables_.waits.erase(change.id.value); }
    void operator()(const ShapeWaitPut& change) {
        if (tables_.shapes.contains(change.id.value))
            tables_.shape_waits.upsert(change.id.value) = change.why;
    }
    void operator()(const FreezePut& change) {
        tables_.frozen = change.frozen;
        if (!index_.live) return;
        std::vector<Timer> others;
        for (const Timer& timer : index_.timers)
            if (timer.kind == TimerKind::Node) others.push_back(timer);
        for (const Timer& timer : others) index_.timers.erase(timer);
        tables_.nodes.for_each([&](std::uint64_t id, const Node&) { arm(TimerKind::Node, id); });
    }

    void rebuild() {
        index_ = Indexes{};
        index_.live = true;
        tables_.pending = tables_.active = 0;
        tables_.node_use = {};
        tables_.elements = {};
        tables_.queue_use = {};
        const CowTree<Spec> specs = tables_.specs;
        specs.for_each([&](std::uint64_t id, const Spec& spec) {
            index_.spec_by_content.insert({spec.content, {id}});
            tables_.specs.edit(id).uses = 0;
        });
        tables_.shapes.for_each([&](std::uint64_t id, const scheduler::Shape& shape) {
            index_.shape_by_ask.emplace(scheduler::encode(shape), ShapeId{id});
        });
        tables_.nodes.for_each([&](std::uint64_t id, const Node& node) {
            tables_.node_use.upsert(id);
            const NodeLive& live = tables_.node_live.upsert(id);
            if (counted(live)) ++index_.health[static_cast<std::size_t>(live.health)];
            if (live.session != 0) index_.node_by_session[live.session] = {id};
            index_.node_by_name.emplace(node.facts->name, NodeId{id});
            if (node.facts->peer_port != 0)
                index_.leaves[std::string(model::label(*node.facts, "leaf"))].insert({id});
        });
        tables_.queues.for_each(
            [&](std::uint64_t id, const Queue& queue) { index_.queue_by_name[queue.name] = {id}; });
        tables_.users.for_each(
            [&](std::uint64_t id, const User& user) { index_.user_by_name[user.name] = {id}; });
        tables_.idempotency.for_each([&](std::uint64_t id, const Idempotency& entry) {
            index_.idempotency_by_key[{entry.key_high, entry.key_low}] = id;
        });
        tables_.run_times.for_each([&](std::uint64_t, const RunTimes& times) { link(times); });
        tables_.reservations.for_each([&](std::uint64_t id, const model::Reservation& made) {
            index_.reservation_by_name[made.name] = {id};
        });
        (*this)(BookingsPut{tables_.bookings});
        tables_.jobs.for_each([&](std::uint64_t, const Job& job) { take_nodes(job), link(job); });
        rebuild_timers(state_);
    }

private:
    Time wake(TimerKind kind, std::uint64_t id) const {
        switch (kind) {
            case TimerKind::Job: return job_wake(state_, {id});
            case TimerKind::Node: return node_wake(state_, {id});
            case TimerKind::Token: {
                const Token* token = tables_.tokens.find(id);
                return token == nullptr ? kNever : token->expires;
            }
            case TimerKind::Idempotency: {
                const Idempotency* entry = tables_.idempotency.find(id);
                return entry == nullptr ? kNever : entry->expires;
            }
            case TimerKind::Reservation: return reservation_wake(state_, {id});
        }
        return kNever;
    }
    void arm(TimerKind kind, std::uint64_t id) {
        const Time at = wake(kind, id);
        if (at < kNever) index_.timers.insert({at, kind, id});
    }
    template <class Mutate>
    void with_timer(TimerKind kind, std::uint64_t id, Mutate mutate) {
        if (!index_.live) return mutate();
        const Time before = wake(kind, id);
        mutate();
        const Time after = wake(kind, id);
        if (before == after) return;
        if (before < kNever) index_.timers.erase({before, kind, id});
        if (after < kNever) index_.timers.insert({after, kind, id});
    }
    void leave(const NodeLive& live, NodeId id) {
        if (counted(live)) --index_.health[static_cast<std::size_t>(live.health)];
        const auto at = index_.node_by_session.find(live.session);
        if (live.session != 0 && at != index_.node_by_session.end() && at->second == id)
            index_.node_by_session.erase(at);
    }
    void forget_leaf(const Node& node) {
        const auto at = index_.leaves.find(model::label(*node.facts, "leaf"));
        if (at == index_.leaves.end()) return;
        at->second.erase(node.id);
        if (at->second.empty()) index_.leaves.erase(at);
    }

    void put(const Job& job) {
        MUSTER_REQUIRE(job.id.value > 0 && job.id.value <= kJobIdMax);
        MUSTER_REQUIRE(active(job.state) == extra_of(job).allocation.has_value());
        if (!index_.live) {
            tables_.jobs.upsert(job.id.value) = job;
            return;
        }
        if (job.state != model::JobState::Pending) tables_.predicted.erase(job.id.value);
        const Job* old = tables_.jobs.find(job.id.value);
        // A new version of a job mostly refers to the same things: touch only what differs.
        if (old != nullptr && old->spec == job.spec && old->shape == job.shape &&
            old->queue == job.queue && old->state == job.state && old->extra == job.extra) {
            tables_.jobs.edit(job.id.value) = job;
            return;
        }
        if (old != nullptr) {
            const Job before = *old;
            const bool same_nodes =
                active(before.state) && active(job.state) && before.epoch == job.epoch;
            if (!same_nodes) free_nodes(before), take_nodes(job);
            relink(before, job);
        } else {
            take_nodes(job);
            link(job);
        }
        tables_.jobs.upsert(job.id.value) = job;
    }
    void relink(const Job& before, const Job& job) {
        if (before.state != job.state || before.queue != job.queue)
            count(before, -1), count(job, 1);
        promise(before, false), promise(job, true);
        if (before.spec != job.spec) use_spec(before.spec, -1), use_spec(job.spec, 1);
        if (before.shape != job.shape) use_shape(before.shape, -1), use_shape(job.shape, 1);
        if (extra_of(before).waiting_for != extra_of(job).waiting_for)
            depend(before, false), depend(job, true);
    }
    void link(const RunTimes& times) {
        index_.run_times_by_name[times.user][times.name] = times.id;
        index_.run_times_by_age.insert({times.at, times.id});
    }
    void link(const Job& job) {
        count(job, 1);
        promise(job, true);
        use_spec(job.spec, 1);
        use_shape(job.shape, 1);
        depend(job, true);
        if (job.array_job != 0)
            tables_.elements.upsert(job.array_job).upsert(job.array_element) = job.id;
    }
    void unlink(const Job& job) {
        count(job, -1);
        promise(job, false);
        use_spec(job.spec, -1);
        use_shape(job.shape, -1);
        depend(job, false);
        if (job.array_job == 0) return;
        CowTree<JobId>& elements = tables_.elements.edit(job.array_job);
        elements.erase(job.array_element);
        if (elements.empty()) tables_.elements.erase(job.array_job);
    }
    void count(const Job& job, std::int64_t by) {
        const bool runs = active(job.state);
        if (runs) tables_.active += by;
        const bool waits = job.state == model::JobState::Pending;
        if (waits) tables_.pending += by;
        const auto add = [&](QueueUse& use) {
            use.jobs += by;
            if (waits) use.pending += by;
            if (!runs) return;
            use.active += by;
            add_to(use.running, *extra_of(job).allocation, by);
        };
        const UserId user{job.user};
        for (QueueId queue{job.queue}; queue; queue = tables_.queues.at(queue.value).parent) {
            QueueUse& use = tables_.queue_use.upsert(queue.value);
            add(use);
            if (use.jobs == 0) tables_.queue_use.erase(queue.value);
            const auto of_user = index_.user_use.try_emplace({queue, user}).first;
            add(of_user->second);
            if (of_user->second.jobs == 0) index_.user_use.erase(of_user);
        }
        if (!runs) return;
        const UsageRate more = rate_of(*extra_of(job).allocation);
        const auto rate = index_.usage_rate.try_emplace({QueueId{job.queue}, user}).first;
        rate->second.devices += by * more.devices;
        rate->second.cpus += by * more.cpus;
        rate->second.memory += by * more.memory;
        if (rate->second == UsageRate{}) index_.usage_rate.erase(rate);
    }
    /// What it is promised, and for whom it stops.
    void promise(const Job& job, bool on) {
        const JobExtra& extra = extra_of(job);
        const auto put = [&](auto& index, auto key) {
            auto& set = index[key];
            if (on)
                set.insert(job.id);
            else
                set.erase(job.id);
            if (set.empty()) index.erase(key);
        };
        if (extra.claim)
            for (const scheduler::Slot& slot : extra.claim->slots) put(index_.claims, slot.node);
        if (extra.beneficiary && active(job.state)) put(index_.stopping_for, extra.beneficiary);
    }
    void use_spec(SpecId id, int by) {
        if (id) tables_.specs.edit(id.value).uses += static_cast<std::uint32_t>(by);
    }
    void use_shape(ShapeId id, int by) {
        if (!id) return;
        std::uint32_t& uses = index_.shape_uses[id];
        uses += static_cast<std::uint32_t>(by);
        if (uses == 0) index_.shape_uses.erase(id);
    }
    void depend(const Job& job, bool on) {
        for (const model::Dependency& dependency : extra_of(job).waiting_for) {
            std::set<JobId>& set = index_.dependents[dependency.job];
            if (on)
                set.insert(job.id);
            else
                set.erase(job.id);
            if (set.empty()) index_.dependents.erase(dependency.job);
        }
    }
    static DeviceShare share(const Job& job, const Placed& slot, const std::string& device) {
        const bool whole = slot.share == 0;
        return {device, job.id, whole ? 1000 : slot.share, whole ? Bytes{} : slot.share_memory};
    }
    /// Never more than the device has (F27), and never beside a whole owner (F28).
    static void take_device(NodeUse& use, DeviceShare more) {
        std::int64_t sum = more.share;
        if (use.devices.empty() || use.devices.back().device < more.device) {  // In their order.
            MUSTER_REQUIRE(sum <= 1000);
            use.devices.push_back(std::move(more));
            return;
        }
        for (const DeviceShare& other : use.shares_of(more.device)) sum += other.share;
        MUSTER_REQUIRE(sum <= 1000);
        const auto at = std::ranges::upper_bound(use.devices, more);
        use.devices.insert(at, std::move(more));
    }
    void take_nodes(const Job& job) {
        if (!active(job.state)) return;
        const bool exclusive = job.shape && tables_.shapes.at(job.shape.value).exclusive;
        for (const Placed& slot : extra_of(job).allocation->slots) {
            NodeUse& use = tables_.node_use.edit(slot.node.value);
            use.cpus += slot.cpus, use.memory += slot.memory, use.disk += slot.disk;
            for (const std::string& device : slot.devices)
                take_device(use, share(job, slot, device));
            use.jobs.insert(std::ranges::upper_bound(use.jobs, job.id), job.id);
            use.exclusive = exclusive;
        }
    }
    void free_nodes(const Job& job) {
        if (!active(job.state)) return;
        for (const Placed& slot : extra_of(job).allocation->slots) {
            NodeUse& use = tables_.node_use.edit(slot.node.value);
            use.cpus -= slot.cpus, use.memory -= slot.memory, use.disk -= slot.disk;
            if (use.jobs.size() == 1) {  // All of it is this job's.
                MUSTER_REQUIRE(use.jobs.front() == job.id);
                MUSTER_REQUIRE(use.devices.size() == slot.devices.size());
                use.devices.clear();
                use.jobs.clear();
                use.exclusive = false;
                continue;
            }
            for (const std::string& device : slot.devices) {
                const auto at = std::ranges::lower_bound(use.devices, share(job, slot, device));
                MUSTER_REQUIRE(at != use.devices.end() && *at == share(job, slot, device));
                use.devices.erase(at);
            }
            const auto at = std::ranges::lower_bound(use.jobs, job.id);
            MUSTER_REQUIRE(at != use.jobs.end() && *at == job.id);
            use.jobs.erase(at);
            if (use.jobs.empty()) use.exclusive = false;
        }
    }

    State& state_;
    View& tables_;
    Indexes& index_;
};

}  // namespace

void apply_change(State& state, const Change& change) {
    std::visit(Apply(state), change);
}

void rebuild_indexes(State& state) {
    Apply(state).rebuild();
}

}  // namespace muster::core
