// This terminal joined to a process in a task: raw mode, window size, both streams, exit code.
#pragma once

#include <memory>

#include "cli/app.h"
#include "net/http_client.h"

namespace muster::cli {

struct SessionOptions {
    bool terminal = false;  // Raw mode, and Ctrl-P Ctrl-Q leaves.
    bool send_input = true;
    bool signals_detach = false;  // An interrupt leaves instead of being sent (attach without tty).
};

/// Runs until the other end says how it exited; that code. 125 when the connection broke. The
/// terminal is as before afterwards, whatever happens.
int run_session(App& app, std::unique_ptr<net::RawPipe> pipe, const SessionOptions& options);

}  // namespace muster::cli
