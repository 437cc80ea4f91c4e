// Wall times against the system's own reading of its zones, and recurrences at every change of
// every zone (F31). Skipped where the package tzdata is missing.
#include "spec/time_zone.h"

#include <ctime>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/units.h"

namespace muster::spec {
namespace {

using model::Recurrence;
using model::Window;

std::int64_t at(const char* text) {
    return parse_time(text, {})->ms / 1000;
}
std::string text_of(std::int64_t seconds_utc) {
    return format_time(Time{seconds_utc * 1000});
}

void put(std::string& out, std::int64_t value, int size) {
    for (int i = size - 1; i >= 0; --i)
        out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
}
/// A zone file without changes, whose rule says everything.
std::string zone_file(const std::string& rule, std::int64_t offset) {
    std::string out;
    for (const int version : {1, 2}) {
        out += "TZif2" + std::string(15, '\0');
        for (const int count : {0, 0, 0, 0, version == 1 ? 0 : 1, version == 1 ? 0 : 4})
            put(out, count, 4);
    }
    put(out, offset, 4);
    return out + std::string("\0\0abc\0", 6) + "\n" + rule + "\n";
}
TimeZone ruled(const std::string& rule, std::int64_t offset = 0) {
    auto zone = TimeZone::parse(zone_file(rule, offset), "test");
    EXPECT_TRUE(zone) << rule << ": " << zone.error().message;
    return *zone;
}
constexpr const char* kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";

TEST(TimeZone, FollowsTheRuleOfTheFuture) {
    struct Row {
        const char* rule;
        const char* moment;
        std::int64_t offset;
    };
    const Row rows[] = {
        {"UTC0", "2026-07-01T00:00:00Z", 0},
        {"<+0545>-5:45", "2026-07-01T00:00:00Z", 20'700},
        {kBerlin, "2026-03-29T00:59:59Z", 3600},
        {kBerlin, "2026-03-29T01:00:00Z", 7200},
        {kBerlin, "2026-10-25T00:59:59Z", 7200},
        {kBerlin, "2026-10-25T01:00:00Z", 3600},
        {kBerlin, "2400-07-01T00:00:00Z", 7200},
        {"EST5EDT,M3.2.0,M11.1.0", "2027-03-14T06:59:59Z", -18'000},
        {"EST5EDT,M3.2.0,M11.1.0", "2027-03-14T07:00:00Z", -14'400},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-01-01T00:00:00Z", 39'600},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-06-01T00:00:00Z", 37'800},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01T00:00:00Z", 3600},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59Z", -7200},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00Z", -3600},
        {"IST-2IDT,M3.4.4/26,M10.5.0", "2026-03-27T00:00:00Z", 10'800},
        {"XXX3EDT4,0/0,J365/23", "2026-01-01T02:59:59Z", -14'400},
        {"AAA0BBB,J60/0,J300/0", "2028-03-01T00:00:00Z", 3600},
        {"AAA0BBB,J60/0,J300/0", "2028-02-29T23:59:59Z", 0},
        {"AAA0BBB,59/0,300/0", "2028-02-29T00:00:00Z", 3600},
    };
    for (const Row& row : rows)
        EXPECT_EQ(ruled(row.rule).offset_at(at(row.moment)), row.offset)
            << row.rule << " " << row.moment;
}

TEST(TimeZone, AWallTimeIsThereOnceTwiceOrNot) {
    const TimeZone zone = ruled(kBerlin);
    const WallTime once = zone.resolve(at("2026-07-01T08:00:00Z"));
    EXPECT_EQ(once.kind, WallTime::Kind::Once);
    EXPECT_EQ(text_of(once.first), "2026-07-01T06:00:00Z");
    const WallTime twice = zone.resolve(at("2026-10-25T02:30:00Z"));
    EXPECT_EQ(twice.kind, WallTime::Kind::Twice);
    EXPECT_EQ(text_of(twice.first), "2026-10-25T00:30:00Z");
    EXPECT_EQ(text_of(twice.second), "2026-10-25T01:30:00Z");
    const WallTime gap = zone.resolve(at("2026-03-29T02:30:00Z"));
    EXPECT_EQ(gap.kind, WallTime::Kind::Gap);
    EXPECT_EQ(text_of(gap.first), "2026-03-29T01:30:00Z");  // 03:30 on the clock.
    EXPECT_EQ(text_of(gap.gap_start), "2026-03-29T02:00:00Z");
    EXPECT_EQ(text_of(gap.gap_end), "2026-03-29T03:00:00Z");
    EXPECT_EQ(zone.resolve(at("2026-03-29T03:00:00Z")).kind, WallTime::Kind::Once);
    EXPECT_EQ(zone.resolve(at("2026-10-25T03:00:00Z")).kind, WallTime::Kind::Once);
}

TEST(TimeZone, WhatIsNoZoneIsRefused) {
    for (const char* name : {"", "/etc/passwd", "../x", "Europe/../../etc/passwd", "a b", "Europe"})
        EXPECT_FALSE(TimeZone::load(name)) << name;
    EXPECT_TRUE(TimeZone::load("UTC", "/nonexistent"));
    EXPECT_EQ(TimeZone::load("Europe/Berlin", "/nonexistent").error().message,
              "time zone Europe/Berlin: there are no zone files in /nonexistent");
    const std::string good = zone_file(kBerlin, 3600);
    for (std::size_t size = 0; size < good.size(); ++size)
        EXPECT_FALSE(TimeZone::parse(good.substr(0, size), "cut")) << size;
    Prng random(3);
    for (int i = 0; i < 20'000; ++i) {
        std::string bytes = good;
        for (int n = 0; n < 2; ++n)
            bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
        const auto zone = TimeZone::parse(bytes, "mutant");
        if (zone) (void)zone->resolve(at("2026-03-29T02:30:00Z"));
    }
    for (const char* rule : {"CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
                             "CET-1CEST,M3.5.7,M10.5.0", "1CET", "CET-25", "CET-1CEST,J0,J5"})
        EXPECT_FALSE(TimeZone::parse(zone_file(rule, 0), "x")) << rule;
}

/// Zones that behave alike from 2025 on stand for each other.
std::map<std::string, TimeZone> unlike_zones() {
    std::map<std::string, TimeZone> zones;
    std::set<std::string> seen;
    const std::int64_t from = at("2025-01-01"), to = at("2031-01-01");
    for (const std::string& name : zone_names()) {
        const auto zone = TimeZone::load(name);
        EXPECT_TRUE(zone) << zone.error().message;
        if (!zone) continue;
        std::string signature = std::to_string(zone->offset_at(from));
        for (const std::int64_t change : zone->changes(from, to))
            signature +=
                " " + std::to_string(change) + ":" + std::to_string(zone->offset_at(change));
        if (seen.insert(signature).second) zones.emplace(name, *zone);
    }
    return zones;
}

TEST(TimeZone, AgreesWithTheSystemInAllZones) {
    const auto names = zone_names();
    if (names.empty()) GTEST_SKIP() << "the package tzdata is missing";
    EXPECT_GT(names.size(), 300u);
    Prng random(11);
    for (const std::string& name : names) {
        const auto zone = TimeZone::load(name);
        ASSERT_TRUE(zone) << zone.error().message;
        ::setenv("TZ", (":" + name).c_str(), 1);
        ::tzset();
        for (int i = 0; i < 100; ++i) {
            const std::int64_t moment = random.between(at("1980-01-01"), at("2120-01-01"));
            const std::time_t time = moment;
            std::tm wall{};
            ::localtime_r(&time, &wall);
            ASSERT_EQ(zone->offset_at(moment), wall.tm_gmtoff) << name << " " << text_of(moment);
        }
    }
    ::unsetenv("TZ");
    ::tzset();
}

/// The rule by looking at every minute of some days: what wall time it shows.
class Minutes {
public:
    Minutes(const TimeZone& zone, std::int64_t from, std::int64_t to) {
        for (std::int64_t moment = from; moment < to; moment += 60)
            by_wall_[moment + zone.offset_at(moment)].push_back(moment);
    }
    /// The moment that a day's occurrence falls on; nothing: it has none.
    std::optional<std::int64_t> expected(std::int64_t wall, const Recurrence& rule) const {
        const auto known = by_wall_.find(wall);
        if (known != by_wall_.end())
            return rule.twice == Recurrence::Twice::First ? known->second.front()
                                                          : known->second.back();
        if (rule.gap == Recurrence::Gap::Skip) return std::nullopt;
        // As if the clock had not jumped: as long after the last minute that there is before it.
        const auto before = std::prev(by_wall_.lower_bound(wall));
        return before->second.back() + (wall - before->first);
    }

private:
    std::map<std::int64_t, std::vector<std::int64_t>> by_wall_;
};

TEST(TimeZone, ADailyJobHappensOnceALocalDayF31) {
    const auto zones = unlike_zones();
    if (zones.empty()) GTEST_SKIP() << "the package tzdata is missing";
    constexpr std::int64_t kDay = 86'400;
    int changes = 0, gaps = 0, twos = 0;
    for (const auto& [name, zone] : zones)
        for (const std::int64_t change : zone.changes(at("2025-01-01"), at("2031-01-01"))) {
            ++changes;
            const std::int64_t today = (change + zone.offset_at(change)) / kDay;
            const Minutes minutes(zone, (today - 5) * kDay, (today + 5) * kDay);
            for (std::int64_t clock = 0; clock < kDay; clock += 15 * 60)
                for (int way = 0; way < 4; ++way) {
                    Recurrence rule;
                    rule.every = Recurrence::Every::Day;
                    rule.gap = static_cast<Recurrence::Gap>(way & 1);
                    rule.twice = static_cast<Recurrence::Twice>(way >> 1);
                    // The first one lies before the change, on a day of the old offset.
                    const WallTime first = zone.resolve((today - 3) * kDay + clock);
                    if (first.kind != WallTime::Kind::Once) continue;
                    std::vector<std::int64_t> want, have;
                    for (std::int64_t day = today - 3; day <= today + 2; ++day)
                        if (const auto each = minutes.expected(day * kDay + clock, rule))
                            want.push_back(*each);
                    gaps += want.size() == 5;
                    twos += zone.resolve(today * kDay + clock).kind == WallTime::Kind::Twice;
                    const Window window{Time{first.first * 1000}, Time{first.first * 1000 + 1000}};
                    const Time to{(want.back() + 1) * 1000};
                    for (const Window& each : expand(window, rule, zone, window.start, to))
                        have.push_back(each.start.ms / 1000);
                    ASSERT_EQ(have, want)
                        << name << " at " << text_of(change) << ", clock " << clock;
                    for (std::size_t i = 1; i < have.size(); ++i) ASSERT_LT(have[i - 1], have[i]);
                }
        }
    EXPECT_GT(changes, 100);
    EXPECT_GT(gaps, 1000);
    EXPECT_GT(twos, 1000);
}

std::string windows_of(const Window& first, const Recurrence& rule, const TimeZone& zone,
                       const char* from, const char* to) {
    std::string out;
    for (const Window& each : expand(first, rule, zone, Time{at(from) * 1000}, Time{at(to) * 1000}))
        out += (out.empty() ? "" : " ") + format_time(each.start).substr(5, 11) + "-" +
               format_time(each.end).substr(11, 5);
    return out;
}

TEST(TimeZone, WindowsOfAHorizon) {
    const TimeZone zone = ruled(kBerlin);
    const auto window = [](const char* from, const char* to) {
        return Window{Time{at(from) * 1000}, Time{at(to) * 1000}};
    };
    Recurrence daily, weekly;
    daily.every = Recurrence::Every::Day;
    weekly.every = Recurrence::Every::Week;
    const Window night = window("2026-03-26T21:00:00Z", "2026-03-27T05:00:00Z");
    EXPECT_EQ(windows_of(night, {}, zone, "2026-03-01", "2026-05-01"), "03-26T21:00-05:00");
    EXPECT_EQ(windows_of(night, {}, zone, "2026-03-28", "2026-05-01"), "");
    // 22:00 on the clock, before and after the change.
    EXPECT_EQ(windows_of(night, daily, zone, "2026-03-28", "2026-03-30"),
              "03-27T21:00-05:00 03-28T21:00-05:00 03-29T20:00-04:00");
    EXPECT_EQ(windows_of(night, weekly, zone, "2026-03-01", "2026-04-10"),
              "03-26T21:00-05:00 04-02T20:00-04:00 04-09T20:00-04:00");
    EXPECT_EQ(windows_of(night, daily, zone, "2030-01-01", "2030-01-02"),
              "12-31T21:00-05:00 01-01T21:00-05:00");
    daily.until = Time{at("2026-03-28T21:00:00Z") * 1000};
    EXPECT_EQ(windows_of(night, daily, zone, "2026-03-28", "2026-04-30"),
              "03-27T21:00-05:00 03-28T21:00-05:00");
    daily.until = kNever;
    // A whole day, over the day of 23 hours: the windows meet and do not overlap.
    EXPECT_EQ(windows_of(window("2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z"), daily, zone,
                         "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"),
              "03-27T23:00-23:00 03-28T23:00-22:00 03-29T22:00-22:00");
    EXPECT_EQ(expand(night, daily, zone, night.start, kNever, 5).size(), 5u);
    EXPECT_EQ(expand(night, daily, zone, night.start, kNever).size(), 4096u);
}

TEST(TimeZone, ADayThatNeverWasHasNoWindow) {
    const auto zone = TimeZone::load("Pacific/Apia");
    if (!zone) GTEST_SKIP() << zone.error().message;
    // Samoa had no 30 December 2011.
    Recurrence daily;
    daily.every = Recurrence::Every::Day;
    const Window first{Time{at("2011-12-28T20:00:00Z") * 1000},
                       Time{at("2011-12-28T21:00:00Z") * 1000}};
    EXPECT_EQ(windows_of(first, daily, *zone, "2011-12-28", "2012-01-02"),
              "12-28T20:00-21:00 12-29T20:00-21:00 12-30T20:00-21:00 12-31T20:00-21:00 "
              "01-01T20:00-21:00");
}

}  // namespace
}  // namespace muster::spec
