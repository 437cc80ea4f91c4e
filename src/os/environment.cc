#include "os/environment.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace muster::os {
namespace {

using model::Launch;
using protocol::GangMember;

constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The members that form one world with this task: its role, or the whole gang if it has one role.
struct World {
    std::vector<GangMember> members;
    std::uint32_t node = 0;        // This node's place among them.
    std::uint32_t first_rank = 0;  // Global rank of this node's first process.
    std::uint32_t size = 0;        // Processes.
};

const GangMember& self(const protocol::StartTask& order) {
    return (*order.gang)[order.key.rank];
}

World world_of(const protocol::StartTask& order) {
    World world;
    if (!order.gang || order.key.rank >= order.gang->size())
        return {.members = {GangMember{.name = "localhost", .address = "127.0.0.1"}}, .size = 1};
    for (std::uint32_t rank = 0; rank < order.gang->size(); ++rank) {
        const GangMember& member = (*order.gang)[rank];
        if (member.role != self(order).role) continue;
        if (rank == order.key.rank) {
            world.node = static_cast<std::uint32_t>(world.members.size());
            world.first_rank = world.size;
        }
        world.size += std::max<std::uint32_t>(member.slots, 1);
        world.members.push_back(member);
    }
    return world;
}

class Variables {
public:
    void set(std::string_view name, std::string_view value) {
        std::string text(name);
        text.append("=").append(value);
        for (std::string& old : all_)
            if (old.size() > name.size() && old[name.size()] == '=' && old.starts_with(name)) {
                old = std::move(text);
                return;
            }
        all_.push_back(std::move(text));
    }
    void set(std::string_view name, std::int64_t value) { set(name, std::to_string(value)); }
    void set_if(std::string_view name, std::string_view value) {
        if (!value.empty()) set(name, value);
    }
    std::vector<std::string> take() && { return std::move(all_); }

private:
    std::vector<std::string> all_;
};

std::string joined(const std::vector<GangMember>& members, std::string GangMember::*what) {
    std::vector<std::string> parts;
    for (const GangMember& member : members) parts.push_back(member.*what);
    return join(parts, ",");
}

void set_user(Variables& out, const EnvironmentAsk& ask) {
    out.set("PATH", kPath);
    out.set_if("HOME", ask.user.home);
    out.set("USER", ask.user.name);
    out.set("LOGNAME", ask.user.name);
    out.set_if("SHELL", ask.shell);
    if (ask.spec.pty) out.set("TERM", "xterm-256color");
}

void set_identity(Variables& out, const EnvironmentAsk& ask) {
    const protocol::StartTask& order = ask.order;
    const model::Role& role = ask.spec.roles[order.role];
    out.set("MUSTER_JOB_ID", static_cast<std::int64_t>(order.key.job.value));
    out.set("MUSTER_JOB_NAME", order.job_name);
    out.set("MUSTER_QUEUE", order.queue);
    out.set("MUSTER_ATTEMPT", order.key.epoch);
    out.set("MUSTER_RESTART_COUNT", order.restart_count);
    out.set("MUSTER_ROLE", role.name);
    out.set("MUSTER_ROLE_INDEX", order.role_index);
    out.set("MUSTER_NODE_RANK", order.key.rank);
    const protocol::Gang gang = order.gang ? *order.gang : protocol::Gang{};
    out.set("MUSTER_NUM_NODES", static_cast<std::int64_t>(std::max<std::size_t>(gang.size(), 1)));
    out.set("MUSTER_NODE_HOSTS", joined(gang, &GangMember::name));
    out.set("MUSTER_NODE_IPS", joined(gang, &GangMember::address));
    out.set("MUSTER_GPUS_PER_NODE", static_cast<std::int64_t>(order.devices.size()));
    out.set("MUSTER_HOSTFILE", ask.host_file);
    out.set("MUSTER_TOPOLOGY_FILE", ask.topology_file);
    out.set("MUSTER_SOCKET", ask.socket);
    out.set("MUSTER_PREEMPT_FILE", ask.notice_file);
    out.set_if("MUSTER_SCRATCH", ask.scratch);
    if (order.deadline.ms > 0) out.set("MUSTER_DEADLINE", order.deadline.ms / 1000);
    out.set_if("MUSTER_CHECKPOINT_DIR", ask.checkpoint_dir);
    out.set_if("MUSTER_LATEST_CHECKPOINT", ask.latest_checkpoint);
    if (ask.spec.checkpoint.interval.ms > 0)
        out.set("MUSTER_CHECKPOINT_INTERVAL", ask.spec.checkpoint.interval.ms / 1000);
    if (ask.spec.array.count <= 0) return;
    const model::Array& array = ask.spec.array;
    out.set("MUSTER_ARRAY_JOB_ID", order.array_job);
    out.set("MUSTER_ARRAY_INDEX", array.first + order.array_element * array.step);
    out.set("MUSTER_ARRAY_COUNT", array.count);
    for (const model::EnvVar& variable : model::sweep_values(array, order.array_element))
        out.set(variable.name, variable.value);
}

/// By vendor, as its own libraries read it. Absolute ids, never indexes (F40).
void set_devices(Variables& out, const EnvironmentAsk& ask) {
    std::vector<std::string> nvidia, amd, ascend, all;
    for (const model::Device& device : ask.devices) {
        all.push_back(device.id);
        if (device.vendor == "nvidia") nvidia.push_back(device.id);
        if (device.vendor == "amd") amd.push_back(device.id);
        if (device.vendor == "huawei") ascend.push_back(device.id);
    }
    out.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    out.set("CUDA_VISIBLE_DEVICES", join(nvidia, ","));
    out.set("NVIDIA_VISIBLE_DEVICES", nvidia.empty() ? "void" : join(nvidia, ","));
    out.set("ROCR_VISIBLE_DEVICES", join(amd, ","));
    out.set("ASCEND_RT_VISIBLE_DEVICES", join(ascend, ","));
    out.set("MUSTER_DEVICES", join(all, ","));
}

/// "0.25", of thousandths.
std::string fraction_text(std::int64_t share) {
    std::string text = std::to_string(1000 + share % 1000).substr(1);
    text.erase(text.find_last_not_of('0') + 1);
    return std::to_string(share / 1000) + (text.empty() ? "" : "." + text);
}

/// What it has of its one device. MPS keeps to the two that it reads itself where it is what the
/// node declared to enforce shares; 0 is the device's number among those that the task sees.
void set_share(Variables& out, const EnvironmentAsk& ask) {
    const protocol::StartTask& order = ask.order;
    if (order.device_share > 0) out.set("MUSTER_GPU_FRACTION", fraction_text(order.device_share));
    if (order.device_memory.value > 0) out.set("MUSTER_GPU_MEMORY", order.device_memory.value);
    if (ask.devices.size() != 1) return;
    const model::Device& device = ask.devices.front();
    if (!device.share_enforced || device.vendor != "nvidia") return;
    if (order.device_share > 0)
        out.set("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                std::max<std::int64_t>(order.device_share / 10, 1));
    if (order.device_memory.value > 0)
        out.set("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                "0=" + std::to_string(std::max<std::int64_t>(order.device_memory.value >> 20, 1)) +
                    "M");
}

/// Network devices near the task's, as far as the node declares them for all of these: a list
/// that lacks some would keep NCCL off what it could use. "=": exactly these names.
void set_nics(Variables& out, const EnvironmentAsk& ask) {
    std::vector<std::string> hcas, interfaces;
    for (const model::Device& device : ask.devices) {
        if (device.nics.empty()) return;
        for (const std::string& nic : device.nics) {
            std::vector<std::string>& list = ask.interfaces.contains(nic) ? interfaces : hcas;
            if (std::find(list.begin(), list.end(), nic) == list.end()) list.push_back(nic);
        }
    }
    if (!hcas.empty()) out.set("NCCL_IB_HCA", "=" + join(hcas, ","));
    if (!interfaces.empty()) out.set("NCCL_SOCKET_IFNAME", "=" + join(interfaces, ","));
}

/// Host files, and on several nodes the way to the others: muster-task in place of ssh.
void set_mpi(Variables& out, const EnvironmentAsk& ask) {
    out.set("OMPI_MCA_orte_default_hostfile", ask.host_file);
    out.set("OMPI_MCA_orte_keep_fqdn_hostnames", "true");
    out.set("OMPI_MCA_orte_set_default_slots", "slots");
    out.set("PRTE_MCA_prte_default_hostfile", ask.host_file);
    out.set("PRTE_MCA_prte_keep_fqdn_hostnames", "true");
    out.set("HYDRA_HOST_FILE", ask.machine_file);
    out.set("I_MPI_HYDRA_HOST_FILE", ask.machine_file);
    // Other jobs may run on this node, and every mpirun would bind to its first cores.
    out.set("OMPI_MCA_hwloc_base_binding_policy", "none");
    out.set("PRTE_MCA_hwloc_default_binding_policy", "none");
    // Root is a fact of the site, not a slip of the user: he asked for it by his identity.
    if (ask.user.uid == 0) {
        out.set("OMPI_ALLOW_RUN_AS_ROOT", 1);
        out.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", 1);
    }
    if (ask.launch_file.empty()) return;
    const std::string launcher = ask.launch_bin + "/muster-rsh";
    out.set("MUSTER_LAUNCH_FILE", ask.launch_file);
    out.set("MUSTER_LAUNCH_BIN", ask.launch_bin);
    out.set("OMPI_MCA_plm", "rsh");
    out.set("OMPI_MCA_plm_rsh_agent", launcher);
    out.set("OMPI_MCA_plm_rsh_args", "");
    out.set("PRTE_MCA_plm", "ssh");
    out.set("PRTE_MCA_plm_ssh_agent", launcher);
    out.set("HYDRA_LAUNCHER", "ssh");
    out.set("HYDRA_LAUNCHER_EXEC", launcher);
    out.set("I_MPI_HYDRA_BOOTSTRAP", "ssh");
    out.set("I_MPI_HYDRA_BOOTSTRAP_EXEC", launcher);
    // Of the first node's variables only those asked for: each node has its devices and files.
    out.set("HYDRA_ENV", "none");
    // pdsh (DeepSpeed) knows ssh by its name only.
    out.set("PDSH_RCMD_TYPE", "ssh");
    out.set("PATH", ask.launch_bin + ":" + kPath);
}

void set_launch(Variables& out, const EnvironmentAsk& ask, const World& world) {
    const protocol::StartTask& order = ask.order;
    const auto nodes = static_cast<std::int64_t>(world.members.size());
    const std::int64_t slots = world.members[world.node].slots;
    const bool per_gpu = ask.spec.launch == Launch::PerGpu;
    out.set("NODE_RANK", world.node);
    out.set("NNODES", nodes);
    if (is_elastic(order, ask.spec)) {
        const model::Role& role = ask.spec.roles[order.role];
        out.set("PET_NNODES", std::to_string(role.nodes) + ":" + std::to_string(role.nodes_max));
        out.set("PET_RDZV_BACKEND", "c10d");
        // Of this attempt: what is left of an earlier one must not join.
        out.set("PET_RDZV_ID",
                std::to_string(order.key.job.value) + "-" + std::to_string(order.key.epoch));
        // Muster restarts, and counts; both together would multiply.
        out.set("PET_MAX_RESTARTS", 0);
    } else if (ask.spec.launch == Launch::Torchrun) {
        out.set("PET_NNODES", nodes);
    }
    if (ask.spec.launch == Launch::Torchrun) {
        out.set("PET_NPROC_PER_NODE", std::max<std::int64_t>(slots, 1));
        out.set("PET_NODE_RANK", world.node);
    }
    out.set("JAX_NUM_PROCESSES", per_gpu ? world.size : nodes);
    if (!per_gpu) out.set("JAX_PROCESS_ID", world.node);
    if (ask.spec.launch == Launch::Mpi) set_mpi(out, ask);
    out.set("DMLC_NUM_WORKER", nodes);
    out.set("DMLC_TASK_ID", order.role_index);
}

void set_threads(Variables& out, const EnvironmentAsk& ask) {
    const int ranks = local_ranks(ask.order, ask.spec);
    out.set("OMP_NUM_THREADS",
            std::max<std::int64_t>(ask.order.cpus.value / 1000 / std::max(ranks, 1), 1));
    out.set_if("GLOO_SOCKET_IFNAME", ask.interface);
    out.set_if("NCCL_SOCKET_IFNAME", ask.interface);
    set_nics(out, ask);
}

}  // namespace

int local_ranks(const protocol::StartTask& order, const model::JobSpec& spec) {
    if (spec.launch != Launch::PerGpu) return 1;
    return static_cast<int>(std::max<std::size_t>(order.devices.size(), 1));
}

std::vector<std::string> task_environment(const EnvironmentAsk& ask) {
    const World world = world_of(ask.order);
    Variables out;
    set_user(out, ask);
    set_identity(out, ask);
    set_devices(out, ask);
    set_share(out, ask);
    set_launch(out, ask, world);
    set_threads(out, ask);
    for (const model::EnvVar& variable : ask.spec.env) out.set(variable.name, variable.value);
    for (const model::EnvVar& variable : ask.spec.roles[ask.order.role].env)
        out.set(variable.name, variable.value);
    return std::move(out).take();
}

std::vector<std::string> rank_environment(const EnvironmentAsk& ask, int local_rank) {
    if (ask.spec.launch != Launch::PerGpu) return {};
    const World world = world_of(ask.order);
    const std::int64_t rank = world.first_rank + local_rank;
    Variables out;
    out.set("RANK", rank);
    out.set("LOCAL_RANK", local_rank);
    out.set("WORLD_SIZE", world.size);
    out.set("LOCAL_WORLD_SIZE", local_ranks(ask.order, ask.spec));
    out.set("GROUP_RANK", world.node);
    out.set("ROLE_RANK", rank);
    out.set("ROLE_WORLD_SIZE", world.size);
    out.set("TORCHELASTIC_RESTART_COUNT", ask.order.restart_count);
    out.set("TORCHELASTIC_MAX_RESTARTS", 0);
    out.set("TORCHELASTIC_RUN_ID", static_cast<std::int64_t>(ask.order.key.job.value));
    out.set("JAX_PROCESS_ID", rank);
    return std::move(out).take();
}

std::vector<std::string> master_environment(const EnvironmentAsk& ask, const std::string& address,
                                            int port) {
    const World world = world_of(ask.order);
    // The gang's first node speaks for the first role; every other role has a first node of its
    // own.
    const bool own_master = ask.order.gang && !ask.order.gang->empty() &&
                            self(ask.order).role != ask.order.gang->front().role;
    const std::string master = own_master ? world.members.front().address : address;
    Variables out;
    out.set("MUSTER_MASTER_ADDR", master);
    out.set("MUSTER_MASTER_PORT", port);
    out.set("MASTER_ADDR", master);
    out.set("MASTER_PORT", port);
    if (ask.spec.launch == Launch::Torchrun) {
        out.set("PET_MASTER_ADDR", master);
        out.set("PET_MASTER_PORT", port);
        if (is_elastic(ask.order, ask.spec))
            out.set("PET_RDZV_ENDPOINT", master + ":" + std::to_string(port));
    }
    out.set("JAX_COORDINATOR_ADDRESS", master + ":" + std::to_string(port));
    out.set("DMLC_TRACKER_URI", master);
    out.set("DMLC_TRACKER_PORT", port);
    std::set<std::string> own;
    for (const auto* variables : {&ask.spec.env, &ask.spec.roles[ask.order.role].env})
        for (const model::EnvVar& variable : *variables) own.insert(variable.name);
    std::vector<std::string> all = std::move(out).take();
    std::erase_if(all, [&](const std::string& variable) {
        return own.contains(variable.substr(0, variable.find('=')));
    });
    return all;
}

bool is_elastic(const protocol::StartTask& order, const model::JobSpec& spec) {
    const model::Role& role = spec.roles[order.role];
    return spec.launch == Launch::Torchrun && role.nodes_max > role.nodes;
}

bool is_mpi_gang(const protocol::StartTask& order, const model::JobSpec& spec) {
    return spec.launch == Launch::Mpi && order.gang && order.gang->size() > 1;
}

bool runs_command(const protocol::StartTask& order, const model::JobSpec& spec) {
    return spec.launch != Launch::Mpi || world_of(order).node == 0;
}

namespace {

std::string hosts(const protocol::StartTask& order, std::string_view before_slots) {
    std::string text;
    std::set<std::string> seen;
    for (const GangMember& member : world_of(order).members) {
        if (!seen.insert(member.address).second) continue;
        text.append(member.address).append(before_slots);
        text += std::to_string(std::max<std::uint32_t>(member.slots, 1)) + "\n";
    }
    return text;
}

}  // namespace

std::string host_file(const protocol::StartTask& order) {
    return hosts(order, " slots=");
}

std::string machine_file(const protocol::StartTask& order) {
    return hosts(order, ":");
}

}  // namespace muster::os
