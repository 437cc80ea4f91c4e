// What every task of this node shares: options, groups, threads, and the way up.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "os/cgroups.h"
#include "os/cpu_book.h"
#include "os/event_loop.h"
#include "os/images.h"
#include "os/kept_logs.h"
#include "os/oci.h"
#include "os/runtime.h"
#include "os/spare_folders.h"
#include "os/supervisor_link.h"
#include "os/user.h"

namespace muster::os {

/// How long a gang's task may be without an agent, and until when the lease lasts in any case.
struct LeaseTold {
    Duration absence;
    std::int64_t until_ms = 0;  // steady_ms()
};

struct Context {
    RuntimeOptions options;
    std::string tasks_dir, logs_dir;
    Cgroups cgroups = Cgroups::none("");
    bool root = false;
    std::string boot_id;
    std::string shell;      // "/bin/bash", or "/bin/sh" where there is none.
    std::string interface;  // That has the node's address; "": not found.
    EventLoop* loop = nullptr;
    WorkerPool* slow = nullptr;
    Spawner* spawner = nullptr;
    SpareFolders* spares = nullptr;
    SilentLogs* silent = nullptr;
    Images* images = nullptr;
    OciRuntime oci;
    /// Loop's thread only.
    std::function<void(protocol::AgentMessage)> tell;
    std::function<int()> take_port;  // A port that is free on this node, not given to another.
    std::vector<model::Device> devices;
    CpuBook* cpus = nullptr;
    std::shared_ptr<UserBook> users = std::make_shared<UserBook>();
    bool reset_oom_score = false;
    Duration fence{protocol::LeaseRules{}.fence};
    std::optional<LeaseTold> lease;  // None: not heard of.
};

std::vector<model::Device> find_devices(const std::vector<model::Device>& known,
                                        const std::vector<std::string>& ids);
/// Of these devices' nics those that are network interfaces of the kernel, not RDMA devices.
std::set<std::string> interfaces_among(const std::vector<model::Device>& devices);
/// Of the interface that has `address`; "" when none does.
std::string interface_of(const std::string& address);

}  // namespace muster::os
