// The books: every derived table and index is made again from the records, and compared.
#include <algorithm>

#include "base/require.h"
#include "core/indexes.h"

namespace muster::core {
namespace {

using model::active;

void check_job(const State& state, const Job& job) {
    const View& tables = state.tables;
    const JobExtra& extra = extra_of(job);
    MUSTER_REQUIRE(tables.specs.contains(job.spec.value));
    MUSTER_REQUIRE(tables.users.contains(job.user) && tables.queues.contains(job.queue));
    MUSTER_REQUIRE(job.id.value < tables.meta.next_job);
    MUSTER_REQUIRE(model::ended(job.state) == !job.shape);
    MUSTER_REQUIRE(!job.shape || tables.shapes.contains(job.shape.value));
    MUSTER_REQUIRE(active(job.state) == extra.allocation.has_value());
    MUSTER_REQUIRE(active(job.state) == tables.live.contains(job.id.value));
    MUSTER_REQUIRE(job.held == !extra.hold_owner.empty());
    if (!active(job.state)) return;
    MUSTER_REQUIRE(extra.allocation->epoch == job.epoch);
    const scheduler::Shape& shape = tables.shapes.at(job.shape.value);
    std::int64_t least = 0, most = 0;
    for (const scheduler::GroupAsk& group : shape.groups)
        least += group.nodes, most += std::max(group.nodes, group.nodes_max);
    const auto ranks = static_cast<std::int64_t>(ranks_of(*extra.allocation));
    MUSTER_REQUIRE(least <= ranks && ranks <= most);
    MUSTER_REQUIRE(static_cast<std::int64_t>(extra.allocation->slots.size()) - ranks <=
                   shape.topology.spares);
    MUSTER_REQUIRE(tables.live.at(job.id.value).tasks.size() == ranks_of(*extra.allocation));
}

/// Promises are of jobs that wait or are being resized; who stops for another says why.
void check_promises(const State& state, const Job& job) {
    const JobExtra& extra = extra_of(job);
    if (extra.claim) {
        const bool waits = queued(job);
        const bool resized = active(job.state) && job.state > model::JobState::Running;
        MUSTER_REQUIRE(waits || resized);
        MUSTER_REQUIRE(!extra.claim->slots.empty());
        for (const scheduler::Slot& slot : extra.claim->slots)
            MUSTER_REQUIRE(state.tables.nodes.contains(slot.node.value));
    }
    MUSTER_REQUIRE(!extra.beneficiary || active(job.state));
    MUSTER_REQUIRE(!state.tables.predicted.contains(job.id.value) ||
                   job.state == model::JobState::Pending);
}

/// Devices are never given away twice: neither whole beside parts (F28), nor parts beyond what
/// there is (F27).
void check_devices(const model::NodeFacts& facts, const NodeUse& use) {
    MUSTER_REQUIRE(std::ranges::is_sorted(use.devices));
    for (auto at = use.devices.begin(); at != use.devices.end();) {
        const auto shares = use.shares_of(at->device);
        std::int64_t sum = 0;
        Bytes memory;
        for (const DeviceShare& each : shares) sum += each.share, memory += each.memory;
        MUSTER_REQUIRE(sum <= 1000);
        const auto device =
            std::ranges::lower_bound(facts.devices, at->device, {}, &model::Device::id);
        if (device != facts.devices.end() && device->id == at->device)
            MUSTER_REQUIRE(memory <= std::max(memory.value > 0 ? device->memory : memory, Bytes{}));
        at += static_cast<std::ptrdiff_t>(shares.size());
    }
}

void check_queues(const State& state) {
    const View& tables = state.tables;
    tables.queues.for_each([&](std::uint64_t id, const Queue& queue) {
        MUSTER_REQUIRE(queue.id.value == id && queue.parent.value < id);
        MUSTER_REQUIRE(!queue.parent || tables.queues.contains(queue.parent.value));
    });
    tables.usage.for_each([&](std::uint64_t id, const Usage& usage) {
        MUSTER_REQUIRE(id == usage_key(usage.queue, usage.user));
        MUSTER_REQUIRE(tables.queues.contains(usage.queue.value));
        MUSTER_REQUIRE(usage.devices >= 0 && usage.cpus >= 0 && usage.memory >= 0);
    });
    // What runs is being counted.
    for (const auto& [key, rate] : state.indexes->usage_rate)
        MUSTER_REQUIRE(tables.usage.contains(usage_key(key.first, key.second)));
    for (const JobId booked : state.indexes->booked)
        MUSTER_REQUIRE(queued(tables.jobs.at(booked.value)));
}

void check_array(const State& state, const Job& parent) {
    const JobExtra& extra = extra_of(parent);
    if (!extra.array) return;
    const ArrayBook& book = *extra.array;
    std::int64_t waiting = static_cast<std::int64_t>(book.held.size()), end = -1;
    for (const ElementRange& range : book.waiting) {
        MUSTER_REQUIRE(end < range.first && range.first < range.last);
        waiting += range.last - range.first;
        end = range.last;
    }
    std::int64_t live = 0;
    if (const CowTree<JobId>* elements = state.tables.elements.find(parent.id.value))
        elements->for_each([&](std::uint64_t, JobId id) {
            live += model::ended(state.tables.jobs.at(id.value).state) ? 0 : 1;
        });
    MUSTER_REQUIRE(live == book.live);
    const auto spec = cached_spec(state, parent.spec);
    MUSTER_REQUIRE(waiting + book.live + book.succeeded + book.failed + book.cancelled ==
                   spec->array.count);
    MUSTER_REQUIRE(spec->array.parallel == 0 || book.live <= spec->array.parallel);
}

bool same(const NodeUse& a, const NodeUse& b) {
    return a.cpus == b.cpus && a.memory == b.memory && a.disk == b.disk && a.devices == b.devices &&
           a.jobs == b.jobs && a.exclusive == b.exclusive;
}

template <class T, class Same>
void require_same(const CowTree<T>& a, const CowTree<T>& b, Same equal) {
    MUSTER_REQUIRE(a.size() == b.size());
    a.for_each([&](std::uint64_t id, const T& value) {
        const T* other = b.find(id);
        MUSTER_REQUIRE(other != nullptr && equal(value, *other));
    });
}

void check_indexes(const State& state) {
    State again;
    again.tables = state.tables;
    again.settings = state.settings;
    rebuild_indexes(again);
    const Indexes& a = *state.indexes;
    const Indexes& b = *again.indexes;
    MUSTER_REQUIRE(a.node_by_name == b.node_by_name);
    MUSTER_REQUIRE(a.node_by_session == b.node_by_session);
    MUSTER_REQUIRE(a.queue_by_name == b.queue_by_name);
    MUSTER_REQUIRE(a.user_by_name == b.user_by_name);
    MUSTER_REQUIRE(a.spec_by_content == b.spec_by_content);
    MUSTER_REQUIRE(a.shape_by_ask == b.shape_by_ask);
    MUSTER_REQUIRE(a.shape_uses == b.shape_uses);
    MUSTER_REQUIRE(a.dependents == b.dependents);
    MUSTER_REQUIRE(a.idempotency_by_key == b.idempotency_by_key);
    MUSTER_REQUIRE(a.leaves == b.leaves);
    MUSTER_REQUIRE(a.health == b.health);
    MUSTER_REQUIRE(a.timers == b.timers);
    MUSTER_REQUIRE(a.user_use == b.user_use);
    MUSTER_REQUIRE(a.usage_rate == b.usage_rate);
    MUSTER_REQUIRE(a.run_times_by_name == b.run_times_by_name);
    MUSTER_REQUIRE(a.run_times_by_age == b.run_times_by_age);
    MUSTER_REQUIRE(a.reservation_by_name == b.reservation_by_name);
    MUSTER_REQUIRE(a.claims == b.claims);
    MUSTER_REQUIRE(a.stopping_for == b.stopping_for);
    MUSTER_REQUIRE(a.booked == b.booked);
    require_same(state.tables.queue_use, again.tables.queue_use,
                 [](const QueueUse& x, const QueueUse& y) { return x == y; });
    MUSTER_REQUIRE(state.tables.pending == again.tables.pending);
    MUSTER_REQUIRE(state.tables.active == again.tables.active);
    require_same(state.tables.node_use, again.tables.node_use, same);
    require_same(state.tables.specs, again.tables.specs,
                 [](const Spec& x, const Spec& y) { return x.uses == y.uses && x.uses > 0; });
    require_same(state.tables.elements, again.tables.elements,
                 [](const CowTree<JobId>& x, const CowTree<JobId>& y) {
                     require_same(x, y, [](JobId p, JobId q) { return p == q; });
                     return true;
                 });
}

}  // namespace

void check(const State& state) {
    const View& tables = state.tables;
    if (!state.indexes->live) return;  // Records are being loaded.
    tables.jobs.for_each([&](std::uint64_t id, const Job& job) {
        MUSTER_REQUIRE(id == job.id.value);
        check_job(state, job);
        check_array(state, job);
        check_promises(state, job);
    });
    tables.nodes.for_each([&](std::uint64_t id, const Node& node) {
        const NodeUse& use = tables.node_use.at(id);
        MUSTER_REQUIRE(tables.node_live.contains(id) && node.id.value == id);
        check_devices(*node.facts, use);
        MUSTER_REQUIRE(use.cpus.value >= 0 && use.memory.value >= 0 && use.disk.value >= 0);
    });
    tables.shapes.for_each([&](std::uint64_t id, const scheduler::Shape&) {
        MUSTER_REQUIRE(state.indexes->shape_uses.contains({id}));
    });
    tables.waits.for_each([&](std::uint64_t id, const scheduler::Blocked&) {
        const Job* job = tables.jobs.find(id);
        MUSTER_REQUIRE(job != nullptr && job->state == model::JobState::Pending);
    });
    check_queues(state);
    check_indexes(state);
}

}  // namespace muster::core
