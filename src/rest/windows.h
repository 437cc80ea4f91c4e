// The windows of a reservation that comes again, as far ahead as the core is told of them.
#pragma once

#include <vector>

#include "base/result.h"
#include "model/reservation.h"

namespace muster::rest {

constexpr Duration kWindowsAhead{std::int64_t{90} * 24 * 3600 * 1000};
constexpr std::size_t kWindowsMost = 400;

/// Those that are not over at `now`. Fails when the zone's file is gone.
Result<std::vector<model::Window>> windows_from(const model::Window& first,
                                                const model::Recurrence& recurrence, Time now);

/// Whether `made` has to be expanded anew: less than half of kWindowsAhead is known.
bool windows_due(const model::Reservation& made, Time now);

}  // namespace muster::rest
