// /v1/reservations: list, make, drop.
#include <algorithm>

#include "base/text.h"
#include "rest/api.h"
#include "rest/body.h"
#include "rest/ids.h"
#include "rest/job_json.h"
#include "rest/node_json.h"
#include "rest/time_text.h"
#include "rest/windows.h"
#include "spec/reservation_text.h"

namespace muster::rest {
namespace {

std::string_view to_text(model::Recurrence::Every every) {
    switch (every) {
        case model::Recurrence::Every::Never: return "";
        case model::Recurrence::Every::Day: return "day";
        case model::Recurrence::Every::Week: return "week";
    }
    return "";
}

void write_reservation(JsonWriter& json, const core::View& view, const model::Reservation& made,
                       Time now) {
    const model::Window next = made.windows.empty() ? model::Window{} : made.windows.front();
    json.begin_object().field("name", made.name).key("reason");
    write_text(json, made.reason);
    json.field("maintenance", made.maintenance);
    json.field("active", !made.windows.empty() && next.start <= now && now < next.end);
    json.key("nodes").begin_array();
    for (const NodeId node : made.nodes) json.value(node_name(view, node));
    json.end_array().key("users").begin_array();
    for (const std::string& user : made.users) json.value(user);
    json.end_array().key("queues").begin_array();
    for (const std::string& queue : made.queues) json.value(queue);
    json.end_array();
    write_time(json, "start", next.start);
    write_time(json, "end", next.end);
    json.key("every");
    write_text(json, to_text(made.recurrence.every));
    json.field("zone", made.recurrence.zone);
    write_time(json, "until", made.recurrence.until);
    json.field("created_by", made.created_by).end_object();
}

/// The members of the body; its own problems come out of finish().
spec::ReservationText text_of_body(Body& body) {
    spec::ReservationText text;
    const auto take = [&](std::string_view name, std::string& into, std::size_t most = 4096) {
        if (auto value = body.text(name, most)) into = *std::move(value);
    };
    take("name", text.name, 128);
    take("reason", text.reason, 500);
    take("nodes", text.nodes, std::size_t{1} << 20);
    take("count", text.count, 20);
    take("gpus", text.gpus, 100);
    take("users", text.users);
    take("queues", text.queues);
    take("start", text.start, 100);
    take("end", text.end, 100);
    take("for", text.duration, 100);
    take("every", text.every, 100);
    take("zone", text.zone, 100);
    take("gap", text.gap, 100);
    take("twice", text.twice, 100);
    take("until", text.until, 100);
    text.maintenance = body.flag("maintenance").value_or(false);
    return text;
}

bool overlaps(const std::vector<model::Window>& a, const std::vector<model::Window>& b) {
    return std::ranges::any_of(a, [&](const model::Window& x) {
        return std::ranges::any_of(
            b, [&](const model::Window& y) { return x.start < y.end && y.start < x.end; });
    });
}

/// The core counts nodes of a kind; of those with so many devices each, the least used are named
/// here, from the view.
Result<std::vector<std::string>> pick_nodes(const core::View& view, const spec::ReservationAsk& ask,
                                            const std::vector<model::Window>& windows) {
    std::vector<std::pair<std::size_t, std::string>> least;
    view.nodes.for_each([&](std::uint64_t id, const core::Node& node) {
        if (node.forgotten || !node.facts || !node.holds.empty()) return;
        const auto devices =
            std::ranges::count_if(node.facts->devices, [&](const model::Device& device) {
                return device.healthy && (ask.kind.empty() || device.kind == ask.kind ||
                                          device.device_class == ask.kind);
            });
        if (devices < ask.devices) return;
        bool taken = false;
        view.reservations.for_each([&](std::uint64_t, const model::Reservation& other) {
            taken = taken || (other.name != ask.name && overlaps(other.windows, windows) &&
                              std::ranges::binary_search(other.nodes, NodeId{id}));
        });
        const core::NodeUse* use = view.node_use.find(id);
        if (!taken) least.emplace_back(use == nullptr ? 0 : use->jobs.size(), node.facts->name);
    });
    if (std::ssize(least) < ask.count)
        return numbered(errors::kReservationInvalid,
                        "reservation " + ask.name + ": asks for " + std::to_string(ask.count) +
                            " nodes with " + std::to_string(ask.devices) + " " +
                            (ask.kind.empty() ? "devices" : ask.kind) + ", only " +
                            std::to_string(least.size()) +
                            " have them and are not drained or kept already",
                        {}, "ask for fewer, or choose another time");
    std::ranges::sort(least);
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < ask.count; ++i)
        names.push_back(least[static_cast<std::size_t>(i)].second);
    return names;
}

Result<core::PutReservation> event_of(const Call& call, const core::View& view,
                                      const spec::ReservationAsk& ask) {
    core::PutReservation event{.caller = call.who.caller, .reservation = {}};
    model::Reservation& made = event.reservation;
    made.name = ask.name, made.reason = ask.reason, made.maintenance = ask.maintenance;
    made.users = ask.users, made.queues = ask.queues;
    made.first = ask.first, made.recurrence = ask.recurrence;
    MUSTER_LET(windows, windows_from(ask.first, ask.recurrence, call.now));
    made.windows = std::move(windows);
    event.nodes = ask.nodes;
    if (ask.devices > 1) {
        MUSTER_LET(names, pick_nodes(view, ask, made.windows));
        event.nodes = std::move(names);
    } else {
        event.count = ask.count;
        event.kind = ask.kind;
    }
    return event;
}

void answer_made(const CallPtr& call, const std::string& name, const Backend::Answered& done) {
    call->api->backend.when_published(done.revision, [call, name, done] {
        const ViewPtr view = call->api->backend.view();
        const std::string revision = revision_text(view->meta.term, done.revision);
        const model::Reservation* made = view->reservations.find(done.answer.id);
        if (made == nullptr)
            return call->fail(numbered(errors::kReservationNotFound,
                                       "reservation " + name + " was dropped at once"));
        JsonWriter json;
        write_reservation(json, *view, *made, call->now);
        call->json(std::move(json).text(), {{"Muster-Revision", revision}}, 201);
    });
}

void answer_list(const CallPtr& call, const core::View& view) {
    JsonWriter json;
    json.begin_object().key("items").begin_array();
    std::vector<const model::Reservation*> all;
    view.reservations.for_each(
        [&](std::uint64_t, const model::Reservation& made) { all.push_back(&made); });
    std::ranges::sort(all, {}, [](const auto* made) {
        return std::pair(made->windows.empty() ? kNever : made->windows.front().start, made->name);
    });
    for (const model::Reservation* made : all) write_reservation(json, view, *made, call->now);
    json.end_array().field("revision", revision_text(view)).end_object();
    call->json(std::move(json).text());
}

}  // namespace

