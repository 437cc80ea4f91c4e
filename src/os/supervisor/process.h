// Starts one process of a task: its groups, its user, its limits, its terminal or pipes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "os/task_files.h"

namespace muster::os {

struct SpawnAsk {
    const Launch& launch;
    const std::vector<std::string>& argv;
    std::vector<const std::vector<std::string>*> env;  // Later ones win.
    bool as_supervisor = false;   // Keeps user and groups: clean-up and OCI runtimes.
    bool terminal = false;        // in_out[0] becomes its controlling terminal.
    int stdio[3] = {-1, -1, -1};  // -1: /dev/null.
};

struct Spawned {
    pid_t pid = -1;            // -1: not started.
    std::string error;         // "cannot enter workdir /x: No such file or directory"
    bool users_fault = false;  // Command or directory not there for this user.
};

/// Returns once the program runs or has failed to start.
Spawned spawn(const SpawnAsk& ask);

}  // namespace muster::os
