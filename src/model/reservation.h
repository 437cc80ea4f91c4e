// A window in which nodes are kept for some people, or for nobody (maintenance).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "model/job_spec.h"

namespace muster {
using ReservationId = Id<struct ReservationTag>;
}

namespace muster::model {

/// When it comes again, in the wall time of `zone`. At a daylight-saving change a local time that
/// does not exist or exists twice follows the rule (F31).
struct Recurrence {
    enum class Every : std::uint8_t { Never, Day, Week };
    enum class Gap : std::uint8_t { Skip, Later };        // The local time does not exist.
    enum class Twice : std::uint8_t { First, Second };    // It exists twice.
    Every every = Every::Never;
    std::string zone = "UTC";  // An IANA name. Expanded by the shell, which knows the zones.
    Gap gap = Gap::Later;
    Twice twice = Twice::First;
    Time until = kNever;
    friend bool operator==(const Recurrence&, const Recurrence&) = default;
};

struct Window {
    Time start, end;  // Half open.
    friend bool operator==(const Window&, const Window&) = default;
};

struct Reservation {
    ReservationId id;
    std::string name;
    std::string reason;
    bool maintenance = false;          // Nobody may run.
    std::vector<std::string> users;    // Who may; empty with queues empty: nobody.
    std::vector<std::string> queues;   // Whose jobs may.
    std::vector<NodeId> nodes;         // Fixed when it was made. Sorted.
    Window first;
    Recurrence recurrence;
    std::vector<Window> windows;  // Those known, ascending: the present one and those to come.
    std::string created_by;
    friend bool operator==(const Reservation&, const Reservation&) = default;
};
std::string encode(const Reservation& reservation);
std::optional<Reservation> decode_reservation(std::string_view bytes);

}  // namespace muster::model
