// What the scheduler must know of a change: the stream that keeps its index current.
#include <optional>

#include "core/indexes.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

using model::active;

Time expected_end(const Job& job, const scheduler::Shape& shape) {
    const JobExtra& extra = extra_of(job);
    const Time start = extra.allocation->at;
    Duration length = shape.time;
    if (shape.expected_time.ms > 0 && (length.ms == 0 || shape.expected_time < length))
        length = shape.expected_time;
    Time end = length.ms > 0 ? start + length : kNever;
    if (extra.deadline.ms != 0 && extra.deadline < end) end = extra.deadline;
    return end;
}

scheduler::JobStarted started(const Job& job, const scheduler::Shape& shape) {
    scheduler::JobStarted out{job.id, job.shape, {}, expected_end(job, shape)};
    for (const Placed& placed : extra_of(job).allocation->slots) {
        scheduler::Slot& slot = out.slots.emplace_back();
        slot = {placed.node,    placed.group, placed.alternative, false,
                placed.devices, placed.cpus,  placed.memory,      placed.disk};
    }
    return out;
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
    if (extra.array) out.count = startable(job, cached_spec(state, job.spec)->array);
    if (out.count == 0) return std::nullopt;
    return out;
}
bool same(const scheduler::JobQueued& a, const scheduler::JobQueued& b) {
    return a.shape == b.shape && a.user == b.user && a.priority == b.priority &&
           a.submitted == b.submitted && a.eligible == b.eligible && a.count == b.count &&
           a.avoid == b.avoid;
}

bool usable_with(const Node& node, const NodeLive& live) {
    return live.health == model::NodeHealth::Ready && live.session != 0 && live.strays.empty() &&
           node.holds.empty();
}

struct Feed {
    const State& before;
    std::vector<scheduler::Change>& out;

    void operator()(const JobPut& change) {
        const Job& job = change.job;
        const Job* old = before.tables.jobs.find(job.id.value);
        const bool was_active = old != nullptr && active(old->state);
        if (was_active && active(job.state)) return;
        std::optional<scheduler::JobQueued> old_entry;
        if (old != nullptr) old_entry = queue_entry(before, *old);
        const auto entry = queue_entry(before, job);
        if (was_active) out.push_back(scheduler::JobReleased{job.id});
        if (old_entry && !entry) out.push_back(scheduler::JobUnqueued{job.id});
        if (entry && !(old_entry && same(*old_entry, *entry))) out.push_back(*entry);
        if (active(job.state))
            out.push_back(started(job, before.tables.shapes.at(job.shape.value)));
    }
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
        out.push_back(scheduler::NodeChanged{change.node.id, change.node.facts, now});
    }
    void operator()(const NodeLivePut& change) {
        const Node& node = before.tables.nodes.at(change.id.value);
        const NodeLive& live = before.tables.node_live.at(change.id.value);
        const bool now = usable_with(node, change.live);
        if (usable_with(node, live) != now)
            out.push_back(scheduler::NodeChanged{change.id, node.facts, now});
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
}

std::vector<scheduler::Change> feed_all(const State& state) {
    std::vector<scheduler::Change> out;
    const View& tables = state.tables;
    tables.shapes.for_each([&](std::uint64_t, const scheduler::Shape& shape) {
        out.push_back(scheduler::ShapeAdded{shape});
    });
    tables.nodes.for_each([&](std::uint64_t id, const Node& node) {
        const NodeLive* live = tables.node_live.find(id);
        const bool now = live != nullptr && usable_with(node, *live);
        out.push_back(scheduler::NodeChanged{{id}, node.facts, now});
    });
    tables.jobs.for_each([&](std::uint64_t, const Job& job) {
        if (active(job.state))
            out.push_back(started(job, tables.shapes.at(job.shape.value)));
        else if (const auto entry = queue_entry(state, job))
            out.push_back(*entry);
    });
    return out;
}

}  // namespace muster::core
