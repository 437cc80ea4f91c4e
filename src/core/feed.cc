// What the scheduler must know of a change: the stream that keeps its index current.
#include <optional>

#include "core/indexes.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

using model::active;

scheduler::JobStarted started(const State& state, const Job& job) {
    const JobExtra& extra = extra_of(job);
    const auto spec = cached_spec(state, job.spec);
    scheduler::JobStarted out;
    out.id = job.id;
    out.shape = job.shape;
    out.expected_end = extra.allocation->expected_end;
    out.user = {job.user};
    out.priority = job.priority;
    out.started = extra.allocation->at;
    out.preemptions = extra.preemptions;
    out.saved = extra.checkpoint_at;
    out.grace = grace_of(*spec);
    out.checkpoints = !spec->checkpoint.dir.empty();
    out.attained = extra.attained / 1000;
    out.avoid = extra.avoid;
    for (const Placed& placed : extra.allocation->slots) {
        scheduler::Slot& slot = out.slots.emplace_back();
        slot = {placed.node,    placed.group, placed.alternative, placed.spare,
                placed.devices, placed.cpus,  placed.memory,      placed.disk};
    }
    return out;
}
/// What of that may change while the attempt lives.
bool started_alike(const Job& a, const Job& b) {
    return a.priority == b.priority &&
           extra_of(a).allocation->expected_end == extra_of(b).allocation->expected_end &&
           extra_of(a).preemptions == extra_of(b).preemptions;
}

/// Nothing: it is not being stopped.
std::optional<scheduler::JobStopping> stopping(const State& state, const Job& job) {
    if (job.state != model::JobState::Stopping && job.state != model::JobState::Fencing) return {};
    const auto spec = cached_spec(state, job.spec);
    const bool known = job.state == model::JobState::Stopping;
    return scheduler::JobStopping{job.id, extra_of(job).beneficiary,
                                  known ? job.since + grace_of(*spec) + kStopOverdue : kNever};
}
bool same(const scheduler::JobStopping& a, const scheduler::JobStopping& b) {
    return a.beneficiary == b.beneficiary && a.until == b.until;
}

/// Its entry in the queue; nothing if it has none.
std::optional<scheduler::JobQueued> queue_entry(const State& state, const Job& job) {
    if (!queued(job)) return std::nullopt;
    scheduler::JobQueued out;
    out.id = job.id;
    out.shape = job.shape;
    out.user = {job.user};
    out.priority = job.priority;
    out.submitted = job.submitted;
    out.eligible = job.eligible;
    const JobExtra& extra = extra_of(job);
    out.avoid = extra.avoid;
    out.predicted = prediction_of(state.tables, job);
    out.attained = extra.attained / 1000;
    out.last_nodes = extra.last_nodes;
    if (extra.claim) out.claim = std::make_shared<const scheduler::Claim>(*extra.claim);
    if (extra.array) out.count = startable(job, cached_spec(state, job.spec)->array);
    if (out.count == 0) return std::nullopt;
    return out;
}
bool same(const scheduler::JobQueued& a, const scheduler::JobQueued& b) {
    return a.shape == b.shape && a.user == b.user && a.priority == b.priority &&
           a.submitted == b.submitted && a.eligible == b.eligible && a.count == b.count &&
           a.avoid == b.avoid && a.predicted == b.predicted && a.attained == b.attained &&
           a.last_nodes == b.last_nodes && bool(a.claim) == bool(b.claim) &&
           (!a.claim || *a.claim == *b.claim);
}

scheduler::NodeChanged changed(const model::Topology& topology, const Node& node, bool usable) {
    return {node.id, node.facts, usable, model::path_of(topology, *node.facts), 0};
}

bool usable_with(const Node& node, const NodeLive& live) {
    return live.health == model::NodeHealth::Ready && live.session != 0 && live.strays.empty() &&
           node.holds.empty();
}

scheduler::UsageChanged usage_changed(const Usage& usage) {
    return {usage.queue, usage.user, usage.devices, usage.cpus, usage.memory >> 10, usage.as_of};
}
scheduler::BookingsChanged bookings(const std::vector<scheduler::Booking>* all) {
    return {all == nullptr ? std::vector<scheduler::Booking>{} : *all};
}

struct Feed {
    const State& before;
    std::vector<scheduler::Change>& out;

