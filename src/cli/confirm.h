// Questions to the person at the terminal, and only there.
#pragma once

#include <string>

#include "cli/app.h"

namespace muster::cli {

/// True with -y or after "y". Without a terminal nothing is asked: it is refused, with a note.
bool confirm(App& app, const Invocation& invocation, const std::string& question);
/// A line without echo, from the terminal; from stdin as it is when that is no terminal.
std::string read_secret(App& app, const std::string& prompt);

}  // namespace muster::cli
