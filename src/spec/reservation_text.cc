#include "spec/reservation_text.h"

#include <algorithm>
#include <optional>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "spec/host_list.h"

namespace muster::spec {
namespace {

using model::Recurrence;

constexpr std::int64_t kDay = 86'400;

class Reservations {
public:
    Reservations(const ReservationText& text, const ReservationOptions& options)
        : text_(text), options_(options), zone_(TimeZone::utc()) {}

    std::variant<ReservationAsk, Problems> read() && {
        read_words();
        read_nodes();
        read_who();
        if (read_zone()) {
            read_recurrence();
            read_window();
        }
        if (!problems_.empty()) return std::move(problems_);
        return std::move(ask_);
    }

private:
    void fail(const char* flag, std::string message, int number = errors::kJobBadValue) {
        Problem problem;
        problem.number = number;
        problem.flag = flag;
        problem.message = std::move(message);
        problems_.push_back(std::move(problem));
    }

    void read_words() {
        constexpr std::size_t kNameMax = 63, kReasonMax = 1024;
        ask_.name = std::string(trim(text_.name));
        ask_.reason = std::string(trim(text_.reason));
        ask_.maintenance = text_.maintenance;
        constexpr std::string_view kLetters =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
        if (ask_.name.size() > kNameMax ||
            ask_.name.find_first_not_of(kLetters) != std::string::npos)
            fail("--name", ask_.name.substr(0, 60) + ": at most 63 letters, digits and . _ -");
        if (ask_.reason.size() > kReasonMax)
            fail("--reason", std::to_string(ask_.reason.size()) + " bytes, over the limit of 1024");
    }

    void read_nodes() {
        if (text_.nodes.empty() == text_.count.empty())
            fail("--nodes",
                 text_.nodes.empty() ? "nodes are missing: name them (--nodes n1,n[2-4]) or give a "
                                       "number (--count 4)"
                                     : "cannot be given together with --count",
                 text_.nodes.empty() ? errors::kJobFieldMissing : errors::kJobFieldsConflict);
        if (!text_.nodes.empty()) {
            const auto hosts = expand_host_list(text_.nodes, kReservedNodesMax);
            if (hosts)
                ask_.nodes = sorted(*hosts);
            else
                fail("--nodes", hosts.error().message);
        }
        if (!text_.count.empty()) {
            const auto count = parse_integer(text_.count, 1, kReservedNodesMax);
            if (count)
                ask_.count = *count;
            else
                fail("--count", count.error().message, errors::kJobOutOfRange);
        }
        if (text_.gpus.empty()) return;
        if (text_.count.empty())
            fail("--gpus", "needs --count: named nodes are what they are",
                 errors::kJobFieldsConflict);
        const std::size_t colon = text_.gpus.find(':');
        ask_.kind = lower(trim(std::string_view(text_.gpus).substr(0, colon)));
        ask_.devices = 1;
        constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789._+-";
        if (ask_.kind.empty() || ask_.kind.size() > 64 ||
            ask_.kind.find_first_not_of(kLetters) != std::string::npos)
            return fail("--gpus", text_.gpus.substr(0, 60) + ": must be KIND or KIND:N (h100:8)");
        if (ask_.kind == "any") ask_.kind.clear();
        if (colon == std::string::npos) return;
        const auto devices = parse_integer(std::string_view(text_.gpus).substr(colon + 1), 1,
                                           model::kGpusPerNodeMax);
        if (devices)
            ask_.devices = *devices;
        else
            fail("--gpus", text_.gpus.substr(0, 60) + ": the number of devices must be in 1..1024",
                 errors::kJobOutOfRange);
    }

    void read_who() {
        ask_.users = words(text_.users);
        ask_.queues = words(text_.queues);
        const bool nobody = ask_.users.empty() && ask_.queues.empty();
        if (ask_.maintenance && !nobody)
            fail("--maintenance", "nobody may run then; take --users and --queues away",
                 errors::kJobFieldsConflict);
        if (!ask_.maintenance && nobody)
            fail("--users", "for whom? give --users, --queues or both, or --maintenance for nobody",
                 errors::kJobFieldMissing);
    }

