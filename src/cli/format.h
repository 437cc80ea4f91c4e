// How values read: states, ages, sizes, host lists, progress.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/terminal.h"

namespace muster::cli {

/// "  queue       " before a value.
std::string label(std::string_view name, bool color);
/// RFC 3339 in UTC; {0} when it is null or not of that form.
Time moment_of(const Json& value);
/// "3m" since `at`; "" when `at` is 0.
std::string ago(Time at, Time now);
/// "14:02:11" on the day of `now`, else "2026-12-01 14:02": local time.
std::string clock_text(Time at, Time now);
/// "1m12s", "3h05m", "850ms": for lengths of time that people compare.
std::string length_text(std::int64_t ms);

/// "R running" in its colour; held is "H held".
CellText job_state(std::string_view state, bool held);
CellText node_state(std::string_view state);
char state_letter(std::string_view state);
Tone state_tone(std::string_view state);
bool has_ended(std::string_view state);

/// "n[1-3],x" of names in any order, each once.
std::string host_list(std::vector<std::string> names);
/// 12345 as "12,345".
std::string grouped(std::int64_t number);
/// "1.5GiB".
std::string bytes_text(std::int64_t bytes);
/// 0.31234 as "0.3123", 8123.4 as "8123".
std::string metric_text(double value);
/// "gpu", "gpus".
std::string counted(std::int64_t count, std::string_view noun);

/// A bar of `width` cells, eighths where the terminal knows them.
std::string bar(double fraction, std::size_t width);

}  // namespace muster::cli
