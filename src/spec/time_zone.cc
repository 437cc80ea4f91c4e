#include "spec/time_zone.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error_codes.h"
#include "base/text.h"

namespace muster::spec {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::size_t kZoneFileMax = std::size_t{1} << 20;
constexpr std::int64_t kChangesMax = 100'000;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}
/// Days since 1970-01-01 of the Gregorian calendar.
std::int64_t day_number(std::int64_t year, std::int64_t month, std::int64_t day) {
    year -= month <= 2 ? 1 : 0;
    const std::int64_t era = floor_div(year, 400), yoe = year - era * 400;
    const std::int64_t doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}
bool is_leap(std::int64_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}
std::int64_t year_of(std::int64_t day) {
    std::int64_t year = 1970 + floor_div(day, 366);
    while (day_number(year + 1, 1, 1) <= day) ++year;
    return year;
}

bool is_zone_name(std::string_view name) {
    if (name.empty() || name.size() > 128 || name.front() == '/') return false;
    for (const std::string_view part : split(name, '/'))
        if (part.empty() || part.front() == '.') return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '/' || c == '_' || c == '-' || c == '+' || c == '.';
    });
}

/// Big-endian numbers from the front of bytes; `ok` turns false past their end.
class Bits {
public:
    explicit Bits(std::string_view bytes) : bytes_(bytes) {}
    std::int64_t number(std::size_t size) {
        if (bytes_.size() < size) ok_ = false;
        if (!ok_) return 0;
        // The sign stands in the first byte.
        std::uint64_t value =
            (static_cast<unsigned char>(bytes_[0]) & 0x80) != 0 && size > 1 ? ~std::uint64_t{0} : 0;
        for (std::size_t i = 0; i < size; ++i)
            value = value << 8 | static_cast<unsigned char>(bytes_[i]);
        bytes_.remove_prefix(size);
        return static_cast<std::int64_t>(value);
    }
    void skip(std::int64_t size) {
        if (size < 0 || static_cast<std::uint64_t>(size) > bytes_.size()) ok_ = false;
        if (ok_) bytes_.remove_prefix(static_cast<std::size_t>(size));
    }
    bool ok() const { return ok_; }
    std::string_view rest() const { return ok_ ? bytes_ : std::string_view(); }

private:
    std::string_view bytes_;
    bool ok_ = true;
};

struct Header {
    std::int64_t utc_marks = 0, standard_marks = 0, leaps = 0, times = 0, types = 0, letters = 0;
    std::int64_t size(std::int64_t time_size) const {
        return times * time_size + times + types * 6 + letters + leaps * (time_size + 4) +
               standard_marks + utc_marks;
    }
};
/// Nothing: these bytes are no header, or of an absurd size.
std::optional<Header> read_header(Bits& in, char& version) {
    if (in.rest().substr(0, 4) != "TZif") return std::nullopt;
    in.skip(4);
    version = static_cast<char>(in.number(1));
    in.skip(15);
    Header header;
    for (std::int64_t* field : {&header.utc_marks, &header.standard_marks, &header.leaps,
                                &header.times, &header.types, &header.letters}) {
        *field = in.number(4);
        if (*field < 0 || *field > kChangesMax) return std::nullopt;
    }
    return in.ok() ? std::optional(header) : std::nullopt;
}

}  // namespace

/// Reads "CET-1CEST,M3.5.0,M10.5.0/3".
struct TimeZone::Footer {
    std::string_view text;