    /// False: times cannot be read.
    bool read_zone() {
        auto zone = TimeZone::load(text_.zone.empty() ? options_.default_zone : text_.zone,
                                   options_.zone_root);
        if (!zone) {
            fail("--zone", zone.error().message);
            return false;
        }
        zone_ = *std::move(zone);
        return true;
    }

    template <class Choice>
    void choose(const char* flag, const std::string& word, const std::vector<std::string>& names,
                std::initializer_list<Choice> values, Choice& out) {
        if (word.empty()) return;
        const auto found = std::find(names.begin(), names.end(), word);
        if (found != names.end()) {
            out = values.begin()[found - names.begin()];
            return;
        }
        const std::string near = nearest(word, names);
        fail(flag, word.substr(0, 60) + ": must be " + join(names, " or ") +
                       (near.empty() ? "" : "; did you mean " + near + "?"));
    }

    void read_recurrence() {
        Recurrence& rule = ask_.recurrence;
        rule.zone = zone_.name();
        choose("--every", text_.every, {"day", "week"},
               {Recurrence::Every::Day, Recurrence::Every::Week}, rule.every);
        choose("--gap", text_.gap, {"skip", "later"},
               {Recurrence::Gap::Skip, Recurrence::Gap::Later}, rule.gap);
        choose("--twice", text_.twice, {"first", "second"},
               {Recurrence::Twice::First, Recurrence::Twice::Second}, rule.twice);
        if (!text_.every.empty()) return;
        if (!text_.gap.empty())
            fail("--gap", "needs --every: it is of windows that come again",
                 errors::kJobFieldsConflict);
        if (!text_.until.empty())
            fail("--until", "needs --every: it is of windows that come again",
                 errors::kJobFieldsConflict);
    }

    /// "now+2h", a time with an offset, or a time on the zone's clock. Of a date the day's start;
    /// `whole_day`: the moment before the next one's.
    std::optional<Time> moment(const char* flag, const std::string& text, bool whole_day = false) {
        if (text == "now") return options_.now;
        if (text.substr(0, 3) == "now") return absolute(flag, text);
        const bool date_only = text.find_first_of("Tt ") == std::string::npos;
        const bool offset = !date_only && (text.back() == 'Z' || text.back() == 'z' ||
                                           text.find_first_of("+-", 10) != std::string::npos);
        if (offset) return absolute(flag, text);
        // As if it were UTC's: the wall time in seconds.
        const auto wall = parse_time(date_only ? text : text + "Z", options_.now);
        if (!wall) {
            fail(flag, text.substr(0, 60) +
                           ": not a time; write 2026-12-24T08:00 (on the clock of --zone), "
                           "2026-12-24T08:00+01:00, a date, or now+2h");
            return std::nullopt;
        }
        const std::int64_t wanted = wall->ms / 1000 + (date_only && whole_day ? kDay : 0);
        const WallTime at = zone_.resolve(wanted);
        if (at.kind == WallTime::Kind::Gap && !date_only) {
            fail(flag, text + ": does not exist in " + zone_.name() +
                           ", where the clock is put forward then; choose another time");
            return std::nullopt;
        }
        const bool second =
            at.kind == WallTime::Kind::Twice && ask_.recurrence.twice == Recurrence::Twice::Second;
        // A day that begins in a gap begins when the gap ends.
        const std::int64_t start = at.kind == WallTime::Kind::Gap
                                       ? at.first - (wanted - at.gap_start)
                                       : (second ? at.second : at.first);
        return Time{start * 1000 - (date_only && whole_day ? 1 : 0)};
    }
    std::optional<Time> absolute(const char* flag, const std::string& text) {
        const auto time = parse_time(text, options_.now);
        if (time) return *time;
        fail(flag, time.error().message);
        return std::nullopt;
    }

