// Wall time of the world's zones, read from the system's zone files (RFC 8536, version 2 on, with
// the rule for the far future). Reads no clock and no environment variable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "model/reservation.h"

namespace muster::spec {

constexpr const char* kZoneRoot = "/usr/share/zoneinfo";  // Of the package tzdata.

/// What a wall time means. Times in seconds; wall times as if they were UTC's.
struct WallTime {
    enum class Kind : std::uint8_t { Once, Twice, Gap };
    Kind kind = Kind::Once;
    std::int64_t first = 0;                   // Gap: later by as much as the clock was put forward.
    std::int64_t second = 0;                  // Twice only: the later one.
    std::int64_t gap_start = 0, gap_end = 0;  // Gap only: the wall times that do not exist.
};

class TimeZone {
public:
    /// By its IANA name, "Europe/Berlin". NotFound names the nearest one that there is.
    static Result<TimeZone> load(std::string_view name, const std::string& root = kZoneRoot);
    /// From the bytes of a zone file.
    static Result<TimeZone> parse(std::string_view bytes, std::string name);
    static TimeZone utc();

    const std::string& name() const { return name_; }
    /// Seconds east of UTC at a moment.
    std::int64_t offset_at(std::int64_t utc_s) const;
    WallTime resolve(std::int64_t wall_s) const;
    /// Moments at which the offset changes, within [from, to). Found by looking twice a week: two
    /// changes in between that undo each other are not.
    std::vector<std::int64_t> changes(std::int64_t from_s, std::int64_t to_s) const;

private:
    /// A date of the footer: "M10.5.0/3", "J60", "59".
    struct RuleDate {
        enum class Form : std::uint8_t { Julian, Day, Month };
        Form form = Form::Day;
        int month = 0, week = 0, day = 0;
        std::int64_t time = 7200;  // Of that day, in wall time before the change.
    };
    struct Rule {
        std::int64_t standard = 0;
        bool summer = false;  // Has two offsets.
        std::int64_t summer_offset = 0;
        RuleDate start, end;
    };
    struct Footer;  // Reads it.
    std::int64_t rule_offset(std::int64_t utc_s) const;
    static std::int64_t day_of(const RuleDate& date, std::int64_t year);

    std::string name_;
    std::vector<std::int64_t> at_;       // Ascending; the offset changes at each.
    std::vector<std::int64_t> offsets_;  // From at_[i] on.
    std::int64_t before_ = 0;            // Before at_[0].
    bool has_rule_ = false;              // After the last of at_.
    Rule rule_;
};

/// Every zone below `root`, sorted. For suggestions and tests.
std::vector<std::string> zone_names(const std::string& root = kZoneRoot);

/// The windows that a recurrence makes of `first`, as far as they touch [from, to): ascending, not
/// overlapping, at most `most`. `first` itself is the first of them, as it stands. Each local day
/// (or week) has one; a wall time that does not exist or exists twice on that day follows the
/// recurrence's rule, and a day that a zone left out altogether has none. All are as long as
/// `first`, but end when the next one starts.
std::vector<model::Window> expand(const model::Window& first, const model::Recurrence& recurrence,
                                  const TimeZone& zone, Time from, Time to,
                                  std::size_t most = 4096);

}  // namespace muster::spec
