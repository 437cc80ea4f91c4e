// What a task finds in its environment: the names that frameworks read themselves, and MUSTER_*.
//
// Pure: everything that is looked up on the node comes in as an argument.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/device.h"
#include "model/job_spec.h"
#include "os/user.h"
#include "ports/runtime.h"

namespace muster::os {

struct EnvironmentAsk {
    const protocol::StartTask& order;
    const model::JobSpec& spec;
    UserFacts user;
    std::vector<model::Device> devices;  // Those of the order, in its order.
    std::string interface;               // That carries the node's address; "": not known.
    std::string cpus;                    // Bound to it; "": it floats.
    std::set<std::string> interfaces;    // Of the devices' nics, those that are interfaces.
    std::string shell;                   // "/bin/bash"
    // As the task sees them (a container has paths of its own).
    std::string socket, notice_file, topology_file, host_file, scratch;
    std::string machine_file;             // As host_file, in the form of MPICH and Intel MPI.
    std::string launch_file, launch_bin;  // Of a gang of `launch: mpi`; "": none is needed.
    std::string checkpoint_dir, latest_checkpoint;  // "": none.
};

/// "NAME=VALUE"; names are unique, and what the job's own `env` sets wins.
std::vector<std::string> task_environment(const EnvironmentAsk& ask);
/// Of one process of `launch: per-gpu`; empty for other launches.
std::vector<std::string> rank_environment(const EnvironmentAsk& ask, int local_rank);
/// What is known only at the barrier's end: where rank 0 is.
std::vector<std::string> master_environment(const EnvironmentAsk& ask, const std::string& address,
                                            int port);

/// Processes that `run` is started as on this node.
int local_ranks(const protocol::StartTask& order, const model::JobSpec& spec);
/// torchrun with a range of nodes: it needs a rendezvous.
bool is_elastic(const protocol::StartTask& order, const model::JobSpec& spec);
/// `launch: mpi` over several nodes: there is more to it than variables.
bool is_mpi_gang(const protocol::StartTask& order, const model::JobSpec& spec);
/// False on the nodes that mpirun starts its processes on by itself.
bool runs_command(const protocol::StartTask& order, const model::JobSpec& spec);
/// "host slots=N", every host once.
std::string host_file(const protocol::StartTask& order);
/// "host:N", every host once.
std::string machine_file(const protocol::StartTask& order);
/// The file of MUSTER_TOPOLOGY_FILE (docs/agent.md): where the gang stands, and what is near what
/// on this node.
std::string topology_json(const EnvironmentAsk& ask);

}  // namespace muster::os
