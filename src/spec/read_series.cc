// Readers of what ties tasks and jobs together: depends, array, sweep, parallel.
#include <algorithm>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

constexpr std::size_t kDependsMax = 1000;
constexpr std::size_t kAxesMax = 32;
constexpr std::int64_t kAxisMax =
    1 << 16;  // Values of all axes together; an array has no such limit.
constexpr std::int64_t kIndexMax = (std::int64_t{1} << 31) - 1;

struct Span {
    std::int64_t first = 0, last = 0, step = 1;
    std::int64_t count() const { return (last - first) / step + 1; }
};
/// "0..99" or "0..99:5". Nothing: it is not of this form.
std::optional<Span> parse_span(std::string_view text) {
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) return std::nullopt;
    Span out;
    std::string_view rest = text.substr(dots + 2);
    if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
        const auto step = parse_integer(rest.substr(colon + 1), 1, kIndexMax);
        if (!step) return std::nullopt;
        out.step = *step;
        rest = rest.substr(0, colon);
    }
    const auto first = parse_integer(text.substr(0, dots), -kIndexMax, kIndexMax);
    const auto last = parse_integer(rest, -kIndexMax, kIndexMax);
    if (!first || !last || *first > *last) return std::nullopt;
    out.first = *first;
    out.last = *last;
    return out;
}

void add_dependency(Normaliser& n, const Value& v, std::string_view text) {
    using When = model::Dependency::When;
    const auto parts = split(text, ':');
    When when = When::AfterOk;
    std::size_t first = 1;
    const std::string word = lower(parts[0]);
    if (word == "afterok")
        when = When::AfterOk;
    else if (word == "afterany")
        when = When::AfterAny;
    else if (word == "afternotok")
        when = When::AfterNotOk;
    else
        first = 0;
    if (first == 0 && parts.size() > 1) {
        static const std::string kWords[] = {"afterok", "afterany", "afternotok"};
        const std::string near = nearest(word, kWords);
        return n.fail(v,
                      shorten(text) + ": must be afterok, afterany or afternotok, then job ids" +
                          (near.empty() ? "" : "; did you mean " + near + "?"),
                      {.suggestion = near});
    }
    if (first == parts.size())
        return n.fail(v, shorten(text) + ": a job id is missing (afterok:12)");
    for (std::size_t i = first; i < parts.size(); ++i) {
        const auto id = parse_integer(trim(parts[i]), 1, kJobIdMax);
        if (!id)
            return n.fail(v,
                          shorten(text) + ": a job id must be in 1.." + std::to_string(kJobIdMax),
                          {.limit = "1.." + std::to_string(kJobIdMax)});
        const model::Dependency dependency{when, JobId{static_cast<std::uint64_t>(*id)}};
        auto& all = n.spec.depends;
        if (std::find(all.begin(), all.end(), dependency) != all.end()) continue;
        if (all.size() >= kDependsMax)
            return n.fail(v, "more than the limit of " + std::to_string(kDependsMax) + " jobs");
        all.push_back(dependency);
    }
}

/// Digits (or a sign) on both sides of "..": not a path like ../data.
bool looks_like_range(std::string_view text) {
    const auto starts_number = [](std::string_view part) {
        if (!part.empty() && part.front() == '-') part.remove_prefix(1);
        return !part.empty() && part.front() >= '0' && part.front() <= '9';
    };
    const std::size_t dots = text.find("..");
    return dots != std::string_view::npos && starts_number(text) &&
           starts_number(text.substr(dots + 2));
}

void fail_range(Normaliser& n, const Value& v) {
    n.fail(v, shorten(v.text) +
                  ": not a range; write whole numbers, FIRST..LAST or FIRST..LAST:STEP, rising");
}

void add_value(Normaliser& n, const Value& v, bool whole_axis, std::vector<std::string>& values) {
    const auto written = n.scalar(v);
    if (!written) return;
    // A quoted text in a list is that text; a whole axis in quotes is how JSON writes a range.
    if (!looks_like_range(*written) || (v.quoted && !whole_axis)) {
        values.emplace_back(*written);
        return;
    }
    const auto span = parse_span(*written);
    if (!span) return fail_range(n, v);
    if (span->count() > kAxisMax)
        return n.fail(v, shorten(*written) + ": " + std::to_string(span->count()) +
                             " values, over the limit of " + std::to_string(kAxisMax) +
                             " of a sweep; an array may be longer");
    for (std::int64_t i = 0; i < span->count(); ++i)
        values.push_back(std::to_string(span->first + i * span->step));
}

