// Deals of a plan: jobs are told to stop, and another is promised what they give back. A deal holds
// whole or not at all.
#include <algorithm>
#include <map>

#include "core/bind.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;
using scheduler::StopReason;

/// A promise outlives the last grace of its victims so long: reports and slow kills need time.
constexpr Duration kClaimMargin{120'000};

bool resizes(StopReason reason) {
    return reason == StopReason::Shrink || reason == StopReason::Grow;
}
std::string why(const scheduler::Stop& stop, const Job& victim, const Job& beneficiary,
                const View& tables, std::size_t nodes) {
    const std::string job = "job " + std::to_string(beneficiary.id.value);
    const std::string of = job + " of " + tables.users.at(beneficiary.user).name;
    switch (stop.reason) {
        case StopReason::Priority:
            if (beneficiary.priority == victim.priority &&
                tables.queues.at(victim.queue).settings.policy == model::QueuePolicy::Las)
                return "preempted for " + of + ", which has had less";
            return "preempted for " + of + ", which has a higher priority";
        case StopReason::Reclaim:
            return "its queue borrowed what queue " + tables.queues.at(beneficiary.queue).name +
                   " owns: reclaimed for " + of;
        case StopReason::Defragment: return "moved, to make room in one place for " + of;
        case StopReason::Shrink:
            return "goes on with " + std::to_string(nodes) + " nodes, to make room for " + of;
        case StopReason::Grow: return "goes on with " + std::to_string(nodes) + " nodes";
    }
    return {};
}

}  // namespace

/// A victim's stops and promises go with their beneficiary's.
void Stepper::make_deals(const scheduler::Plan& plan) {
    struct Deal {
        JobId beneficiary;
        std::vector<scheduler::Stop> stops;
        std::vector<scheduler::Promise> promises;
    };
    std::vector<Deal> deals;
    const auto deal_of = [&](JobId beneficiary) -> Deal& {
        auto at = std::ranges::find(deals, beneficiary, &Deal::beneficiary);
        if (at == deals.end()) at = deals.insert(at, Deal{beneficiary, {}, {}});
        return *at;
    };
    for (const scheduler::Stop& stop : plan.stops) deal_of(stop.beneficiary).stops.push_back(stop);
    for (const scheduler::Promise& promise : plan.promises) {
        const auto own = std::ranges::find_if(plan.stops, [&](const scheduler::Stop& stop) {
            return stop.job == promise.job && resizes(stop.reason);
        });
        deal_of(own == plan.stops.end() ? promise.job : own->beneficiary)
            .promises.push_back(promise);
    }
    for (const Deal& deal : deals)
        if (!make_deal(deal.beneficiary, deal.stops, deal.promises))
            step_.planning.push_back(scheduler::PlanRefused{deal.beneficiary});
}

bool Stepper::may_stop(const scheduler::Stop& stop) const {
    const Job* victim = tables_.jobs.find(stop.job.value);
    if (victim == nullptr || !model::active(victim->state) || victim->state > JobState::Running)
        return false;
    if (resizes(stop.reason)) {
        const scheduler::Shape& shape = tables_.shapes.at(victim->shape.value);
        return std::ranges::any_of(shape.groups,
                                   [](const auto& group) { return group.nodes_max > group.nodes; });
    }
    return tables_.queues.at(victim->queue).settings.preemptible &&
           tables_.shapes.at(victim->shape.value).preemptible &&
           extra_of(*victim).preemptions < tables_.rules.preemptions_max;
}

