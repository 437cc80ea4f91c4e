// When each record wants to be looked at again. A pure function of the record, so that a restarted
// controller has the same timers.
#include <algorithm>

#include "core/indexes.h"
#include "core/step.h"

namespace muster::core {

using model::JobState;
using model::NodeHealth;

Duration stop_lead(Duration grace) {
    return std::min(Duration{10'000}, Duration{grace.ms / 3});
}

Time overrun_wake(const JobExtra& extra) {
    const Allocation& allocation = *extra.allocation;
    // What began ten years ago or is bound to end then is no longer predicted (F30).
    if (allocation.expected_end >= allocation.at + kDurationMax) return kNever;
    if (extra.deadline.ms != 0 && extra.deadline <= allocation.expected_end) return kNever;
    return allocation.expected_end;
}

Time reservation_wake(const State& state, ReservationId id) {
    const model::Reservation* made = state.tables.reservations.find(id.value);
    if (made == nullptr || made->windows.empty()) return kNever;
    return made->windows.front().end;
}

Time job_wake(const State& state, JobId id) {
    const Job* job = state.tables.jobs.find(id.value);
    if (job == nullptr || model::ended(job->state)) return kNever;
    const JobExtra& extra = extra_of(*job);
    Time wake = kNever;
    if (job->state <= JobState::Running && extra.deadline.ms != 0) wake = extra.deadline;
    if (job->state == JobState::Running && extra.running_at.ms != 0) {
        const Duration limit = state.tables.shapes.at(job->shape.value).time;
        if (limit.ms > 0) wake = std::min(wake, extra.running_at + limit);
    }
    if (job->state == JobState::Pending && extra.claim) wake = std::min(wake, extra.claim->until);
    if (job->state == JobState::Starting || job->state == JobState::Running)
        wake = std::min(wake, overrun_wake(extra));
    if (job->state != JobState::Stopping && job->state != JobState::Fencing) return wake;
    const JobLive* live = state.tables.live.find(id.value);
    if (live == nullptr) return wake;
    if (live->stop_sent.ms == 0 && live->kill_at.ms != 0)
        return live->kill_at - stop_lead(live->stop_grace);
    if (live->stop_sent.ms != 0 && !live->stuck)
        return live->stop_sent + live->stop_grace + kStopOverdue;
    return wake;
}

Time strays_overdue(const State& state, NodeId id) {
    const NodeLive& live = state.tables.node_live.at(id.value);
    if (live.strays_since.ms == 0 || live.session == 0) return kNever;
    return live.strays_since + state.settings.stop_grace + kStopOverdue;
}

Time node_wake(const State& state, NodeId id) {
    const Node* node = state.tables.nodes.find(id.value);
    const NodeLive* live = state.tables.node_live.find(id.value);
    if (node == nullptr || live == nullptr) return kNever;
    Time wake = kNever;
    for (const model::NodeHold& hold : node->holds) wake = std::min(wake, hold.until);
    wake = std::min(wake, strays_overdue(state, id));
    if (live->heard.ms == 0) return wake;
    const protocol::LeaseRules& rules = state.settings.lease;
    switch (live->health) {
        case NodeHealth::Ready: return std::min(wake, live->heard + rules.suspect);
        case NodeHealth::Unknown:
        case NodeHealth::Suspect:
            return state.tables.frozen ? wake : std::min(wake, live->heard + rules.lost);
        case NodeHealth::Lost:
            if (live->fenced || state.tables.frozen) return wake;
            return std::min(wake,
                            std::max(live->heard + protocol::gone_after(rules), live->fence_again));
    }
    return wake;
}

void rebuild_timers(State& state) {
    std::set<Timer>& timers = state.indexes->timers;
    timers.clear();
    const auto add = [&](Time at, TimerKind kind, std::uint64_t id) {
        if (at < kNever) timers.insert({at, kind, id});
    };
    const View& tables = state.tables;
    tables.jobs.for_each(
        [&](std::uint64_t id, const Job&) { add(job_wake(state, {id}), TimerKind::Job, id); });
    tables.nodes.for_each(
        [&](std::uint64_t id, const Node&) { add(node_wake(state, {id}), TimerKind::Node, id); });
    tables.tokens.for_each(
        [&](std::uint64_t id, const Token& token) { add(token.expires, TimerKind::Token, id); });
    tables.idempotency.for_each([&](std::uint64_t id, const Idempotency& entry) {
        add(entry.expires, TimerKind::Idempotency, id);
    });
    tables.reservations.for_each([&](std::uint64_t id, const model::Reservation&) {
        add(reservation_wake(state, {id}), TimerKind::Reservation, id);
    });
}

Time next_wake(const State& state) {
    const std::set<Timer>& timers = state.indexes->timers;
    return timers.empty() ? kNever : timers.begin()->at;
}

}  // namespace muster::core
