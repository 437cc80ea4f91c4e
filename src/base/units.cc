#include "base/units.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace muster {
namespace {

__extension__ using Wide = __int128;  // Sums of products are checked before they are narrowed.

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

Error invalid(std::string_view text, std::string_view what) {
    constexpr std::size_t kShown = 60;
    std::string shown(text.substr(0, kShown));
    if (text.size() > kShown) shown += "…";
    return {.code = Code::Invalid, .message = shown + ": " + std::string(what)};
}

/// A decimal number without sign at the front of `text`: value = whole + fraction / scale.
struct Decimal {
    Wide whole = 0;
    Wide fraction = 0;
    Wide scale = 1;
    bool too_long = false;

    /// This many units, as a whole number; nothing if a part of one would be lost.
    std::optional<Wide> times(std::int64_t unit) const {
        if ((fraction * unit) % scale != 0) return std::nullopt;
        return whole * unit + fraction * unit / scale;
    }
};

std::optional<Decimal> take_decimal(std::string_view& text) {
    if (text.empty() || !is_digit(text.front())) return std::nullopt;
    Decimal out;
    constexpr int kDigitsMax = 18;
    int digits = 0;
    while (!text.empty() && is_digit(text.front())) {
        if (out.whole > 0 || text.front() != '0') ++digits;
        if (digits > kDigitsMax + 1)
            out.too_long = true;
        else
            out.whole = out.whole * 10 + (text.front() - '0');
        text.remove_prefix(1);
    }
    if (text.size() < 2 || text.front() != '.' || !is_digit(text[1])) return out;
    text.remove_prefix(1);
    while (!text.empty() && is_digit(text.front())) {
        constexpr Wide kScaleMax = 1'000'000'000;
        if (out.scale < kScaleMax) {
            out.fraction = out.fraction * 10 + (text.front() - '0');
            out.scale *= 10;
        } else if (text.front() != '0') {
            out.too_long = true;
        }
        text.remove_prefix(1);
    }
    return out;
}

std::string_view take_letters(std::string_view& text) {
    std::size_t n = 0;
    while (n < text.size() && ((text[n] | 0x20) >= 'a' && (text[n] | 0x20) <= 'z')) ++n;
    const std::string_view word = text.substr(0, n);
    text.remove_prefix(n);
    return word;
}

/// Exactly `digits` digits at the front of `text`.
std::optional<std::int64_t> take_digits(std::string_view& text, std::size_t digits) {
    if (text.size() < digits) return std::nullopt;
    std::int64_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
        if (!is_digit(text[i])) return std::nullopt;
        value = value * 10 + (text[i] - '0');
    }
    text.remove_prefix(digits);
    return value;
}
bool take(std::string_view& text, char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

std::int64_t duration_unit(std::string_view word) {
    struct Row {
        std::string_view name;
        std::int64_t ms;
    };
    static constexpr Row kRows[] = {
        {"ms", 1},
        {"s", kSecond},
        {"sec", kSecond},
        {"m", kMinute},
        {"min", kMinute},
        {"h", kHour},
        {"hr", kHour},
        {"hour", kHour},
        {"hours", kHour},
        {"d", kDay},
        {"day", kDay},
        {"days", kDay},
        {"w", 7 * kDay},
        {"week", 7 * kDay},
        {"weeks", 7 * kDay},
        {"minutes", kMinute},
        {"seconds", kSecond},
    };
    const std::string name = lower(word);
    for (const Row& row : kRows)
        if (row.name == name) return row.ms;
    return 0;
}

Result<Duration> duration_within(std::string_view text, Wide ms) {
    if (ms > kDurationMax.ms) return invalid(text, "longer than the limit of 3650d (ten years)");
    return Duration{static_cast<std::int64_t>(ms)};
}

/// "[D-]HH:MM:SS".
Result<Duration> parse_clock(std::string_view text) {
    std::string_view left = text;
    Wide days = 0;
    if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
        const auto count = parse_integer(text.substr(0, dash), 0, kDurationMax.ms / kDay);
        if (!count) return invalid(text, "the days before '-' must be 0..3650, as in 1-12:00:00");
        days = *count;
        left.remove_prefix(dash + 1);
    }
    const auto parts = split(left, ':');
    if (parts.size() != 3)
        return invalid(text, "ambiguous; write hours, minutes and seconds (1:30:00) or 90m");
    const auto h = parse_integer(parts[0], 0, days > 0 ? 23 : kDurationMax.ms / kHour);
    const auto m = parse_integer(parts[1], 0, 59);
    const auto s = parse_integer(parts[2], 0, 59);
    if (!h || !m || !s) return invalid(text, "not a time of the form [D-]HH:MM:SS");
    return duration_within(
        text, days * kDay + Wide{*h} * kHour + Wide{*m} * kMinute + Wide{*s} * kSecond);
}

