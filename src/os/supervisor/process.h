// Starts one process of a task: its groups, its user, its limits, its terminal or pipes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "os/task_files.h"

namespace muster::os {

enum class SpawnAs : std::uint8_t {
    User,       // In the task's groups, as its user, in its directory.
    Container,  // An OCI runtime: in the task's groups, as the supervisor; what is to run inside
                // travels as records on descriptor 3.
    Helper,     // Clean-up: as the supervisor, in no group of the task.
};

struct SpawnAsk {
    const Launch& launch;
    const std::vector<std::string>& argv;
    std::vector<const std::vector<std::string>*> env;  // Later ones win.
    SpawnAs as = SpawnAs::User;
    const std::vector<std::string>* inside = nullptr;  // Container: argv inside.
    bool terminal = false;                             // stdio[0] becomes its controlling terminal.
    int stdio[3] = {-1, -1, -1};                       // -1: /dev/null.
};

struct Spawned {
    pid_t pid = -1;            // -1: not started.
    std::string error;         // "cannot enter workdir /x: No such file or directory"
    bool users_fault = false;  // Command or directory not there for this user.
    int exec_code = 0;         // As shells have it: 127 no such program, 126 cannot be run.
};

/// Of this process, and so of the programs that it starts: none is ignored.
void reset_signals();

/// Returns once the program runs or has failed to start.
Spawned spawn(const SpawnAsk& ask);

/// An execve() with the search along PATH and the scripts without a "#!" that a shell would run.
/// It owns all that it needs, for children that share their parent's memory.
class ProgramStart {
public:
    void set_env(const std::vector<std::string>& env) { env_ = env; }
    /// Replaces a variable of the same name.
    void set(std::string variable);
    const std::vector<std::string>& env() const { return env_; }
    std::string_view path() const;
    /// Returns the errno only if it failed.
    int run(const std::vector<std::string>& argv);

private:
    std::vector<std::string> env_;
    std::vector<char*> argv_, envp_;
    std::string last_, candidate_;
};

}  // namespace muster::os
