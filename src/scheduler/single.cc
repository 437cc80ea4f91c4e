// The node of a job that wants one: of those where it fits, the one where it leaves least out of
// reach of what is asked typically; else, and of equal ones, the tightest.
#include <algorithm>

#include "scheduler/place.h"
#include "scheduler/placer.h"

namespace muster::scheduler {
namespace {

constexpr int kFitsMax = 8;             // Looked at of those with equally much free.
constexpr int kPartsMax = 32;           // Of those with a device given away in parts.
constexpr int kAlikeMax = 4;            // Of those that look like one before, in a row.
constexpr int kTouchedMax = 64;         // Once there is one that fits.
constexpr std::int64_t kOpened = 1000;  // Above what is left of any device.

bool is_part(const Choice& choice) {
    return choice.part_milli > 0 || choice.part_memory.value > 0;
}

}  // namespace

/// The best so far.
struct Placer::Single {
    const GroupAsk& group;
    bool measured = false;
    NodeEntry* node = nullptr;
    const Choice* choice = nullptr;
    std::int64_t gain = 0, rank = 0;
    std::vector<std::pair<const Choice*, std::uint64_t>> seen;  // Looks that fitted.
    bool done = false;                                          // There is none better.
    // Of the row of nodes at hand.
    int fitting = 0, alike = 0, touched = 0;
    void begin_row() { fitting = alike = touched = 0; }
    bool enough(int most) const {
        return done || fitting >= most || alike >= kAlikeMax ||
               (node != nullptr && touched >= kTouchedMax);
    }
};

std::pair<NodeEntry*, const Choice*> Placer::single(const GroupAsk& group,
                                                    std::span<const Choice* const> choices) {
    Single best{group};
    // A gang of several groups fits or not by where the first goes: that must not change with what
    // others ask for, or it would sleep on what it could have.
    best.measured =
        request_->shape->shape.groups.size() == 1 && state_.fragmentation.current(state_);
    if (best.measured) best.seen.reserve(64);
    for (const Choice* choice : choices) {
        if (best.done) break;
        if (is_part(*choice)) on_parts(best, *choice);
        if (best.done || (is_part(*choice) && best.node != nullptr && !best.measured)) break;
        if (choice->count > 0 || is_part(*choice))
            on_devices(best, *choice);
        else
            without_devices(best, *choice);
    }
    return {best.node, best.choice};
}

/// Looks at a node. `rank`: of equally good ones the smallest is taken, the first of equal ranks.
void Placer::offer(Single& best, NodeEntry& node, const Choice& choice, std::int64_t rank) {
    ++best.touched;
    std::optional<Room> room;
    std::uint64_t look = 0;
    if (best.measured) {
        room.emplace(node);
        look = room->known ? state_.fragmentation.look(*room) : 0;
        const auto same = [&](const auto& seen) {
            return seen.first == &choice && seen.second == look;
        };
        if (room->known && std::ranges::any_of(best.seen, same)) {
            ++best.fitting, ++best.alike;
            return;
        }
    }
    const auto fit = fits(node, best.group, choice);
    if (!fit) return;
    ++best.fitting;
    best.alike = 0;
    std::int64_t gain = 0;
    if (best.measured && room->known) {
        best.seen.emplace_back(&choice, look);
        Fragmentation& fragmentation = state_.fragmentation;
        const std::int64_t before = fragmentation.out_of_reach(*room, look);
        room->cpus -= cpus_for(node, best.group, choice).value;
        room->memory -= best.group.memory.value;
        if (fit->device != kNone)
            room->take_part(fit->pool, fit->device,
                            part_milli(ask_of(best.group, choice.alternative),
                                       state_.pools[node.pools[fit->pool].pool].memory));
        else if (fit->pool != kNone)
            room->share[fit->pool].idle -= choice.count;
        if (room->known) {
            const std::int64_t less =
                before - fragmentation.out_of_reach(*room, fragmentation.look(*room));
            gain = less / Fragmentation::kStep - (less % Fragmentation::kStep < 0 ? 1 : 0);
        }
    }
    if (best.node != nullptr && (gain < best.gain || (gain == best.gain && rank >= best.rank)))
        return;
    best.node = &node, best.choice = &choice;
    best.gain = gain, best.rank = rank;
    best.done = !best.measured;
}

/// Beside others on a device that is given away in parts: the tightest, if nothing speaks against.
void Placer::on_parts(Single& best, const Choice& choice) {
    NodeEntry* tightest = nullptr;
    std::int64_t least = kOpened;
    int looked = 0;
    for (const std::uint32_t id : choice.shelves) {
        const Bitmap& nodes = state_.pools[id - kFirstPoolShelf].partly;
        for (std::size_t at = nodes.next(0, state_.order.size()); at != Bitmap::kNone;
             at = nodes.next(at + 1, state_.order.size())) {
            NodeEntry& node = *state_.order[at];
            const auto fit = fits(node, best.group, choice);
            if (!fit) continue;
            const auto& parts = node.pools[fit->pool].parts;
            if (std::ranges::find(parts, fit->device, &PartBook::device) == parts.end()) continue;
            if (fit->left < least) tightest = &node, least = fit->left;
            if (!best.measured && least == 0) break;
            if (best.measured && looked++ < kPartsMax) offer(best, node, choice, fit->left);
        }
    }
    if (tightest != nullptr) offer(best, *tightest, choice, least);
}

/// An idle node out of the domain that has fewest of them: whole domains stay whole (F11).
NodeEntry* Placer::idle_node(const GroupAsk& group, const Choice& choice, const Shelf& shelf) {
    if (state_.levels.empty()) return nullptr;
    const std::size_t level = state_.levels.size() - 1;
    const auto step = static_cast<std::size_t>(shelf.most - 1);
    const std::vector<std::int32_t>& counts = shelf.counts[level][step];
    std::size_t best = counts.size();
    for (std::size_t i = 0; i < counts.size(); ++i)
        if (counts[i] > 0 && (best == counts.size() || counts[i] < counts[best])) best = i;
    if (best == counts.size()) return nullptr;
    const Domain& domain = state_.domains[level][best];
    const Bitmap& nodes = shelf.exact[step];
    for (std::size_t at = nodes.next(domain.first, domain.last); at != Bitmap::kNone;
         at = nodes.next(at + 1, domain.last))
        if (fits(*state_.order[at], group, choice)) return state_.order[at];
    return nullptr;
}

/// On whole devices, or on part of an idle one.
void Placer::on_devices(Single& best, const Choice& choice) {
    std::int32_t most = 0;
    for (const std::uint32_t id : choice.shelves) most = std::max(most, state_.shelves[id].most);
    const std::int64_t opened = is_part(choice) ? kOpened : 0;
    for (std::int32_t step = choice.step; step <= most; ++step)
        for (const std::uint32_t id : choice.shelves) {
            const Shelf& shelf = state_.shelves[id];
            if (step > shelf.most || best.done) continue;
            best.begin_row();
            if (step == shelf.most)
                if (NodeEntry* node = idle_node(best.group, choice, shelf))
                    offer(best, *node, choice, opened + step);
            const Bitmap& nodes = shelf.exact[static_cast<std::size_t>(step - 1)];
            for (std::size_t at = nodes.next(0, state_.order.size());
                 at != Bitmap::kNone && !best.enough(kFitsMax);
                 at = nodes.next(at + 1, state_.order.size()))
                offer(best, *state_.order[at], choice, opened + step);
        }
}

/// On nodes without devices; else where all are in use; else where they lose least.
void Placer::without_devices(Single& best, const Choice& choice) {
    const auto used_up = [&](std::size_t at) { return state_.used_up.test(at); };
    for (const std::uint32_t id : choice.shelves)
        for (const bool idle : {false, true}) {
            if (id == kCpuShelf && idle) continue;
            const Shelf& shelf = state_.shelves[id];
            for (std::int32_t step = choice.step; step <= shelf.most && !best.done; ++step) {
                const Bitmap& nodes = shelf.exact[static_cast<std::size_t>(step - 1)];
                const std::size_t end = state_.order.size();
                best.begin_row();
                for (std::size_t at = nodes.next(0, end);
                     at != Bitmap::kNone && !best.enough(kFitsMax); at = nodes.next(at + 1, end)) {
                    if (id != kCpuShelf && !idle) {  // Both are few: whichever comes later.
                        const std::size_t other = state_.used_up.next(at, end);
                        if (other == Bitmap::kNone) break;
                        if (other != at) {
                            at = other - 1;
                            continue;
                        }
                    } else if (id != kCpuShelf && used_up(at)) {
                        continue;
                    }
                    offer(best, *state_.order[at], choice, step);
                    // No device is out of reach for it that was not before.
                    best.done |= best.node != nullptr && best.gain == 0;
                }
            }
        }
}

}  // namespace muster::scheduler
