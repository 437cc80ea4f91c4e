#include "cli/log_printer.h"

#include "cli/terminal.h"

namespace muster::cli {
namespace {

/// A line without end is cut here, so that one rank cannot hold memory.
constexpr std::size_t kLineMax = 64 * 1024;

/// Bars that redraw themselves with "\r": the last drawing is what counts.
std::string_view last_drawing(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t at = line.rfind('\r');
    return at == std::string_view::npos ? line : line.substr(at + 1);
}

}  // namespace

void LogPrinter::set_ranks(std::size_t ranks) {
    style_.ranks = ranks;
    style_.prefix = ranks > 1;
    if (style_.prefix) style_.by_line = true;
}

std::string LogPrinter::line_of(std::int64_t rank, std::string_view line) const {
    std::string out;
    if (style_.prefix) {
        std::string head = std::to_string(rank);
        const std::size_t width = std::to_string(style_.ranks == 0 ? 0 : style_.ranks - 1).size();
        if (head.size() < width) head.insert(0, width - head.size(), ' ');
        out = paint_rank("[" + head + "]", rank, style_.color) + " ";
    }
    out += last_drawing(line);
    out += '\n';
    return out;
}

std::string LogPrinter::take(std::int64_t rank, std::string_view bytes) {
    if (!style_.by_line) return std::string(bytes);
    std::string out;
    std::string& open = open_[rank];
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        if (end == std::string_view::npos) {
            open += bytes;
            if (open.size() > kLineMax) {
                out += line_of(rank, open);
                open.clear();
            }
            break;
        }
        if (open.empty()) {
            out += line_of(rank, bytes.substr(0, end));
        } else {
            open += bytes.substr(0, end);
            out += line_of(rank, open);
            open.clear();
        }
        bytes.remove_prefix(end + 1);
    }
    return out;
}

std::string LogPrinter::rest() {
    std::string out;
    for (auto& [rank, open] : open_) {
        if (!open.empty()) out += line_of(rank, open);
        open.clear();
    }
    return out;
}

}  // namespace muster::cli