    bool take(char c) {
        if (text.empty() || text.front() != c) return false;
        text.remove_prefix(1);
        return true;
    }
    bool abbreviation() {
        std::size_t n = 0;
        if (take('<')) {
            n = text.find('>');
            if (n == text.npos) return false;
            text.remove_prefix(n + 1);
            return true;
        }
        while (n < text.size() &&
               ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z')))
            ++n;
        text.remove_prefix(n);
        return n > 0;
    }
    std::optional<std::int64_t> digits(std::int64_t high) {
        const std::size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
        const auto value = parse_number(text.substr(0, n), high);
        if (value) text.remove_prefix(n);
        return value;
    }
    static std::optional<std::int64_t> parse_number(std::string_view word, std::int64_t high) {
        if (word.empty() || word.size() > 4) return std::nullopt;
        std::int64_t value = 0;
        for (const char c : word) value = value * 10 + (c - '0');
        return value <= high ? std::optional(value) : std::nullopt;
    }
    /// [+-]h[:m[:s]], in seconds.
    std::optional<std::int64_t> clock(std::int64_t hours_max) {
        const bool minus = take('-');
        if (!minus) take('+');
        const auto hours = digits(hours_max);
        if (!hours) return std::nullopt;
        std::int64_t sum = *hours * 3600;
        for (const std::int64_t unit : {60, 1}) {
            if (!take(':')) break;
            const auto part = digits(59);
            if (!part) return std::nullopt;
            sum += *part * unit;
        }
        return minus ? -sum : sum;
    }
    std::optional<RuleDate> date() {
        RuleDate out;
        std::optional<std::int64_t> day;
        if (take('M')) {
            out.form = RuleDate::Form::Month;
            const auto month = digits(12);
            if (!month || *month < 1 || !take('.')) return std::nullopt;
            const auto week = digits(5);
            if (!week || *week < 1 || !take('.')) return std::nullopt;
            out.month = static_cast<int>(*month);
            out.week = static_cast<int>(*week);
            day = digits(6);
        } else if (take('J')) {
            out.form = RuleDate::Form::Julian;
            day = digits(365);
            if (day && *day < 1) return std::nullopt;
        } else {
            day = digits(365);
        }
        if (!day) return std::nullopt;
        out.day = static_cast<int>(*day);
        if (take('/')) {
            const auto time = clock(167);
            if (!time) return std::nullopt;
            out.time = *time;
        }
        return out;
    }
    std::optional<Rule> rule() {
        Rule out;
        if (!abbreviation()) return std::nullopt;
        const auto west = clock(24);
        if (!west) return std::nullopt;
        out.standard = -*west;
        if (text.empty()) return out;
        if (!abbreviation()) return std::nullopt;
        out.summer = true;
        out.summer_offset = out.standard + 3600;
        if (!text.empty() && text.front() != ',') {
            const auto summer_west = clock(24);
            if (!summer_west) return std::nullopt;
            out.summer_offset = -*summer_west;
        }
        if (!take(',')) return std::nullopt;
        const auto from = date();
        if (!from || !take(',')) return std::nullopt;
        const auto until = date();
        if (!until || !text.empty()) return std::nullopt;
        out.start = *from;
        out.end = *until;
        return out;
    }
};

TimeZone TimeZone::utc() {
    TimeZone zone;
    zone.name_ = "UTC";
    return zone;
}

Result<TimeZone> TimeZone::parse(std::string_view bytes, std::string name) {
    const Error bad{Code::Corrupt, "time zone " + name + ": its file is not a zone file (TZif)"};
    Bits in(bytes);
    char version = 0;
    auto header = read_header(in, version);
    if (!header) return bad;
    if (version < '2')
        return Error{Code::Corrupt, "time zone " + name +
                                        ": its file is of version 1, without the rules after 2037; "
                                        "install a newer tzdata"};
    in.skip(header->size(4));
    header = read_header(in, version);
    if (!header || header->types < 1) return bad;
    if (header->leaps > 0)
        return Error{Code::Invalid,
                     "time zone " + name + ": counts leap seconds; use the zone without right/"};
    TimeZone zone;
    zone.name_ = std::move(name);
    for (std::int64_t i = 0; i < header->times; ++i) zone.at_.push_back(in.number(8));
    std::vector<std::size_t> which;
    for (std::int64_t i = 0; i < header->times; ++i)
        which.push_back(static_cast<std::size_t>(in.number(1)));
    std::vector<std::int64_t> types;
    for (std::int64_t i = 0; i < header->types; ++i) {
        types.push_back(in.number(4));
        in.skip(2);
    }
    in.skip(header->letters + header->standard_marks + header->utc_marks);
    if (!in.ok() || !std::is_sorted(zone.at_.begin(), zone.at_.end())) return bad;
    for (const std::size_t index : which) {
        if (index >= types.size()) return bad;
        zone.offsets_.push_back(types[index]);
    }
    if (std::any_of(types.begin(), types.end(), [](auto t) { return t < -kDay || t > kDay; }))
        return bad;
    zone.before_ = types[0];
    std::string_view footer = in.rest();
    if (footer.size() < 2 || footer.front() != '\n' || footer.back() != '\n') return bad;
    footer = footer.substr(1, footer.size() - 2);
    if (footer.empty()) return zone;
    const auto rule = Footer{footer}.rule();
    if (!rule) return bad;
    zone.has_rule_ = true;
    zone.rule_ = *rule;
    return zone;
}

Result<TimeZone> TimeZone::load(std::string_view name, const std::string& root) {
    if (name == "UTC") return utc();
    if (!is_zone_name(name))
        return Error{Code::Invalid, std::string(name.substr(0, 60)) +
                                        ": not the name of a time zone, as Europe/Berlin or UTC"};
    const std::filesystem::path path = std::filesystem::path(root) / name;
    std::error_code error;
    std::string bytes;
    if (std::filesystem::is_regular_file(path, error)) {
        std::ifstream file(path, std::ios::binary);
        bytes.resize(kZoneFileMax + 1);
        file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        bytes.resize(static_cast<std::size_t>(file.gcount()));
    }
    if (!bytes.empty() && bytes.size() <= kZoneFileMax && bytes.substr(0, 4) == "TZif")
        return parse(bytes, std::string(name));
    const std::vector<std::string> names = zone_names(root);
    if (names.empty())
        return Error{Code::NotFound,
                     "time zone " + std::string(name) + ": there are no zone files in " + root,
                     {},
                     "install the package tzdata, or write times with an offset (+01:00)"};
    const std::string near = nearest(name, names);
    return Error{Code::NotFound, std::string(name) + ": there is no such time zone" +
                                     (near.empty() ? "" : "; did you mean " + near + "?")};
}

std::vector<std::string> zone_names(const std::string& root) {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::recursive_directory_iterator at(root, error), end;
    for (; !error && at != end; at.increment(error)) {
        const std::string name = at->path().lexically_relative(root).string();
        if (name == "posix" || name == "right") {
            at.disable_recursion_pending();
            continue;
        }
        if (!at->is_regular_file() || !is_zone_name(name)) continue;
        char magic[4] = {};
        std::ifstream(at->path(), std::ios::binary).read(magic, sizeof magic);
        if (std::string_view(magic, sizeof magic) == "TZif") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::int64_t TimeZone::day_of(const RuleDate& date, std::int64_t year) {
    const std::int64_t first = day_number(year, 1, 1);
    switch (date.form) {
        case RuleDate::Form::Day: return first + date.day;
        case RuleDate::Form::Julian:  // 29 February is never counted.
            return first + date.day - 1 + (is_leap(year) && date.day >= 60 ? 1 : 0);
        case RuleDate::Form::Month: break;
    }
    const std::int64_t start = day_number(year, date.month, 1);
    const std::int64_t next =
        date.month == 12 ? day_number(year + 1, 1, 1) : day_number(year, date.month + 1, 1);
    const std::int64_t weekday = ((start + 4) % 7 + 7) % 7;  // 1970-01-01 was a Thursday.
    std::int64_t day = start + (date.day - weekday + 7) % 7 + (date.week - 1) * 7;
    while (day >= next) day -= 7;  // Week 5 is the last one.
    return day;
}

std::int64_t TimeZone::rule_offset(std::int64_t utc_s) const {
    if (!rule_.summer) return rule_.standard;
    const std::int64_t year = year_of(floor_div(utc_s + rule_.standard, kDay));
    std::int64_t latest = INT64_MIN, offset = rule_.standard;
    // A change may fall into a neighbouring year; of two at one moment summer's start counts.
    for (std::int64_t y = year - 1; y <= year + 1; ++y) {
        const std::int64_t end = day_of(rule_.end, y) * kDay + rule_.end.time - rule_.summer_offset;
        if (end <= utc_s && end > latest) latest = end, offset = rule_.standard;
        const std::int64_t start =
            day_of(rule_.start, y) * kDay + rule_.start.time - rule_.standard;
        if (start <= utc_s && start >= latest) latest = start, offset = rule_.summer_offset;
    }
    return offset;
}

std::int64_t TimeZone::offset_at(std::int64_t utc_s) const {
    if (has_rule_ && (at_.empty() || utc_s >= at_.back())) return rule_offset(utc_s);
    const auto next = std::upper_bound(at_.begin(), at_.end(), utc_s);
    if (next == at_.begin()) return before_;
    return offsets_[static_cast<std::size_t>(next - at_.begin()) - 1];
}

WallTime TimeZone::resolve(std::int64_t wall_s) const {
    constexpr std::int64_t kReach = 26 * 3600;  // No offset is further from UTC.
    std::vector<std::int64_t> moments;
    for (std::int64_t probe = wall_s - kReach; probe <= wall_s + kReach; probe += kReach / 4) {
        const std::int64_t moment = wall_s - offset_at(probe);
        if (moment + offset_at(moment) == wall_s) moments.push_back(moment);
    }
    std::sort(moments.begin(), moments.end());
    WallTime out;
    if (!moments.empty()) {
        out.first = moments.front();
        out.second = moments.back();
        out.kind = out.first == out.second ? WallTime::Kind::Once : WallTime::Kind::Twice;
        if (out.kind == WallTime::Kind::Once) out.second = 0;
        return out;
    }
    // The clock jumps over it: the first moment at which it shows more.
    std::int64_t low = wall_s - kReach, high = wall_s + kReach;
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (middle + offset_at(middle) > wall_s ? high : low) = middle;
    }
    out.kind = WallTime::Kind::Gap;
    out.gap_start = high + offset_at(low);
    out.gap_end = high + offset_at(high);
    out.first = wall_s - offset_at(low);
    return out;
}

std::vector<std::int64_t> TimeZone::changes(std::int64_t from_s, std::int64_t to_s) const {
    std::vector<std::int64_t> out;
    constexpr std::int64_t kStep = 7 * kDay / 2;
    for (std::int64_t at = from_s; at < to_s; at += kStep) {
        std::int64_t low = at - 1, high = std::min(at + kStep, to_s) - 1;
        while (offset_at(low) != offset_at(high)) {
            std::int64_t left = low, right = high;
            while (right - left > 1) {
                const std::int64_t middle = left + (right - left) / 2;
                (offset_at(middle) == offset_at(low) ? left : right) = middle;
            }
            out.push_back(right);
            low = right;
        }
    }
    return out;
}

std::vector<model::Window> expand(const model::Window& first, const model::Recurrence& recurrence,
                                  const TimeZone& zone, Time from, Time to, std::size_t most) {
    using model::Recurrence;
    const auto touches = [&](const model::Window& w) { return w.end > from && w.start < to; };
    std::vector<model::Window> windows;
    if (recurrence.every == Recurrence::Every::Never) {
        if (touches(first)) windows.push_back(first);
        return windows;
    }
    const std::int64_t period = recurrence.every == Recurrence::Every::Week ? 7 : 1;
    const Duration length = first.end - first.start;
    const std::int64_t start_s = floor_div(first.start.ms, 1000);
    const std::int64_t rest_ms = first.start.ms - start_s * 1000;
    const std::int64_t wall = start_s + zone.offset_at(start_s);
    const std::int64_t clock = wall - floor_div(wall, kDay) * kDay;
    // Two periods early, so that neither an offset nor a window under way is missed.
    std::int64_t n = floor_div(from.ms - length.ms - first.start.ms, period * kDay * 1000) - 2;
    n = std::max<std::int64_t>(n, 0);
    for (;; ++n) {
        const std::int64_t day = floor_div(wall, kDay) + n * period;
        const WallTime at = zone.resolve(day * kDay + clock);
        model::Window window{Time{at.first * 1000 + rest_ms}, {}};
        if (at.kind == WallTime::Kind::Twice && recurrence.twice == Recurrence::Twice::Second)
            window.start = Time{at.second * 1000 + rest_ms};
        if (n == 0) window.start = first.start;
        if (at.kind == WallTime::Kind::Gap && n > 0) {
            const bool no_such_day = at.gap_start <= day * kDay && (day + 1) * kDay <= at.gap_end;
            if (no_such_day || recurrence.gap == Recurrence::Gap::Skip) continue;
        }
        window.end = window.start + length;
        if (window.start > recurrence.until) break;
        if (!windows.empty() && windows.back().end > window.start)
            windows.back().end = window.start;
        if (window.start >= to || windows.size() >= most) break;  // It has cut the last one short.
        windows.push_back(window);
        if (window.end <= from) windows.pop_back();
    }
    std::erase_if(windows, [&](const model::Window& each) { return !touches(each); });
    return windows;
}

}  // namespace muster::spec
