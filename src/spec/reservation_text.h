// What `muster reserve` is told, as text, to values. All that is wrong is told at once, each by its
// flag. expand() of time_zone.h makes the windows of a recurrence.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/reservation.h"
#include "spec/problem.h"
#include "spec/time_zone.h"

namespace muster::spec {

constexpr std::int64_t kReservedNodesMax = 100'000;
constexpr Duration kReservationMax{std::int64_t{365} * 24 * 3600 * 1000};

/// The flags as they were typed; "" was not given.
struct ReservationText {
    std::string name, reason;
    std::string nodes;   // "n1,n[2-4]".
    std::string count;   // "4": so many, whichever; in place of nodes.
    std::string gpus;    // "h100", "h100:8": of nodes with so many of these devices.
    std::string users;   // "ana,wei".
    std::string queues;  // "prod,research/nlp".
    std::string
        start;        // "2026-12-24T08:00" on the zone's clock, with an offset, "now+2h"; "": now.
    std::string end;  // The same; or
    std::string duration;  // "4h".
    std::string every;     // "day", "week".
    std::string zone;      // "Europe/Berlin".
    std::string gap;       // "skip", "later".
    std::string twice;     // "first", "second".
    std::string until;     // A time or a date: no window starts after it.
    bool maintenance = false;
};

/// What is asked for; whoever knows the nodes picks them and makes the Reservation.
struct ReservationAsk {
    std::string name, reason;
    bool maintenance = false;
    std::vector<std::string> nodes;          // Names, sorted; or
    std::int64_t count = 0;                  // so many nodes…
    std::int64_t devices = 0;                // …each with at least so many devices…
    std::string kind;                        // …of this kind or class; "" = of any.
    std::vector<std::string> users, queues;  // Sorted.
    model::Window first;
    model::Recurrence recurrence;
    friend bool operator==(const ReservationAsk&, const ReservationAsk&) = default;
};

struct ReservationOptions {
    Time now;
    std::string default_zone = "UTC";  // Of times without an offset, if no zone is given.
    std::string zone_root = kZoneRoot;
};

std::variant<ReservationAsk, Problems> parse_reservation(const ReservationText& text,
                                                         const ReservationOptions& options);

/// The same as flags, each once: name and value ("" for one without). For `-o yaml` and messages.
std::vector<std::pair<std::string, std::string>> to_flags(const ReservationAsk& ask);

}  // namespace muster::spec
