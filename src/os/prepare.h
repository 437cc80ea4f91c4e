// Turns an order into what its supervisor is to run: folders, environment, user, command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "model/job_spec.h"
#include "os/context.h"
#include "os/task_files.h"
#include "os/user.h"
#include "ports/runtime.h"

namespace muster::os {

struct Refused {
    model::Cause cause = model::Cause::Launch;
    std::string message;
    bool permanent = false;  // As in model::TaskEnd.
};
struct Prepared {
    Launch launch;
    UserFacts user;
    std::vector<model::Device> devices;
    std::vector<std::string> master;  // Environment of the go file; empty with a barrier.
    std::string checkpoint_dir;       // As the task sees it; "": none.
    std::string checkpoint_dir_on_node;
    std::string latest_checkpoint;
    std::int64_t checkpoint_step = -1;
};

/// What of the context preparing may read; a copy, since it may happen on another thread.
struct PrepareAsk {
    protocol::StartTask order;
    model::JobSpec spec;
    std::string folder;
    std::vector<model::Device> devices;
    std::string shell, interface;
    bool root = false;
    std::int64_t log_bytes_max = 0;
    int port = 0;      // For a task without barrier.
    std::string cpus;  // As Launch::cpus.
    bool cpus_bound = false;
    Duration fence;
    bool reset_oom_score = false;
    std::shared_ptr<UserBook> users;
    // For a container:
    std::optional<Image> image;
    OciRuntime oci;
    std::string supervisor, oci_root, cgroups_path;
    std::vector<std::string> common_files;
};
/// Makes what lies in the folder besides the order, and the launch file's content.
std::variant<Prepared, Refused> prepare(const PrepareAsk& ask);
/// Where the job's checkpoints lie, as its task sees it and as the node does; "": nowhere.
std::string checkpoint_folder(const PrepareAsk& ask);
std::string path_on_node(const PrepareAsk& ask, const std::string& seen);
/// What the go file says, once rank 0's place is known.
std::string go_file(const PrepareAsk& ask, const std::string& address, int port);

/// Where the gang's nodes take commands of each other, in a file that only the job's user reads.
Status write_peers(const PrepareAsk& ask, const std::vector<protocol::LaunchPoint>& points);

/// argv that runs `script` as a shell would; a plain command needs no shell.
std::vector<std::string> command_of(const std::string& script, const std::string& shell);

}  // namespace muster::os
