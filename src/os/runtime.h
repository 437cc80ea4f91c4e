// Runs tasks on this node: ports::Runtime on supervisors, control groups and OCI runtimes.
//
// All state of a task lies in its folder below the state directory, so a new process finds every
// task of an old one again. One thread owns the tasks; slow file work is done beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/quantity.h"
#include "base/result.h"
#include "model/device.h"
#include "model/node.h"
#include "ports/runtime.h"

namespace muster::os {

struct RuntimeOptions {
    std::string state_dir;   // Absolute. Made if it is not there.
    std::string supervisor;  // Path of muster-task.
    std::string node_name;
    std::string address;  // That other nodes reach this one at.
    std::vector<model::Device> devices;
    std::vector<model::NumaNode> numa;                  // Empty: as the kernel says.
    std::vector<std::string> common_files;              // Device nodes that every task may open.
    Bytes log_max{100 << 20};                           // Of one task.
    Bytes kept_logs_max{Bytes{std::int64_t{4} << 30}};  // Of ended tasks, all together.
    Duration kept_logs_for{std::int64_t{7} * 24 * 3600 * 1000};
    std::int64_t pids_max = 32768;  // Of one task.
    Duration pull_timeout{std::int64_t{3600} * 1000};
    std::vector<std::string> insecure_registries;  // "host:port": spoken to without TLS.
    std::string cgroup_root = "/sys/fs/cgroup";
    bool cgroups = true;     // False: as if none could be made.
    bool containers = true;  // False: no OCI runtime is looked for.
};
/// The group above this agent's tasks: "muster-NAME-xxxxxx", by its state folder, since two agents
/// on one machine may have the same name and must never end each other's tasks.
std::string group_name(const RuntimeOptions& options);

class TaskRuntime : public ports::Runtime {
public:
    static Result<std::unique_ptr<TaskRuntime>> open(RuntimeOptions options);
    /// The declaration was loaded anew: for tasks that start from now on.
    virtual void set_devices(std::vector<model::Device> devices) = 0;
    virtual void set_numa(std::vector<model::NumaNode> numa) = 0;
    /// How long a gang's task may run on without an agent (the lease's fence time).
    virtual void set_fence(Duration fence) = 0;
    /// The lease as it is now: without an agent a gang's task stops itself after `absence`, but not
    /// while the lease lasts, which is for `left` (negative: it is over).
    virtual void set_lease(Duration absence, Duration left) = 0;
};

}  // namespace muster::os
