#include "cli/panel.h"

namespace muster::cli {

std::string Panel::erasure() const {
    return shown_ == 0 ? "" : "\r\x1b[J";
}

void Panel::print(std::string_view lines) {
    if (lines.empty()) return;
    if (shown_ > 0) {
        err_.write(erasure());
        err_.flush();
        shown_ = 0;
    }
    out_.write(lines);
    out_.flush();
}

void Panel::note(std::string_view line) {
    out_.flush();
    err_.write(erasure() + std::string(line) + "\n");
    shown_ = 0;
    err_.flush();
}

void Panel::draw(std::vector<std::string> lines) {
    if (!live_) return;
    if (shown_ == lines.size() && lines == lines_) return;
    // Lines are overwritten rather than erased first: nothing flickers. The cursor rests on the
    // first, so that what another program writes meanwhile costs a line and not the order.
    std::string text = "\r";
    for (const std::string& line : lines) text += line + "\x1b[K\n";
    text += "\x1b[J\x1b[" + std::to_string(lines.size()) + "A";
    err_.write(text);
    err_.flush();
    shown_ = lines.size();
    lines_ = std::move(lines);
}

void Panel::close() {
    if (shown_ == 0) return;
    err_.write(erasure());
    err_.flush();
    shown_ = 0;
}

}  // namespace muster::cli