    void operator()(const JobPut& change) {
        const Job& job = change.job;
        const Job* old = before.tables.jobs.find(job.id.value);
        const bool was_active = old != nullptr && active(old->state);
        if (was_active && active(job.state)) return changed_while_active(*old, job);
        std::optional<scheduler::JobQueued> old_entry;
        if (old != nullptr) old_entry = queue_entry(before, *old);
        const auto entry = queue_entry(before, job);
        if (was_active) out.push_back(scheduler::JobReleased{job.id});
        if (old_entry && !entry) out.push_back(scheduler::JobUnqueued{job.id});
        if (entry && !(old_entry && same(*old_entry, *entry))) out.push_back(*entry);
        if (active(job.state)) out.push_back(started(before, job));
    }
    void changed_while_active(const Job& old, const Job& job) {
        const auto was = stopping(before, old), now = stopping(before, job);
        const bool again = !started_alike(old, job) || (was && !now);
        if (again)
            out.push_back(started(before, job));
        else if (extra_of(old).checkpoint_at != extra_of(job).checkpoint_at)
            out.push_back(scheduler::JobSaved{job.id, extra_of(job).checkpoint_at});
        if (now && (again || !was || !same(*was, *now))) out.push_back(*now);
    }
    void operator()(const PredictedPut& change) {
        const Job* job = before.tables.jobs.find(change.id.value);
        if (job == nullptr) return;
        auto entry = queue_entry(before, *job);
        if (!entry) return;
        entry->predicted =
            prediction_of(before.tables.shapes.at(job->shape.value), &change.prediction);
        out.push_back(*entry);
    }
    void operator()(const QueuePut& change) {
        out.push_back(scheduler::QueueChanged{change.queue});
    }
    void operator()(const QueueDropped& change) {
        out.push_back(scheduler::QueueRemoved{change.id});
    }
    void operator()(const UserPut& change) {
        out.push_back(scheduler::UserNamed{change.user.id, change.user.name});
    }
    void operator()(const TopologyPut& change) {
        const bool levels = change.topology->levels != before.tables.topology->levels;
        if (levels) out.push_back(scheduler::LevelsChanged{change.topology->levels});
        before.tables.nodes.for_each([&](std::uint64_t id, const Node& node) {
            const bool moved = model::path_of(*change.topology, *node.facts) !=
                               model::path_of(*before.tables.topology, *node.facts);
            if (!levels && !moved) return;
            const bool usable = usable_with(node, before.tables.node_live.at(id));
            out.push_back(changed(*change.topology, node, usable));
        });
    }
    void operator()(const RulesPut& change) {
        out.push_back(scheduler::RulesChanged{change.rules});
    }
    void operator()(const ReservationPut& change) {
        out.push_back(scheduler::ReservationChanged{change.reservation});
    }
    void operator()(const ReservationDropped& change) {
        out.push_back(scheduler::ReservationRemoved{change.id});
    }
    void operator()(const UsagePut& change) { out.push_back(usage_changed(change.usage)); }
    void operator()(const BookingsPut& change) { out.push_back(bookings(change.bookings.get())); }
    void operator()(const ShapePut& change) { out.push_back(scheduler::ShapeAdded{change.shape}); }
    void operator()(const ShapeDropped& change) {
        out.push_back(scheduler::ShapeRemoved{change.id});
    }
    void operator()(const NodePut& change) {
        const Node* old = before.tables.nodes.find(change.node.id.value);
        const NodeLive* live = before.tables.node_live.find(change.node.id.value);
        const NodeLive unknown;
        if (live == nullptr) live = &unknown;
        const bool now = usable_with(change.node, *live);
        if (old != nullptr && old->facts == change.node.facts && usable_with(*old, *live) == now)
            return;
        out.push_back(changed(*before.tables.topology, change.node, now));
    }
    void operator()(const NodeLivePut& change) {
        const Node& node = before.tables.nodes.at(change.id.value);
        const NodeLive& live = before.tables.node_live.at(change.id.value);
        const bool now = usable_with(node, change.live);
        if (usable_with(node, live) != now)
            out.push_back(changed(*before.tables.topology, node, now));
    }
    void operator()(const NodeDropped& change) { out.push_back(scheduler::NodeRemoved{change.id}); }
    template <class Other>
    void operator()(const Other&) {}
};

}  // namespace

void feed(const State& before, const Change& change, std::vector<scheduler::Change>& out) {
    std::visit(Feed{before, out}, change);
}

void Stepper::feed_again(const Job& waiting) {
    if (const auto entry = queue_entry(state_, waiting)) step_.planning.push_back(*entry);
    step_.planning.push_back(scheduler::PlanRefused{waiting.id});
}

std::vector<scheduler::Change> feed_all(const State& state) {
    std::vector<scheduler::Change> out;
    const View& tables = state.tables;
    out.push_back(scheduler::LevelsChanged{tables.topology->levels});
    out.push_back(scheduler::RulesChanged{tables.rules});
    // A parent is older than its children.
    tables.queues.for_each(
        [&](std::uint64_t, const Queue& queue) { out.push_back(scheduler::QueueChanged{queue}); });
    tables.users.for_each([&](std::uint64_t, const User& user) {
        out.push_back(scheduler::UserNamed{user.id, user.name});
    });
    tables.shapes.for_each([&](std::uint64_t, const scheduler::Shape& shape) {
        out.push_back(scheduler::ShapeAdded{shape});
    });
    tables.nodes.for_each([&](std::uint64_t id, const Node& node) {
        const NodeLive* live = tables.node_live.find(id);
        const bool now = live != nullptr && usable_with(node, *live);
        out.push_back(changed(*tables.topology, node, now));
    });
    tables.reservations.for_each([&](std::uint64_t, const model::Reservation& made) {
        out.push_back(scheduler::ReservationChanged{made});
    });
    tables.usage.for_each(
        [&](std::uint64_t, const Usage& usage) { out.push_back(usage_changed(usage)); });
    tables.jobs.for_each([&](std::uint64_t, const Job& job) {
        if (active(job.state)) {
            out.push_back(started(state, job));
            if (const auto stop = stopping(state, job)) out.push_back(*stop);
        } else if (const auto entry = queue_entry(state, job)) {
            out.push_back(*entry);
        }
    });
    if (tables.bookings) out.push_back(bookings(tables.bookings.get()));
    return out;
}

}  // namespace muster::core