/// False: it does not hold, with the state as it is (F2), and nothing was done.
bool Stepper::make_deal(JobId beneficiary, const std::vector<scheduler::Stop>& stops,
                        const std::vector<scheduler::Promise>& promises) {
    const Job* found = tables_.jobs.find(beneficiary.value);
    if (found == nullptr) return false;
    const bool grows = std::ranges::any_of(
        stops, [&](const scheduler::Stop& stop) { return stop.job == beneficiary; });
    const JobExtra& extra = extra_of(*found);
    if (!grows && (!queued(*found) || at_ < found->eligible || extra.claim)) return false;
    std::vector<scheduler::Stop> victims;
    std::vector<JobId> gone;
    for (const scheduler::Stop& stop : stops) {
        const Job* victim = tables_.jobs.find(stop.job.value);
        if (victim == nullptr) return false;
        if (!model::active(victim->state)) continue;  // What it had is free already.
        if (!may_stop(stop)) return false;
        victims.push_back(stop);
        gone.push_back(stop.job);
    }
    // All promises beside each other; the resized ones' own first, then the beneficiary's.
    Binder binder(state_, gone);
    std::vector<const scheduler::Promise*> ordered;
    for (const scheduler::Promise& promise : promises)
        ordered.insert(promise.job == beneficiary ? ordered.end() : ordered.begin(), &promise);
    for (const scheduler::Promise* promise : ordered) {
        const Job* promised = tables_.jobs.find(promise->job.value);
        const bool known =
            promised != nullptr &&
            (promise->job == beneficiary || std::ranges::find(gone, promise->job) != gone.end());
        if (!known) return false;
        auto placed =
            binder.bind(promise->job, tables_.shapes.at(promised->shape.value), promise->slots);
        if (!placed) return false;
        Allocation allocation{promised->epoch, at_, *std::move(placed), {}, 0, kNever};
        weigh(state_, allocation);
        if (!within_limits(*promised, allocation, gone)) return false;
    }
    Duration grace;
    for (const scheduler::Stop& stop : victims)
        grace = std::max(grace, grace_of(*cached_spec(state_, job(stop.job).spec)));
    const Time until = at_ + grace + kStopOverdue + kClaimMargin;
    for (const scheduler::Promise& promise : promises)
        edit_job(promise.job, [&](Job&, JobExtra& e) {
            e.claim = scheduler::Claim{promise.slots, until};
        });
    for (const scheduler::Stop& stop : victims) stop_for(stop);
    return true;
}

void Stepper::stop_for(const scheduler::Stop& stop) {
    const bool resize = resizes(stop.reason);
    edit_job(stop.job, [&](Job&, JobExtra& extra) {
        extra.beneficiary = stop.beneficiary;
        extra.stop_reason = stop.reason;
        if (!resize) ++extra.preemptions;
    });
    const JobExtra& extra = extra_of(job(stop.job));
    std::size_t nodes = 0;
    if (extra.claim)
        for (const scheduler::Slot& slot : extra.claim->slots) nodes += slot.spare ? 0 : 1;
    const std::string message = why(stop, job(stop.job), job(stop.beneficiary), tables_, nodes);
    begin_stop(stop.job, resize ? Cause::Resized : Cause::Preempted, message);
}

/// Those of jobs that still wait, on nodes that are still there.
void Stepper::put_bookings(const std::vector<scheduler::Booking>& bookings) {
    std::vector<scheduler::Booking> kept;
    for (const scheduler::Booking& booking : bookings) {
        const Job* waiting = tables_.jobs.find(booking.job.value);
        const bool there = std::ranges::all_of(booking.slots, [&](const scheduler::Slot& slot) {
            return tables_.nodes.contains(slot.node.value);
        });
        if (waiting != nullptr && queued(*waiting) && there) kept.push_back(booking);
    }
    if (tables_.bookings ? *tables_.bookings == kept : kept.empty()) return;
    record(BookingsPut{std::make_shared<const std::vector<scheduler::Booking>>(std::move(kept))});
}

/// What a gang that lost a node still has: its first claim (F4).
std::vector<scheduler::Slot> Stepper::healthy_slots(const Allocation& allocation,
                                                    NodeId blamed) const {
    std::vector<scheduler::Slot> slots;
    for (const Placed& placed : allocation.slots) {
        if (placed.node == blamed || !usable(state_, placed.node)) continue;
        scheduler::Slot& slot = slots.emplace_back();
        slot.node = placed.node;
        slot.group = placed.group;
        slot.alternative = placed.alternative;
        slot.spare = placed.spare;
    }
    return slots;
}

}  // namespace muster::core
