#include "scheduler/pass.h"

#include <algorithm>

namespace muster::scheduler {
namespace {

using Reason = Blocked::Reason;

/// How much longer a job is taken to run that is past its expected end.
constexpr Duration kOverrun{60'000};

Duration length_of(const Shape& shape) {
    return shape.time.ms > 0 ? shape.time : shape.expected_time;
}

}  // namespace

Pass::Pass(PlanIndex::State& state, Time now)
    : state_(state), now_(now), draft_(state, Draft::Base::Now), placer_(state, draft_, true) {
    state_.wake(now);
    plan_.revision = state.revision;
    plan_.at = now;
    plan_.wake = state_.sleeping.empty() ? kNever : state_.sleeping.begin()->first;
}

void Pass::run(std::size_t starts_max, JobId until) {
    starts_max_ = starts_max;
    until_ = until;
    struct Head {
        Order order;
        ShapeEntry* entry;
        std::set<Order>::const_iterator at;
    };
    const auto later = [](const Head& a, const Head& b) { return b.order < a.order; };
    std::vector<Head> heads;
    for (auto& [id, entry] : state_.shapes)
        if (!entry.ready.empty())
            heads.push_back({*entry.ready.begin(), &entry, entry.ready.begin()});
    std::ranges::make_heap(heads, later);
    while (!heads.empty() && !found_) {
        std::ranges::pop_heap(heads, later);
        Head head = heads.back();
        heads.pop_back();
        const bool go_on = try_shape_head(*head.entry, head.order);
        if (!plan_.complete) break;
        if (!go_on || ++head.at == head.entry->ready.end()) continue;
        head.order = *head.at;
        heads.push_back(head);
        std::ranges::push_heap(heads, later);
    }
}

/// False: no later job of this shape can start in this pass.
bool Pass::try_shape_head(ShapeEntry& entry, const Order& order) {
    Queued& queued = state_.queued.at(order.job);
    const JobQueued& ask = queued.ask;
    const bool special = !ask.avoid.empty();
    if (!special && entry.blocked_at == state_.freed) {  // Asleep: nothing was freed since.
        if (!head_blocked_ && !reserve(entry.shape, ask.id)) return false;
        Blocked why = entry.blocked;
        if (reservation_ && reservation_->job == ask.id) why.expected_start = reservation_->at;
        blocked(entry, queued, why, true);
        return false;
    }
    const std::vector<NodeId> avoid =
        special ? avoidable(entry.shape, ask.avoid) : std::vector<NodeId>{};
    for (std::int64_t left = ask.count; left > 0; --left) {
        if (plan_.starts.size() >= starts_max_) {
            plan_.complete = false;
            return false;
        }
        bool reserved = false;
        auto slots = place(entry.shape, avoid, reserved);
        if (slots) {
            if (ask.id == until_) found_ = explain(state_, draft_, entry.shape);
            begun_[ask.id] = *slots;
            plan_.starts.push_back({ask.id, *std::move(slots)});
            continue;
        }
        Blocked why = explain(state_, draft_, entry.shape);
        why.reason = Reason::NotEnoughFree;
        if (reserved) {
            why.reason = Reason::Reserved;
            why.behind = reservation_->job;
        } else if (why.nodes_total == 0 || why.nodes_total == why.nodes_unusable) {
            why.reason = Reason::NoNodes;
        } else if (!ever_fits(state_, entry.shape, false, {})) {
            why.reason = Reason::NeverFits;
        }
        if (!head_blocked_ && why.reason == Reason::NotEnoughFree) {
            if (!reserve(entry.shape, ask.id)) return false;
            if (reservation_ && reservation_->at < kNever) why.expected_start = reservation_->at;
        }
        if (!special && !reserved && plan_.starts.empty()) {
            // What was started in this very pass may be refused: only a pass without starts proves
            // it.
            entry.blocked_at = state_.freed;
            entry.blocked = why;
            entry.blocked.expected_start = {};
        }
        blocked(entry, queued, why, !special);
        return special;
    }
    return true;
}

void Pass::blocked(ShapeEntry& entry, Queued& queued, Blocked why, bool shape_wide) {
    if (until_ && (queued.ask.id == until_ ||
                   (shape_wide && state_.queued.at(until_).ask.shape == entry.shape.id &&
                    state_.queued.at(until_).ask.avoid.empty())))
        found_ = why;
    if (until_) return;
    if (why.expected_start == kNever) why.expected_start = {};
    if (shape_wide) {
        if (entry.told == why) return;
        entry.told = why;
        plan_.shape_waits.push_back({entry.shape.id, why});
    } else if (!(queued.told == why)) {
        queued.told = why;
        plan_.waits.push_back({queued.ask.id, why});
    }
}

bool Pass::ends_in_time(const Shape& shape) const {
    const Duration length = length_of(shape);
    return length.ms > 0 && now_ + length <= reservation_->at;
}

/// `reserved`: it fits, but only where the reservation needs the room.
std::optional<std::vector<Slot>> Pass::place(const Shape& shape, const std::vector<NodeId>& avoid,
                                             bool& reserved) {
    if (!reservation_ || ends_in_time(shape)) return placer_.place(shape, avoid, {}, true);
    std::map<NodeId, Load>& shadow = reservation_->shadow;
    const auto beside = [&](NodeEntry& node, const Choice& choice) {
        const auto at = shadow.find(node.id);
        return at == shadow.end() || draft_.fits(at->second, node, shape, choice);
    };
    auto slots = placer_.place(shape, avoid, beside, true);
    if (slots) {
        for (std::size_t i = 0; i < slots->size(); ++i) {
            const auto at = shadow.find((*slots)[i].node);
            if (at != shadow.end())
                Draft::take(at->second, state_.nodes.at(at->first), shape,
                            placer_.last_choices()[i]);
        }
        return slots;
    }
    const std::size_t mark = draft_.mark();
    reserved = placer_.place(shape, avoid, {}, true).has_value();
    draft_.undo_to(mark);
    return std::nullopt;
}

/// The earliest moment at which the job fits, as far as ends are known, and what its nodes have
/// left.
bool Pass::reserve(const Shape& shape, JobId job) {
    // Who waits for nodes, not for the end of others, reserves nothing: the next may.
    if (!ever_fits(state_, shape, true, {})) return true;
    if (!plan_.starts.empty() && !until_) {
        // It counts on the ends of jobs that this very plan starts: they come first.
        plan_.complete = false;
        return false;
    }
    head_blocked_ = true;
    std::vector<std::pair<Time, JobId>> ends;
    for (const auto& [id, started] : state_.started) {
        Time end = started.start.expected_end;
        if (end <= now_) end = now_ + kOverrun;
        ends.emplace_back(end, id);
    }
    std::ranges::sort(ends);
    const std::size_t mark = draft_.mark();
    const auto fits_after = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            draft_.release(state_.started.at(ends[i].second).start);
        const bool fits = Placer(state_, draft_, true).place(shape, {}).has_value();
        draft_.undo_to(mark);
        return fits;
    };
    std::size_t low = 0, high = ends.size();  // The least count after which it fits.
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (fits_after(middle))
            high = middle;
        else
            low = middle + 1;
    }
    for (std::size_t i = 0; i < low; ++i) draft_.release(state_.started.at(ends[i].second).start);
    const auto slots = Placer(state_, draft_, true).place(shape, {});
    Reservation made{job, low == 0 ? kNever : ends[low - 1].first, {}};
    if (slots) {
        for (const Slot& slot : *slots) {
            NodeEntry& node = state_.nodes.at(slot.node);
            made.shadow[slot.node] = draft_.load(node);
        }
        reservation_ = std::move(made);
        if (reservation_->at < kNever) plan_.wake = std::min(plan_.wake, reservation_->at);
    }
    draft_.undo_to(mark);
    return true;
}

