#include "scheduler/shares.h"

#include <algorithm>

namespace muster::scheduler {
namespace {

/// ln 2, so that what runs all the time has had half_life / ln 2 of itself.
constexpr double kLn2 = 0.6931471805599453;

double ratio(std::int64_t part, std::int64_t whole) {
    return whole <= 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}
double present(const PlanIndex::State& state, const ResourceVec& used) {
    double most = 0;
    for (std::size_t i = 0; i < 3; ++i) most = std::max(most, ratio(used[i], state.capacity[i]));
    return most;
}
double past(const PlanIndex::State& state, const UsageBook& usage) {
    const double window =
        std::max(1.0, static_cast<double>(state.rules.half_life.ms) / 1000.0) / kLn2;
    const double most =
        std::max({ratio(usage.devices, state.weights_total * 1000),
                  ratio(usage.cpus, state.cpus_total), ratio(usage.memory, state.memory_total)});
    return most / window;
}
void sum_history(PlanIndex::State& state, const QueueEntry& queue, Time now, UsageBook& sum) {
    for (const auto& [id, user] : queue.users) {
        const UsageBook& known = user.usage;
        if (known.devices == 0 && known.cpus == 0 && known.memory == 0 && known.cpus_rate == 0 &&
            known.devices_rate == 0)
            continue;
        const UsageBook usage = usage_at(known, now, state.rules.half_life);
        sum.devices += usage.devices, sum.cpus += usage.cpus, sum.memory += usage.memory;
    }
    for (const QueueEntry* child : queue.children) sum_history(state, *child, now, sum);
}

}  // namespace

double share_of(PlanIndex::State& state, QueueEntry& queue, Time now) {
    if (queue.share_of == state.passes) return queue.share;
    if (queue.history_of != state.passes) {
        UsageBook sum;
        sum_history(state, queue, now, sum);
        queue.history = past(state, sum);
        queue.history_of = state.passes;
    }
    queue.share = (queue.history + present(state, queue.used)) * 100.0 /
                  static_cast<double>(std::max<std::int64_t>(1, queue.queue.settings.weight));
    queue.share_of = state.passes;
    return queue.share;
}

double share_of(PlanIndex::State& state, UserBook& user, Time now) {
    if (user.share_of == state.passes) return user.share;
    user.share =
        past(state, usage_at(user.usage, now, state.rules.half_life)) + present(state, user.used);
    user.share_of = state.passes;
    return user.share;
}

std::int64_t priority_at(const QueueEntry& queue, std::int64_t priority, Time submitted, Time now) {
    const model::QueueSettings& settings = queue.queue.settings;
    if (settings.aging.ms <= 0 || now <= submitted) return priority;
    return priority + std::min(settings.aging_max, (now - submitted).ms / settings.aging.ms);
}

OrderKey key_of(PlanIndex::State& state, const Lane& lane, const LaneKey& job, Time now) {
    const QueueEntry& queue = *lane.shape->queue;
    OrderKey key;
    key.submitted = job.submitted, key.job = job.id;
    const std::int64_t falling = -priority_at(queue, lane.priority, job.submitted, now);
    switch (queue.queue.settings.policy) {
        case model::QueuePolicy::Priority: key.level = falling; break;
        case model::QueuePolicy::Fifo: break;
        case model::QueuePolicy::Fair:
            key.share = share_of(state, *lane.user_book, now);
            key.level = falling;
            break;
        case model::QueuePolicy::Shortest:
        case model::QueuePolicy::Las: key.level = job.rank, key.falling = falling; break;
    }
    return key;
}

bool starved(const QueueEntry& queue) {
    if (!queue.has_guarantee) return false;
    for (std::size_t i = 0; i < queue.guarantee.size(); ++i)
        if (queue.guarantee[i] > 0 && queue.used[i] < queue.guarantee[i]) return true;
    return false;
}

}  // namespace muster::scheduler
