// A few lines at the foot of a terminal that are redrawn in place, with text scrolling above them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"

namespace muster::cli {

/// The panel lives on `err`; text above it may go to `out` (the same terminal).
class Panel {
public:
    Panel(Output& out, Output& err, bool live) : out_(out), err_(err), live_(live) {}
    ~Panel() { close(); }
    Panel(const Panel&) = delete;
    Panel& operator=(const Panel&) = delete;

    bool live() const { return live_; }
    /// Whole lines of a job's output, above the panel.
    void print(std::string_view lines);
    /// A line for people, above the panel.
    void note(std::string_view line);
    /// Lines must be narrower than the terminal, and fewer than its rows.
    void draw(std::vector<std::string> lines);
    /// Takes the panel off the screen.
    void close();

private:
    std::string erasure() const;
    Output& out_;
    Output& err_;
    bool live_;
    std::size_t shown_ = 0;
    std::vector<std::string> lines_;
};

}  // namespace muster::cli