    void read_window() {
        if (text_.end.empty() == text_.duration.empty())
            fail("--end",
                 text_.end.empty() ? "the end is missing: give --end TIME or --for 4h"
                                   : "cannot be given together with --for",
                 text_.end.empty() ? errors::kJobFieldMissing : errors::kJobFieldsConflict);
        const Time now{options_.now.ms - options_.now.ms % 1000};
        const auto start = text_.start.empty() ? now : moment("--start", text_.start);
        std::optional<Time> end;
        if (!text_.end.empty()) {
            end = moment("--end", text_.end);
        } else if (!text_.duration.empty()) {
            const auto length = parse_duration(text_.duration);
            if (!length)
                fail("--for", length.error().message);
            else if (start)
                end = *start + *length;
        }
        if (start && end) check_window(text_.end.empty() ? "--for" : "--end", *start, *end);
        if (text_.until.empty() || text_.every.empty()) return;
        const auto until = moment("--until", text_.until, true);
        if (!until) return;
        ask_.recurrence.until = *until;
        if (start && *until < *start)
            fail("--until", format_time(*until) + ": before the start, " + format_time(*start));
    }

    void check_window(const char* flag, Time start, Time end) {
        ask_.first = {start, end};
        const Duration length = end - start;
        const std::int64_t days = text_.every == "day" ? 1 : text_.every == "week" ? 7 : 0;
        const Duration period{days * kDay * 1000};
        if (end <= start)
            fail(flag, format_time(end) + ": not after the start, " + format_time(start));
        else if (end <= options_.now && days == 0)
            fail(flag, format_time(end) + ": has passed; it is " + format_time(options_.now));
        else if (length < seconds(1))
            fail(flag, "shorter than the least, 1s", errors::kJobOutOfRange);
        else if (length > kReservationMax)
            fail(flag,
                 format_duration(length) + ": longer than the limit of " +
                     format_duration(kReservationMax),
                 errors::kJobOutOfRange);
        else if (days > 0 && length > period)
            fail(flag,
                 format_duration(length) + ": longer than the time to the next window, " +
                     format_duration(period),
                 errors::kJobFieldsConflict);
        else if (start > options_.now + kDurationMax)
            fail("--start", format_time(start) + ": more than ten years from now",
                 errors::kJobOutOfRange);
    }

    static std::vector<std::string> sorted(std::vector<std::string> all) {
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }
    static std::vector<std::string> words(const std::string& text) {
        std::vector<std::string> out;
        for (const std::string_view part : split(text, ','))
            if (!trim(part).empty()) out.emplace_back(trim(part));
        return sorted(std::move(out));
    }

    const ReservationText& text_;
    const ReservationOptions& options_;
    TimeZone zone_;
    ReservationAsk ask_;
    Problems problems_;
};

}  // namespace

std::variant<ReservationAsk, Problems> parse_reservation(const ReservationText& text,
                                                         const ReservationOptions& options) {
    return Reservations(text, options).read();
}

std::vector<std::pair<std::string, std::string>> to_flags(const ReservationAsk& ask) {
    std::vector<std::pair<std::string, std::string>> flags;
    const auto add = [&](const char* flag, std::string value) {
        if (!value.empty()) flags.emplace_back(flag, std::move(value));
    };
    add("--name", ask.name);
    add("--reason", ask.reason);
    add("--nodes", join(ask.nodes, ","));
    if (ask.count > 0) add("--count", std::to_string(ask.count));
    if (ask.devices > 0)
        add("--gpus", (ask.kind.empty() ? "any" : ask.kind) + ":" + std::to_string(ask.devices));
    add("--users", join(ask.users, ","));
    add("--queues", join(ask.queues, ","));
    add("--start", format_time(ask.first.start));
    add("--end", format_time(ask.first.end));
    add("--zone", ask.recurrence.zone);
    if (ask.recurrence.every != Recurrence::Every::Never) {
        add("--every", ask.recurrence.every == Recurrence::Every::Day ? "day" : "week");
        add("--gap", ask.recurrence.gap == Recurrence::Gap::Skip ? "skip" : "later");
        if (ask.recurrence.until != kNever) add("--until", format_time(ask.recurrence.until));
    }
    add("--twice", ask.recurrence.twice == Recurrence::Twice::First ? "first" : "second");
    if (ask.maintenance) flags.emplace_back("--maintenance", "");
    return flags;
}

}  // namespace muster::spec