/// Nodes that failed the job are avoided as long as the others would do.
std::vector<NodeId> Pass::avoidable(const Shape& shape, const std::vector<NodeId>& avoid) {
    return ever_fits(state_, shape, true, avoid) ? avoid : std::vector<NodeId>{};
}

Plan Pass::take() {
    return std::move(plan_);
}

Plan PlanIndex::plan(Time now, const PlanBounds& bounds) {
    Pass pass(*state_, now);
    pass.run(bounds.starts_max, {});
    return pass.take();
}

Blocked PlanIndex::why(JobId job, Time now) const {
    Blocked why;
    const auto at = state_->queued.find(job);
    if (at == state_->queued.end()) return why;
    const JobQueued& ask = at->second.ask;
    if (now < ask.eligible) {
        why.reason = Reason::NotEligible;
        why.expected_start = ask.eligible;
        return why;
    }
    Pass pass(*state_, now);
    pass.run(state_->queued.size() + 1'000'000, job);
    if (pass.found()) why = *pass.found();
    if (why.expected_start == kNever) why.expected_start = {};
    for (const auto& [id, entry] : state_->shapes) {
        const auto end = entry.ready.lower_bound(order_of(ask));
        why.ahead += std::distance(entry.ready.begin(), end);
    }
    return why;
}

Blocked PlanIndex::feasible(const Shape& shape) const {
    Draft draft(*state_, Draft::Base::Now);
    Blocked why = explain(*state_, draft, shape);
    if (why.nodes_total == 0) {
        why.reason = Reason::NoNodes;
    } else if (!ever_fits(*state_, shape, false, {})) {
        why.reason = Reason::NeverFits;
    } else if (!Placer(*state_, draft, true).place(shape, {})) {
        why.reason = Reason::NotEnoughFree;
    }
    return why;
}

}  // namespace muster::scheduler
