#include "cli/table.h"

#include <algorithm>

#include "base/require.h"
#include "cli/width.h"

namespace muster::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kFlexibleMin = 8;

void pad(std::string& out, std::size_t count) {
    out.append(count, ' ');
}

}  // namespace

Table::Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {
    MUSTER_REQUIRE(!columns_.empty());
    for (const TableColumn& column : columns_) natural_.push_back(display_width(column.head));
}

void Table::add(std::string_view text, Tone tone) {
    Cell cell{static_cast<std::uint32_t>(arena_.size()), 0, 0, tone};
    if (is_printable(text)) {
        arena_ += text;
    } else {
        arena_ += printable(text);
    }
    cell.length = static_cast<std::uint32_t>(arena_.size() - cell.offset);
    const std::size_t width = std::min<std::size_t>(display_width(text_of(cell)), 0xffff);
    cell.width = static_cast<std::uint16_t>(width);
    std::size_t& natural = natural_[cells_.size() % columns_.size()];
    natural = std::max(natural, width);
    cells_.push_back(cell);
}

void Table::clear_rows() {
    arena_.clear();
    cells_.clear();
}

std::vector<std::size_t> Table::widths(const TableStyle& style) const {
    std::vector<std::size_t> widths = natural_;
    if (style.width == 0) return widths;
    std::size_t total = kGap * (columns_.size() - 1);
    for (const std::size_t width : widths) total += width;
    // The widest flexible column gives way first, so that short ones stay whole.
    while (total > style.width) {
        std::size_t widest = widths.size();
        for (std::size_t i = 0; i < widths.size(); ++i) {
            const std::size_t least = std::max(kFlexibleMin, display_width(columns_[i].head));
            if (columns_[i].flexible && widths[i] > least &&
                (widest == widths.size() || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == widths.size()) break;
        --widths[widest];
        --total;
    }
    return widths;
}

std::string Table::render(const TableStyle& style) const {
    const std::vector<std::size_t> widths = this->widths(style);
    std::string out;
    out.reserve(arena_.size() * 2 + 256);
    const auto put_row = [&](auto&& cell_at) {
        std::size_t used = 0, pending = 0;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            auto [text, width, tone] = cell_at(i);
            const bool last = i + 1 == columns_.size();
            std::size_t room = widths[i];
            if (style.width != 0) {
                if (used + pending >= style.width) break;
                room = std::min(room, style.width - used - pending);
            }
            const bool cut = width > room;
            const std::string shorter = cut ? fit(text, room) : std::string();
            const std::size_t shown = cut ? display_width(shorter) : width;
            const std::size_t space = room - shown;
            if (columns_[i].right) pending += space;
            if (shown > 0) {
                pad(out, pending);
                used += pending + shown;
                append_painted(out, cut ? std::string_view(shorter) : text, tone, style.color);
                pending = 0;
            }
            if (!columns_[i].right) pending += space;
            if (!last) pending += kGap;
        }
        out += '\n';
    };
    struct Shown {
        std::string_view text;
        std::size_t width;
        Tone tone;
    };
    if (style.header)
        put_row([&](std::size_t i) {
            return Shown{columns_[i].head, display_width(columns_[i].head), Tone::Dim};
        });
    for (std::size_t at = 0; at + columns_.size() <= cells_.size(); at += columns_.size())
        put_row([&](std::size_t i) {
            const Cell& cell = cells_[at + i];
            return Shown{text_of(cell), cell.width, cell.tone};
        });
    return out;
}

}  // namespace muster::cli
