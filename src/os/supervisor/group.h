// All processes of a task, found two ways: by control group where there is one, and as the
// supervisor's descendants (it is a subreaper, so none can leave it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "os/task_files.h"

namespace muster::os {

class ProcessGroup {
public:
    explicit ProcessGroup(const std::vector<GroupLaunch>& groups) : groups_(groups) {}

    /// Every living process of the task, without the supervisor.
    std::vector<pid_t> processes() const;
    /// Kills all at once: cgroup.kill where there is one, else each.
    void kill_all() const;
    /// As kill_all(), but by control group alone: for whoever is not the supervisor.
    void kill_groups() const;
    /// No process is left in the control groups (own ones), nor a child.
    bool empty() const;

    /// These processes and the supervisor, from now on. Threads that were given other CPUs than the
    /// supervisor has (by their own program) keep them.
    void run_on(std::string_view cpus) const;

    bool oom_killed() const;
    std::int64_t peak_memory() const;  // 0: not known.
    std::int64_t cpu_ms() const;       // -1: not known.
    /// False while something still holds one.
    bool remove() const;

private:
    const std::vector<GroupLaunch>& groups_;
};

/// This process, and so all that it starts.
void run_self_on(std::string_view cpus);

/// What keeps a killed process from ending: "pid 71 (python3) state D in nv_wait, file /dev/x0".
std::string describe_stuck(pid_t pid);

}  // namespace muster::os
