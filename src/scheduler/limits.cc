// Bounds of queues and users, shares, and who may use what.
#include <algorithm>

#include "base/decay.h"
#include "scheduler/placer.h"

namespace muster::scheduler {
namespace {

Blocked limited(Blocked::Reason reason, const PlanIndex::State& state, const QueueEntry* queue,
                std::uint32_t resource, std::int64_t limit, std::int64_t used,
                std::int64_t wanted) {
    Blocked out;
    out.reason = reason;
    out.queue = queue->queue.id;
    out.resource = state.resources[resource];
    out.limit = limit, out.used = used, out.wanted = wanted;
    return out;
}

/// What other queues keep of their idle guarantees.
std::int64_t kept_for_others(const PlanIndex::State& state, const QueueEntry* queue,
                             std::uint32_t resource, const QueueEntry** whose) {
    std::int64_t kept = 0;
    for (const auto& [id, other] : state.queues) {
        if (other.lend_limit[resource] < 0 || other.guarantee[resource] <= 0) continue;
        bool above = false;
        for (const QueueEntry* at = queue; at != nullptr; at = at->parent) above |= at == &other;
        if (above) continue;
        const std::int64_t idle =
            std::max<std::int64_t>(0, other.guarantee[resource] - other.used[resource]);
        const std::int64_t keeps = std::max<std::int64_t>(0, idle - other.lend_limit[resource]);
        if (keeps > 0 && *whose == nullptr) *whose = &other;
        kept += keeps;
    }
    return kept;
}

}  // namespace

std::optional<Blocked> limit_of(const PlanIndex::State& state, QueueEntry* leaf,
                                const UserBook& user, const Demand& demand, bool preemptible,
                                bool counts, QueueEntry** blocking) {
    using Reason = Blocked::Reason;
    *blocking = leaf;
    const model::QueueSettings& settings = leaf->queue.settings;
    Blocked count;
    count.queue = leaf->queue.id;
    if (counts && settings.user_max_jobs >= 0 && user.running >= settings.user_max_jobs) {
        count.reason = Reason::UserMaxJobs;
        count.limit = settings.user_max_jobs, count.used = user.running, count.wanted = 1;
        return count;
    }
    for (const auto& [r, amount] : demand)
        if (leaf->user_limit[r] >= 0 && user.used[r] + amount > leaf->user_limit[r])
            return limited(Reason::UserLimit, state, leaf, r, leaf->user_limit[r], user.used[r],
                           amount);
    bool guaranteed = false;
    for (QueueEntry* queue = leaf; queue != nullptr; queue = queue->parent) {
        *blocking = queue;
        const std::int64_t max_jobs = queue->queue.settings.max_jobs;
        if (counts && max_jobs >= 0 && queue->running >= max_jobs) {
            count.reason = Reason::MaxJobs, count.queue = queue->queue.id;
            count.limit = max_jobs, count.used = queue->running, count.wanted = 1;
            return count;
        }
        for (const auto& [r, amount] : demand) {
            const std::int64_t after = queue->used[r] + amount;
            if (queue->limit[r] >= 0 && after > queue->limit[r])
                return limited(Reason::QueueLimit, state, queue, r, queue->limit[r], queue->used[r],
                               amount);
            const std::int64_t own = std::max<std::int64_t>(0, queue->guarantee[r]);
            if (queue->borrow_limit[r] >= 0 && after > own + queue->borrow_limit[r])
                return limited(Reason::BorrowLimit, state, queue, r, own + queue->borrow_limit[r],
                               queue->used[r], amount);
            // What cannot be taken back must be one's own.
            if (!preemptible && !guaranteed && queue->has_guarantee && queue->guarantee[r] >= 0 &&
                after > queue->guarantee[r])
                return limited(Reason::Guarantee, state, queue, r, queue->guarantee[r],
                               queue->used[r], amount);
        }
        guaranteed |= queue->has_guarantee;
    }
    *blocking = nullptr;
    for (const auto& [r, amount] : demand) {
        const QueueEntry* whose = nullptr;
        const std::int64_t kept = kept_for_others(state, leaf, r, &whose);
        if (kept == 0 || state.used[r] + amount <= state.capacity[r] - kept) continue;
        Blocked out = limited(Reason::LendLimit, state, whose, r, state.capacity[r] - kept,
                              state.used[r], amount);
        return out;
    }
    return std::nullopt;
}

bool in_guarantee(const QueueEntry* queue, const Demand& demand, ResourceVec QueueEntry::*used) {
    while (queue != nullptr && !queue->has_guarantee) queue = queue->parent;
    if (queue == nullptr) return false;
    bool named = false;
    for (const auto& [r, amount] : demand) {
        if (queue->guarantee[r] < 0) continue;
        named = true;
        if ((queue->*used)[r] + amount > queue->guarantee[r]) return false;
    }
    return named;
}

bool allowed(const PlanIndex::State& state, const model::Reservation& reservation, UserId user,
             const QueueEntry* queue) {
    if (reservation.maintenance) return false;
    const auto name = state.users.find(user);
    if (name != state.users.end() &&
        std::ranges::find(reservation.users, name->second) != reservation.users.end())
        return true;
    for (; queue != nullptr; queue = queue->parent)
        if (std::ranges::find(reservation.queues, queue->queue.name) != reservation.queues.end())
            return true;
    return false;
}

Duration length_of(const Shape& shape, const Prediction& predicted, std::int64_t speed) {
    if (shape.time.ms > 0) return shape.time;
    const Duration likely = predicted.p90.ms > 0 ? predicted.p90 : shape.expected_time;
    if (likely.ms <= 0 || speed <= 0) return {};
    return {std::min(kDurationMax.ms, likely.ms / speed * 1000 + likely.ms % speed * 1000 / speed)};
}

UsageBook usage_at(const UsageBook& book, Time now, Duration half_life) {
    UsageBook out = book;
    const Duration age = now > book.as_of ? now - book.as_of : Duration{};
    out.devices =
        decayed(book.devices, age, half_life) + accrued(book.devices_rate, age, half_life);
    out.cpus = decayed(book.cpus, age, half_life) + accrued(book.cpus_rate, age, half_life);
    out.memory = decayed(book.memory, age, half_life) + accrued(book.memory_rate, age, half_life);
    out.as_of = now;
    return out;
}

}  // namespace muster::scheduler
