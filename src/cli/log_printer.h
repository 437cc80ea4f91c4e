// Output of ranks as it comes, to whole lines with a prefix that tells the rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::cli {

class LogPrinter {
public:
    struct Style {
        bool prefix = false;  // "[2] " before each line.
        bool color = false;
        bool by_line = true;    // False: bytes go through as they come.
        std::size_t ranks = 1;  // For the width of the prefix.
    };
    explicit LogPrinter(Style style) : style_(style) {}
    void set_ranks(std::size_t ranks);

    /// What can be printed now.
    std::string take(std::int64_t rank, std::string_view bytes);
    /// Unfinished lines, each with a line break.
    std::string rest();

private:
    std::string line_of(std::int64_t rank, std::string_view line) const;
    Style style_;
    std::map<std::int64_t, std::string> open_;
};

}  // namespace muster::cli
