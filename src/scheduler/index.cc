#include "scheduler/index.h"

#include <algorithm>
#include <limits>

#include "base/require.h"
#include "scheduler/place.h"

namespace muster::scheduler {
namespace {

using State = PlanIndex::State;

constexpr std::size_t kGpus = 0, kCpus = 1, kMemory = 2;

Bytes memory_of(const Shape& shape, const Slot& slot) {
    return slot.memory.value > 0 ? slot.memory : shape.groups[slot.group].memory;
}

/// Pools, cells and the way from a device to its cell.
void read_facts(State& state, NodeEntry& node) {
    node.pools.clear();
    node.cell_of.clear();
    for (const model::Device& device : node.facts->devices) {
        const std::uint32_t pool = state.pool_of(device);
        auto share = std::ranges::find(node.pools, pool, &NodePool::pool);
        if (share == node.pools.end()) {
            node.pools.push_back({.pool = pool});
            share = node.pools.end() - 1;
        }
        auto cell = std::ranges::find_if(share->cells, [&](const Cell& known) {
            return known.link == device.link_group && known.numa == device.numa;
        });
        if (cell == share->cells.end()) {
            share->cells.push_back({.link = device.link_group, .numa = device.numa});
            cell = share->cells.end() - 1;
        }
        if (device.healthy) ++cell->healthy, ++share->healthy;
        node.cell_of.push_back({static_cast<std::uint16_t>(share - node.pools.begin()),
                                static_cast<std::uint16_t>(cell - share->cells.begin()),
                                device.healthy ? 1 : 0});
    }
}

struct Apply {
    State& state;

