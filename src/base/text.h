// Small text helpers shared by messages and parsers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The candidate nearest to `word` by edit distance with transpositions, if near enough to be a
/// slip of the hand (a third of its length, at least one); else "".
std::string nearest(std::string_view word, std::span<const std::string> candidates);
std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);

}  // namespace muster
