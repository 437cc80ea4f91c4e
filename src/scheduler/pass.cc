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
constexpr Duration kTellAgain{1000};

/// The kind of device that it would rather have; windows are counted by it.
const std::string& kind_of(const ShapeEntry& shape) {
    static const std::string kNothing;
    const bool none = shape.groups.empty() || shape.groups[0].choices.empty();
    return none ? kNothing : shape.groups[0].choices[0].kind;
}
constexpr Duration kOrderMoves{60'000};  // Shares and aging move jobs past bookings.

/// A better window is looked for now and then only: the further off, the more rarely.
Time look_again(const Booking& booking) {
    const std::int64_t wait = booking.at == kNever ? 20'000 : (booking.at - booking.looked).ms;
    return booking.looked + Duration{std::clamp<std::int64_t>(wait / 20, 1000, 60'000)};
}

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
    bookings_ = state_.bookings;
    for (const Booking& booking : bookings_) {
        const auto job = state_.queued.find(booking.job);
        if (job == state_.queued.end()) continue;
        state_.prepare(*job->second.shape);
        ++booked_kinds_[kind_of(*job->second.shape)];
        ++job->second.shape->booked;
        if (booking.at <= now && look_again(booking) <= now && job->second.lane != nullptr)
            state_.wake(*job->second.shape);
    }
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
    const Blocked why{.reason = Reason::BehindFirst, .behind = job.ask.id, .queue = queue.queue.id};
    for (const HeapItem& other : queue.heap) {
        OrderKey key;
        if (Lane* lane = first_lane(*other.shape, key)) tell(*lane->cursor->job, why);
        other.shape->blocked = why;
    }
    queue.heap.clear();
}

// ---- one job ----------------------------------------------------------------------------------

/// Whether it and those of its queue with earlier windows are within the guarantee together.
bool Pass::owns_window(const QueuedJob& job) {
    ResourceVec sum(state_.resources.size());
    for (const Booking& booking : bookings_) {
        const auto at = state_.queued.find(booking.job);
        if (at == state_.queued.end() || at->second.shape->queue != job.shape->queue) continue;
        for (const auto& [r, amount] : demand_of(state_, *at->second.shape)) sum[r] += amount;
        if (booking.job == job.ask.id) break;
    }
    Demand demand;
    for (std::uint32_t r = 0; r < sum.size(); ++r)
        if (sum[r] > 0) demand.emplace_back(r, sum[r]);
    return in_guarantee(job.shape->queue, demand);
}

/// Not those of jobs that its queue puts behind it, nor of borrowers if it is within a guarantee.
bool Pass::binds(JobId booked) {
    const auto known = std::ranges::find(bound_, booked, &std::pair<JobId, bool>::first);
    if (known != bound_.end()) return known->second;
    bool binding = true;
    const auto at = state_.queued.find(booked);
    if (at != state_.queued.end() && at->second.lane != nullptr) {
        const QueuedJob& mine = *asking_;
        const QueuedJob& other = at->second;
        const auto key = [&](const QueuedJob& job) {
            return key_of(state_, *job.lane, {job.rank, job.ask.submitted, job.ask.id, nullptr},
                          now_);
        };
        if (other.shape->queue == mine.shape->queue)
            binding = !(key(mine) < key(other));
        else
            binding = !starved(*mine.shape->queue) ||
                      !in_guarantee(mine.shape->queue, demand_of(state_, *mine.shape)) ||
                      owns_window(other);
    }
    bound_.emplace_back(booked, binding);
    return binding;
}

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
        state_.sleep(entry, state_.waiting_booking);
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
    if (refusal.limit && !refusal.searched) {
        why = *refusal.limit;
        why.nodes_wanted = job.shape->shape.groups[0].nodes;
        return why;
    }
    why = numbers(state_, *job.shape, false);
    if (why.nodes_total == why.nodes_unusable)
        why.reason = Reason::NoNodes;
    else if (!ever_fits(state_, *job.shape, false, {}))
        why.reason = Reason::NeverFits;
    else if (refusal.window)
        why.reason = Reason::Window, why.reservation = refusal.reservation;
    else if (refusal.booked)
        why.reason = Reason::Reserved, why.behind = refusal.behind;
    else if (refusal.topology && why.nodes_fit >= why.nodes_wanted)
        why.reason = Reason::Topology, why.nodes_domain = refusal.fit;
    return why;
}

void Pass::block(Lane& lane, QueuedJob& job, const Refusal& refusal) {
    ++tries_;
    Blocked why = reason_of(job, refusal);
    QueueEntry* limiting = refusal.searched ? nullptr : refusal.limiting;
    const bool by_capacity = why.reason == Reason::NotEnoughFree ||
                             why.reason == Reason::Topology || why.reason == Reason::Reserved ||
                             why.reason == Reason::Window;
    if (by_capacity)
        book(job);
    else if (why.reason == Reason::NeverFits)
        unbook(job.ask.id);  // It cannot use its window.
    const Booking* booking = booking_of(job.ask.id);
    if (booking != nullptr && booking->at != kNever) why.expected_start = booking->at;
    put_to_sleep(lane, why, limiting);
    tell(job, why);
    if (!by_capacity) return;
    ShapeEntry& entry = *lane.shape;
    if (refusal.window) wake_at(entry, refusal.window_end);
    const model::QueueSettings& settings = entry.queue->queue.settings;
    const bool moves = settings.policy == model::QueuePolicy::Fair || settings.aging.ms > 0;
    if (refusal.booked && moves) wake_at(entry, now_ + kOrderMoves);
    if (booking != nullptr) wake_at(entry, look_again(*booking));
    if (!look_ && (refusal.booked || booking == nullptr))
        state_.sleep(entry, state_.waiting_booking);  // One may move, or fall free.
    search_later(entry);
    blocked_ = true;
}

void Pass::unbook(JobId job) {
    const auto known = std::ranges::find(bookings_, job, &Booking::job);
    if (known == bookings_.end()) return;
    for (const Slot& slot : known->slots) {
        const auto node = state_.nodes.find(slot.node);
        if (node == state_.nodes.end()) continue;
        std::erase_if(node->second.bookings, [&](const NodeBooking& b) { return b.job == job; });
    }
    bookings_.erase(known);
    const auto of = state_.queued.find(job);
    if (of != state_.queued.end()) {
        --booked_kinds_[kind_of(*of->second.shape)];
        --of->second.shape->booked;
    }
    bookings_changed_ = true;
    rouse();
}

/// A booking has moved: those who slept because of one look again, in this pass.
void Pass::rouse() {
    if (look_) return;
    std::vector<Sleeper> list;
    list.swap(state_.waiting_booking);
    for (const Sleeper& sleeper : list) {
        ShapeEntry& entry = *sleeper.shape;
        if (!entry.asleep || entry.slept != sleeper.slept || entry.jobs == 0) continue;
        state_.wake(entry);
        if (entry.listed_in != state_.passes) rewind(entry);
        QueueEntry& queue = *entry.queue;
        // The queue that is being served counts itself when it is done.
        const bool active = !queue.heap.empty() || &queue == serving_;
        push(queue, entry);
        if (active || queue.heap.empty()) continue;
        for (QueueEntry* at = &queue; at != nullptr; at = at->parent) ++at->active;
    }
}

const Booking* Pass::booking_of(JobId job) const {
    const auto at = std::ranges::find(bookings_, job, &Booking::job);
    return at == bookings_.end() ? nullptr : &*at;
}

void Pass::wake_at(ShapeEntry& entry, Time at) {
    if (look_) return;
    at = std::max(at, now_ + kTellAgain);
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

// ---- bookings ---------------------------------------------------------------------------------

bool Pass::worth_booking(const ShapeEntry& entry) {
    const std::size_t bound =
        state_.rules.conservative ? 256 : static_cast<std::size_t>(state_.rules.bookings_max);
    const auto known = booked_kinds_.find(kind_of(entry));
    return known == booked_kinds_.end() || known->second < bound;
}

/// All windows of its kind are taken: it has that of the last of its queue that it goes before, so
/// that no stream of small jobs keeps a gang from one (F21).
const QueuedJob* Pass::displaced_by(QueuedJob& job) {
    const model::QueueSettings& settings = job.shape->queue->queue.settings;
    if (settings.policy == model::QueuePolicy::Fair || settings.aging.ms > 0)
        return nullptr;  // Its order changes while jobs sleep.
    request_of(job);
    const QueuedJob* last = nullptr;
    OrderKey last_key;
    for (const Booking& booking : bookings_) {
        const auto at = state_.queued.find(booking.job);
        if (at == state_.queued.end() || at->second.lane == nullptr || binds(booking.job)) continue;
        const QueuedJob& other = at->second;
        if (other.shape->queue != job.shape->queue || kind_of(*other.shape) != kind_of(*job.shape))
            continue;
        const OrderKey key = key_of(state_, *other.lane,
                                    {other.rank, other.ask.submitted, other.ask.id, nullptr}, now_);
        if (last == nullptr || last_key < key) last = &other, last_key = key;
    }
    return last;
}

/// Sticky: it moves earlier, or when what it stands on is lost.
void Pass::book(QueuedJob& job) {
    const QueuedJob* last = nullptr;
    if (booking_of(job.ask.id) == nullptr && !worth_booking(*job.shape)) {
        last = displaced_by(job);
        if (last == nullptr) return;
    }
    const auto known = std::ranges::find(bookings_, job.ask.id, &Booking::job);
    if (known != bookings_.end() && now_ < look_again(*known) && known->looked == now_) return;
    bool sound = known != bookings_.end() && known->at > now_;
    if (known != bookings_.end())
        for (const Slot& slot : known->slots) {
            const auto node = state_.nodes.find(slot.node);
            sound &= node != state_.nodes.end() && node->second.usable;
        }
    if (sound && now_ < look_again(*known)) return;
    auto found = find_window(state_, request_of(job));
    if (!found) return unbook(job.ask.id);
    if (known != bookings_.end()) {
        if (sound && found->at >= known->at) {
            known->looked = now_;
            bookings_changed_ = true;
            return;
        }
        unbook(job.ask.id);
    }
    if (last != nullptr) unbook(last->ask.id);
    // It binds those that come after in this pass already.
    lay(state_, *found, *job.shape, job.ask.predicted);
    bookings_.push_back(*std::move(found));
    ++booked_kinds_[kind_of(*job.shape)];
    ++job.shape->booked;
    bookings_changed_ = true;
}

void Pass::close() {
    for (const Booking& booking : bookings_)
        if (const auto job = state_.queued.find(booking.job); job != state_.queued.end())
            job->second.shape->booked = 0;
    for (auto& [id, queue] : state_.queues) queue.heap.clear();
    for (const Booking& booking : bookings_)
        if (booking.at > now_) plan_.wake = std::min(plan_.wake, booking.at);
    if (!state_.sleeping.empty()) plan_.wake = std::min(plan_.wake, state_.sleeping.begin()->first);
    if (!state_.timed.empty()) plan_.wake = std::min(plan_.wake, state_.timed.begin()->first);
    const auto gone = std::erase_if(
        bookings_, [&](const Booking& booking) { return !state_.queued.contains(booking.job); });
    bookings_changed_ |= gone > 0;
    draft_.undo_to(0);
    for (ShapeEntry* entry : slept_) entry->asleep = false;
    for (Lane* lane : slept_lanes_) lane->asleep = false;
    if (!bookings_changed_) return;
    plan_.bookings = std::move(bookings_);
    state_.place_bookings();  // As core knows them, until it accepts.
}

Plan PlanIndex::plan(Time now, const PlanBounds& bounds) {
    return Pass(*state_, now).run(bounds);
}

}  // namespace muster::scheduler
