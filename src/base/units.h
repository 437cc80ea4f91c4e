// Text to quantities and back, as people write them in job files: 90m, 2d, 64GB, 0.5.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/id.h"
#include "base/quantity.h"
#include "base/result.h"

namespace muster {

/// "90m", "2d", "1h30m", "2 days", "1-12:00:00", "45" (seconds), "500ms". Between 0 and
/// kDurationMax.
Result<Duration> parse_duration(std::string_view text);
/// "64GB" and "64GiB" are both 64·2^30 (memory is sold that way); K M G T P, with or without B or
/// iB; a bare number is bytes. Between 0 and `max`.
Result<Bytes> parse_bytes(std::string_view text, std::int64_t max = kBytesMax);
/// "4", "0.5", "250m". Between 0 and kMilliCpuMax.
Result<MilliCpu> parse_cpus(std::string_view text);
/// RFC 3339 ("2026-12-01T08:00:00Z", "+01:00"), a date, or "now+2h" relative to `now`.
Result<Time> parse_time(std::string_view text, Time now);
/// A whole number, all of `text`, within [low, high].
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);

std::string format_duration(Duration duration);  // "2d", "1h30m", "500ms": parses back to itself.
std::string format_age(Duration duration);       // Two leading units at most: "3d4h", "12m", "8s".
std::string format_bytes(Bytes bytes);           // "64GiB", "1.5GiB", "512B".
std::string format_cpus(MilliCpu cpus);          // "4", "0.5".
std::string format_time(Time time);              // RFC 3339 in UTC, to the second.

}  // namespace muster
