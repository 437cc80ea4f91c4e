// Reservations: who made them, which nodes they keep, and when they are over.
#include <algorithm>

#include "base/error_codes.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

constexpr std::size_t kWindowsMax = 1000;

Error wrong(const std::string& name, const std::string& what, std::string fix) {
    return {.code = Code::Invalid,
            .message = "reservation " + name + ": " + what,
            .fix = std::move(fix),
            .number = errors::kReservationInvalid};
}

bool overlap(const std::vector<model::Window>& a, const std::vector<model::Window>& b) {
    return std::ranges::any_of(a, [&](const model::Window& x) {
        return std::ranges::any_of(
            b, [&](const model::Window& y) { return x.start < y.end && y.start < x.end; });
    });
}

/// Bounded, ascending and apart.
Status check_windows(const std::string& name, const std::vector<model::Window>& windows, Time now) {
    if (windows.empty() || windows.size() > kWindowsMax)
        return wrong(name,
                     std::to_string(windows.size()) + " windows are not between 1 and " +
                         std::to_string(kWindowsMax),
                     "give a start and an end, or a shorter recurrence");
    Time last{0};
    for (const model::Window& window : windows) {
        if (window.end <= window.start || window.start < last)
            return wrong(name, "a window ends before it starts, or two overlap",
                         "give an end after the start, and a length below the recurrence");
        last = window.end;
    }
    if (now + kDurationMax < windows.back().start || now + kDurationMax < windows.back().end)
        return wrong(name, "a window is more than ten years ahead", "give an earlier time");
    return Ok{};
}

/// Whether no other window can come: the shell expands those of recurring ones only so far.
bool over(const model::Reservation& made, Time now) {
    return made.recurrence.every == model::Recurrence::Every::Never || made.recurrence.until <= now;
}

}  // namespace

Result<std::vector<NodeId>> Stepper::reserved_nodes(const PutReservation& event) const {
    const model::Reservation& wish = event.reservation;
    const std::vector<model::Window> windows =
        wish.windows.empty() ? std::vector{wish.first} : wish.windows;
    const auto taken_by = [&](NodeId node) -> const model::Reservation* {
        const model::Reservation* by = nullptr;
        tables_.reservations.for_each([&](std::uint64_t, const model::Reservation& other) {
            if (other.name != wish.name && overlap(other.windows, windows) &&
                std::ranges::binary_search(other.nodes, node))
                by = &other;
        });
        return by;
    };
    std::vector<NodeId> nodes;
    for (const std::string& name : event.nodes) {
        const auto found = find_node(state_, name);
        if (!found)
            return Error{.code = Code::Invalid,
                         .message = "reservation " + wish.name + ": there is no node " + name,
                         .fix = "see `muster nodes`",
                         .number = errors::kNodeNotFound};
        // Maintenance comes over everything.
        if (const auto* other = taken_by(*found); other != nullptr && !wish.maintenance)
            return wrong(wish.name, "node " + name + " is kept by " + other->name + " then",
                         "choose another node or time");
        nodes.push_back(*found);
    }
    if (event.count > 0) {
        std::vector<std::pair<std::size_t, NodeId>> least;
        tables_.nodes.for_each([&](std::uint64_t id, const Node& node) {
            const bool kind = std::ranges::any_of(node.facts->devices, [&](const auto& device) {
                return device.healthy &&
                       (device.kind == event.kind || device.device_class == event.kind);
            });
            if ((!event.kind.empty() && !kind) || !node.holds.empty() || taken_by({id}) != nullptr)
                return;
            least.emplace_back(tables_.node_use.at(id).jobs.size(), NodeId{id});
        });
        const auto count = static_cast<std::size_t>(event.count);
        if (least.size() < count)
            return wrong(wish.name,
                         "asks for " + std::to_string(count) + " nodes" +
                             (event.kind.empty() ? "" : " with " + event.kind) + ", only " +
                             std::to_string(least.size()) + " are not drained or kept already",
                         "ask for fewer, or choose another time");
        std::ranges::sort(least);
        for (std::size_t i = 0; i < count; ++i) nodes.push_back(least[i].second);
    }
    std::ranges::sort(nodes);
    const auto twice = std::ranges::unique(nodes);
    nodes.erase(twice.begin(), twice.end());
    if (nodes.empty()) return wrong(wish.name, "keeps no node", "name nodes, or give a count");
    return nodes;
}

