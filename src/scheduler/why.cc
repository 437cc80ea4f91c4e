// Answers for people, made of the same code and contents as plans.
#include <algorithm>

#include "scheduler/book.h"
#include "scheduler/pass.h"
#include "scheduler/place.h"
#include "scheduler/shares.h"

namespace muster::scheduler {
namespace {

using Reason = Blocked::Reason;
using State = PlanIndex::State;

constexpr std::size_t kHoldersMax = 8;

LaneKey key_in_lane(const QueuedJob& job) {
    return {job.rank, job.ask.submitted, job.ask.id, nullptr};
}

/// Jobs of its queue that go before it.
std::int64_t ahead_of(State& state, const QueuedJob& job, Time now) {
    if (job.lane == nullptr) return 0;
    const OrderKey mine = key_of(state, *job.lane, key_in_lane(job), now);
    std::int64_t ahead = 0;
    for (const auto& [shape_id, entry] : job.shape->queue->shapes)
        for (const auto& [id, lane] : entry->lanes) {
            if (lane.jobs.empty()) continue;
            const auto before = [&](const LaneKey& other) {
                return key_of(state, lane, other, now) < mine;
            };
            if (!before(*lane.jobs.begin())) continue;
            if (before(*lane.jobs.rbegin())) {
                ahead += std::ssize(lane.jobs);
                continue;
            }
            for (const LaneKey& other : lane.jobs) {
                if (!before(other)) break;
                ++ahead;
            }
        }
    return ahead;
}

/// Of a job that sleeps: nothing that may start now changes its numbers.
std::optional<Blocked> exact_of(State& state, const QueuedJob& job) {
    state.lay_out();
    if (job.lane == nullptr || !job.shape->asleep) return std::nullopt;
    return numbers(state, *job.shape, true);
}

Blocked reason_now(State& state, Pass& pass, QueuedJob& job, Time now,
                   const std::optional<Blocked>& asleep) {
    Blocked why;
    if (job.lane == nullptr) {
        why.reason = Reason::NotEligible;
        why.expected_start = job.ask.eligible;
        return why;
    }
    why = job.lane->asleep ? job.lane->blocked : job.shape->blocked;
    const bool known = job.lane->asleep || job.shape->asleep;
    const Sleeper& first = job.shape->queue->first;
    if (first.shape != nullptr && first.shape != job.shape && first.shape->asleep &&
        !first.shape->lanes.empty()) {
        why = {};
        why.reason = Reason::BehindFirst;
        why.queue = job.shape->queue->queue.id;
        for (const auto& [id, lane] : first.shape->lanes)
            if (!lane.jobs.empty() && !why.behind) why.behind = lane.jobs.begin()->id;
        why.ahead = ahead_of(state, job, now);
        return why;
    }
    const auto seen = pass.looked().find(job.shape);
    if (seen != pass.looked().end() && seen->second.reason == Reason::BehindFirst) {
        why = seen->second;
        why.ahead = ahead_of(state, job, now);
        return why;
    }
    const bool own = !job.ask.avoid.empty();
    if (job.ask.claim != nullptr) {
        why = numbers(state, *job.shape, true);
        why.reason = Reason::Victims;
    } else if (own || !known || pass.looked().contains(job.shape)) {
        const std::size_t mark = pass.draft().mark();
        const Request request = pass.request_of(job);
        if (pass.placer().place(request)) {
            pass.draft().undo_to(mark);
            why = {};
        } else {
            why = pass.reason_of(job, pass.placer().refusal());
        }
    }
    const bool counts = why.reason >= Reason::NeverFits && why.reason <= Reason::Reserved;
    if (counts || why.reason == Reason::Topology || why.reason == Reason::Window) {
        const Blocked met = why;
        const bool stands = asleep && asleep->nodes_fit < asleep->nodes_wanted;
        why = stands ? *asleep : numbers(state, *job.shape, true);
        why.reason = met.reason, why.behind = met.behind;
        why.reservation = met.reservation, why.nodes_domain = met.nodes_domain;
    }
    for (const Booking& booking : pass.bookings())
        if (booking.job == job.ask.id && booking.at != kNever) why.expected_start = booking.at;
    why.ahead = ahead_of(state, job, now);
    return why;
}

std::vector<Explanation::Holder> holders_of(const State& state, const ShapeEntry& entry) {
    std::vector<std::pair<Time, const StartedJob*>> ends;
    for (const auto& [id, job] : state.started) {
        bool wanted = false;
        for (const Slot& slot : job.start.slots) {
            const NodeEntry& node = state.nodes.at(slot.node);
            for (std::size_t g = 0; g < entry.groups.size() && !wanted; ++g)
                for (const Choice& choice : entry.groups[g].choices)
                    wanted |= fits_empty(state, node, entry, entry.shape.groups[g], choice);
            if (wanted) break;
        }
        if (!wanted) continue;
        ends.emplace_back(job.start.expected_end, &job);
        std::ranges::push_heap(
            ends, {}, [](const auto& e) { return std::pair(e.first, e.second->start.id); });
        if (ends.size() <= kHoldersMax) continue;
        std::ranges::pop_heap(ends, {},
                              [](const auto& e) { return std::pair(e.first, e.second->start.id); });
        ends.pop_back();
    }
    std::ranges::sort(ends, {},
                      [](const auto& e) { return std::pair(e.first, e.second->start.id); });
    std::vector<Explanation::Holder> out;
    for (const auto& [end, job] : ends)
        out.push_back({job->start.id, std::ssize(job->start.slots), job->devices / 1000, end});
    return out;
}

/// When it would start: its booking, else the window it would get, moved back by what the jobs
/// before it in its queue still need of the same devices.
void estimate(State& state, Pass& pass, QueuedJob& job, Time now, Explanation& out) {
    Request request = pass.request_of(job);
    for (const Booking& booking : pass.bookings())
        if (booking.job == job.ask.id) {
            if (booking.at != kNever) out.expected_start = booking.at;
            request.ignore_bookings = true;
        }
    if (out.expected_start.ms == 0) {
        const auto window = find_window(state, request);
        if (!window || window->at == kNever) return;
        out.expected_start = window->at;
    }
    // The error bar: jobs end before their limits (as history has it), or are run into.
    const Duration wait = out.expected_start > now ? out.expected_start - now : Duration{};
    const Prediction& seen = job.ask.predicted;
    const bool known = seen.p50.ms > 0 && seen.p90.ms >= seen.p50.ms;
    const std::int64_t spread =
        known ? std::max<std::int64_t>(wait.ms / 10, (seen.p90.ms - seen.p10.ms) / 4) : wait.ms / 2;
    out.earliest = {std::max(now.ms, out.expected_start.ms - spread)};
    out.latest = {out.expected_start.ms + spread / 2};
}

std::string text_of(Duration time) {
    const std::int64_t minutes = time.ms / 60'000;
    return minutes >= 1 ? std::to_string(minutes) + "m" : std::to_string(time.ms / 1000) + "s";
}

/// Smaller or other asks that would start now, the smallest change first.
void suggest(State& state, Pass& pass, QueuedJob& job, Explanation& out) {
    using Sooner = Explanation::Sooner;
    const Shape& shape = job.shape->shape;
    const auto starts = [&](const Shape& changed) {
        ShapeEntry entry;
        entry.shape = changed;
        entry.queue = job.shape->queue;
        state.prepare(entry);
        Request request = pass.request_of(job);
        request.shape = &entry;
        const std::size_t mark = pass.draft().mark();
        const bool placed = pass.placer().place(request).has_value();
        pass.draft().undo_to(mark);
        return placed;
    };
    const auto add = [&](Sooner::Change change, std::string value) {
        out.sooner.push_back({change, std::move(value), {}});
    };
    if (!shape.topology.required.empty() || shape.topology.slice > 0) {
        Shape loose = shape;
        loose.topology = {};
        if (starts(loose)) add(Sooner::Change::Topology, "none");
    }
    if (shape.time.ms > 60'000) {
        for (std::int64_t part = 2; part <= 16; part *= 2) {
            Shape brief = shape;
            brief.time.ms = shape.time.ms / part;
            if (!starts(brief)) continue;
            add(Sooner::Change::Time, text_of(brief.time));
            break;
        }
    }
    const model::DeviceAsk& ask = ask_of(shape.groups[0], 0);
    if (ask.count > 0 && shape.groups.size() == 1) {
        std::vector<std::string> kinds;
        for (const Pool& pool : state.pools)
            if (pool.total > 0 && pool.profile == ask.profile &&
                std::ranges::find(kinds, pool.kind) == kinds.end())
                kinds.push_back(pool.kind);
        std::ranges::sort(kinds);
        for (const std::string& kind : kinds) {
            Shape other = shape;
            other.groups[0].devices = {ask};
            other.groups[0].devices[0].kind = kind;
            if (kind == ask.kind || !starts(other)) continue;
            add(Sooner::Change::Kind, kind + ":" + std::to_string(ask.count));
            break;
        }
        for (std::int64_t count = ask.count - 1; count > 0;
             count = count > 8 ? count / 2 : count - 1) {
            Shape less = shape;
            for (model::DeviceAsk& device : less.groups[0].devices)
                device.count = std::min(device.count, count);
            if (!starts(less)) continue;
            add(Sooner::Change::Devices, std::to_string(count));
            break;
        }
    }
    const std::int64_t step = std::max<std::int64_t>(1, shape.topology.slice);
    for (std::int64_t nodes = shape.groups[0].nodes - step; nodes > 0;
         nodes = nodes > 8 * step ? nodes / 2 / step * step : nodes - step) {
        Shape less = shape;
        less.groups[0].nodes = nodes;
        if (!starts(less)) continue;
        add(Sooner::Change::Nodes, std::to_string(nodes));
        break;
    }
    for (auto& [id, queue] : state.queues) {
        if (&queue == job.shape->queue || !queue.children.empty()) continue;
        const bool limited = !out.blocked.empty() && out.blocked[0].reason >= Reason::QueueLimit &&
                             out.blocked[0].reason <= Reason::Guarantee;
        if (!limited) break;
        Shape moved = shape;
        ShapeEntry entry;
        entry.shape = moved;
        entry.queue = &queue;
        Request request = pass.request_of(job);
        request.shape = &entry;
        const std::size_t mark = pass.draft().mark();
        const bool placed = pass.placer().place(request).has_value();
        pass.draft().undo_to(mark);
        if (!placed) continue;
        add(Sooner::Change::Queue, queue.queue.name);
        break;
    }
}

std::int64_t millionths(double share) {
    return static_cast<std::int64_t>(share * 1'000'000.0);
}

Explanation explain(State& state, Pass& pass, QueuedJob& job, Time now,
                    const std::optional<Blocked>& asleep) {
    Explanation out;
    QueueEntry& queue = *job.shape->queue;
    out.queued = queue.pending;
    out.priority = priority_at(queue, job.ask.priority, job.ask.submitted, now);
    out.queue_share = millionths(share_of(state, queue, now));
    out.user_share = millionths(share_of(state, queue.users[job.ask.user], now));
    Blocked first = reason_now(state, pass, job, now, asleep);
    out.position = first.ahead + 1;
    out.blocked.push_back(first);
    if (job.lane == nullptr) {
        out.expected_start = first.expected_start;
        return out;
    }
    if (first.reason == Reason::NotEvaluated || first.reason == Reason::NeverFits ||
        first.reason == Reason::NoNodes)
        return out;
    // What else would hold it back, were the first not there.
    Request request = pass.request_of(job);
    request.ignore_limits = true;
    const std::size_t mark = pass.draft().mark();
    if (first.reason >= Reason::QueueLimit && first.reason <= Reason::Guarantee) {
        if (!pass.placer().place(request)) {
            Blocked also = pass.reason_of(job, pass.placer().refusal());
            if (also.reason == Reason::NotEnoughFree) {
                also = numbers(state, *job.shape, true);
                also.reason = Reason::NotEnoughFree;
            }
            out.blocked.push_back(also);
        }
        pass.draft().undo_to(mark);
    }
    const Refusal& refusal = pass.placer().refusal();
    if (first.reason == Reason::Topology || first.reason == Reason::NotEnoughFree) {
        request.ignore_limits = false;
        if (!pass.placer().place(request) && refusal.level != kNone)
            out.closest = Explanation::Domain{state.levels[refusal.level],
                                              state.domains[refusal.level][refusal.domain].path,
                                              refusal.fit, first.nodes_wanted};
        pass.draft().undo_to(mark);
    }
    out.holders = holders_of(state, *job.shape);
    estimate(state, pass, job, now, out);
    suggest(state, pass, job, out);
    return out;
}

}  // namespace

Blocked PlanIndex::why(JobId id, Time now) const {
    const auto at = state_->queued.find(id);
    if (at == state_->queued.end()) return {};
    const auto asleep = exact_of(*state_, at->second);
    Pass pass(*state_, now, true);
    pass.begin({.tries_max = 1'000'000});
    const Blocked out = reason_now(*state_, pass, at->second, now, asleep);
    pass.end();
    return out;
}

Explanation PlanIndex::explanation(JobId id, Time now) const {
    const auto at = state_->queued.find(id);
    if (at == state_->queued.end()) return {};
    const auto asleep = exact_of(*state_, at->second);
    Pass pass(*state_, now, true);
    pass.begin({.tries_max = 1'000'000});
    Explanation out = explain(*state_, pass, at->second, now, asleep);
    pass.end();
    return out;
}

Blocked PlanIndex::feasible(const Shape& shape) const {
    State& state = *state_;
    state.lay_out();
    ShapeEntry entry;
    entry.shape = shape;
    const auto queue = state.queues.find(shape.queue);
    QueueEntry nobody;
    entry.queue = queue != state.queues.end() ? &queue->second : &nobody;
    Blocked out = numbers(state, entry, true);
    if (out.nodes_total == 0)
        out.reason = Reason::NoNodes;
    else if (!ever_fits(state, entry, false, {}))
        out.reason = Reason::NeverFits;
    return out;
}

Forecast PlanIndex::forecast(const Shape& shape, const JobQueued& job, Time now) const {
    State& state = *state_;
    Forecast out;
    Pass pass(state, now, true);
    pass.begin({.tries_max = 1'000'000});
    const auto queue = state.queues.find(shape.queue);
    if (queue == state.queues.end()) {
        pass.end();
        return out;
    }
    ShapeEntry entry;
    entry.shape = shape;
    entry.queue = &queue->second;
    state.prepare(entry);
    Lane lane;
    lane.shape = &entry, lane.priority = job.priority;
    lane.user_book = &queue->second.users[job.user];
    lane.user_book->used.resize(state.resources.size());
    QueuedJob what;
    what.ask = job;
    what.ask.claim = nullptr;
    what.shape = &entry, what.lane = &lane;
    if (!what.ask.id) what.ask.id = {kJobIdMax};
    lane.jobs.insert({0, job.submitted, what.ask.id, &what});
    lane.cursor = lane.jobs.begin();
    const std::size_t mark = pass.draft().mark();
    const Request request = pass.request_of(what);
    if (auto placed = pass.placer().place(request)) {
        out.start = Start{what.ask.id, std::move(placed->slots)};
    } else {
        const std::size_t stops = pass.so_far().stops.size();
        lane.asleep = true;
        lane.blocked = pass.reason_of(what, pass.placer().refusal());
        const bool limited =
            lane.blocked.reason >= Reason::QueueLimit && lane.blocked.reason <= Reason::Guarantee;
        if (!limited && pass.make_room(what, demand_of(state, entry))) {
            out.stops.assign(pass.so_far().stops.begin() + static_cast<std::ptrdiff_t>(stops),
                             pass.so_far().stops.end());
        }
        pass.draft().undo_to(mark);
        out.why = explain(state, pass, what, now, std::nullopt);
    }
    pass.end();
    return out;
}

std::optional<QueueStanding> PlanIndex::standing(QueueId id, Time now) const {
    State& state = *state_;
    const auto at = state.queues.find(id);
    if (at == state.queues.end()) return std::nullopt;
    state.lay_out();
    ++state.passes;
    QueueEntry& queue = at->second;
    QueueStanding out;
    for (std::uint32_t r = 0; r < state.resources.size(); ++r) {
        const bool named = queue.guarantee[r] >= 0 || queue.limit[r] >= 0 ||
                           queue.borrow_limit[r] >= 0 || queue.lend_limit[r] >= 0;
        if (r >= 3 && !named && queue.used[r] == 0) continue;
        QueueStanding::Line line;
        line.resource = state.resources[r];
        line.guarantee = std::max<std::int64_t>(0, queue.guarantee[r]);
        line.used = queue.used[r];
        line.limit = queue.limit[r];
        line.borrowed = std::max<std::int64_t>(0, line.used - line.guarantee);
        const std::int64_t idle = std::max<std::int64_t>(0, line.guarantee - line.used);
        const std::int64_t free = std::max<std::int64_t>(0, state.capacity[r] - state.used[r]);
        line.lent = std::max<std::int64_t>(0, idle - free);  // Idle, and yet not free.
        out.lines.push_back(std::move(line));
    }
    const double share = share_of(state, queue, now);
    out.share = millionths(share);
    out.position = 1;
    for (auto& [other_id, other] : state.queues) {
        if (other.parent != queue.parent || &other == &queue) continue;
        const bool hungrier = starved(other) && !starved(queue);
        const bool as_hungry = starved(other) == starved(queue);
        if (hungrier ||
            (as_hungry && std::pair(share_of(state, other, now), other_id) < std::pair(share, id)))
            ++out.position;
    }
    out.running = queue.running;
    std::vector<const QueueEntry*> below = {&queue};
    std::optional<OrderKey> next;
    for (std::size_t i = 0; i < below.size(); ++i) {
        out.pending += below[i]->pending;
        below.insert(below.end(), below[i]->children.begin(), below[i]->children.end());
        for (const auto& [shape_id, entry] : below[i]->shapes)
            for (const auto& [lane_id, lane] : entry->lanes) {
                if (lane.jobs.empty()) continue;
                const OrderKey key = key_of(state, lane, *lane.jobs.begin(), now);
                if (!next || key < *next) next = key;
            }
    }
    if (next) out.next = next->job;
    return out;
}

}  // namespace muster::scheduler