model::SweepAxis read_axis(Normaliser& n, const Entry& entry) {
    model::SweepAxis axis{.name = entry.key, .values = {}};
    if (!is_variable_name(entry.key) || entry.key.substr(0, 7) == "MUSTER_")
        n.fail(scalar_value(entry.key, entry.source, entry.at),
               "becomes an environment variable: letters, digits and _ only, not MUSTER_…");
    for (const Value& item : n.items(entry.value))
        add_value(n, item, entry.value.kind == Value::Kind::Scalar, axis.values);
    if (entry.value.kind == Value::Kind::List && entry.value.items.empty())
        n.fail(entry.value, "an empty list; an axis needs at least one value");
    return axis;
}

}  // namespace

void read_depends(Normaliser& n, const Value& v) {
    for (const Value& item : n.items(v)) {
        const auto written = n.scalar(item);
        if (!written) continue;
        for (const std::string_view part : split(*written, ','))
            add_dependency(n, item, trim(part));
    }
}

void read_array(Normaliser& n, const Value& v) {
    model::Array& array = n.spec.array;
    const auto written = n.scalar(v);
    if (!written) return;
    std::string_view text = *written;
    if (const std::size_t percent = text.find('%'); percent != std::string_view::npos) {
        const auto parallel = parse_integer(text.substr(percent + 1), 1, model::kArrayMax);
        if (!parallel)
            return n.fail(v, shorten(text) + ": after % comes how many may run at once, in 1.." +
                                 std::to_string(model::kArrayMax));
        if (n.given("parallel") != nullptr)
            return n.fail(v, errors::kJobFieldsConflict,
                          shorten(text) + ": parallel is given as well; write one of the two");
        array.parallel = *parallel;
        text = text.substr(0, percent);
    }
    Span span;
    if (const auto count = parse_integer(text, INT64_MIN, INT64_MAX)) {
        span.last = *count - 1;
        if (*count < 1 || *count > model::kArrayMax)
            return n.fail(v,
                          shorten(*written) + ": the number of elements must be in 1.." +
                              std::to_string(model::kArrayMax),
                          {.limit = "1.." + std::to_string(model::kArrayMax)});
    } else if (const auto range = parse_span(text); range && range->first >= 0) {
        span = *range;
    } else {
        return n.fail(v, shorten(*written) +
                             ": write a number of elements (100) or a rising range from 0 up "
                             "(0..99, 0..99:5), then perhaps %8 for at most 8 at once");
    }
    if (span.count() > model::kArrayMax)
        return n.fail(v,
                      shorten(*written) + ": " + std::to_string(span.count()) +
                          " elements, over the limit of " + std::to_string(model::kArrayMax),
                      {.limit = "1.." + std::to_string(model::kArrayMax)});
    array.count = span.count();
    array.first = span.first;
    array.step = span.step;
}

void read_sweep(Normaliser& n, const Value& v) {
    const auto entries = n.entries(v, "{lr: [1e-4, 3e-4], seed: 0..4}");
    if (v.kind == Value::Kind::Map && entries.empty())
        return n.fail(v, "empty; name at least one variable and its values");
    if (entries.size() > kAxesMax)
        return n.fail(v, std::to_string(entries.size()) + " variables, over the limit of " +
                             std::to_string(kAxesMax));
    std::int64_t product = 1, values = 0;
    for (const Entry& entry : entries) {
        const Normaliser::Within within(n, entry.key);
        model::SweepAxis axis = read_axis(n, entry);
        const auto size = static_cast<std::int64_t>(axis.values.size());
        values += size;
        if (values > kAxisMax)
            return n.fail(entry.value, "more than " + std::to_string(kAxisMax) +
                                           " values in all axes; an array may be longer");
        product = std::min(product * size, model::kArrayMax + 1);  // Both are below 2^25.
        n.spec.array.sweep.push_back(std::move(axis));
    }
    if (product > model::kArrayMax)
        return n.fail(v,
                      "the product of the axes is over the limit of " +
                          std::to_string(model::kArrayMax) + " elements",
                      {.limit = "1.." + std::to_string(model::kArrayMax)});
    n.spec.array.count = product;
}

void read_parallel(Normaliser& n, const Value& v) {
    const auto parallel = n.integer(v, 1, model::kArrayMax);
    if (!parallel) return;
    if (n.given("array") == nullptr && n.given("sweep") == nullptr)
        return n.fail(v, errors::kJobFieldsConflict,
                      "needs array or sweep: there is nothing to run in parallel");
    n.spec.array.parallel = *parallel;
}

}  // namespace muster::spec
