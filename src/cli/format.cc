#include "cli/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/text.h"
#include "base/units.h"

namespace muster::cli {
namespace {

struct StateLook {
    std::string_view state;
    char letter;
    Tone tone;
};
constexpr StateLook kStates[] = {
    {"pending", 'P', Tone::Warn},
    {"starting", 'S', Tone::Busy},
    {"running", 'R', Tone::Good},
    {"stopping", 'T', Tone::Busy},
    {"fencing", 'X', Tone::Bad},
    {"succeeded", 'D', Tone::Dim},
    {"failed", 'F', Tone::Bad},
    {"cancelled", 'C', Tone::Dim},
    {"held", 'H', Tone::Warn},
    // Of tasks.
    {"accepted", 'A', Tone::Dim},
    {"pulling", 'I', Tone::Busy},
    {"preparing", 'S', Tone::Busy},
    {"ready", 'B', Tone::Busy},
    {"ended", 'E', Tone::Dim},
};

constexpr StateLook kNodeStates[] = {
    {"ready", 'R', Tone::Good},   {"suspect", '?', Tone::Warn}, {"lost", 'L', Tone::Bad},
    {"unknown", 'U', Tone::Warn}, {"drained", 'D', Tone::Warn}, {"draining", 'D', Tone::Warn},
    {"held", 'H', Tone::Warn},
};

int digits(std::string_view text, std::size_t at, std::size_t count) {
    int value = 0;
    if (at + count > text.size()) return -1;
    for (std::size_t i = at; i < at + count; ++i) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

/// Days since 1970-01-01 of a date of the Gregorian calendar (Howard Hinnant's algorithm).
std::int64_t days_from_civil(std::int64_t year, int month, int day) {
    year -= month <= 2;
    const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
    const std::int64_t of_era = year - era * 400;
    const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

const StateLook* look_of(std::span<const StateLook> looks, std::string_view state) {
    for (const StateLook& look : looks)
        if (look.state == state) return &look;
    return nullptr;
}

struct HostParts {
    std::string prefix;
    std::string number;  // As written, with leading zeros.
    std::int64_t value = -1;
    friend auto operator<=>(const HostParts& a, const HostParts& b) {
        return std::tie(a.prefix, a.value, a.number) <=> std::tie(b.prefix, b.value, b.number);
    }
    friend bool operator==(const HostParts&, const HostParts&) = default;
};

HostParts parts_of(const std::string& name) {
    std::size_t at = name.size();
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
    if (name.size() - at > 9) at = name.size();
    HostParts parts{name.substr(0, at), name.substr(at)};
    if (!parts.number.empty()) parts.value = std::stoll(parts.number);
    return parts;
}

}  // namespace

std::string label(std::string_view name, bool color) {
    std::string text = "  " + std::string(name);
    text.append(text.size() < 14 ? 14 - text.size() : 1, ' ');
    return paint(text, Tone::Dim, color);
}

Time moment_of(const Json& value) {
    if (!value.is_string()) return {};
    const std::string_view text = value.raw().substr(1, value.raw().size() - 2);
    const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
    const int hour = digits(text, 11, 2), minute = digits(text, 14, 2),
              second = digits(text, 17, 2);
    if (std::min({year, month, day, hour, minute, second}) < 0 || month < 1 || month > 12)
        return {};
    std::int64_t ms = 0;
    if (text.size() > 20 && text[19] == '.') {
        std::int64_t scale = 100;
        for (std::size_t i = 20; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
            ms += (text[i] - '0') * scale;
            scale /= 10;
        }
    }
    const std::int64_t days = days_from_civil(year, month, day);
    return {((days * 24 + hour) * 60 + minute) * 60'000 + second * 1000 + ms};
}

std::string ago(Time at, Time now) {
    if (at.ms == 0) return "";
    return format_age({std::max<std::int64_t>(now.ms - at.ms, 0)});
}

std::string clock_text(Time at, Time now) {
    if (at.ms == 0) return "-";
    const auto local = [](Time time) {
        const std::time_t seconds_now = time.ms / 1000;
        std::tm parts{};
        ::localtime_r(&seconds_now, &parts);
        return parts;
    };
    const std::tm then = local(at), today = local(now);
    char text[32];
    const bool same = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
    std::strftime(text, sizeof text, same ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &then);
    return text;
}

std::string length_text(std::int64_t ms) {
    char text[32];
    if (ms < 0) ms = 0;
    if (ms < 1000) {
        std::snprintf(text, sizeof text, "%lldms", static_cast<long long>(ms));
    } else if (ms < 60'000) {
        std::snprintf(text, sizeof text, "%lld.%llds", static_cast<long long>(ms / 1000),
                      static_cast<long long>(ms % 1000 / 100));
    } else if (ms < 3'600'000) {
        std::snprintf(text, sizeof text, "%lldm%02llds", static_cast<long long>(ms / 60'000),
                      static_cast<long long>(ms / 1000 % 60));
    } else if (ms < 86'400'000) {
        std::snprintf(text, sizeof text, "%lldh%02lldm", static_cast<long long>(ms / 3'600'000),
                      static_cast<long long>(ms / 60'000 % 60));
    } else {
        std::snprintf(text, sizeof text, "%lldd%02lldh", static_cast<long long>(ms / 86'400'000),
                      static_cast<long long>(ms / 3'600'000 % 24));
    }
    return text;
}

char state_letter(std::string_view state) {
    const StateLook* look = look_of(kStates, state);
    return look == nullptr ? '?' : look->letter;
}

Tone state_tone(std::string_view state) {
    const StateLook* look = look_of(kStates, state);
    return look == nullptr ? Tone::Plain : look->tone;
}

bool has_ended(std::string_view state) {
    return state == "succeeded" || state == "failed" || state == "cancelled";
}

CellText job_state(std::string_view state, bool held) {
    if (held && state == "pending") state = "held";
    std::string text{state_letter(state), ' '};
    text += state;
    return {std::move(text), state_tone(state)};
}

CellText node_state(std::string_view state) {
    const StateLook* look = look_of(kNodeStates, state);
    std::string text{look == nullptr ? '?' : look->letter, ' '};
    text += state;
    return {std::move(text), look == nullptr ? Tone::Plain : look->tone};
}

std::string host_list(std::vector<std::string> names) {
    if (names.size() == 1) return std::move(names.front());
    std::vector<HostParts> hosts;
    for (const std::string& name : names) hosts.push_back(parts_of(name));
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    std::string out;
    for (std::size_t i = 0; i < hosts.size();) {
        std::size_t end = i;
        std::string ranges;
        // All of one prefix share a bracket; a range needs numbers of one width.
        while (end < hosts.size() && hosts[end].prefix == hosts[i].prefix && hosts[i].value >= 0 &&
               hosts[end].value >= 0) {
            std::size_t last = end;
            while (last + 1 < hosts.size() && hosts[last + 1].prefix == hosts[i].prefix &&
                   hosts[last + 1].value == hosts[last].value + 1 &&
                   (hosts[last + 1].number.size() == hosts[last].number.size() ||
                    hosts[last].number.front() != '0'))
                ++last;
            ranges += (ranges.empty() ? "" : ",") + hosts[end].number;
            if (last > end) ranges += "-" + hosts[last].number;
            end = last + 1;
        }
        if (!out.empty()) out += ',';
        if (end > i + 1) {
            out += hosts[i].prefix + "[" + ranges + "]";
            i = end;
        } else {
            out += hosts[i].prefix + hosts[i].number;
            ++i;
        }
    }
    return out;
}

std::string grouped(std::int64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3 + (number < 0 ? 1u : 0u);) {
        at -= 3;
        text.insert(at, ",");
    }
    return text;
}

std::string bytes_text(std::int64_t bytes) {
    static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    char text[32];
    const bool whole = unit == 0 || value >= 100 || value == std::floor(value);
    std::snprintf(text, sizeof text, whole ? "%.0f%s" : "%.1f%s", value, kUnits[unit]);
    return text;
}

std::string metric_text(double value) {
    char text[40];
    const double size = std::fabs(value);
    if (size >= 1000 || (value == std::floor(value) && size < 1e15)) {
        std::snprintf(text, sizeof text, "%.0f", value);
    } else if (size != 0 && size < 0.001) {
        std::snprintf(text, sizeof text, "%.2e", value);
    } else {
        std::snprintf(text, sizeof text, "%.4g", value);
    }
    return text;
}

std::string counted(std::int64_t count, std::string_view noun) {
    return grouped(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string bar(double fraction, std::size_t width) {
    static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    fraction = std::clamp(fraction, 0.0, 1.0);
    const auto cells =
        static_cast<std::size_t>(std::floor(fraction * static_cast<double>(width * 8) + 0.001));
    std::string out;
    for (std::size_t i = 0; i < cells / 8; ++i) out += "█";
    std::size_t used = cells / 8;
    if (cells % 8 != 0 && used < width) {
        out += kEighths[cells % 8];
        ++used;
    }
    for (; used < width; ++used) out += "░";
    return out;
}

}  // namespace muster::cli
