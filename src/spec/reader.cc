#include "spec/reader.h"

#include <algorithm>
#include <set>

#include "spec/place.h"

namespace muster::spec {
namespace {

constexpr std::string_view kNoValue =
    "no value; give one, or take the line away (an empty text is written \"\")";

std::string escape_pointer(std::string_view key) {
    std::string out;
    for (const char c : key) {
        if (c == '~')
            out += "~0";
        else if (c == '/')
            out += "~1";
        else
            out += c;
    }
    return out;
}

}  // namespace

std::string shorten(std::string_view text) {
    constexpr std::size_t kShown = 60;
    if (text.size() <= kShown) return std::string(text);
    std::size_t end = kShown;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return std::string(text.substr(0, end)) + "…";
}

std::string Reader::dotted(std::size_t from) const {
    std::string out;
    for (const Segment& segment : std::span(path_).subspan(std::min(from, path_.size()))) {
        if (segment.index > 0) {
            out += "[" + std::to_string(segment.index - 1) + "]";
        } else {
            if (!out.empty()) out += '.';
            out += shorten(segment.key);
        }
    }
    return out;
}

std::string Reader::pointer() const {
    std::string out;
    for (const Segment& segment : path_)
        out += "/" + (segment.index > 0 ? std::to_string(segment.index - 1)
                                        : escape_pointer(segment.key));
    return out;
}

void Reader::fail_at(std::uint16_t source, std::uint32_t at, std::string message, Detail detail) {
    if (found_.size() >= kProblemsMax) {
        ++more_;
        return;
    }
    const std::string name = dotted(sources_[source].is_flag ? 1 : 0);  // A flag has said it.
    Problem problem = problem_at(sources_[source], at);
    problem.number = detail.number != 0     ? detail.number
                     : detail.limit.empty() ? errors::kJobBadValue
                                            : errors::kJobOutOfRange;
    problem.pointer = pointer();
    problem.message = name.empty() ? std::move(message) : name + ": " + message;
    problem.value = std::move(detail.value);
    problem.limit = std::move(detail.limit);
    problem.suggestion = std::move(detail.suggestion);
    found_.push_back({source, at, std::move(problem)});
}

void Reader::fail(const Value& value, std::string message, Detail detail) {
    if (detail.value.empty() && value.kind == Value::Kind::Scalar)
        detail.value = shorten(value.text);
    fail_at(value.source, value.at, std::move(message), std::move(detail));
}

void Reader::fail(const Value& value, int number, std::string message) {
    fail(value, std::move(message), {.number = number});
}

void Reader::fail_repeated(std::span<const Entry> entries) {
    std::set<std::string_view> seen;
    for (const Entry& entry : entries) {
        if (seen.insert(entry.key).second) continue;
        const Within within(*this, entry.key);
        fail_at(entry.source, entry.at, "given twice", {.number = errors::kJobFieldsConflict});
    }
}

std::optional<std::string_view> Reader::scalar(const Value& value) {
    switch (value.kind) {
        case Value::Kind::Scalar:
            if (value.text.find('\0') == std::string::npos) return value.text;
            fail(value, "holds a NUL character (\\0), which no program can be given");
            return std::nullopt;
        case Value::Kind::Null:
            fail(value, errors::kJobFieldMissing, std::string(kNoValue));
            return std::nullopt;
        case Value::Kind::List: fail(value, "one value expected, not a list"); return std::nullopt;
        case Value::Kind::Map: fail(value, "one value expected, not a map"); return std::nullopt;
    }
    return std::nullopt;
}

std::optional<std::string> Reader::text(const Value& value, std::size_t max, bool lines) {
    const auto written = scalar(value);
    if (!written) return std::nullopt;
    if (trim(*written).empty()) {
        fail(value, "empty");
        return std::nullopt;
    }
    if (written->size() > max) {
        fail(value,
             std::to_string(written->size()) + " bytes, over the limit of " + std::to_string(max),
             {.limit = std::to_string(max) + " bytes"});
        return std::nullopt;
    }
    const bool control = std::any_of(written->begin(), written->end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (control && !lines) {
        fail(value, "holds a line break or another control character");
        return std::nullopt;
    }
    return std::string(*written);
}

std::optional<std::int64_t> Reader::integer(const Value& value, std::int64_t low,
                                            std::int64_t high) {
    const auto written = scalar(value);
    if (!written) return std::nullopt;
    if (written->size() > 1 && written->front() == '0' &&
        written->find_first_not_of("0123456789") == std::string_view::npos) {
        fail(value, shorten(*written) + ": leading zeros; write a plain decimal number");
        return std::nullopt;
    }
    const auto number = parse_integer(*written, low, high);
    if (number) return *number;
    fail(value, number.error().message,
         {.limit = std::to_string(low) + ".." + std::to_string(high)});
    return std::nullopt;
}

std::optional<Duration> Reader::duration(const Value& value, Duration low, Duration high) {
    const auto written = scalar(value);
    if (!written) return std::nullopt;
    const auto duration = parse_duration(*written);
    if (!duration) {
        fail(value, duration.error());
        return std::nullopt;
    }
    if (low <= *duration && *duration <= high) return *duration;
    const std::string limit = format_duration(low) + ".." + format_duration(high);
    fail(value, shorten(*written) + ": must be in " + limit, {.limit = limit});
    return std::nullopt;
}

std::optional<Bytes> Reader::bytes(const Value& value, std::int64_t max) {
    constexpr std::int64_t kLeast = 1 << 20;
    const auto written = scalar(value);
    if (!written) return std::nullopt;
    const std::string limit = format_bytes({kLeast}) + ".." + format_bytes({max});
    const auto size = parse_bytes(*written, max);
    if (!size) {
        fail(value, size.error().message, {.limit = limit});
        return std::nullopt;
    }
    if (size->value >= kLeast) return *size;
    fail(value,
         shorten(*written) + ": only " + std::to_string(size->value) +
             " bytes; the least is 1MiB (write a unit, as in 64GB)",
         {.limit = limit});
    return std::nullopt;
}

std::optional<bool> Reader::flag(const Value& value) {
    const auto written = scalar(value);
    if (!written) return std::nullopt;
    if (*written == "true" || *written == "false") return *written == "true";
    fail(value, shorten(*written) + ": must be true or false", {.limit = "true, false"});
    return std::nullopt;
}

std::span<const Entry> Reader::entries(const Value& map, std::string_view form) {
    if (map.kind != Value::Kind::Map) {
        if (map.kind == Value::Kind::Null)
            fail(map, errors::kJobFieldMissing, std::string(kNoValue));
        else
            fail(map, "a map expected, as in " + std::string(form));
        return {};
    }
    fail_repeated(map.entries);
    return map.entries;
}

std::span<const Value> Reader::items(const Value& value) {
    if (value.kind == Value::Kind::List) return value.items;
    if (value.kind == Value::Kind::Null) {
        fail(value, errors::kJobFieldMissing, std::string(kNoValue));
        return {};
    }
    return {&value, 1};
}

Problems Reader::problems() && {
    // Flags come after the document; within each, by place.
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
        return a.source != b.source ? a.source < b.source : a.at < b.at;
    });
    Problems out;
    for (Found& found : found_) out.push_back(std::move(found.problem));
    if (more_ > 0) {
        Problem last;
        last.file = sources_[0].name;
        last.number = errors::kJobInvalid;
        last.message = "and " + std::to_string(more_) + " more problems";
        out.push_back(std::move(last));
    }
    return out;
}

void Reader::fail_whole(int number, std::string message) {
    Problem problem;
    problem.number = number;
    problem.file = sources_[0].name;
    problem.message = std::move(message);
    found_.push_back({0, UINT32_MAX, std::move(problem)});
}

bool Reader::full() {
    if (found_.size() < kProblemsMax) return false;
    ++more_;
    return true;
}

void Reader::fail_unknown(const Entry& entry, std::span<const std::string> known) {
    if (full()) return;
    const Within within(*this, entry.key);
    const std::string near = nearest(entry.key, known);
    if (!near.empty())
        return fail_at(entry.source, entry.at, "unknown key; did you mean " + near + "?",
                       {.suggestion = near, .number = errors::kJobUnknownField});
    fail_at(entry.source, entry.at, "unknown key; known here: " + join(known, ", "),
            {.number = errors::kJobUnknownField});
}

}  // namespace muster::spec
