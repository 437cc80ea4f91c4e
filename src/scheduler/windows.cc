// The windows of a pass: whom they bind, who gets one, and who is woken when they change.
#include <algorithm>
#include <map>

#include "scheduler/book.h"
#include "scheduler/pass.h"
#include "scheduler/shares.h"

namespace muster::scheduler {
namespace {

/// Stands on nodes that are all there.
bool sound(const PlanIndex::State& state, const Booking& booking) {
    return std::ranges::all_of(booking.slots, [&](const Slot& slot) {
        const auto node = state.nodes.find(slot.node);
        return node != state.nodes.end() && node->second.usable;
    });
}

}  // namespace

const std::string& kind_of(const ShapeEntry& shape) {
    static const std::string kNothing;
    const bool none = shape.groups.empty() || shape.groups[0].choices.empty();
    return none ? kNothing : shape.groups[0].choices[0].kind;
}
Time look_again(const Booking& booking) {
    const std::int64_t wait = booking.at == kNever ? 20'000 : (booking.at - booking.looked).ms;
    const Time again = booking.looked + Duration{std::clamp<std::int64_t>(wait / 20, 1000, 60'000)};
    return booking.looked < booking.at ? std::min(again, booking.at) : again;
}
bool order_moves(const QueueEntry& queue) {
    const model::QueueSettings& settings = queue.queue.settings;
    return settings.policy == model::QueuePolicy::Fair || settings.aging.ms > 0;
}

/// Who has a window, whom that binds, and who looks again because it is not as it was.
void Pass::take_stock() {
    bookings_ = state_.bookings;
    for (const Booking& booking : bookings_) {
        const auto job = state_.queued.find(booking.job);
        if (job == state_.queued.end()) continue;
        state_.prepare(*job->second.shape);
        ++booked_kinds_[kind_of(*job->second.shape)];
        ++job->second.shape->booked;
        if ((look_again(booking) <= now_ || !sound(state_, booking)) &&
            job->second.lane != nullptr && !look_)
            state_.wake(*job->second.shape);
    }
    for (auto& [id, queue] : state_.queues)
        if (queue.has_guarantee) queue.used_before = queue.used;
    for (QueueEntry* queue : queues_with_windows()) freeze_shares(*queue);
    if (!look_)
        for (const Sleeper& sleeper : state_.reserved)
            if (sleeper.shape->blocked.reason == Blocked::Reason::Window)
                freeze_shares(*sleeper.shape->queue);  // Whose turn it is, he may be allowed.
    order_windows();
    if (look_) return;
    compare_bookings();
    compare_owners();
    compare_lenders();
    for (auto& [kind, list] : state_.waiting_window)
        if (room_for(kind)) wake_unbooked(list);
}

/// Those whose next job has no window; the others have what they could get.
void Pass::wake_unbooked(std::vector<Sleeper>& list) {
    std::vector<Sleeper> all;
    all.swap(list);
    for (const Sleeper& sleeper : all) {
        ShapeEntry& entry = *sleeper.shape;
        if (!entry.asleep || entry.slept != sleeper.slept) continue;
        rewind(entry);
        OrderKey key;
        const Lane* const lane = first_lane(entry, key);
        if (lane != nullptr && booking_of(lane->cursor->id) == nullptr)
            state_.wake(entry);
        else
            list.push_back(sleeper);
    }
}

/// Those that fell asleep beside windows that are others by now look again.
void Pass::compare_bookings() {
    for (const Booking& old : state_.assumed) {
        const auto now = std::ranges::find(state_.bookings, old.job, &Booking::job);
        if (now != state_.bookings.end() && now->at == old.at && now->slots == old.slots) continue;
        state_.wake_on(old);
        const auto job = state_.queued.find(old.job);
        if (job != state_.queued.end() && job->second.lane != nullptr)
            state_.wake(*job->second.shape);
    }
}

/// One order in which windows bind those who have one, else two could wait for each other for ever:
/// those within a guarantee first, then as they were made; what a queue has of them goes to its
/// jobs in their order. By guarantees and shares as they are when a pass begins: what starts in it
/// only binds more.
void Pass::order_windows() {
    struct Place {
        QueuedJob* job;
        std::size_t at;
        bool owned = false;
    };
    std::map<QueueId, std::vector<Place>> by_queue;
    for (std::size_t at = 0; at < bookings_.size(); ++at) {
        const auto job = state_.queued.find(bookings_[at].job);
        if (job == state_.queued.end() || job->second.lane == nullptr) continue;
        by_queue[job->second.shape->queue->queue.id].push_back({&job->second, at});
    }
    std::vector<Place> all;
    for (auto& [queue, places] : by_queue) {
        std::vector<std::pair<OrderKey, QueuedJob*>> jobs;
        for (const Place& place : places) jobs.emplace_back(key_before(*place.job), place.job);
        std::ranges::sort(jobs, [](const auto& a, const auto& b) { return a.first < b.first; });
        ResourceVec sum(state_.resources.size());
        for (std::size_t i = 0; i < places.size(); ++i) {
            Place place{jobs[i].second, places[i].at};
            for (const auto& [r, amount] : demand_of(state_, *place.job->shape)) sum[r] += amount;
            Demand together;
            for (std::uint32_t r = 0; r < sum.size(); ++r)
                if (sum[r] > 0) together.emplace_back(r, sum[r]);
            place.owned = in_guarantee(place.job->shape->queue, together, &QueueEntry::used_before);
            all.push_back(place);
        }
    }
    std::ranges::sort(all, {},
                      [](const Place& place) { return std::tuple(!place.owned, place.at); });
    turns_.clear();
    for (const Place& place : all) turns_.push_back({place.job->ask.id, place.owned});
}

/// Who has a window, and is bound by fewer than he was, looks again.
void Pass::compare_turns(const std::vector<Turn>& before) {
    const auto in = [](const std::vector<Turn>& turns, JobId job) {
        return std::ranges::find(turns, job, &Turn::job);
    };
    for (auto mine = turns_.begin(); mine != turns_.end(); ++mine) {
        ShapeEntry& entry = *state_.queued.at(mine->job).shape;
        if (!entry.asleep) continue;
        const auto then = in(before, mine->job);
        const bool passes = std::any_of(mine + 1, turns_.end(), [&](const Turn& other) {
            const auto his = in(before, other.job);
            return his != before.end() && (then == before.end() || his < then);
        });
        if (passes) state_.wake(entry);
    }
}

void Pass::compare_owners() {
    const bool fewer = std::ranges::any_of(state_.turns, [&](const Turn& before) {
        const auto now = std::ranges::find(turns_, before.job, &Turn::job);
        return before.owned && now != turns_.end() && !now->owned;
    });
    compare_turns(state_.turns);
    std::vector<Sleeper> list;
    list.swap(state_.reserved);
    for (const Sleeper& sleeper : list) {
        ShapeEntry& entry = *sleeper.shape;
        if (!entry.asleep || entry.slept != sleeper.slept) continue;
        const bool may_pass = privileged(entry) && (fewer || !entry.privileged);
        if (may_pass || entry.queue->reordered == state_.passes)
            state_.wake(entry);
        else
            state_.reserved.push_back(sleeper);
    }
}

/// Who keeps nothing back any more does not hold up others: what they lack then is not free.
bool Pass::compare_lenders() {
    if (look_) return false;
    bool fewer = false;
    for (auto& [id, queue] : state_.queues) {
        if (!queue.lends) continue;
        std::uint64_t keeps = 0;
        for (std::size_t r = 0; r < queue.guarantee.size(); ++r)
            if (queue.lend_limit[r] >= 0 &&
                queue.guarantee[r] - queue.used[r] > queue.lend_limit[r])
                keeps |= std::uint64_t{1} << (r % 64);
        fewer |= (queue.keeps & ~keeps) != 0;
        queue.keeps = keeps;
    }
    if (fewer) state_.wake_list(state_.waiting_any);
    return fewer;
}

/// Within a guarantee that is not used up: windows of borrowers do not bind it.
bool Pass::privileged(ShapeEntry& entry) {
    return starved(*entry.queue) && in_guarantee(entry.queue, demand_of(state_, entry));
}

std::vector<QueueEntry*> Pass::queues_with_windows() {
    std::vector<QueueEntry*> out;
    for (const Booking& booking : bookings_) {
        const auto job = state_.queued.find(booking.job);
        if (job != state_.queued.end()) out.push_back(job->second.shape->queue);
    }
    return out;
}

void Pass::freeze_shares(QueueEntry& queue) {
    if (!order_moves(queue) || queue.frozen == state_.passes) return;
    queue.frozen = state_.passes;
    const bool fair = queue.queue.settings.policy == model::QueuePolicy::Fair;
    if (fair)
        for (auto& [id, user] : queue.users) user.share_before = share_of(state_, user, now_);
    if (look_) return;
    // Priorities that rise with age pass one another at any time.
    if (queue.queue.settings.aging.ms > 0 && queue.ranked != now_) queue.reordered = state_.passes;
    queue.ranked = now_;
    if (fair) rank_users(queue);
}

/// Time alone lets shares decay: what counts is whether one has passed another.
void Pass::rank_users(QueueEntry& queue) {
    std::vector<std::pair<double, UserId>> shares;
    for (const auto& [id, user] : queue.users) shares.emplace_back(user.share_before, id);
    std::ranges::sort(shares);
    std::vector<std::pair<UserId, bool>> ranking;
    for (std::size_t i = 0; i < shares.size(); ++i)
        ranking.emplace_back(shares[i].second, i > 0 && shares[i].first == shares[i - 1].first);
    if (ranking == queue.ranking) return;
    queue.ranking = std::move(ranking);
    queue.reordered = state_.passes;
}

OrderKey Pass::key_before(const QueuedJob& job) const {
    OrderKey out =
        key_of(state_, *job.lane, {job.rank, job.ask.submitted, job.ask.id, nullptr}, now_);
    const QueueEntry& queue = *job.shape->queue;
    const bool fair = queue.queue.settings.policy == model::QueuePolicy::Fair;
    if (fair && queue.frozen == state_.passes && job.lane->user_book != nullptr)
        out.share = job.lane->user_book->share_before;
    return out;
}

/// Of its own queue: those of jobs before it. Of others: all, if it has none itself, else those
/// whose turn is before its own; not those of borrowers, if it is within a guarantee.
bool Pass::binds(JobId booked) {
    const auto known = std::ranges::find(bound_, booked, &std::pair<JobId, bool>::first);
    if (known != bound_.end()) return known->second;
    const QueuedJob& mine = *asking_;
    const auto turn_of = [&](JobId job) { return std::ranges::find(turns_, job, &Turn::job); };
    const auto turn = turn_of(booked);
    bool binding = true;
    if (turn != turns_.end()) {
        const QueuedJob& other = state_.queued.at(booked);
        if (other.shape->queue == mine.shape->queue)
            binding = !(key_before(mine) < key_before(other));
        else
            binding = turn < turn_of(mine.ask.id) && (turn->owned || !privileged(*mine.shape));
    }
    bound_.emplace_back(booked, binding);
    return binding;
}

void Pass::unbook(JobId job) {
    const auto known = std::ranges::find(bookings_, job, &Booking::job);
    if (known == bookings_.end()) return;
    for (const Slot& slot : known->slots) {
        const auto node = state_.nodes.find(slot.node);
        if (node == state_.nodes.end()) continue;
        std::erase_if(node->second.bookings, [&](const NodeBooking& b) { return b.job == job; });
    }
    const Booking gone = std::move(*known);
    bookings_.erase(known);
    bookings_changed_ = true;
    const auto before = std::move(turns_);
    order_windows();
    const auto of = state_.queued.find(job);
    if (of == state_.queued.end()) return;
    const std::string& kind = kind_of(*of->second.shape);
    --booked_kinds_[kind];
    --of->second.shape->booked;
    if (look_) return;
    state_.wake_on(gone);
    if (of->second.shape->asleep) state_.wake(*of->second.shape);
    compare_turns(before);
    state_.wake_list(state_.waiting_window[kind]);
    rouse();
}

/// Those behind the first of a strict queue cannot use theirs, and would hold up others with them.
void Pass::drop_windows_behind(const QueueEntry& queue, JobId first) {
    std::vector<JobId> behind;
    for (const Booking& booking : bookings_) {
        const auto job = state_.queued.find(booking.job);
        if (job != state_.queued.end() && job->second.shape->queue == &queue &&
            booking.job != first)
            behind.push_back(booking.job);
    }
    for (const JobId job : behind) unbook(job);
}

/// A booking has moved: those who slept because of one look again, in this pass.
void Pass::rouse() {
    std::vector<ShapeEntry*> list;
    list.swap(state_.woken);
    for (ShapeEntry* woken : list) {
        ShapeEntry& entry = *woken;
        if (entry.asleep || entry.jobs == 0) continue;
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

bool Pass::room_for(const std::string& kind) const {
    const std::size_t bound =
        state_.rules.conservative ? 256 : static_cast<std::size_t>(state_.rules.bookings_max);
    const auto known = booked_kinds_.find(kind);
    return known == booked_kinds_.end() || known->second < bound;
}
bool Pass::worth_booking(const ShapeEntry& entry) {
    return room_for(kind_of(entry));
}

/// All windows of its kind are taken: it has that of the last of its queue that it goes before, so
/// that no stream of small jobs keeps a gang from one (F21).
const QueuedJob* Pass::displaced_by(QueuedJob& job) {
    if (order_moves(*job.shape->queue)) return nullptr;
    request_of(job);
    const QueuedJob* last = nullptr;
    OrderKey last_key;
    for (const Booking& booking : bookings_) {
        const auto at = state_.queued.find(booking.job);
        if (at == state_.queued.end() || at->second.lane == nullptr || binds(booking.job)) continue;
        const QueuedJob& other = at->second;
        if (other.shape->queue != job.shape->queue || kind_of(*other.shape) != kind_of(*job.shape))
            continue;
        const OrderKey key = key_before(other);
        if (last == nullptr || last_key < key) last = &other, last_key = key;
    }
    return last;
}

/// Sticky: it moves earlier, or when what it stands on is lost.
void Pass::book(QueuedJob& job) {
    const QueuedJob* last = nullptr;
    auto place = std::ssize(bookings_);
    if (booking_of(job.ask.id) == nullptr && !worth_booking(*job.shape)) {
        last = displaced_by(job);
        if (last == nullptr) return;
    }
    const auto known = std::ranges::find(bookings_, job.ask.id, &Booking::job);
    const bool stands = known != bookings_.end() && sound(state_, *known);
    if (stands && now_ < look_again(*known)) return;
    auto found = find_window(state_, request_of(job));
    if (!found) {  // On no nodes that are there now.
        windowless_ = job.ask.id;
        return unbook(job.ask.id);
    }
    if (known != bookings_.end()) {
        if (stands && known->at > now_ && found->at >= known->at) {
            known->looked = now_;
            bookings_changed_ = true;
            return;
        }
        place = known - bookings_.begin();  // A better window, in the same turn.
        unbook(job.ask.id);
    }
    if (last != nullptr) unbook(last->ask.id);
    // It binds those that come after in this pass already.
    lay(state_, *found, *job.shape, job.ask.predicted);
    place = std::min(place, std::ssize(bookings_));
    bookings_.insert(bookings_.begin() + place, *std::move(found));
    ++booked_kinds_[kind_of(*job.shape)];
    ++job.shape->booked;
    bookings_changed_ = true;
    freeze_shares(*job.shape->queue);
    const auto before = std::move(turns_);
    order_windows();
    if (look_) return;
    compare_turns(before);
    rouse();
}

}  // namespace muster::scheduler
