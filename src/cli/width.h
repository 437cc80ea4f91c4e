// How many terminal columns text takes, so that tables with Chinese, combining or emoji text align.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::cli {

/// 0 for combining and invisible characters, 2 for East Asian wide ones and emoji, else 1.
int width_of(char32_t point);
/// Of UTF-8 text without escape sequences; a byte that is not UTF-8 counts 1.
std::size_t display_width(std::string_view text);
/// At most `width` columns: what does not fit gives way to "…". A wide character is never halved.
std::string fit(std::string_view text, std::size_t width);
/// `text` broken at spaces; every line after the first is indented, which the first is already.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);
/// As fit(), for text with colours (CSI … m), which take no room and are closed when cut.
std::string fit_painted(std::string_view text, std::size_t width);
/// Control characters (a name may hold an escape sequence) become "·", bad UTF-8 U+FFFD; line
/// breaks and tabs become spaces.
std::string printable(std::string_view text);
/// True when printable() would return `text` itself.
bool is_printable(std::string_view text);

}  // namespace muster::cli
