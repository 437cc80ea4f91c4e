#include "scheduler/pass.h"

#include <algorithm>

#include "scheduler/book.h"
#include "scheduler/place.h"
#include "scheduler/placer.h"
#include "scheduler/shares.h"

namespace muster::scheduler {
namespace {

using Reason = Blocked::Reason;

/// The largest comes out of std heaps first: the order is turned round.
bool later(const HeapItem& a, const HeapItem& b) {
    return b.key < a.key;
}
constexpr Duration kOrderMoves{60'000};  // Shares and aging move jobs past bookings.

/// Node by node: not usable, too small or of another kind, busy, or free.
void count_exactly(PlanIndex::State& state, ShapeEntry& entry, std::uint32_t group, Blocked& out) {
    const GroupAsk& ask = entry.shape.groups[group];
    out.nodes_unusable = out.nodes_unfit = out.nodes_busy = out.nodes_fit = 0;
    out.devices_free = out.devices_total = 0;
    Draft draft(state);
    Placer placer(state, draft);
    Request request;
    request.shape = &entry;
    request.ignore_bookings = true;
    placer.begin(request);
    for (NodeEntry* node : state.order) {
        bool could = false, can = false;
        for (const Choice& choice : entry.groups[group].choices) {
            if (!fits_empty(state, *node, entry, ask, choice)) continue;
            could = true;
            can = can || placer.fits(*node, ask, choice).has_value();
        }
        if (could)
            for (const NodePool& share : node->pools) {
                bool wanted = false;
                for (const Choice& choice : entry.groups[group].choices)
                    wanted |= std::ranges::find(choice.shelves, kFirstPoolShelf + share.pool) !=
                              choice.shelves.end();
                if (!wanted) continue;
                out.devices_total += share.healthy;
                if (node->usable) out.devices_free += std::max(0, share.free);
            }
        if (!node->usable)
            ++out.nodes_unusable;
        else if (!could)
            ++out.nodes_unfit;
        else if (can)
            ++out.nodes_fit;
        else
            ++out.nodes_busy;
    }
}

}  // namespace

Blocked numbers(PlanIndex::State& state, ShapeEntry& entry, bool exact) {
    state.prepare(entry);
    Blocked out;
    out.reason = Reason::NotEnoughFree;
    out.nodes_total = static_cast<std::int64_t>(state.nodes.size());
    out.nodes_unusable = state.unusable;
    std::int64_t shortest = 0;
    bool first = true;
    for (std::uint32_t group = 0; group < entry.groups.size(); ++group) {
        const GroupAsk& ask = entry.shape.groups[group];
        Blocked here = out;
        here.group = group;
        here.nodes_wanted = ask.nodes + (group == 0 ? entry.shape.topology.spares : 0);
        std::vector<std::uint32_t> pools;
        std::int64_t capable = 0;
        std::vector<std::uint32_t> counted;
        for (const Choice& choice : entry.groups[group].choices) {
            here.devices_wanted = std::max(here.devices_wanted, choice.count * here.nodes_wanted);
            for (const std::uint32_t id : choice.shelves) {
                if (std::ranges::find(counted, id) != counted.end()) continue;
                counted.push_back(id);
                const Shelf& shelf = state.shelves[id];
                if (choice.step <= shelf.most) {
                    here.nodes_fit += shelf.all[static_cast<std::size_t>(choice.step - 1)];
                    capable += shelf.empty_all[static_cast<std::size_t>(choice.step - 1)];
                }
                if (id < kFirstPoolShelf) continue;
                here.devices_total += state.pools[id - kFirstPoolShelf].total;
                for (const std::int32_t nodes : shelf.all) here.devices_free += nodes;
            }
        }
        if (exact) {
            count_exactly(state, entry, group, here);
        } else {
            const std::int64_t usable = here.nodes_total - here.nodes_unusable;
            here.nodes_unfit = std::max<std::int64_t>(0, usable - capable);
            here.nodes_busy = std::max<std::int64_t>(0, usable - here.nodes_unfit - here.nodes_fit);
        }
        const std::int64_t lack = here.nodes_wanted - here.nodes_fit;
        if (first || lack > shortest) shortest = lack, out = here;
        first = false;
    }
    return out;
}

Pass::Pass(PlanIndex::State& state, Time now, bool look)
    : state_(state), now_(now), draft_(state), placer_(state, draft_), look_(look) {
    state_.lay_out();
    ++state_.passes;
    state_.seen = std::max(state_.seen, now);
    state_.eligible(now);
    used_before_ = state_.used;
    take_stock();
    state_.woken.clear();
}

Plan Pass::run(const PlanBounds& bounds) {
    begin(bounds);
    return end();
}

void Pass::begin(const PlanBounds& bounds) {
    plan_.revision = state_.revision;
    plan_.at = now_;
    plan_.wake = kNever;
    gather();
    keep_promises();
    while (QueueEntry* queue = next_queue()) {
        if (plan_.starts.size() >= bounds.starts_max || tries_ >= bounds.tries_max) {
            plan_.complete = false;
            break;
        }
        serve(*queue);
    }
    if (plan_.complete) preempt();
    if (plan_.complete) grow();
}

Plan Pass::end() {
    close();
    return std::move(plan_);
}

// ---- order ------------------------------------------------------------------------------------

void Pass::gather() {
    for (auto& [id, queue] : state_.queues) {
        queue.active = 0;
        queue.heap.clear();
        if (queue.parent == nullptr) tops_.push_back(&queue);
    }
    for (auto& [id, queue] : state_.queues) list(queue);
}

void Pass::list(QueueEntry& queue) {
    const Sleeper& first = queue.first;
    if (first.shape != nullptr && first.shape->asleep && first.shape->slept == first.slept) return;
    queue.first = {};
    std::erase_if(queue.awake, [](ShapeEntry* entry) {
        if (entry->jobs > 0 && !entry->asleep) return false;
        entry->listed = false;
        return true;
    });
    for (ShapeEntry* entry : queue.awake) {
        if (sleeps_on(*entry)) continue;
        rewind(*entry);
        OrderKey key;
        if (first_lane(*entry, key) != nullptr) queue.heap.push_back({key, entry});
    }
    std::ranges::make_heap(queue.heap, later);
    if (queue.heap.empty()) return;
    for (QueueEntry* at = &queue; at != nullptr; at = at->parent) ++at->active;
}

void Pass::rewind(ShapeEntry& entry) {
    entry.listed_in = state_.passes;
    for (auto& [id, lane] : entry.lanes) lane.cursor = lane.jobs.begin(), lane.used = 0;
}

/// The lane whose next job goes before those of the others.
Lane* Pass::first_lane(ShapeEntry& entry, OrderKey& key) {
    Lane* best = nullptr;
    for (auto& [id, lane] : entry.lanes) {
        if (lane.asleep || lane.cursor == lane.jobs.end()) continue;
        const OrderKey here = key_of(state_, lane, *lane.cursor, now_);
        if (best == nullptr || here < key) best = &lane, key = here;
    }
    return best;
}

void Pass::push(QueueEntry& queue, ShapeEntry& entry) {
    OrderKey key;
    if (first_lane(entry, key) == nullptr) return;
    queue.heap.push_back({key, &entry});
    std::ranges::push_heap(queue.heap, later);
}

/// Down the tree: the starved first, then the smallest share of what they have had and have.
QueueEntry* Pass::next_queue() {
    const std::vector<QueueEntry*>* level = &tops_;
    while (true) {
        QueueEntry* best = nullptr;
        bool best_starved = false;
        double best_share = 0;
        for (QueueEntry* queue : *level) {
            if (queue->active == 0) continue;
            const bool hungry = starved(*queue);
            const double share = share_of(state_, *queue, now_);
            if (best != nullptr && (best_starved != hungry ? best_starved : best_share <= share))
                continue;
            best = queue, best_starved = hungry, best_share = share;
        }
        if (best == nullptr) return nullptr;
        if (!best->heap.empty()) return best;
        level = &best->children;
    }
}

void Pass::serve(QueueEntry& queue) {
    serving_ = &queue;
    std::ranges::pop_heap(queue.heap, later);
    const HeapItem item = queue.heap.back();
    queue.heap.pop_back();
    ShapeEntry& entry = *item.shape;
    OrderKey key;
    Lane* lane = sleeps_on(entry) ? nullptr : first_lane(entry, key);
    bool again = lane != nullptr;
    if (lane != nullptr && !(item.key < key)) {  // Else what users got since moved it back.
        const auto next = [&] { ++lane->cursor, lane->used = 0; };
        QueuedJob& job = *lane->cursor->job;
        switch (try_job(*lane, job)) {
            case Outcome::Started:
                if (++lane->used >= job.ask.count) next();
                break;
            case Outcome::Skipped: next(); break;
            case Outcome::Blocked: again = !entry.asleep; break;
        }
        const Blocked& why = look_ ? looked_[&entry] : entry.blocked;
        if (entry.asleep && queue.queue.settings.policy == model::QueuePolicy::Fifo &&
            why.reason != Reason::NeverFits)
            close_behind(queue, entry, job);
    }
    if (again) push(queue, entry);
    serving_ = nullptr;
    if (queue.heap.empty())
        for (QueueEntry* at = &queue; at != nullptr; at = at->parent) --at->active;
}

/// Strict fifo: nothing passes the first.
void Pass::close_behind(QueueEntry& queue, ShapeEntry& entry, const QueuedJob& job) {
    if (!look_) queue.first = {&entry, nullptr, entry.slept};
    if (!look_) entry.first = job.ask.id;
    if (!look_) drop_windows_behind(queue, job.ask.id);
    const Blocked why{.reason = Reason::BehindFirst, .behind = job.ask.id, .queue = queue.queue.id};
    for (const HeapItem& other : queue.heap) {
        OrderKey key;
        if (Lane* lane = first_lane(*other.shape, key)) tell(*lane->cursor->job, why);
        (look_ ? looked_[other.shape] : other.shape->blocked) = why;
    }
    queue.heap.clear();
}

// ---- one job ----------------------------------------------------------------------------------

Request Pass::request_of(QueuedJob& job) {
    asking_ = &job;
    bound_.clear();
    Request request;
    request.rule = this;
    request.shape = job.shape;
    request.job = job.ask.id;
    request.user = job.ask.user;
    request.predicted = job.ask.predicted;
    request.now = now_;
    avoid_.clear();
    // Nodes that failed it are avoided as long as others would do.
    if (!job.ask.avoid.empty() && ever_fits(state_, *job.shape, true, job.ask.avoid))
        avoid_ = job.ask.avoid;
    request.avoid = avoid_;
    return request;
}

/// Jobs with a promise first: they start on just what they were promised, or wait on.
void Pass::keep_promises() {
    for (const JobId id : state_.claimants) {
        QueuedJob& job = state_.queued.at(id);
        if (job.lane == nullptr) continue;
        Request request = request_of(job);
        request.ignore_bookings = true;
        const std::size_t mark = draft_.mark();
        draft_.unclaim(job);
        auto placed = placer_.place_on(request, job.ask.claim->slots);
        // Elsewhere it is as any other; but what a gang has left comes before all (F4).
        request.ignore_bookings =
            std::ssize(job.ask.claim->slots) < job.shape->shape.groups[0].nodes;
        const GroupAsk& group = job.shape->shape.groups[0];
        if (!placed) placed = place_most(request, 1, group.nodes_max - group.nodes);
        request.elastic_extra = 0;
        if (!placed) placed = placer_.place(request);
        if (placed) {
            plan_.starts.push_back({id, std::move(placed->slots)});
            unbook(id);
            if (look_) continue;
            state_.wake_on({id, now_, job.ask.claim->slots, now_});  // It may leave some of it.
            rouse();
            continue;
        }
        draft_.undo_to(mark);
        Blocked why = numbers(state_, *job.shape, false);
        why.reason = Reason::Victims;
        tell(job, why);
        plan_.wake = std::min(plan_.wake, job.ask.claim->until);
    }
}

Pass::Outcome Pass::try_job(Lane& lane, QueuedJob& job) {
    if (job.ask.claim != nullptr) return Outcome::Skipped;
    Request request = request_of(job);
    const GroupAsk& group = job.shape->shape.groups[0];
    std::optional<Placement> placed;
    if (group.nodes_max > group.nodes) placed = place_beyond(request);
    request.elastic_extra = 0;
    if (!placed) placed = placer_.place(request);
    if (placed) {
        plan_.starts.push_back({job.ask.id, std::move(placed->slots)});
        unbook(job.ask.id);
        if (compare_lenders()) rouse();
        return Outcome::Started;
    }
    const Refusal refusal = placer_.refusal();
    if (!job.ask.avoid.empty() && job.shape->jobs > job.shape->avoiders) {
        tell(job, reason_of(job, refusal));
        return Outcome::Skipped;  // Others of the shape avoid other nodes, or none.
    }
    block(lane, job, refusal);
    return Outcome::Blocked;
}

/// By counts alone: what it lacked when it fell asleep it lacks still, and no window is due. Then
/// it falls asleep again, and no job of it is looked at.
bool Pass::sleeps_on(ShapeEntry& entry) {
    if (entry.blocked.reason != Reason::NotEnoughFree || !entry.never_known ||
        entry.queue->queue.settings.policy == model::QueuePolicy::Fifo ||
        entry.prepared != state_.pools_version || entry.nodes_version != state_.nodes_version ||
        entry.avoiders > 0 || entry.booked > 0 || worth_booking(entry))
        return false;
    bool lacks = false;
    for (std::size_t group = 0; group < entry.groups.size() && !lacks; ++group) {
        const std::int64_t nodes =
            entry.shape.groups[group].nodes + (group == 0 ? entry.shape.topology.spares : 0);
        bool may = false;
        for (const Choice& choice : entry.groups[group].choices) {
            std::int64_t fit = 0;
            for (const std::uint32_t id : choice.shelves) {
                const Shelf& shelf = state_.shelves[id];
                if (choice.step <= shelf.most)
                    fit += shelf.all[static_cast<std::size_t>(choice.step - 1)];
                if (choice.count == 0 && id >= kFirstPoolShelf)
                    fit += nodes;  // Parts of devices are not counted.
            }
            may |= fit >= nodes;
        }
        lacks = !may;
    }
    if (!lacks) return false;
    if (entry.listed_in != state_.passes) rewind(entry);
    OrderKey key;
    Lane* const lane = first_lane(entry, key);
    if (lane != nullptr && displaced_by(*lane->cursor->job) != nullptr) return false;
    if (look_) {
        if (!entry.asleep) slept_.push_back(&entry);
        entry.asleep = true;
    } else {
        sleep_by_capacity(entry);
        state_.sleep(entry, state_.waiting_window[kind_of(entry)]);
        search_later(entry);  // Whom to stop for it may have changed.
    }
    blocked_ = true;
    return true;
}

void Pass::search_later(ShapeEntry& entry) {
    if (look_ || entry.preempt_tried || entry.untried) return;
    entry.untried = true;
    state_.untried.push_back({&entry, nullptr, entry.slept});
}

Blocked Pass::reason_of(const QueuedJob& job, const Refusal& refusal) {
    Blocked why;
    const bool never =
        state_.unusable < std::ssize(state_.nodes) && !ever_fits(state_, *job.shape, false, {});
    if (refusal.limit && !refusal.searched && !never) {
        why = *refusal.limit;
        why.nodes_wanted = job.shape->shape.groups[0].nodes;
        return why;
    }
    why = numbers(state_, *job.shape, false);
    if (why.nodes_total == why.nodes_unusable)
        why.reason = Reason::NoNodes;
    else if (never)
        why.reason = Reason::NeverFits;
    else if (refusal.window)
        why.reason = Reason::Window, why.reservation = refusal.reservation;
    else if (refusal.booked)
        why.reason = Reason::Reserved, why.behind = refusal.behind;
    else if (refusal.topology && why.nodes_fit >= why.nodes_wanted)
        why.reason = Reason::Topology, why.nodes_domain = refusal.fit;
    return why;
}

/// More than the bound allows though nothing else ran: no waiting helps.
bool Pass::beyond_bound(ShapeEntry& entry, const Blocked& why) {
    if (why.resource.empty()) return false;
    for (const auto& [r, amount] : demand_of(state_, entry))
        if (state_.resources[r] == why.resource && amount > why.limit) return true;
    return false;
}

void Pass::block(Lane& lane, QueuedJob& job, const Refusal& refusal) {
    ++tries_;
    Blocked why = reason_of(job, refusal);
    const bool never = why.reason == Reason::NeverFits;
    QueueEntry* limiting = refusal.searched || never ? nullptr : refusal.limiting;
    const bool by_capacity = why.reason == Reason::NotEnoughFree ||
                             why.reason == Reason::Topology || why.reason == Reason::Reserved ||
                             why.reason == Reason::Window;
    const bool had_window = booking_of(job.ask.id) != nullptr;
    if (by_capacity)
        book(job);
    else if (never || beyond_bound(*lane.shape, why))
        unbook(job.ask.id);  // It cannot use its window.
    const Booking* booking = booking_of(job.ask.id);
    if (booking != nullptr && booking->at != kNever) why.expected_start = booking->at;
    put_to_sleep(lane, why, limiting);
    tell(job, why);
    ShapeEntry& entry = *lane.shape;
    if (entry.asleep && !look_) entry.first = job.ask.id;
    if (!by_capacity) return;
    if (refusal.window) wake_at(entry, refusal.window_end);
    if (refusal.booked && order_moves(*entry.queue)) wake_at(entry, now_ + kOrderMoves);
    if (!look_) {
        // Who has one is woken by its own time: here every pass would wake it, for another search.
        if (booking == nullptr)
            state_.sleep(entry, windowless_ == job.ask.id ? state_.waiting_node
                                                          : state_.waiting_window[kind_of(entry)]);
        if (refusal.booked || refusal.window) state_.sleep(entry, state_.reserved);
        entry.privileged = privileged(entry);
        if (refusal.limit)  // One of its choices was out of bounds.
            state_.sleep(entry, refusal.limiting != nullptr ? refusal.limiting->limited
                                                            : state_.waiting_any);
    }
    search_later(entry);
    blocked_ = true;
    // Who has a window now is bound by those before his turn only.
    const bool has_window = booking_of(job.ask.id) != nullptr;
    if (has_window && !had_window && !look_ && turns_.back().job != job.ask.id) state_.wake(entry);
}

void Pass::wake_at(ShapeEntry& entry, Time at) {
    if (look_) return;
    at = std::max(at, now_ + Duration{1});
    if (entry.timer.ms != 0 && entry.timer <= at) return;
    state_.timed.erase({entry.timer, entry.shape.id});
    entry.timer = at;
    state_.timed.insert({at, entry.shape.id});
}

void Pass::put_to_sleep(Lane& lane, const Blocked& why, QueueEntry* limiting) {
    ShapeEntry& entry = *lane.shape;
    const bool users = why.reason == Reason::UserLimit || why.reason == Reason::UserMaxJobs;
    if (users) {
        lane.blocked = why;
        lane.asleep = true;
        ++lane.slept;
        if (look_)
            slept_lanes_.push_back(&lane);
        else
            limiting->limited.push_back({&entry, &lane, lane.slept});
        return;
    }
    if (look_) {
        if (!entry.asleep) slept_.push_back(&entry);
        entry.asleep = true;
        looked_[&entry] = why;
        return;
    }
    entry.blocked = why;
    if (limiting != nullptr)
        state_.sleep(entry, limiting->limited);
    else if (why.reason == Reason::LendLimit || why.reason == Reason::NoNodes)
        state_.sleep(entry, state_.waiting_any);
    else
        sleep_by_capacity(entry);
}

void Pass::sleep_by_capacity(ShapeEntry& entry) {
    bool listed = false;
    for (const GroupPlan& group : entry.groups)
        for (const Choice& choice : group.choices)
            for (const std::uint32_t id : choice.shelves) {
                Shelf& shelf = state_.shelves[id];
                const auto step = static_cast<std::size_t>(choice.step - 1);
                if (step >= shelf.waiting.size()) continue;
                state_.sleep(entry, shelf.waiting[step]);
                listed = true;
            }
    if (!listed) state_.sleep(entry, state_.waiting_any);
}

void Pass::tell(QueuedJob& job, const Blocked& why) {
    if (look_) return;
    if (!job.ask.avoid.empty() || job.ask.claim != nullptr) {
        if (job.told != nullptr && *job.told == why) return;
        job.told = std::make_unique<const Blocked>(why);
        plan_.waits.push_back({job.ask.id, why});
        return;
    }
    ShapeEntry& entry = *job.shape;
    if (entry.told == why) return;
    const bool same = entry.told.reason == why.reason && entry.told.behind == why.behind;
    if (same && entry.told_at <= now_ && now_ < entry.told_at + kTellAgain) return;
    entry.told = why, entry.told_at = now_;
    plan_.shape_waits.push_back({entry.shape.id, why});
}

void Pass::close() {
    for (const Booking& booking : bookings_)
        if (const auto job = state_.queued.find(booking.job); job != state_.queued.end())
            job->second.shape->booked = 0;
    for (auto& [id, queue] : state_.queues) queue.heap.clear();
    for (const Booking& booking : bookings_)
        plan_.wake = std::min(plan_.wake, std::max(look_again(booking), now_ + kTellAgain));
    if (!state_.sleeping.empty()) plan_.wake = std::min(plan_.wake, state_.sleeping.begin()->first);
    if (!state_.timed.empty()) plan_.wake = std::min(plan_.wake, state_.timed.begin()->first);
    const auto gone = std::erase_if(
        bookings_, [&](const Booking& booking) { return !state_.queued.contains(booking.job); });
    bookings_changed_ |= gone > 0;
    draft_.undo_to(0);
    for (ShapeEntry* entry : slept_) entry->asleep = false;
    for (Lane* lane : slept_lanes_) lane->asleep = false;
    if (!look_) state_.assumed = bookings_, state_.turns = turns_;
    if (!bookings_changed_) return;
    plan_.bookings = std::move(bookings_);
    state_.place_bookings();  // As core knows them, until it accepts.
}

Plan PlanIndex::plan(Time now, const PlanBounds& bounds) {
    return Pass(*state_, now).run(bounds);
}

}  // namespace muster::scheduler
