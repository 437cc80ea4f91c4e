#include "rest/time_text.h"

#include <algorithm>

namespace muster::rest {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kLastMs = 253'402'300'799'999;  // The end of year 9999.

void put(char* at, std::int64_t number, int digits) {
    for (int i = digits - 1; i >= 0; --i) {
        at[i] = static_cast<char>('0' + number % 10);
        number /= 10;
    }
}

}  // namespace

TimeText::TimeText(Time time) {
    const std::int64_t ms = std::clamp<std::int64_t>(time.ms, 0, kLastMs);
    // Days to year, month, day: Howard Hinnant, "chrono-compatible low-level date
    // algorithms".
    const std::int64_t days = ms / kDayMs + 719'468;
    const std::int64_t era = days / 146'097;
    const std::int64_t of_era = days - era * 146'097;
    const std::int64_t year_of_era =
        (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
    const std::int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const std::int64_t shifted = (5 * of_year + 2) / 153;
    const std::int64_t day = of_year - (153 * shifted + 2) / 5 + 1;
    const std::int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
    const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
    const std::int64_t of_day = ms % kDayMs;
    std::copy_n("0000-00-00T00:00:00.000Z", sizeof text_, text_);
    put(text_, year, 4);
    put(text_ + 5, month, 2);
    put(text_ + 8, day, 2);
    put(text_ + 11, of_day / 3'600'000, 2);
    put(text_ + 14, of_day / 60'000 % 60, 2);
    put(text_ + 17, of_day / 1000 % 60, 2);
    put(text_ + 20, of_day % 1000, 3);
}

void write_time(JsonWriter& json, Time time) {
    if (time.ms <= 0 || time >= kNever)
        json.null();
    else
        json.value(TimeText(time).text());
}

void write_time(JsonWriter& json, std::string_view name, Time time) {
    json.key(name);
    write_time(json, time);
}

}  // namespace muster::rest
