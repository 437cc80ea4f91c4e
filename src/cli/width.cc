#include "cli/width.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "base/utf8.h"

namespace muster::cli {
namespace {

struct Range {
    char32_t first, last;
};

#include "cli/width_table.inc"

bool within(std::span<const Range> ranges, char32_t point) {
    const auto* it = std::upper_bound(ranges.data(), ranges.data() + ranges.size(), point,
                                      [](char32_t p, const Range& r) { return p < r.first; });
    return it != ranges.data() && point <= (it - 1)->last;
}

bool is_plain_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

bool is_control(char32_t point) {
    return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
           (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

int width_of(char32_t point) {
    if (point < 0x300) return 1;
    if (within(kZeroWidth, point)) return 0;
    if (point < 0x1100) return 1;
    return within(kDoubleWidth, point) ? 2 : 1;
}

std::size_t display_width(std::string_view text) {
    if (is_plain_ascii(text)) return text.size();
    std::size_t width = 0;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        width += length == 0 ? 1 : static_cast<std::size_t>(width_of(utf8_decode(text, length)));
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return width;
}

std::string fit(std::string_view text, std::size_t width) {
    if (display_width(text) <= width) return std::string(text);
    if (width == 0) return {};
    std::size_t used = 0, taken = 0;
    while (taken < text.size()) {
        const std::string_view rest = text.substr(taken);
        const std::size_t length = utf8_length(rest);
        const int w = length == 0 ? 1 : width_of(utf8_decode(rest, length));
        if (used + static_cast<std::size_t>(w) > width - 1) break;
        used += static_cast<std::size_t>(w);
        taken += std::max<std::size_t>(length, 1);
    }
    return std::string(text.substr(0, taken)) + "…";
}

std::string fit_painted(std::string_view text, std::size_t width) {
    std::string out;
    std::size_t used = 0;
    bool painted = false;
    while (!text.empty()) {
        if (text.starts_with("\x1b[")) {
            const std::size_t end = std::min(text.find('m'), text.size() - 1);
            out += text.substr(0, end + 1);
            painted = text.substr(0, end + 1) != "\x1b[0m";
            text.remove_prefix(end + 1);
            continue;
        }
        const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
        const std::size_t columns = display_width(text.substr(0, length));
        // The last column is kept for the mark unless this is the end.
        const bool last = text.size() == length || text.substr(length) == "\x1b[0m";
        if (used + columns > width - (last ? 0 : 1) && used + columns + 1 > width) {
            out += last && used + columns <= width ? std::string(text.substr(0, length)) : "…";
            if (painted) out += "\x1b[0m";
            return out;
        }
        out += text.substr(0, length);
        used += columns;
        text.remove_prefix(length);
    }
    return out;
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
    std::string out;
    std::size_t used = indent;
    for (const std::string_view word : split(text, ' ')) {
        const std::size_t length = display_width(word);
        if (used > indent && used + 1 + length > width) {
            out += '\n';
            out.append(indent, ' ');
            used = indent;
        } else if (used > indent) {
            out += ' ';
            ++used;
        }
        out += word;
        used += length;
    }
    return out;
}

bool is_printable(std::string_view text) {
    if (is_plain_ascii(text)) return true;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0 || is_control(utf8_decode(text, length))) return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string printable(std::string_view text) {
    if (is_printable(text)) return std::string(text);
    std::string out;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char32_t point = length == 0 ? 0xfffd : utf8_decode(text, length);
        if (length == 0) {
            out += "\xef\xbf\xbd";
        } else if (point == '\n' || point == '\t' || point == '\r') {
            out += ' ';
        } else if (is_control(point)) {
            out += "·";
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

}  // namespace muster::cli