    void operator()(const NodeChanged& change) {
        NodeEntry& node = state.nodes[change.id];
        const bool known = node.facts != nullptr;
        auto path = change.path;
        path.resize(state.levels.size());
        const bool same_place = known && node.path == path;
        const bool same_facts = known && node.facts == change.facts;
        if (same_place && same_facts) {
            if (node.usable != change.usable) state.unusable += change.usable ? -1 : 1;
            node.usable = change.usable, node.risk = change.risk;
            state.show(node);
            if (node.usable) state.wake_list(state.waiting_node);
            if (node.usable)
                state.wake_at(node);
            else if (state.unusable == std::ssize(state.nodes))
                state.wake_all();  // All wait for another reason now.
            else
                wake_avoiders();
            return;
        }
        std::vector<StartedJob*> here;
        for (const NodeHold& hold : node.held)
            if (std::ranges::find(here, hold.job) == here.end()) here.push_back(hold.job);
        for (StartedJob* job : here) rates(*job, -1);
        node.id = change.id, node.facts = change.facts, node.usable = change.usable;
        node.path = std::move(path), node.risk = change.risk;
        state.stale = true;
        read_facts(state, node);
        for (NodeHold& hold : node.held)
            hold.take = take_of(node, hold.job->start.slots[hold.slot], hold.job->shape->shape);
        for (StartedJob* job : here) {  // What they use is read in the new facts.
            state.use(job->shape->queue, *job->user_book, job->demand, -1);
            job->demand = demand_of(*job);
            state.use(job->shape->queue, *job->user_book, job->demand, +1);
            weigh(*job), rates(*job, +1);
        }
        for (NodeClaim& claim : node.claims) claim.take = {};
        state.recount(node);
        for (const JobId job : state.claimants) claim(state.queued.at(job), false);
        for (const JobId job : state.claimants) claim(state.queued.at(job), true);
    }
    void operator()(const NodeRemoved& change) {
        const auto at = state.nodes.find(change.id);
        MUSTER_REQUIRE(at != state.nodes.end() && at->second.held.empty());
        state.nodes.erase(at);
        state.stale = true;
    }
    void operator()(const LevelsChanged& change) {
        state.levels = change.levels;
        state.stale = true;
    }
    void operator()(const RulesChanged& change) {
        state.rules = change.rules;
        for (Pool& pool : state.pools) {
            pool.weight = pool.speed = 1000;
            for (const auto& [kind, weight] : state.rules.kind_weights)
                if (kind == pool.kind) pool.weight = weight;
            for (const auto& [kind, speed] : state.rules.kind_speeds)
                if (kind == pool.kind) pool.speed = speed;
        }
        state.stale = true;
        ++state.pools_version;
        for (auto& [id, job] : state.started) rates(job, -1);
        for (auto& [id, job] : state.started) weigh(job), rates(job, +1);
    }
    void operator()(const QueueChanged& change) {
        QueueEntry& queue = state.queues[change.queue.id];
        const bool was = bool(queue.queue.id);
        const auto policy = queue.queue.settings.policy;
        queue.queue = change.queue;
        state.bounds_of(queue);
        set_parent(queue, change.queue.parent);
        const bool by_user = queue.by_user;
        const model::QueueSettings& settings = queue.queue.settings;
        queue.by_user = settings.policy == model::QueuePolicy::Fair ||
                        !settings.user_limit.empty() || settings.user_max_jobs >= 0;
        if (was && (policy != settings.policy || by_user != queue.by_user)) rekey(queue);
        state.wake_all();
    }
    void operator()(const QueueRemoved& change) {
        const auto at = state.queues.find(change.id);
        MUSTER_REQUIRE(at != state.queues.end() && at->second.children.empty());
        MUSTER_REQUIRE(at->second.shapes.empty());
        set_parent(at->second, {});
        state.queues.erase(at);
        state.wake_all();
    }
    void operator()(const UsageChanged& change) {
        QueueEntry& queue = queue_of(change.queue);
        UsageBook& book = user_of(queue, change.user).usage;
        book.devices = change.devices, book.cpus = change.cpus, book.memory = change.memory;
        book.as_of = change.as_of;
    }
    void operator()(const ReservationChanged& change) {
        state.reservations[change.reservation.id] = change.reservation;
        state.stale = true;
    }
    void operator()(const ReservationRemoved& change) {
        state.reservations.erase(change.id);
        state.stale = true;
    }
    void operator()(const UserNamed& change) { state.users[change.id] = change.name; }
    void operator()(const ShapeAdded& change) {
        const auto [at, added] = state.shapes.try_emplace(change.shape.id);
        MUSTER_REQUIRE(added);
        at->second.shape = change.shape;
        at->second.queue = &queue_of(change.shape.queue);
        at->second.queue->shapes[change.shape.id] = &at->second;
        at->second.typical = state.fragmentation.enter(change.shape);
    }
    void operator()(const ShapeRemoved& change) {
        const auto at = state.shapes.find(change.id);
        MUSTER_REQUIRE(at != state.shapes.end() && at->second.jobs == 0);
        forget(at->second);
        at->second.queue->shapes.erase(change.id);
        state.fragmentation.leave(at->second.shape);
        state.shapes.erase(at);
    }
    void operator()(const JobQueued& change) {
        const auto known = state.queued.find(change.id);
        const bool again = known != state.queued.end();
        const QueuedJob* const old = again ? &known->second : nullptr;
        // In another place of its queue, its window binds others than before.
        const bool moved =
            again &&
            (old->ask.priority != change.priority || old->ask.submitted != change.submitted ||
             old->ask.predicted != change.predicted || old->ask.attained != change.attained);
        if (moved &&
            std::ranges::find(state.bookings, change.id, &Booking::job) != state.bookings.end())
            wake_queue(*old->shape->queue);
        if (again) remove(known);
        MUSTER_REQUIRE(change.count > 0);
        QueuedJob& job = state.queued[change.id];
        job.ask = change;
        job.shape = &state.shapes.at(change.shape);
        ++job.shape->jobs;
        ++job.shape->queue->pending;
        ask(*job.shape, change.count);
        if (change.claim != nullptr) {
            state.claimants.insert(change.id);
            claim(job, true);
        }
        if (change.eligible <= state.seen)
            state.enter(job);
        else
            state.sleeping.insert({change.eligible, change.id});
    }
    void operator()(const JobUnqueued& change) {
        const auto at = state.queued.find(change.id);
        MUSTER_REQUIRE(at != state.queued.end());
        remove(at);
        const auto gone = std::erase_if(
            state.bookings, [&](const Booking& booking) { return booking.job == change.id; });
        if (gone > 0 && !state.stale) state.place_bookings();
    }
    void operator()(const JobStarted& change) {
        const auto known = state.started.find(change.id);
        if (known != state.started.end()) release(known);
        StartedJob& job = state.started[change.id];
        job.start = change;
        job.shape = &state.shapes.at(change.shape);
        QueueEntry& queue = *job.shape->queue;
        job.user_book = &user_of(queue, change.user);
        for (std::uint32_t i = 0; i < change.slots.size(); ++i) {
            NodeEntry& node = state.nodes.at(change.slots[i].node);
            NodeHold hold{&job, i, take_of(node, change.slots[i], job.shape->shape)};
            state.take(node, hold.take, +1);
            const auto later = [](const NodeHold& a, const NodeHold& b) {
                return std::tuple(a.job->start.expected_end, a.job->start.id, a.slot) <
                       std::tuple(b.job->start.expected_end, b.job->start.id, b.slot);
            };
            node.held.insert(std::ranges::upper_bound(node.held, hold, later), hold);
            if (!node.claims.empty()) state.recount(node);
            // Its end is known now: there may be room beside it before a window.
            if (!node.bookings.empty()) state.wake_at(node);
        }
        job.demand = demand_of(job);
        ask(*job.shape, 1);
        weigh(job);
        rates(job, +1);
        state.use(&queue, *job.user_book, job.demand, +1);
        ++queue.priorities[change.priority];
        for (std::size_t group = 0; group < job.shape->shape.groups.size(); ++group)
            if (job.shape->shape.groups[group].nodes_max > job.shape->shape.groups[group].nodes)
                state.elastic.insert(change.id);
        if (!state.stale) state.count_span(job, +1);
    }
    void operator()(const JobSaved& change) { state.started.at(change.id).start.saved = change.at; }
    void operator()(const JobStopping& change) {
        StartedJob& job = state.started.at(change.id);
        job.stopping = true;
        job.beneficiary = change.beneficiary;
        job.until = change.until;
        for (const Slot& slot : job.start.slots) {
            NodeEntry& node = state.nodes.at(slot.node);
            if (node.claims.empty()) continue;
            state.recount(node);  // What it holds is not promised twice any more.
            state.wake_at(node);
        }
    }
    void operator()(const JobReleased& change) {
        const auto at = state.started.find(change.id);
        MUSTER_REQUIRE(at != state.started.end());
        release(at);
    }
    void operator()(const PlanRefused&) { state.wake_all(); }
    void operator()(const BookingsChanged& change) {
        std::vector<Booking> kept;
        for (const Booking& booking : change.bookings)
            if (state.queued.contains(booking.job)) kept.push_back(booking);
        const auto alike = [](const Booking& a, const Booking& b) {
            return a.job == b.job && a.at == b.at && a.slots == b.slots;
        };
        const bool moved = !std::ranges::equal(kept, state.bookings, alike);
        state.bookings = std::move(kept);
        if (moved && !state.stale) state.place_bookings();
    }

private:
    QueueEntry& queue_of(QueueId id) {
        QueueEntry& queue = state.queues[id];
        if (!queue.queue.id) {  // A flat queue that nobody described: no bounds.
            queue.queue.id = id;
            state.bounds_of(queue);
        }
        return queue;
    }
    UserBook& user_of(QueueEntry& queue, UserId user) {
        UserBook& book = queue.users[user];
        book.used.resize(state.resources.size());
        return book;
    }
    void ask(const ShapeEntry& entry, std::int64_t jobs) {
        state.fragmentation.count(entry.shape, entry.typical, jobs);
    }
    void set_parent(QueueEntry& queue, QueueId parent) {
        QueueEntry* to = parent ? &queue_of(parent) : nullptr;
        if (queue.parent == to) return;
        const auto move_use = [&](QueueEntry* from, int sign) {
            for (; from != nullptr; from = from->parent) {
                for (std::size_t i = 0; i < from->used.size(); ++i)
                    from->used[i] += sign * queue.used[i];
                from->running += sign * queue.running;
            }
        };
        move_use(queue.parent, -1);
        if (queue.parent != nullptr) std::erase(queue.parent->children, &queue);
        queue.parent = to;
        if (to == nullptr) return;
        move_use(to, +1);
        const auto by_id = [](const QueueEntry* entry) { return entry->queue.id; };
        to->children.insert(std::ranges::lower_bound(to->children, queue.queue.id, {}, by_id),
                            &queue);
    }
    /// No list may name a shape that is gone.
    void forget(const ShapeEntry& entry) {
        QueueEntry& queue = *entry.queue;
        std::erase(queue.awake, &entry);
        const auto of_shape = [&](const Sleeper& sleeper) { return sleeper.shape == &entry; };
        if (of_shape(queue.first)) queue.first = {};
        for (QueueEntry* at = &queue; at != nullptr; at = at->parent)
            std::erase_if(at->limited, of_shape);
        for (Shelf& shelf : state.shelves)
            for (auto& list : shelf.waiting) std::erase_if(list, of_shape);
        std::erase_if(state.untried, of_shape);
        std::erase_if(state.waiting_any, of_shape);
        std::erase_if(state.reserved, of_shape);
        std::erase_if(state.waiting_node, of_shape);
        std::erase(state.woken, &entry);
        for (auto& [kind, list] : state.waiting_window) std::erase_if(list, of_shape);
        state.timed.erase({entry.timer, entry.shape.id});
    }
    void rekey(QueueEntry& queue) {
        for (auto& [id, job] : state.queued) {
            if (job.shape->queue != &queue || job.lane == nullptr) continue;
            state.leave(job);
            state.enter(job);
        }
    }
    void remove(std::map<JobId, QueuedJob>::iterator at) {
        QueuedJob& job = at->second;
        if (job.lane != nullptr)
            state.leave(job);
        else
            state.sleeping.erase({job.ask.eligible, job.ask.id});
        if (job.ask.claim != nullptr) {
            claim(job, false);
            state.claimants.erase(job.ask.id);
        }
        --job.shape->jobs;
        --job.shape->queue->pending;
        ask(*job.shape, -job.ask.count);
        state.queued.erase(at);
    }
    /// Puts a promise into the books of its nodes, or takes it out.
    void claim(QueuedJob& job, bool in) {
        for (const Slot& slot : job.ask.claim->slots) {
            const auto at = state.nodes.find(slot.node);
            if (at == state.nodes.end()) continue;
            NodeEntry& node = at->second;
            std::erase_if(node.claims, [&](const NodeClaim& c) { return c.job == job.ask.id; });
        }
        for (const Slot& slot : job.ask.claim->slots) {
            const auto at = state.nodes.find(slot.node);
            if (at == state.nodes.end()) continue;
            NodeEntry& node = at->second;
            if (in) node.claims.push_back({job.ask.id, claimed(node, slot, *job.shape)});
            std::ranges::sort(node.claims, {}, &NodeClaim::job);
            state.recount(node);
            if (!in) state.wake_at(node);
        }
    }
    /// Of a promise only numbers are known: cells are filled in order.
    Take claimed(const NodeEntry& node, const Slot& slot, const ShapeEntry& entry) {
        const GroupAsk& group = entry.shape.groups[slot.group];
        Take take;
        take.cpus = node_cpus(group, slot.alternative, *node.facts, entry.shape.exclusive);
        take.memory = group.memory, take.disk = group.disk;
        take.exclusive = entry.shape.exclusive;
        const model::DeviceAsk& ask = ask_of(group, slot.alternative);
        std::int64_t left = ask.fraction > 0 || ask.share_memory.value > 0 ? 1 : ask.count;
        for (std::uint16_t p = 0; p < node.pools.size(); ++p) {
            if (!matches_pool(ask, state.pools[node.pools[p].pool], true)) continue;
            if (left > node.pools[p].healthy) continue;
            for (std::uint16_t c = 0; c < node.pools[p].cells.size() && left > 0; ++c) {
                const auto some = std::min<std::int64_t>(left, node.pools[p].cells[c].healthy);
                if (some > 0) take.cells.push_back({p, c, static_cast<std::int32_t>(some)});
                left -= some;
            }
            break;
        }
        return take;
    }
    void release(std::map<JobId, StartedJob>::iterator at) {
        StartedJob& job = at->second;
        if (!state.stale) state.count_span(job, -1);
        ask(*job.shape, -1);
        state.use(job.shape->queue, *job.user_book, job.demand, -1);
        rates(job, -1);
        auto& priorities = job.shape->queue->priorities;
        if (--priorities[job.start.priority] == 0) priorities.erase(job.start.priority);
        for (const Slot& slot : job.start.slots) {
            NodeEntry& node = state.nodes.at(slot.node);
            const auto of_job = [&](const NodeHold& hold) { return hold.job == &job; };
            std::vector<Take> given;
            for (const NodeHold& hold : node.held)
                if (of_job(hold)) given.push_back(hold.take);
            if (given.empty()) continue;  // A second slot on the same node.
            std::erase_if(node.held, of_job);
            if (node.claims.empty())
                for (const Take& take : given) state.take(node, take, -1);
            else
                state.recount(node);
            state.wake_at(node);
        }
        state.wake_limited(job.shape->queue);
        state.elastic.erase(at->first);
        state.started.erase(at);
    }
    Demand demand_of(const StartedJob& job) {
        ResourceVec sum(state.resources.size());
        const auto add = [&](const std::string& name, std::int64_t amount) {
            const auto known = std::ranges::find(state.resources, name);
            if (known != state.resources.end())
                sum[static_cast<std::size_t>(known - state.resources.begin())] += amount;
        };
        for (const Slot& slot : job.start.slots) {
            sum[kCpus] += slot.cpus.value;
            sum[kMemory] += memory_of(job.shape->shape, slot).value;
            const model::NodeFacts& facts = *state.nodes.at(slot.node).facts;
            for (const std::string& id : slot.devices) {
                const auto device =
                    std::ranges::lower_bound(facts.devices, id, {}, &model::Device::id);
                if (device == facts.devices.end() || device->id != id) continue;
                const std::int64_t milli = part_of(job.shape->shape, slot, *device);
                sum[kGpus] += milli;
                add(device->kind, milli);
                if (device->device_class != device->kind) add(device->device_class, milli);
            }
        }
        Demand out;
        for (std::uint32_t i = 0; i < sum.size(); ++i)
            if (sum[i] != 0) out.emplace_back(i, sum[i]);
        return out;
    }
    /// A node is lost: those that avoid others may have to take these after all.
    void wake_avoiders() {
        for (auto& [id, entry] : state.shapes)
            if (entry.avoiders > 0) state.wake(entry);
    }
    void wake_queue(QueueEntry& queue) {
        for (const auto& [id, entry] : queue.shapes)
            if (entry->jobs > 0) state.wake(*entry);
    }
    void weigh(StartedJob& job) {
        job.weight_devices = job.devices = job.cpus = job.memory_gib = 0;
        for (const Slot& slot : job.start.slots) {
            job.cpus += slot.cpus.value;
            job.memory_gib += memory_of(job.shape->shape, slot).value >> 30;
            const NodeEntry& node = state.nodes.at(slot.node);
            for (const std::string& id : slot.devices) {
                const auto device =
                    std::ranges::lower_bound(node.facts->devices, id, {}, &model::Device::id);
                if (device == node.facts->devices.end() || device->id != id) continue;
                const std::int64_t milli = part_of(job.shape->shape, slot, *device);
                job.devices += milli;
                job.weight_devices += milli * state.pools[state.pool_of(*device)].weight / 1000;
            }
        }
    }
    static std::int64_t part_of(const Shape& shape, const Slot& slot, const model::Device& device) {
        const model::DeviceAsk& ask = ask_of(shape.groups[slot.group], slot.alternative);
        return part_milli(ask, device.memory);
    }
    void rates(StartedJob& job, int sign) {
        UsageBook& usage = job.user_book->usage;
        usage.devices_rate += sign * job.weight_devices;
        usage.cpus_rate += sign * job.cpus;
        usage.memory_rate += sign * job.memory_gib;
    }
};

}  // namespace

PlanIndex::State::State() : resources{"gpus", "cpus", "memory"}, capacity(3), used(3) {}
PlanIndex::State::~State() = default;

std::int64_t part_milli(const model::DeviceAsk& ask, Bytes device_memory) {
    if (ask.fraction > 0) return ask.fraction;
    if (ask.share_memory.value <= 0) return 1000;
    if (device_memory.value <= 0) return 1000;
    const std::int64_t mib = std::max<std::int64_t>(1, device_memory.value >> 20);
    return std::clamp<std::int64_t>(((ask.share_memory.value >> 20) * 1000 + mib - 1) / mib, 1,
                                    1000);
}

Take take_of(const NodeEntry& node, const Slot& slot, const Shape& shape) {
    Take take;
    take.cpus = slot.cpus, take.memory = slot.memory, take.disk = slot.disk;
    take.exclusive = shape.exclusive;
    const model::DeviceAsk& ask = ask_of(shape.groups[slot.group], slot.alternative);
    const bool part = ask.fraction > 0 || ask.share_memory.value > 0;
    for (const std::string& id : slot.devices) {
        const auto at = std::ranges::lower_bound(node.facts->devices, id, {}, &model::Device::id);
        if (at == node.facts->devices.end() || at->id != id) continue;
        const auto index = static_cast<std::size_t>(at - node.facts->devices.begin());
        const CellTake& cell = node.cell_of[index];
        if (cell.count == 0) continue;
        if (part) {
            take.part_pool = cell.pool;
            take.part_device = static_cast<std::uint32_t>(index);
            take.part_milli = part_milli(ask, at->memory);
            take.part_memory = ask.share_memory;
            continue;
        }
        const auto known = std::ranges::find_if(take.cells, [&](const CellTake& taken) {
            return taken.pool == cell.pool && taken.cell == cell.cell;
        });
        if (known == take.cells.end())
            take.cells.push_back(cell);
        else
            ++known->count;
    }
    return take;
}

bool matches_pool(const model::DeviceAsk& ask, const Pool& pool, bool share_unenforced) {
    const bool kind = ask.kind.empty() || ask.kind == "any" || ask.kind == pool.kind ||
                      ask.kind == pool.device_class;
    const bool part = ask.fraction > 0 || ask.share_memory.value > 0;
    if (part && !pool.share_enforced && !share_unenforced) return false;
    if (part && ask.share_memory > pool.memory) return false;
    return kind && (ask.vendor.empty() || ask.vendor == pool.vendor) &&
           ask.memory_min <= pool.memory && ask.profile == pool.profile;
}

std::uint32_t PlanIndex::State::resource_of(const std::string& name) {
    const auto at = std::ranges::find(resources, name);
    if (at != resources.end()) return static_cast<std::uint32_t>(at - resources.begin());
    resources.push_back(name);
    capacity.push_back(0);
    used.push_back(0);
    for (auto& [id, queue] : queues) {
        for (ResourceVec* bound : {&queue.guarantee, &queue.limit, &queue.borrow_limit,
                                   &queue.lend_limit, &queue.user_limit})
            bound->push_back(-1);
        queue.used.push_back(0);
        for (auto& [user, book] : queue.users) book.used.push_back(0);
    }
    recount_use(static_cast<std::uint32_t>(resources.size() - 1));
    stale = true;  // Capacity of the new resource.
    ++pools_version;
    return static_cast<std::uint32_t>(resources.size() - 1);
}

/// A resource that was not named before: what runs uses it already.
void PlanIndex::State::recount_use(std::uint32_t resource) {
    const std::string& name = resources[resource];
    for (auto& [id, job] : started) {
        std::int64_t amount = 0;
        for (const Slot& slot : job.start.slots) {
            const model::NodeFacts& facts = *nodes.at(slot.node).facts;
            const model::DeviceAsk& ask =
                ask_of(job.shape->shape.groups[slot.group], slot.alternative);
            for (const std::string& device_id : slot.devices) {
                const auto at =
                    std::ranges::lower_bound(facts.devices, device_id, {}, &model::Device::id);
                if (at == facts.devices.end() || at->id != device_id) continue;
                if (at->kind == name || at->device_class == name)
                    amount += part_milli(ask, at->memory);
            }
        }
        if (amount == 0) continue;
        job.demand.emplace_back(resource, amount);
        job.user_book->used[resource] += amount;
        used[resource] += amount;
        for (QueueEntry* queue = job.shape->queue; queue != nullptr; queue = queue->parent)
            queue->used[resource] += amount;
    }
}

void PlanIndex::State::bounds_of(QueueEntry& entry) {
    const model::QueueSettings& settings = entry.queue.settings;
    for (const model::Amounts* amounts :
         {&settings.guarantee, &settings.limit, &settings.borrow_limit, &settings.lend_limit,
          &settings.user_limit})
        for (const model::Amount& amount : *amounts) resource_of(amount.resource);
    const auto read = [&](const model::Amounts& amounts) {
        ResourceVec out(resources.size(), -1);
        for (const model::Amount& amount : amounts)
            out[resource_of(amount.resource)] = amount.value;
        return out;
    };
    entry.guarantee = read(settings.guarantee), entry.limit = read(settings.limit);
    entry.borrow_limit = read(settings.borrow_limit), entry.lend_limit = read(settings.lend_limit);
    entry.user_limit = read(settings.user_limit);
    entry.has_guarantee = !settings.guarantee.empty();
    entry.lends = !settings.lend_limit.empty();
    entry.used.resize(resources.size());
}

void PlanIndex::State::enter(QueuedJob& job) {
    const JobQueued& ask = job.ask;
    ShapeEntry& entry = *job.shape;
    QueueEntry& queue = *entry.queue;
    UserBook& book = queue.users[ask.user];
    book.used.resize(resources.size());
    const LaneId id{queue.by_user ? ask.user : UserId{}, ask.priority};
    const auto [at, added] = entry.lanes.try_emplace(id);
    Lane& lane = at->second;
    if (added) {
        lane.shape = &entry, lane.priority = ask.priority;
        if (queue.by_user) lane.user_book = &book;
    }
    const auto policy = queue.queue.settings.policy;
    job.rank = 0;
    if (policy == model::QueuePolicy::Shortest)
        job.rank = ask.predicted.p50.ms > 0 ? ask.predicted.p50.ms : kDurationMax.ms;
    if (policy == model::QueuePolicy::Las) job.rank = las_rank(entry.shape, ask.attained);
    lane.jobs.insert({job.rank, ask.submitted, ask.id, &job});
    job.lane = &lane;
    reopen(entry);
    // A sleeping shape sleeps on, unless this job may pass where its first could not.
    const auto reason = entry.blocked.reason;
    const bool differs = ask.claim != nullptr || !ask.avoid.empty() || entry.avoiders > 0 ||
                         reason == Blocked::Reason::Reserved || reason == Blocked::Reason::Window ||
                         lane.jobs.begin()->job == &job;
    entry.avoiders += ask.avoid.empty() ? 0 : 1;
    entry.waiting += ask.count;
    if (!entry.asleep || differs || entry.jobs == 1) wake(entry);
}

void PlanIndex::State::leave(QueuedJob& job) {
    Lane& lane = *job.lane;
    lane.jobs.erase({job.rank, job.ask.submitted, job.ask.id, &job});
    job.lane = nullptr;
    job.shape->waiting -= job.ask.count;
    if (!job.ask.avoid.empty()) --job.shape->avoiders;
    if (!job.ask.avoid.empty() || job.ask.id == job.shape->first) wake(*job.shape);
}

std::int64_t las_bound(std::int64_t level) {
    return std::int64_t{3600} << (5 * std::min(level, kLasLevels));
}
std::int64_t las_level(std::int64_t device_seconds) {
    std::int64_t level = 0;
    while (level < kLasLevels && device_seconds >= las_bound(level)) ++level;
    return level;
}
std::int64_t las_rank(const Shape& shape, std::int64_t device_seconds) {
    std::int64_t devices = 0;
    for (const GroupAsk& group : shape.groups) devices += group.nodes * ask_of(group, 0).count;
    return las_level(device_seconds) << kLasDeviceBits |
           std::min(devices, (std::int64_t{1} << kLasDeviceBits) - 1);
}

void PlanIndex::State::eligible(Time now) {
    while (!sleeping.empty() && sleeping.begin()->first <= now) {
        QueuedJob& job = queued.at(sleeping.begin()->second);
        sleeping.erase(sleeping.begin());
        enter(job);
    }
    while (!timed.empty() && timed.begin()->first <= now) {
        ShapeEntry& entry = shapes.at(timed.begin()->second);
        timed.erase(timed.begin());
        entry.timer = {};
        if (entry.asleep) wake(entry);
    }
}

void PlanIndex::State::count_span(StartedJob& job, int sign) {
    if (sign < 0 && !job.spans) return;
    job.spans = false;
    if (job.start.slots.size() < 2 || levels.empty()) return;
    const std::size_t level = levels.size() - 1;
    std::vector<std::uint32_t> found;
    for (const Slot& slot : job.start.slots)
        found.push_back(nodes.at(slot.node).domains.empty() ? kNone
                                                            : nodes.at(slot.node).domains[level]);
    std::ranges::sort(found);
    const auto rest = std::ranges::unique(found);
    found.erase(rest.begin(), rest.end());
    if (found.size() < 2) return;
    for (const std::uint32_t domain : found)
        if (domain != kNone) domains[level][domain].spanning += sign;
    job.spans = sign > 0;
}

void PlanIndex::State::count_spans() {
    for (auto& [id, job] : started) {
        job.spans = false;
        count_span(job, +1);
    }
}

PlanIndex::PlanIndex() : state_(std::make_unique<State>()) {}
PlanIndex::~PlanIndex() = default;
PlanIndex::PlanIndex(PlanIndex&&) noexcept = default;
PlanIndex& PlanIndex::operator=(PlanIndex&&) noexcept = default;

void PlanIndex::apply(const Change& change) {
    ++state_->revision;
    std::visit(Apply{*state_}, change);
}

std::uint64_t PlanIndex::revision() const {
    return state_->revision;
}

}  // namespace muster::scheduler
