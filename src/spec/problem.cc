#include "spec/problem.h"

#include <algorithm>

#include "base/error_codes.h"
#include "base/utf8.h"
#include "spec/place.h"

namespace muster::spec {
namespace {

constexpr char32_t kReplacement = 0xfffd;

struct Range {
    char32_t first, last;
};
bool within(char32_t point, std::initializer_list<Range> ranges) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](Range r) { return r.first <= point && point <= r.last; });
}
/// Columns of a terminal, by Unicode's East Asian Width and general category.
int columns(char32_t point) {
    if (within(point, {{0x300, 0x36f},
                       {0x200b, 0x200f},
                       {0x20d0, 0x20ff},
                       {0xfe00, 0xfe0f},
                       {0xfe20, 0xfe2f},
                       {0x1ab0, 0x1aff},
                       {0x1dc0, 0x1dff},
                       {0xe0100, 0xe01ef}}))
        return 0;
    if (within(point, {{0x1100, 0x115f},
                       {0x2e80, 0x303e},
                       {0x3041, 0x33ff},
                       {0x3400, 0x4dbf},
                       {0x4e00, 0x9fff},
                       {0xa000, 0xa4cf},
                       {0xa960, 0xa97f},
                       {0xac00, 0xd7a3},
                       {0xf900, 0xfaff},
                       {0xfe30, 0xfe6f},
                       {0xff00, 0xff60},
                       {0xffe0, 0xffe6},
                       {0x1f300, 0x1f64f},
                       {0x1f680, 0x1f6ff},
                       {0x1f900, 0x1f9ff},
                       {0x20000, 0x3fffd}}))
        return 2;
    return 1;
}

/// The next character of `text`, which must not be empty; one bad byte is one character.
char32_t take_character(std::string_view& text) {
    const std::size_t length = utf8_length(text);
    const char32_t point = length == 0 ? kReplacement : utf8_decode(text, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
    return point;
}
void append(std::string& out, std::string_view text, char32_t point) {
    const bool control = (point < 0x20 && point != '\t') || (point >= 0x7f && point < 0xa0);
    if (control || point == kReplacement)
        out += "\xef\xbf\xbd";
    else
        out += text;
}

}  // namespace

Problem problem_at(const Source& source, std::uint32_t at) {
    Problem out;
    if (source.is_flag) {
        out.flag = source.name;
        return out;
    }
    out.file = source.name;
    const std::string_view text = source.text;
    const std::size_t offset = std::min<std::size_t>(at, text.size());
    const std::size_t before = text.substr(0, offset).rfind('\n');
    const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
    out.line = 1 + static_cast<int>(std::count(
                       text.begin(), text.begin() + static_cast<std::ptrdiff_t>(start), '\n'));
    std::string_view line = text.substr(start, text.find('\n', start) - start);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);

    // Only a window of a very long line is shown.
    constexpr std::size_t kBefore = 100, kShown = 160;
    std::size_t left = offset - start, skipped = 0;
    for (std::string_view rest = line; rest.size() > line.size() - std::min(left, line.size());) {
        const std::size_t size = rest.size();
        take_character(rest);
        ++out.column;
        if (left - (line.size() - size) > kBefore)
            skipped = line.size() - rest.size(), ++out.skipped;
    }
    ++out.column;
    std::string_view shown = line.substr(skipped);
    for (std::size_t n = 0; n < kShown && !shown.empty(); ++n) {
        const std::string_view whole = shown;
        const char32_t point = take_character(shown);
        append(out.source, whole.substr(0, whole.size() - shown.size()), point);
    }
    return out;
}

Problem problem_in(const Source& source, std::size_t at, int number, std::string message) {
    Problem problem = problem_at(source, static_cast<std::uint32_t>(at));
    problem.number = number;
    problem.message = std::move(message);
    return problem;
}

std::optional<Problem> check_text(const Source& source, std::size_t max, std::string_view what) {
    const std::string_view text = source.text;
    if (text.size() > max) {
        Problem problem;
        (source.is_flag ? problem.flag : problem.file) = source.name;
        problem.number = errors::kJobTooLarge;
        problem.message = std::to_string(text.size()) + " bytes, over the limit of " +
                          std::to_string(max) + " for " + std::string(what);
        return problem;
    }
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte != 0 && byte < 0x80) {
            ++i;
            continue;
        }
        if (byte == 0)
            return problem_in(source, i, errors::kJobNotText,
                              "byte " + std::to_string(i) + " is NUL: this is a binary file, not " +
                                  std::string(what) + "'s text");
        const std::size_t length = utf8_length(text.substr(i));
        if (length == 0) {
            static constexpr char kHex[] = "0123456789abcdef";
            return problem_in(source, i, errors::kJobNotText,
                              "byte " + std::to_string(i) + " (0x" + kHex[byte >> 4] +
                                  kHex[byte & 15] + ") is not UTF-8; save the file as UTF-8");
        }
        i += length;
    }
    return std::nullopt;
}

std::string render_line(const Problem& problem) {
    if (!problem.flag.empty()) return problem.flag + ": " + problem.message;
    std::string place = problem.file;
    if (problem.line > 0) {
        if (!place.empty()) place += ':';
        place += std::to_string(problem.line) + ":" + std::to_string(problem.column);
    }
    return (place.empty() ? "" : place + ": ") + "error: " + problem.message;
}

std::string render(const Problem& problem) {
    std::string out = render_line(problem) + "\n";
    if (problem.source.empty() || problem.line == 0) return out;
    out += "    " + problem.source + "\n    ";
    std::string_view rest = problem.source;
    for (int i = problem.skipped + 1; i < problem.column && !rest.empty(); ++i) {
        const char32_t point = take_character(rest);
        if (point == '\t')
            out += '\t';
        else
            out.append(static_cast<std::size_t>(columns(point)), ' ');
    }
    return out + "^\n";
}

std::string render(std::span<const Problem> problems) {
    std::string out;
    for (const Problem& problem : problems) out += render(problem);
    return out;
}

Error to_error(std::span<const Problem> problems) {
    if (problems.empty()) return numbered(errors::kJobInvalid, "the job is not valid");
    const bool own = problems.size() == 1 && problems[0].number != 0;
    return to_error(problems, own ? problems[0].number : errors::kJobInvalid);
}

Error to_error(std::span<const Problem> problems, int number) {
    if (problems.empty()) return numbered(number, "not valid");
    std::string message = problems[0].message;
    if (problems.size() > 1) message += " (and " + std::to_string(problems.size() - 1) + " more)";
    Error error = numbered(number, std::move(message));
    for (const Problem& problem : problems) {
        if (!error.cause.empty()) error.cause += '\n';
        error.cause += render_line(problem);
    }
    return error;
}

}  // namespace muster::spec
