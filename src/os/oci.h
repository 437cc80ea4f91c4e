// OCI containers: the bundle's configuration, written by us, and the runtime that was found to
// work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "model/device.h"
#include "model/job_spec.h"
#include "os/images.h"
#include "os/user.h"

namespace muster::os {

/// Where things of the task are inside a container.
namespace inside {
constexpr const char* kInit = "/muster/init";
constexpr const char* kRun = "/muster/run";
constexpr const char* kScratch = "/muster/scratch";
}  // namespace inside

struct BundleAsk {
    const model::JobSpec& spec;
    const Image& image;
    UserFacts user;
    std::string folder;      // Of the task, on the node.
    std::string supervisor;  // muster-task: it is also the container's first process.
    std::vector<std::string> device_files;
    Bytes shm;                   // 0: 64 MiB, as runtimes do.
    std::string checkpoint_dir;  // Absolute, shown at the same path; "": none.
    std::string cgroups_path;    // For a runtime that insists on groups of its own; "": none.
};
/// config.json: own mount, pid and ipc namespaces, the host's network, no new privileges, few
/// capabilities (none for a user), a seccomp filter, and the devices of the task alone.
std::string bundle_config(const BundleAsk& ask);

/// How to call the runtime on this node.
struct OciRuntime {
    std::string name;  // "crun 1.8.1"; "": none works.
    std::string why_not;
    std::vector<std::string> command;  // Up to the verb: program, wrapper, global options.
    bool own_groups = false;           // Makes control groups of its own below cgroups_path.
    bool works() const { return !name.empty(); }
};
/// Runs a container of `supervisor` in `work_dir` with crun, else runc, and takes the first that
/// works.
OciRuntime probe_runtime(const std::string& supervisor, const std::string& work_dir,
                         const std::string& cgroup_root, const std::string& groups_name);

/// argv for Launch::container and Launch::enter.
std::vector<std::string> container_command(const OciRuntime& runtime, const std::string& root,
                                           const std::string& bundle);
std::vector<std::string> enter_command(const OciRuntime& runtime, const std::string& root,
                                       const UserFacts& user, const std::string& workdir);

}  // namespace muster::os
