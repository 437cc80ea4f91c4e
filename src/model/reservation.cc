#include "model/reservation.h"

#include "base/bytes.h"

namespace muster::model {
namespace {

constexpr std::uint64_t kVersion = 1;

void put(Writer& out, const Window& window) {
    out.signed_number(window.start.ms);
    out.signed_number(window.end.ms);
}
Window window(Reader& in) {
    Window window;
    window.start.ms = in.signed_number();
    window.end.ms = in.signed_number();
    return window;
}
/// False: not a value of that enumeration.
template <class E>
bool get_enum(Reader& in, E& value, E last) {
    const std::uint64_t number = in.number();
    if (number > static_cast<std::uint64_t>(last)) return false;
    value = static_cast<E>(number);
    return true;
}

}  // namespace

std::string encode(const Reservation& reservation) {
    Writer out;
    out.number(kVersion);
    out.number(reservation.id.value);
    out.text(reservation.name);
    out.text(reservation.reason);
    out.flag(reservation.maintenance);
    for (const auto* names : {&reservation.users, &reservation.queues}) {
        out.number(names->size());
        for (const std::string& name : *names) out.text(name);
    }
    out.number(reservation.nodes.size());
    for (const NodeId node : reservation.nodes) out.number(node.value);
    put(out, reservation.first);
    const Recurrence& again = reservation.recurrence;
    out.number(static_cast<std::uint64_t>(again.every));
    out.text(again.zone);
    out.number(static_cast<std::uint64_t>(again.gap));
    out.number(static_cast<std::uint64_t>(again.twice));
    out.signed_number(again.until.ms);
    out.number(reservation.windows.size());
    for (const Window& each : reservation.windows) put(out, each);
    out.text(reservation.created_by);
    return std::move(out).bytes();
}

std::optional<Reservation> decode_reservation(std::string_view bytes) {
    Reader in(bytes);
    if (in.number() != kVersion) return std::nullopt;
    Reservation reservation;
    reservation.id.value = in.number();
    reservation.name = in.text();
    reservation.reason = in.text();
    reservation.maintenance = in.flag();
    for (auto* names : {&reservation.users, &reservation.queues})
        for (std::size_t n = in.count(); n > 0 && in.ok(); --n) names->emplace_back(in.text());
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n)
        reservation.nodes.push_back({in.number()});
    reservation.first = window(in);
    Recurrence& again = reservation.recurrence;
    if (!get_enum(in, again.every, Recurrence::Every::Week)) return std::nullopt;
    again.zone = in.text();
    if (!get_enum(in, again.gap, Recurrence::Gap::Later)) return std::nullopt;
    if (!get_enum(in, again.twice, Recurrence::Twice::Second)) return std::nullopt;
    again.until.ms = in.signed_number();
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n)
        reservation.windows.push_back(window(in));
    reservation.created_by = in.text();
    if (!in.ok() || !in.at_end()) return std::nullopt;
    return reservation;
}

}  // namespace muster::model