bool Stepper::clear_of_windows(const Job& job, const Allocation& allocation) const {
    if (tables_.reservations.empty()) return true;
    const auto named = [](const std::vector<std::string>& names, const std::string& name) {
        return std::ranges::find(names, name) != names.end();
    };
    bool clear = true;
    tables_.reservations.for_each([&](std::uint64_t, const model::Reservation& made) {
        if (!clear) return;
        const bool meets = std::ranges::any_of(made.windows, [&](const model::Window& window) {
            return at_ < window.end && window.start < allocation.expected_end;
        });
        const auto kept = [&](const Placed& slot) {
            return std::ranges::binary_search(made.nodes, slot.node);
        };
        if (!meets || std::ranges::none_of(allocation.slots, kept)) return;
        bool his = named(made.users, tables_.users.at(job.user).name);
        for (const QueueId queue : chain_of(tables_, {job.queue}))
            his = his || named(made.queues, tables_.queues.at(queue.value).name);
        clear = his && !made.maintenance;
    });
    return clear;
}

Status Stepper::operator()(const PutReservation& event) {
    MUSTER_TRY(admin_only(event.caller, "reservation " + event.reservation.name));
    model::Reservation made = event.reservation;
    if (made.name.empty() || made.name.size() > 128)
        return wrong(made.name, "its name has to have 1 to 128 bytes", "name it");
    if (made.windows.empty()) made.windows = {made.first};
    std::erase_if(made.windows, [&](const model::Window& window) { return window.end <= at_; });
    if (made.windows.empty())
        return wrong(made.name, "it is over already", "give an end in the future");
    MUSTER_TRY(check_windows(made.name, made.windows, at_));
    if (made.maintenance && !(made.users.empty() && made.queues.empty()))
        return wrong(made.name, "is for maintenance, and for users or queues too",
                     "leave out one of them: in maintenance nobody runs");
    for (const std::string& queue : made.queues) MUSTER_TRY(queue_of(queue));
    std::ranges::sort(made.users), std::ranges::sort(made.queues);
    MUSTER_LET(nodes, reserved_nodes(event));
    made.nodes = nodes;
    made.created_by = event.caller.user;
    const auto known = index_.reservation_by_name.find(made.name);
    if (known != index_.reservation_by_name.end()) {
        made.id = known->second;
    } else {
        Meta meta = tables_.meta;
        made.id = {meta.next_reservation++};
        put_meta(meta);
    }
    step_.answer.id = made.id.value;
    const std::string name = made.name;
    const std::size_t count = made.nodes.size();
    record(ReservationPut{std::move(made)});
    tell("reservation.put",
         "reservation " + name + " of " + std::to_string(count) + " nodes by " + event.caller.user);
    return Ok{};
}

Status Stepper::operator()(const DropReservation& event) {
    MUSTER_TRY(admin_only(event.caller, "reservation " + event.name));
    const auto known = index_.reservation_by_name.find(event.name);
    if (known == index_.reservation_by_name.end())
        return Error{.code = Code::NotFound,
                     .message = "reservation " + event.name + ": there is no such reservation",
                     .fix = "see `muster reserve list`",
                     .number = errors::kReservationNotFound};
    record(ReservationDropped{known->second});
    tell("reservation.dropped", "reservation " + event.name + " by " + event.caller.user);
    return Ok{};
}

Status Stepper::operator()(const RefreshWindows& event) {
    const model::Reservation* known = tables_.reservations.find(event.id.value);
    if (known == nullptr) return Ok{};  // Dropped meanwhile.
    model::Reservation next = *known;
    next.windows = event.windows;
    std::erase_if(next.windows, [&](const model::Window& window) { return window.end <= at_; });
    if (next.windows.empty() && over(next, at_)) {
        record(ReservationDropped{event.id});
        return Ok{};
    }
    if (!next.windows.empty()) MUSTER_TRY(check_windows(next.name, next.windows, at_));
    if (!(next == *known)) record(ReservationPut{std::move(next)});
    return Ok{};
}

/// A window is over; so is the reservation after its last one.
void Stepper::reservation_due(ReservationId id) {
    model::Reservation next = tables_.reservations.at(id.value);
    std::erase_if(next.windows, [&](const model::Window& window) { return window.end <= at_; });
    if (next.windows.empty() && over(next, at_)) {
        tell("reservation.over", "reservation " + next.name);
        record(ReservationDropped{id});
    } else {
        record(ReservationPut{std::move(next)});
    }
}

void Stepper::leave_reservations(NodeId node) {
    std::vector<model::Reservation> changed;
    tables_.reservations.for_each([&](std::uint64_t, const model::Reservation& made) {
        if (!std::ranges::binary_search(made.nodes, node)) return;
        changed.push_back(made);
        std::erase(changed.back().nodes, node);
    });
    for (model::Reservation& made : changed) {
        if (made.nodes.empty())
            record(ReservationDropped{made.id});
        else
            record(ReservationPut{std::move(made)});
    }
}

}  // namespace muster::core
