// Aligned tables without borders: header in capitals, columns by display width, cut to the
// terminal with "…", whole when piped. One arena for all cells, one string out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"

namespace muster::cli {

struct TableColumn {
    std::string head;
    bool right = false;     // Numbers.
    bool flexible = false;  // Gives way first when the terminal is narrow.
};

struct TableStyle {
    std::size_t width = 0;  // Of the terminal; 0: unbounded.
    bool header = true;
    bool color = false;
};

class Table {
public:
    explicit Table(std::vector<TableColumn> columns);
    /// Cells come row by row, in the order of the columns; control characters are made harmless.
    void add(std::string_view text, Tone tone = Tone::Plain);
    /// Forgets the rows, but not how wide the columns have become.
    void clear_rows();
    std::size_t rows() const { return cells_.size() / columns_.size(); }
    /// Lines end without trailing spaces. "" when there are no rows and no header is wanted.
    std::string render(const TableStyle& style) const;

private:
    struct Cell {
        std::uint32_t offset, length;
        std::uint16_t width;
        Tone tone;
    };
    std::string_view text_of(const Cell& cell) const {
        return std::string_view(arena_).substr(cell.offset, cell.length);
    }
    std::vector<std::size_t> widths(const TableStyle& style) const;

    std::vector<TableColumn> columns_;
    std::vector<std::size_t> natural_;
    std::string arena_;
    std::vector<Cell> cells_;
};

}  // namespace muster::cli