int byte_shift(std::string_view word) {
    if (!word.empty() && (word.back() | 0x20) == 'b') word.remove_suffix(1);
    if (word.size() == 2 && (word.back() | 0x20) == 'i') word.remove_suffix(1);
    if (word.empty()) return 0;
    if (word.size() != 1) return -1;
    const std::size_t at = std::string_view("kmgtp").find(static_cast<char>(word.front() | 0x20));
    return at == std::string_view::npos ? -1 : 10 * static_cast<int>(at + 1);
}

/// Days since 1970-01-01 of a date of the Gregorian calendar, and back (H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms").
std::int64_t days_from_civil(std::int64_t y, std::int64_t m, std::int64_t d) {
    y -= m <= 2 ? 1 : 0;
    const std::int64_t era = y / 400, yoe = y - era * 400;
    const std::int64_t doy = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}
struct Date {
    std::int64_t y, m, d;
};
Date civil_from_days(std::int64_t days) {
    days += 719468;
    const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    const std::int64_t doe = days - era * 146097;
    const std::int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const std::int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const std::int64_t mp = (5 * doy + 2) / 153;
    const std::int64_t m = mp < 10 ? mp + 3 : mp - 9;
    return {yoe + era * 400 + (m <= 2 ? 1 : 0), m, doy - (153 * mp + 2) / 5 + 1};
}
std::int64_t days_in_month(std::int64_t y, std::int64_t m) {
    static constexpr std::array<std::int64_t, 12> kDays = {31, 28, 31, 30, 31, 30,
                                                           31, 31, 30, 31, 30, 31};
    const bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return m == 2 && leap ? 29 : kDays[static_cast<std::size_t>(m - 1)];
}

/// "Z" or "+HH:MM": milliseconds to take away to reach UTC.
std::optional<std::int64_t> take_offset(std::string_view& text) {
    if (take(text, 'Z') || take(text, 'z')) return 0;
    if (text.empty() || (text.front() != '+' && text.front() != '-')) return std::nullopt;
    const bool minus = text.front() == '-';
    text.remove_prefix(1);
    const auto h = take_digits(text, 2);
    if (!h || *h > 23 || !take(text, ':')) return std::nullopt;
    const auto m = take_digits(text, 2);
    if (!m || *m > 59) return std::nullopt;
    const std::int64_t offset = *h * kHour + *m * kMinute;
    return minus ? -offset : offset;
}

Result<Time> parse_rfc3339(std::string_view text) {
    const Error malformed =
        invalid(text, "not a time; write 2026-12-01T08:00:00Z (or +01:00), a date, or now+2h");
    std::string_view left = text;
    const auto y = take_digits(left, 4);
    if (!y || *y < 1970 || !take(left, '-')) return malformed;
    const auto mo = take_digits(left, 2);
    if (!mo || *mo < 1 || *mo > 12 || !take(left, '-')) return malformed;
    const auto d = take_digits(left, 2);
    if (!d || *d < 1 || *d > days_in_month(*y, *mo)) return malformed;
    const std::int64_t day = days_from_civil(*y, *mo, *d) * kDay;
    if (left.empty()) return Time{day};
    if (!take(left, 'T') && !take(left, 't') && !take(left, ' ')) return malformed;
    const auto h = take_digits(left, 2);
    if (!h || *h > 23 || !take(left, ':')) return malformed;
    const auto mi = take_digits(left, 2);
    if (!mi || *mi > 59) return malformed;
    std::int64_t s = 0, ms = 0;
    if (take(left, ':')) {
        const auto seconds_part = take_digits(left, 2);
        if (!seconds_part || *seconds_part > 59) return malformed;
        s = *seconds_part;
        if (take(left, '.')) {
            if (left.empty() || !is_digit(left.front())) return malformed;
            for (std::int64_t weight = 100; !left.empty() && is_digit(left.front()); weight /= 10) {
                ms += (left.front() - '0') * weight;
                left.remove_prefix(1);
            }
        }
    }
    if (left.empty()) return invalid(text, "has no time zone; end it with Z (UTC) or +01:00");
    const auto offset = take_offset(left);
    if (!offset || !left.empty()) return malformed;
    const std::int64_t at = day + *h * kHour + *mi * kMinute + s * kSecond + ms - *offset;
    if (at < 0) return invalid(text, "before 1970");
    return Time{at};
}

