// What is well-formed UTF-8, by the table of RFC 3629: no overlong form, no surrogate.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

/// The length in bytes (1-4) of the well-formed character that `text` starts with, or 0.
inline std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const auto tail = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    if (text.empty()) return 0;
    const unsigned a = byte(0), b = byte(1);
    if (a < 0x80) return 1;
    if (a >= 0xc2 && a <= 0xdf) return tail(1) ? 2 : 0;
    if (a >= 0xe0 && a <= 0xef) {
        if (!tail(1) || !tail(2) || (a == 0xe0 && b < 0xa0) || (a == 0xed && b > 0x9f)) return 0;
        return 3;
    }
    if (a >= 0xf0 && a <= 0xf4) {
        if (!tail(1) || !tail(2) || !tail(3) || (a == 0xf0 && b < 0x90) || (a == 0xf4 && b > 0x8f))
            return 0;
        return 4;
    }
    return 0;
}

/// The code point of the first character of `text`, of the length that utf8_length() told.
inline char32_t utf8_decode(std::string_view text, std::size_t length) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (length == 1) return byte(0);
    char32_t point = byte(0) & (0x7fu >> length);
    for (std::size_t i = 1; i < length; ++i) point = (point << 6) | (byte(i) & 0x3f);
    return point;
}

inline bool utf8_valid(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

}  // namespace muster
