// The windows of a pass: whom they bind, who gets one, and who is woken when they change.
#include <algorithm>

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
    for (QueueEntry* queue : queues_with_windows()) freeze_shares(*queue);
    if (look_) return;
    compare_bookings();
    compare_owners();
    compare_lenders();
    for (auto& [kind, list] : state_.waiting_window)
        if (room_for(kind)) state_.wake_list(list);
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
    state_.assumed = state_.bookings;
}

/// Whom a window binds follows from who is within his guarantee, and from the order of its queue,
/// both as they are when a pass begins: what starts in it only binds more.
void Pass::compare_owners() {
    std::vector<JobId> owned;
    for (const Booking& booking : bookings_) {
        const auto job = state_.queued.find(booking.job);
        if (job != state_.queued.end() && owns_window(job->second)) owned.push_back(booking.job);
    }
    std::ranges::sort(owned);
    const bool fewer = !std::ranges::includes(owned, state_.owned);
    state_.owned = std::move(owned);
    std::vector<Sleeper> list;
    list.swap(state_.reserved);
    for (const Sleeper& sleeper : list) {
        ShapeEntry& entry = *sleeper.shape;
        if (!entry.asleep || entry.slept != sleeper.slept) continue;
        const bool may_pass = privileged(entry) && (fewer || !entry.privileged);
        if (may_pass || order_moves(*entry.queue))
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
    if (queue.queue.settings.policy != model::QueuePolicy::Fair || queue.frozen == state_.passes)
        return;
    queue.frozen = state_.passes;
    for (auto& [id, user] : queue.users) user.share_before = share_of(state_, user, now_);
}

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
            OrderKey out =
                key_of(state_, *job.lane, {job.rank, job.ask.submitted, job.ask.id, nullptr}, now_);
            if (job.shape->queue->frozen == state_.passes && job.lane->user_book != nullptr)
                out.share = job.lane->user_book->share_before;
            return out;
        };
        if (other.shape->queue == mine.shape->queue)
            binding = !(key(mine) < key(other));
        else
            binding = !privileged(*mine.shape) || std::ranges::binary_search(state_.owned, booked);
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
    const auto of = state_.queued.find(job);
    if (of == state_.queued.end()) return;
    const std::string& kind = kind_of(*of->second.shape);
    --booked_kinds_[kind];
    --of->second.shape->booked;
    if (look_) return;
    state_.wake_on(gone);
    if (of->second.shape->asleep) state_.wake(*of->second.shape);
    state_.wake_list(state_.waiting_window[kind]);
    rouse();
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
    const bool stands = known != bookings_.end() && sound(state_, *known);
    if (stands && now_ < look_again(*known)) return;
    auto found = find_window(state_, request_of(job));
    if (!found) return unbook(job.ask.id);
    if (known != bookings_.end()) {
        if (stands && known->at > now_ && found->at >= known->at) {
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
    if (owns_window(job))
        state_.owned.insert(std::ranges::upper_bound(state_.owned, job.ask.id), job.ask.id);
    freeze_shares(*job.shape->queue);
}

}  // namespace muster::scheduler
