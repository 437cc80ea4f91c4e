// Whom to stop for whom: only if the beneficiary then provably starts, whole jobs, few, and those
// that lose least. Shrinking, growing and defragmenting are the same search with other victims.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "scheduler/book.h"
#include "scheduler/pass.h"
#include "scheduler/place.h"
#include "scheduler/shares.h"

namespace muster::scheduler {

namespace {

constexpr Duration kNextSearch{20};    // Until the next of many that wait for one.
constexpr std::size_t kDropsMax = 32;  // Victims that are tried to be spared.
constexpr Duration kRestart{120'000};  // What a restart costs, roughly.

/// First who is not taken below his guarantee, then the lower priority, then who only shrinks, then
/// what is lost: device-seconds (thousandths) since the last save.
struct Cost {
    bool deep = false;
    std::int64_t priority = std::numeric_limits<std::int64_t>::min(), stops = 0, lost = 0;
    void add(const Cost& other) {
        deep |= other.deep;
        priority = std::max(priority, other.priority);
        stops += other.stops, lost += other.lost;
    }
    friend auto operator<=>(const Cost&, const Cost&) = default;
};
std::int64_t lost_of(const StartedJob& job, Time now) {
    const Time from = job.start.checkpoints && job.start.saved > job.start.started
                          ? job.start.saved
                          : job.start.started;
    return job.devices * std::max<std::int64_t>(0, (now - from).ms) / 1000 / 1000;
}

/// What it has had until `now`, in device-seconds.
std::int64_t service_of(const StartedJob& job, Time now) {
    const std::int64_t ms = std::max<std::int64_t>(0, (now - job.start.started).ms);
    return job.start.attained + job.devices * ms / 1000 / 1000;
}
/// When it will have had that much; kNever: it holds no device.
Time service_at(const StartedJob& job, std::int64_t service) {
    if (job.devices <= 0) return kNever;
    const std::int64_t rest = std::max<std::int64_t>(0, service - job.start.attained);
    if (rest > kDurationMax.ms / 1000 * job.devices / 1000) return kNever;
    return job.start.started + Duration{rest * 1000 * 1000 / job.devices + 1};
}
/// By service alone, from when on `waiting` may take what the other holds: once that has reached a
/// level above; or the same one, behind those that waited in it already. Who comes back to his
/// level is not put behind again.
Time gives_way_at(const StartedJob& running, const QueuedJob& waiting) {
    const std::int64_t level = waiting.rank >> kLasDeviceBits;
    const Time above = level >= kLasLevels ? kNever : service_at(running, las_bound(level));
    if (level == 0 || running.start.attained >= las_bound(level - 1)) return above;
    const Time same = service_at(running, las_bound(level - 1));
    return waiting.ask.eligible < same ? same : above;
}
/// What stands for its priority among victims: of a queue that goes by service, who had more goes
/// first.
std::int64_t standing_of(const StartedJob& job, Time now) {
    const bool las = job.shape->queue->queue.settings.policy == model::QueuePolicy::Las;
    return job.start.priority * 64 - (las ? las_level(service_of(job, now)) : 0);
}

/// Elastic, with more than it must have: it goes on with a node less.
bool shrinks(const StartedJob& job) {
    const auto& groups = job.shape->shape.groups;
    return groups.size() == 1 && groups[0].nodes_max > groups[0].nodes &&
           std::ssize(job.start.slots) > groups[0].nodes + job.shape->shape.topology.spares;
}
/// The slots that an elastic job goes on with, whole slices and all its spares, without those on
/// `nodes`; none: it would have less than its least.
std::vector<Slot> left_to(const PlanIndex::State& state, const StartedJob& job,
                          const std::set<NodeId>& nodes) {
    const Shape& shape = job.shape->shape;
    const GroupAsk& group = shape.groups[0];
    if (shape.groups.size() != 1 || group.nodes_max <= group.nodes) return {};
    std::vector<Slot> rest, spares;
    for (const Slot& slot : job.start.slots)
        if (!nodes.contains(slot.node))
            (slot.spare ? spares : rest)
                .push_back({slot.node, slot.group, slot.alternative, slot.spare});
    const std::uint32_t level =
        shape.topology.slice > 0 ? state.level_of(shape.topology.slice_required) : kNone;
    if (level != kNone) {
        std::map<std::uint32_t, std::int64_t> in_domain;
        const auto domain = [&](const Slot& slot) {
            return state.nodes.at(slot.node).domains[level];
        };
        for (const Slot& slot : rest) ++in_domain[domain(slot)];
        for (auto& [id, count] : in_domain)
            count = count / shape.topology.slice * shape.topology.slice;
        std::vector<Slot> whole;
        for (const Slot& slot : rest)
            (in_domain[domain(slot)]-- > 0 ? whole : spares).push_back(slot);
        rest = std::move(whole);
    }
    while (std::ssize(spares) < shape.topology.spares && std::ssize(rest) > group.nodes) {
        if (level != kNone) return {};
        spares.push_back(rest.back()), rest.pop_back();
    }
    if (std::ssize(rest) < group.nodes || std::ssize(spares) < shape.topology.spares) return {};
    spares.resize(static_cast<std::size_t>(shape.topology.spares));
    for (Slot& spare : spares) spare.spare = true;
    rest.insert(rest.end(), spares.begin(), spares.end());
    return rest;
}
const QueueEntry* guarantor(const QueueEntry* queue) {
    while (queue != nullptr && !queue->has_guarantee) queue = queue->parent;
    return queue;
}
/// Whether the queue has more than its own without those already chosen; `deep`: stopping the job
/// too would take it below.
bool over(const QueueEntry& queue, const StartedJob& job, std::span<StartedJob* const> chosen,
          bool& deep) {
    const auto below = [&](const StartedJob& other) {
        const QueueEntry* at = other.shape->queue;
        while (at != nullptr && at != &queue) at = at->parent;
        return at != nullptr;
    };
    bool named = false, more = false;
    for (const auto& [r, amount] : job.demand) {
        if (queue.guarantee[r] < 0) continue;
        std::int64_t used = queue.used[r];
        for (const StartedJob* other : chosen)
            if (other->drafted == 0 && below(*other))
                for (const auto& [of, much] : other->demand)
                    if (of == r) used -= much;
        named = true;
        more |= used > queue.guarantee[r];
        deep |= used - amount < queue.guarantee[r];
    }
    return more || !named;
}
/// Every queue that the victim counts for, and the beneficiary does not, has more than its own.
bool borrowed(const StartedJob& victim, const QueueEntry* beneficiary,
              std::span<StartedJob* const> chosen, bool& deep) {
    for (const QueueEntry* at = victim.shape->queue; at != nullptr; at = at->parent) {
        for (const QueueEntry* mine = beneficiary; mine != nullptr; mine = mine->parent)
            if (mine == at) return true;
        if (at->has_guarantee && !over(*at, victim, chosen, deep)) return false;
    }
    return true;
}

}  // namespace

Demand demand_of(PlanIndex::State& state, ShapeEntry& entry) {
    state.prepare(entry);
    ResourceVec sum(state.resources.size());
    for (std::size_t group = 0; group < entry.groups.size(); ++group) {
        const GroupAsk& ask = entry.shape.groups[group];
        const std::int64_t nodes = ask.nodes + (group == 0 ? entry.shape.topology.spares : 0);
        if (!entry.groups[group].choices.empty())
            for (const auto& [r, amount] : entry.groups[group].choices.front().demand)
                sum[r] += amount * nodes;
        sum[1] += ask.cpus.value * nodes;
        sum[2] += ask.memory.value * nodes;
    }
    Demand out;
    for (std::uint32_t r = 0; r < sum.size(); ++r)
        if (sum[r] > 0) out.emplace_back(r, sum[r]);
    return out;
}

struct Pass::Search {
    QueuedJob* job = nullptr;
    bool guaranteed = false;  // May reclaim.
    bool defragment = false;  // Victims go elsewhere at once.
    const QueueEntry* guarantor = nullptr;
    std::vector<StartedJob*> victims;  // Chosen, the dearest last.
    std::vector<Slot> slots;
    Time sooner = kNever;  // When one more could be chosen.
};

bool Pass::may_stop(const Search& search, const StartedJob& victim,
                    std::span<StartedJob* const> chosen, bool* deep) const {
    const Shape& shape = victim.shape->shape;
    const QueueEntry* queue = victim.shape->queue;
    if (victim.stopping || victim.drafted != 0 || !shape.preemptible) return false;
    if (!queue->queue.settings.preemptible) return false;
    if (victim.start.preemptions >= state_.rules.preemptions_max) return false;
    if (search.defragment)
        return victim.start.checkpoints && victim.start.priority <= search.job->ask.priority;
    if (queue == search.job->shape->queue) {
        if (victim.start.priority != search.job->ask.priority)
            return victim.start.priority < search.job->ask.priority;
        return queue->queue.settings.policy == model::QueuePolicy::Las &&
               gives_way_at(victim, *search.job) <= now_;
    }
    if (!search.guaranteed) return false;
    bool below = false;
    const bool may = guarantor(queue) != search.guarantor &&
                     borrowed(victim, search.job->shape->queue, chosen, below);
    if (deep != nullptr) *deep = below;
    return may;
}

/// Frees the cheapest nodes that the group could take; victims go in the draft.
bool Pass::choose(Search& search, const GroupAsk& group, const Choice& choice, std::int64_t nodes) {
    struct Option {
        Cost cost;
        NodeEntry* node = nullptr;
        std::vector<StartedJob*> victims;
    };
    const ShapeEntry& entry = *search.job->shape;
    const auto release_all = [&](const Search& of, const std::vector<const Option*>& pack) {
        const std::size_t mark = draft_.mark();
        for (const Option* option : pack)
            for (StartedJob* victim : option->victims) {
                if (draft_.released(*victim)) continue;
                if (!may_stop(of, *victim)) {
                    draft_.undo_to(mark);
                    return false;
                }
                draft_.release(*victim);
            }
        return true;
    };
    std::vector<Option> options;
    for (NodeEntry* node : state_.order) {
        if (!node->usable || !fits_empty(state_, *node, entry, group, choice)) continue;
        Option option{{}, node, {}};
        const std::size_t mark = draft_.mark();
        const auto fits = [&] { return placer_.fits(*node, group, choice).has_value(); };
        bool enough = fits();
        if (!enough) {
            std::vector<std::pair<Cost, StartedJob*>> held;
            for (const NodeHold& hold : node->held) {
                bool deep = false;
                const auto known = [&](const auto& other) { return other.second == hold.job; };
                if (std::ranges::any_of(held, known)) continue;  // Two groups of it are here.
                if (!may_stop(search, *hold.job, {}, &deep)) continue;
                const Time ripe =
                    hold.job->start.started + hold.job->shape->queue->queue.settings.min_runtime;
                if (now_ < ripe) {
                    search.sooner = std::min(search.sooner, ripe);
                    continue;
                }
                held.emplace_back(Cost{deep, standing_of(*hold.job, now_),
                                       shrinks(*hold.job) ? 0 : 1, lost_of(*hold.job, now_)},
                                  hold.job);
            }
            std::ranges::sort(held, [](const auto& a, const auto& b) {
                return std::tie(a.first, a.second->start.id) <
                       std::tie(b.first, b.second->start.id);
            });
            for (const auto& [cost, job] : held) {
                if (enough) break;
                // Those before may have brought its queue down to its guarantee.
                if (!may_stop(search, *job, option.victims)) continue;
                // Only this node's part comes back here: the job's other nodes are not looked at.
                for (const NodeHold& hold : node->held)
                    if (hold.job == job) draft_.give(*node, hold.take);
                option.victims.push_back(job);
                option.cost.add(cost);
                enough = fits();
            }
            draft_.undo_to(mark);
        }
        if (enough) options.push_back(std::move(option));
    }
    if (std::ssize(options) < nodes) return false;
    // The cheapest nodes of the cheapest domain.
    const std::uint32_t required = state_.level_of(entry.shape.topology.required);
    const std::uint32_t slices = entry.shape.topology.slice > 0
                                     ? state_.level_of(entry.shape.topology.slice_required)
                                     : kNone;
    const std::size_t slice =
        slices == kNone ? 1 : static_cast<std::size_t>(entry.shape.topology.slice);
    std::optional<std::vector<const Option*>> best;
    Cost best_cost;
    for (std::size_t from = 0; from < options.size();) {
        const auto domain_of = [&](std::size_t i, std::uint32_t level) {
            return level == kNone ? 0 : options[i].node->domains[level];
        };
        std::size_t to = from;
        std::vector<std::pair<Cost, std::vector<const Option*>>> packs;
        while (to < options.size() && domain_of(to, required) == domain_of(from, required)) {
            std::vector<const Option*> here;
            const std::size_t start = to;
            for (; to < options.size() && domain_of(to, required) == domain_of(from, required) &&
                   domain_of(to, slices) == domain_of(start, slices);
                 ++to)
                here.push_back(&options[to]);
            std::ranges::stable_sort(here, [](auto* a, auto* b) { return a->cost < b->cost; });
            for (std::size_t i = 0; i + slice <= here.size(); i += slice) {
                auto& pack = packs.emplace_back();
                for (std::size_t j = i; j < i + slice; ++j) {
                    pack.second.push_back(here[j]);
                    pack.first.add(here[j]->cost);
                }
            }
        }
        std::ranges::stable_sort(packs,
                                 [](const auto& a, const auto& b) { return a.first < b.first; });
        std::vector<const Option*> chosen;
        Cost cost;
        const std::size_t mark = draft_.mark();
        for (const auto& pack : packs) {
            if (std::ssize(chosen) >= nodes) break;
            // Those of other nodes may have brought a queue down to its guarantee.
            if (search.guaranteed && !release_all(search, pack.second)) continue;
            chosen.insert(chosen.end(), pack.second.begin(), pack.second.end());
            cost.add(pack.first);
        }
        draft_.undo_to(mark);
        const bool known = required == kNone || domain_of(from, required) != kNone;
        if (known && std::ssize(chosen) >= nodes && (!best || cost < best_cost))
            best = std::move(chosen), best_cost = cost;
        from = to;
    }
    if (!best) return false;
    for (const Option* option : *best)
        for (StartedJob* victim : option->victims) {
            if (draft_.released(*victim)) continue;
            draft_.release(*victim);
            search.victims.push_back(victim);
        }
    return true;
}

/// Of the chosen, keeps those without whom it does not fit; places it.
bool Pass::settle(Search& search) {
    Request request = request_of(*search.job);
    auto placed = placer_.place(request);
    if (!placed) return false;
    std::set<NodeId> nodes;
    for (const Slot& slot : placed->slots) nodes.insert(slot.node);
    std::erase_if(search.victims, [&](const StartedJob* victim) {
        return std::ranges::none_of(victim->start.slots,
                                    [&](const Slot& slot) { return nodes.contains(slot.node); });
    });
    std::ranges::sort(search.victims, [&](const StartedJob* a, const StartedJob* b) {
        return std::tuple(standing_of(*a, now_), lost_of(*a, now_), a->start.id) <
               std::tuple(standing_of(*b, now_), lost_of(*b, now_), b->start.id);
    });
    const auto fits_with = [&](const std::vector<StartedJob*>& victims) {
        draft_.undo_to(base_);
        for (StartedJob* victim : victims) draft_.release(*victim);
        bound_.clear();  // Without them its queue may be within its guarantee, or not.
        return placer_.place_on(request, placed->slots).has_value();
    };
    for (std::size_t i = search.victims.size(), tries = 0; i-- > 0 && tries < kDropsMax; ++tries) {
        auto fewer = search.victims;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (fits_with(fewer)) search.victims = std::move(fewer);
    }
    if (search.victims.empty() || !fits_with(search.victims)) return false;
    search.slots = std::move(placed->slots);
    if (!search.defragment) return true;
    // All of them must find another place at once.
    for (StartedJob* victim : search.victims) {
        Request move;
        move.shape = victim->shape;
        move.job = victim->start.id;
        move.user = victim->start.user;
        move.now = now_;
        if (!placer_.place(move)) return false;
    }
    return true;
}

/// Whether there can be a victim at all; looked at before any node is.
bool Pass::anybody(Search& search, const Demand& demand) const {
    const QueueEntry& queue = *search.job->shape->queue;
    if (search.defragment) {
        // Fragments alone: enough is free, only not together.
        const auto booked = std::ranges::find(bookings_, search.job->ask.id, &Booking::job);
        if (booked == bookings_.end()) return false;
        for (const auto& [r, amount] : demand)
            if (state_.capacity[r] - state_.used[r] < amount) return false;
        return true;
    }
    if (!queue.priorities.empty() && queue.priorities.begin()->first < search.job->ask.priority)
        return true;
    if (queue.queue.settings.policy == model::QueuePolicy::Las) {
        for (const auto& [id, other] : state_.started) {
            if (other.shape->queue != &queue || other.stopping) continue;
            const Time at = gives_way_at(other, *search.job);
            if (at <= now_) return true;
            search.sooner = std::min(search.sooner, at);
        }
    }
    if (!search.guaranteed) return false;
    for (const auto& [id, other] : state_.queues) {
        if (&other == &queue || other.running == 0 || !other.children.empty()) continue;
        const QueueEntry* theirs = guarantor(&other);
        if (theirs == search.guarantor) continue;
        if (theirs == nullptr) return true;
        for (std::size_t r = 0; r < theirs->guarantee.size(); ++r)
            if (theirs->guarantee[r] >= 0 && theirs->used[r] > theirs->guarantee[r]) return true;
    }
    return false;
}

bool Pass::make_room(QueuedJob& job, const Demand& demand) {
    base_ = draft_.mark();
    for (const bool defragment : {false, true}) {
        if (defragment && !state_.rules.defragment) break;
        Search search;
        search.job = &job;
        search.defragment = defragment;
        search.guaranteed = in_guarantee(job.shape->queue, demand);
        search.guarantor = guarantor(job.shape->queue);
        bool chosen = anybody(search, demand);
        searched_ = searched_ || chosen;
        Request request = request_of(job);
        placer_.begin(request);
        for (std::size_t group = 0; group < job.shape->groups.size() && chosen; ++group) {
            const GroupAsk& ask = job.shape->shape.groups[group];
            const std::int64_t nodes =
                ask.nodes + (group == 0 ? job.shape->shape.topology.spares : 0);
            chosen = false;
            for (const Choice& choice : job.shape->groups[group].choices)
                if (!chosen) chosen = choose(search, ask, choice, nodes);
        }
        if (chosen && !search.victims.empty() && settle(search) && worth_it(search)) {
            announce(search);
            return true;
        }
        draft_.undo_to(base_);
        if (search.sooner != kNever && !look_) wake_at(*job.shape, search.sooner);
        if (search.sooner != kNever) plan_.wake = std::min(plan_.wake, search.sooner);
    }
    return false;
}

/// Reclaim is slow on purpose (F16); moving others about must gain more than it costs.
bool Pass::worth_it(const Search& search) const {
    if (search.defragment) {
        std::int64_t cost = 0, wanted = 0;
        for (const StartedJob* victim : search.victims)
            cost += lost_of(*victim, now_) + victim->devices * kRestart.ms / 1000 / 1000;
        for (const Slot& slot : search.slots)
            wanted += ask_of(search.job->shape->shape.groups[slot.group], slot.alternative).count;
        const auto booking = std::ranges::find(bookings_, search.job->ask.id, &Booking::job);
        if (booking == bookings_.end()) return false;
        const Duration wait =
            booking->at == kNever ? Duration{24LL * 3600 * 1000} : booking->at - now_;
        return wanted * (wait.ms / 1000) > 2 * cost;
    }
    std::int64_t under_way = 0, more = 0;
    for (const auto& [id, job] : state_.started)
        if (job.stopping && job.beneficiary && job.beneficiary != id) under_way += job.devices;
    for (const StartedJob* victim : search.victims)
        if (victim->shape->queue != search.job->shape->queue) more += victim->devices;
    return more == 0 || under_way + reclaimed_ == 0 ||
           under_way + reclaimed_ + more <= state_.rules.reclaim_per_minute * 1000;
}

void Pass::announce(const Search& search) {
    std::set<NodeId> nodes;
    for (const Slot& slot : search.slots) nodes.insert(slot.node);
    for (const StartedJob* victim : search.victims) {
        const bool own = victim->shape->queue == search.job->shape->queue;
        Stop stop{victim->start.id, search.job->ask.id,
                  search.defragment ? StopReason::Defragment
                  : own             ? StopReason::Priority
                                    : StopReason::Reclaim};
        if (!own) reclaimed_ += victim->devices;
        if (auto rest = left_to(state_, *victim, nodes); !rest.empty()) {
            stop.reason = StopReason::Shrink;
            plan_.promises.push_back({victim->start.id, std::move(rest)});
        }
        plan_.stops.push_back(stop);
    }
    plan_.promises.push_back({search.job->ask.id, search.slots});
}

void Pass::preempt() {
    // Each search looks at every node: one a pass, and none before the starts of this one are out.
    if (!plan_.starts.empty()) {
        if (!state_.untried.empty()) plan_.wake = std::min(plan_.wake, now_ + kNextSearch);
        return;
    }
    while (!state_.untried.empty() && !look_) {
        // Every other search is for an owner who takes back his own, if one waits for it.
        auto next = state_.untried.end();
        if (!state_.searched_for_owner)
            next = std::ranges::find_if(state_.untried, [&](const Sleeper& sleeper) {
                return sleeper.shape->asleep && !sleeper.shape->preempt_tried &&
                       privileged(*sleeper.shape);
            });
        state_.searched_for_owner = next != state_.untried.end();
        if (next == state_.untried.end()) next = state_.untried.begin();
        const Sleeper sleeper = *next;
        state_.untried.erase(next);
        ShapeEntry& entry = *sleeper.shape;
        entry.untried = false;
        if (!entry.asleep || entry.preempt_tried) continue;
        entry.preempt_tried = true;
        if (entry.listed_in != state_.passes) rewind(entry);
        OrderKey key;
        Lane* lane = first_lane(entry, key);
        if (lane == nullptr || !make_room(*lane->cursor->job, demand_of(state_, entry))) {
            if (!searched_) continue;
        }
        break;
    }
    if (!state_.untried.empty()) plan_.wake = std::min(plan_.wake, now_ + kNextSearch);
}

/// With more than the least, out of what is left when all that wait have theirs. By sums alone, so
/// that it does not matter who sleeps (F6).
std::optional<Placement> Pass::place_beyond(Request& request) {
    if (!beyond_) {
        beyond_ = state_.capacity;
        for (std::size_t r = 0; r < beyond_->size(); ++r) (*beyond_)[r] -= used_before_[r];
        for (auto& [id, shape] : state_.shapes)
            if (shape.waiting > 0 && ever_fits(state_, shape, false, {}))
                for (const auto& [r, amount] : demand_of(state_, shape))
                    (*beyond_)[r] -= amount * shape.waiting;
    }
    const GroupAsk& group = request.shape->shape.groups[0];
    std::int64_t most = group.nodes_max - group.nodes;
    Demand each;
    for (const auto& [r, amount] : demand_of(state_, *request.shape))
        each.emplace_back(r, amount / (group.nodes + request.shape->shape.topology.spares));
    for (const auto& [r, amount] : each)
        if (amount > 0) most = std::min(most, (*beyond_)[r] / amount);
    auto placed = place_most(request, 1, most);
    if (!placed) return std::nullopt;
    for (const auto& [r, amount] : each) (*beyond_)[r] -= amount * request.elastic_extra;
    return placed;
}

/// With as many nodes beyond the least as there are, up to `most`; nothing if not with `least`.
std::optional<Placement> Pass::place_most(Request& request, std::int64_t least, std::int64_t most) {
    const std::int64_t step = std::max<std::int64_t>(1, request.shape->shape.topology.slice);
    std::int64_t low = (least + step - 1) / step, high = most / step;
    const auto with = [&](std::int64_t steps) {
        request.elastic_extra = steps * step;
        return placer_.place(request);
    };
    if (high < low) return std::nullopt;
    if (auto placed = with(high)) return placed;
    const std::size_t mark = draft_.mark();
    auto best = with(low);
    if (!best) return std::nullopt;
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        draft_.undo_to(mark);
        (with(middle) ? low : high) = middle;
    }
    draft_.undo_to(mark);
    return with(low);
}

/// An elastic job takes more nodes when nobody waits for them and it lasts long enough to gain.
void Pass::grow() {
    if (state_.elastic.empty() || blocked_ || !plan_.starts.empty()) return;
    for (const auto& [id, job] : state_.queued)
        if (job.lane != nullptr && job.shape->blocked.reason != Blocked::Reason::NeverFits) return;
    for (const JobId id : state_.elastic) {
        StartedJob& job = state_.started.at(id);
        const GroupAsk& group = job.shape->shape.groups[0];
        const auto have = std::ranges::count_if(
            job.start.slots, [](const Slot& slot) { return slot.group == 0 && !slot.spare; });
        if (job.stopping || have >= group.nodes_max || job.shape->shape.groups.size() != 1)
            continue;
        if (!job.start.checkpoints) continue;  // It would begin from nothing.
        const Time ripe = job.start.started + state_.rules.resize_min_interval;
        if (now_ < ripe) {
            plan_.wake = std::min(plan_.wake, ripe);
            continue;
        }
        if (job.start.expected_end < now_ + state_.rules.resize_min_interval) continue;
        const std::size_t mark = draft_.mark();
        draft_.release(job);
        Request request;
        request.shape = job.shape;
        request.job = id;
        request.user = job.start.user;
        request.now = now_;
        request.avoid = job.start.avoid;
        const auto placed =
            place_most(request, have + 1 - group.nodes, group.nodes_max - group.nodes);
        if (placed) {
            plan_.stops.push_back({id, id, StopReason::Grow});
            plan_.promises.push_back({id, placed->slots});
            return;  // One at a time.
        }
        draft_.undo_to(mark);
    }
}

}  // namespace muster::scheduler
