// The only file that compiles regular expressions.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // Of <regex> itself, with sanitizers.
#endif
#include <algorithm>
#include <regex>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

constexpr std::int64_t kPatternStatesMax = 1000;

/// About how many states an automaton of `pattern` has: `(a{99}){99}` is short and enormous.
std::int64_t pattern_states(std::string_view pattern) {
    struct Level {
        std::int64_t sum = 0;   // Of the atoms before the last one.
        std::int64_t last = 0;  // What a repetition multiplies.
    };
    std::vector<Level> levels(1);
    const auto add = [&](std::int64_t states) {
        Level& level = levels.back();
        level.sum = std::min(level.sum + level.last, kPatternStatesMax + 1);
        level.last = states;
    };
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        if (c == '\\') {
            ++i, add(1);
        } else if (c == '[') {
            while (i + 1 < pattern.size() && pattern[i + 1] != ']')
                i += pattern[i + 1] == '\\' ? 2 : 1;
            ++i, add(1);
        } else if (c == '(') {
            levels.push_back({});
        } else if (c == ')' && levels.size() > 1) {
            const std::int64_t inner = levels.back().sum + levels.back().last;
            levels.pop_back();
            add(inner + 1);
        } else if (c == '{') {
            const std::size_t end = std::min(pattern.find('}', i), pattern.size());
            std::int64_t times = 1;
            for (const std::string_view bound : split(pattern.substr(i + 1, end - i - 1), ','))
                if (const auto number = parse_integer(trim(bound), 0, kPatternStatesMax))
                    times = std::max(times, *number);
            levels.back().last = std::min(levels.back().last * times, kPatternStatesMax + 1);
            i = end;
        } else {
            add(1);
        }
    }
    std::int64_t all = 0;
    for (const Level& level : levels) all += level.sum + level.last;
    return all;
}

}  // namespace

std::string pattern_error(const std::string& pattern) {
    if (pattern_states(pattern) > kPatternStatesMax)
        return "too complex; use fewer or smaller repetitions {…}";
    try {
        const std::regex compiled(pattern, std::regex::ECMAScript);
        return {};
    } catch (const std::regex_error& error) {
        return std::string("not a regular expression: ") + error.what();
    }
}

}  // namespace muster::spec