std::string two(std::int64_t value) {
    return (value < 10 ? "0" : "") + std::to_string(value);
}

struct UnitRow {
    std::int64_t ms;
    const char* name;
};
constexpr UnitRow kUnits[] = {{kDay, "d"}, {kHour, "h"}, {kMinute, "m"}, {kSecond, "s"}, {1, "ms"}};

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
    if (text.empty()) return invalid(text, "empty; write a duration like 90m or 2d");
    if (text.front() == '-') return invalid(text, "a duration cannot be negative");
    if (text.find(':') != std::string_view::npos) return parse_clock(text);
    if (text.back() == ' ') return invalid(text, "ends with a space");
    std::string_view left = text;
    Wide total = 0;
    std::int64_t last_unit = 0;
    while (!left.empty()) {
        const auto number = take_decimal(left);
        while (number && take(left, ' ')) {
        }
        const std::string_view word = take_letters(left);
        while (!word.empty() && take(left, ' ')) {
        }
        if (number && word.empty() && left.empty() && last_unit == 0) {
            const auto ms = number->times(kSecond);
            if (number->too_long) return duration_within(text, Wide{kDurationMax.ms} + 1);
            if (!ms) return invalid(text, "finer than a millisecond");
            return duration_within(text, *ms);
        }
        const std::int64_t unit = duration_unit(word);
        if (!number || unit == 0)
            return invalid(text,
                           "not a duration; write a number with ms, s, m, h, d or w (90m, 2d)");
        if (last_unit != 0 && unit >= last_unit)
            return invalid(text, "not a duration; write the larger unit first, each once (1h30m)");
        last_unit = unit;
        if (number->too_long) return duration_within(text, Wide{kDurationMax.ms} + 1);
        const auto ms = number->times(unit);
        if (!ms) return invalid(text, "finer than a millisecond");
        total += *ms;
    }
    return duration_within(text, total);
}

Result<Bytes> parse_bytes(std::string_view text, std::int64_t max) {
    if (text.empty()) return invalid(text, "empty; write a size like 64GB");
    if (text.front() == '-') return invalid(text, "a size cannot be negative");
    std::string_view left = text;
    const auto number = take_decimal(left);
    while (number && take(left, ' ')) {
    }
    const int shift = byte_shift(left);
    if (!number || shift < 0)
        return invalid(text, "not a size; write a number with K, M, G, T or P (64GB, 1.5T)");
    const std::string limit = "over the limit of " + format_bytes(Bytes{max});
    if (number->too_long) return invalid(text, limit);
    // Fractions of a byte are cut off: 0.1GB is not a whole number of bytes and is still meant.
    const Wide unit = Wide{1} << shift;
    const Wide bytes = number->whole * unit + number->fraction * unit / number->scale;
    if (bytes > max) return invalid(text, limit);
    return Bytes{static_cast<std::int64_t>(bytes)};
}

Result<MilliCpu> parse_cpus(std::string_view text) {
    if (text.empty()) return invalid(text, "empty; write a number of CPUs like 4 or 0.5");
    if (text.front() == '-') return invalid(text, "a number of CPUs cannot be negative");
    std::string_view left = text;
    const auto number = take_decimal(left);
    const bool milli = left == "m";
    if (!number || (!left.empty() && !milli))
        return invalid(text, "not a number of CPUs; write 4, 0.5 or 500m");
    const auto value = number->times(milli ? 1 : 1000);
    if (number->too_long || (value && *value > kMilliCpuMax))
        return invalid(text, "over the limit of " + format_cpus({kMilliCpuMax}) + " CPUs");
    if (!value) return invalid(text, "finer than a thousandth of a CPU");
    return MilliCpu{static_cast<std::int64_t>(*value)};
}