Result<std::vector<model::Window>> windows_from(const model::Window& first,
                                                const model::Recurrence& recurrence, Time now) {
    if (recurrence.every == model::Recurrence::Every::Never) return std::vector{first};
    MUSTER_LET(zone, spec::TimeZone::load(recurrence.zone));
    const Time begin = std::max(now, first.start);
    return spec::expand(first, recurrence, zone, now, begin + kWindowsAhead, kWindowsMost);
}

bool windows_due(const model::Reservation& made, Time now) {
    if (made.recurrence.every == model::Recurrence::Every::Never) return false;
    const Time known = made.windows.empty() ? now : made.windows.back().start;
    return known < now + Duration{kWindowsAhead.ms / 2} && known < made.recurrence.until;
}

void list_reservations(const CallPtr& call) {
    with_view(call, [](const CallPtr& ready, const ViewPtr& view) { answer_list(ready, *view); });
}

void create_reservation(const CallPtr& call) {
    Body body(call->request, BodyNeed::Required);
    const spec::ReservationText text = text_of_body(body);
    if (auto problem = body.finish()) return call->fail(*std::move(problem));
    const auto parsed = spec::parse_reservation(text, {.now = call->now});
    if (const auto* problems = std::get_if<spec::Problems>(&parsed))
        return call->fail(invalid_text(*problems, errors::kReservationInvalid));
    const auto& ask = std::get<spec::ReservationAsk>(parsed);
    auto event = event_of(*call, *call->api->backend.view(), ask);
    if (!event) return call->fail(event.error());
    call->api->backend.submit(*std::move(event),
                              [call, name = ask.name](Result<Backend::Answered> done) {
                                  if (!done) return call->fail(std::move(done).error());
                                  call->api->own_writes.note(call->who.caller.user, done->revision);
                                  answer_made(call, name, *done);
                              });
}

void delete_reservation(const CallPtr& call) {
    core::DropReservation event{.caller = call->who.caller, .name = call->args[0]};
    call->api->backend.submit(std::move(event), [call](Result<Backend::Answered> done) {
        if (!done) return call->fail(std::move(done).error());
        call->api->own_writes.note(call->who.caller.user, done->revision);
        const std::string revision =
            revision_text(call->api->backend.view()->meta.term, done->revision);
        call->answer({.status = 204, .headers = {{"Muster-Revision", revision}}});
    });
}

}  // namespace muster::rest
