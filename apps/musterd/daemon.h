// What every daemon of ours does the same way: signals, the word to systemd, errors to people.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::apps {

/// Blocks SIGTERM, SIGINT and SIGHUP in this thread and all that it starts. Call first in main().
void block_signals();
/// As many open files as the hard limit allows: links of nodes and streams of clients are files,
/// and the usual soft limit is 1024. Call before any thread starts.
void raise_open_files();
/// Sleeps until SIGTERM or SIGINT; SIGHUP calls `reload`, or ends it too if there is none.
void wait_for_stop(const std::function<void()>& reload);
/// Tells systemd, if it asked (NOTIFY_SOCKET): "READY=1".
void notify_ready();
/// "error: …", "  cause: …", "  fix: …" on standard error; returns the exit code of its kind.
int report(const Error& error);

/// Of a configuration file; "" if it is missing and nobody asked for it. Empty: it was told why.
std::optional<std::string> config_text(const std::string& file, bool asked_for);
bool tell_problems(const std::vector<std::string>& problems);  // True: there are none.
/// `parse`: a room's parse_config. False: what is wrong has been told, all of it.
template <class Parse, class Config>
bool read_config(const std::string& file, bool asked_for, Parse parse, Config& config) {
    const auto text = config_text(file, asked_for);
    if (!text) return false;
    auto read = parse(*text, file);
    config = std::move(read.config);
    return tell_problems(read.problems);
}

}  // namespace muster::apps