Result<Time> parse_time(std::string_view text, Time now) {
    if (text == "now") return now;
    if (text.substr(0, 4) == "now+") {
        const auto by = parse_duration(text.substr(4));
        if (!by) return invalid(text, "not a time; after now+ comes a duration, as in now+2h");
        return now + *by;
    }
    return parse_rfc3339(text);
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
    const auto range = [&] {
        return "must be a whole number in " + std::to_string(low) + ".." + std::to_string(high);
    };
    std::string_view left = text;
    const bool minus = take(left, '-');
    if (left.empty() || !std::all_of(left.begin(), left.end(), is_digit))
        return invalid(text, range());
    Wide value = 0;
    for (const char c : left) {
        value = value * 10 + (c - '0');
        if (value > (Wide{1} << 64)) break;
    }
    if (minus) value = -value;
    if (value < low || value > high) return invalid(text, range());
    return static_cast<std::int64_t>(value);
}

std::string format_duration(Duration duration) {
    if (duration.ms == 0) return "0s";
    std::string out = duration.ms < 0 ? "-" : "";
    // Through unsigned, so that the lowest number has a magnitude too.
    std::uint64_t left = duration.ms < 0 ? 0 - static_cast<std::uint64_t>(duration.ms)
                                         : static_cast<std::uint64_t>(duration.ms);
    for (const UnitRow& row : kUnits) {
        const std::uint64_t unit = static_cast<std::uint64_t>(row.ms);
        if (left >= unit) out += std::to_string(left / unit) + row.name;
        left %= unit;
    }
    return out;
}

std::string format_age(Duration duration) {
    std::int64_t left = std::max<std::int64_t>(0, duration.ms);
    for (std::size_t i = 0; i + 1 < std::size(kUnits); ++i) {
        if (left < kUnits[i].ms) continue;
        std::string out = std::to_string(left / kUnits[i].ms) + kUnits[i].name;
        left %= kUnits[i].ms;
        const UnitRow& next = kUnits[i + 1];
        if (next.ms >= kSecond && left >= next.ms)
            out += std::to_string(left / next.ms) + next.name;
        return out;
    }
    return "0s";
}

std::string format_bytes(Bytes bytes) {
    static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const std::string sign = bytes.value < 0 ? "-" : "";
    std::uint64_t value = bytes.value < 0 ? 0 - static_cast<std::uint64_t>(bytes.value)
                                          : static_cast<std::uint64_t>(bytes.value);
    std::size_t unit = 0;
    while (unit + 1 < std::size(kNames) && value >> (10 * (unit + 1)) != 0) ++unit;
    const std::uint64_t whole = value >> (10 * unit);
    const std::uint64_t rest = value - (whole << (10 * unit));
    const std::uint64_t tenth =
        unit == 0 ? 0 : static_cast<std::uint64_t>((Wide{rest} * 10) >> (10 * unit));
    std::string out = sign + std::to_string(whole);
    if (tenth > 0) out += "." + std::to_string(tenth);
    return out + kNames[unit];
}

std::string format_cpus(MilliCpu cpus) {
    const std::int64_t whole = cpus.value / 1000;
    std::int64_t rest = cpus.value % 1000;
    if (rest == 0) return std::to_string(whole);
    std::string out = (cpus.value < 0 ? "-" : "") + std::to_string(whole < 0 ? -whole : whole);
    if (rest < 0) rest = -rest;
    std::string digits = std::to_string(1000 + rest).substr(1);
    while (digits.back() == '0') digits.pop_back();
    return out + "." + digits;
}

std::string format_time(Time time) {
    std::int64_t day = time.ms / kDay, left = time.ms % kDay;
    if (left < 0) left += kDay, --day;
    const Date date = civil_from_days(day);
    std::string year = std::to_string(date.y);
    if (date.y >= 0 && year.size() < 4) year.insert(0, 4 - year.size(), '0');
    return year + "-" + two(date.m) + "-" + two(date.d) + "T" + two(left / kHour) + ":" +
           two(left / kMinute % 60) + ":" + two(left / kSecond % 60) + "Z";
}

}  // namespace muster
