// The one normal form of a job, whatever it was written in. Immutable once submitted.
//
// The spec room makes it from YAML, JSON, flags or scripts and promises that it is valid: ranges
// hold, units are converted, defaults are filled in. Core checks the bounds once more (F25).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/quantity.h"

namespace muster::model {

constexpr std::int64_t kNodesMax = 1 << 20;  // Of one gang.
constexpr std::int64_t kGpusPerNodeMax = 1024;
constexpr std::int64_t kArrayMax = 1 << 24;  // Elements of one array.
constexpr std::int64_t kRestartsMax = 1'000'000;

/// One acceptable choice of devices for each node of a group.
struct DeviceAsk {
    std::string kind;  // Lower case: a model ("h100") or a class ("gpu", "npu", a site's own). "" =
                       // any accelerator.
    std::int64_t count = 1;
    Bytes memory_min;    // Of each device; 0 = any.
    std::string vendor;  // Lower case; "" = any.
    // Less than a whole device; `count` is 1 then. At most one of the three is set.
    std::int64_t fraction = 0;  // Thousandths of it; 0: whole.
    Bytes share_memory;         // So much of its memory; 0: whole.
    std::string profile;        // A partition of this profile id ("1g.10gb"); "" = no partition.
    friend bool operator==(const DeviceAsk&, const DeviceAsk&) = default;
};

/// How ranks are made on a node.
enum class Launch : std::uint8_t {
    PerNode,   // `run` once a node.
    Torchrun,  // Once a node, with torchrun's PET_* environment. Default when nodes > 1.
    PerGpu,    // `run` once a device, with RANK, LOCAL_RANK, …
    Mpi,       // Once, on the first node, with host files and a remote launcher.
};

struct EnvVar {
    std::string name;
    std::string value;
    friend bool operator==(const EnvVar&, const EnvVar&) = default;
};
/// A variable whose value is never stored or shown: read on the node, as the job's user, from
/// `file`.
struct Secret {
    std::string name;
    std::string file;
    friend bool operator==(const Secret&, const Secret&) = default;
};
struct Mount {
    std::string source;  // Absolute, on the node.
    std::string target;  // Absolute, in the task.
    bool read_only = false;
    friend bool operator==(const Mount&, const Mount&) = default;
};

/// A group of equal nodes with one command. A plain job has one, named "".
struct Role {
    std::string name;
    std::int64_t nodes = 1;
    std::int64_t nodes_max = 1;      // > nodes: elastic. Of the first role only.
    std::vector<DeviceAsk> devices;  // Alternatives in order of preference; empty: none.
    MilliCpu cpus;  // Per node; 0: the default (1 CPU a node, or its share by devices).
    Bytes memory;   // Per node; 0: no limit asked for.
    Bytes disk;     // Per node; 0: no limit asked for.
    Bytes shm;      // Per node; 0: the runtime's default.
    std::string run;
    std::vector<EnvVar> env;  // On top of the job's.
    friend bool operator==(const Role&, const Role&) = default;
};

/// A condition on nodes. key "node" means the node's name; else a label.
struct ConstraintTerm {
    enum class Op : std::uint8_t { In, NotIn, Exists, NotExists };
    std::string key;
    Op op = Op::In;
    std::vector<std::string> values;  // Sorted.
    friend bool operator==(const ConstraintTerm&, const ConstraintTerm&) = default;
};

struct Dependency {
    enum class When : std::uint8_t { AfterOk, AfterAny, AfterNotOk };
    When when = When::AfterOk;
    JobId job;
    friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// Causes that use up the user's own restarts. Node faults and preemption never do.
struct RestartRule {
    std::int64_t max = 0;         // Of the job's own failures. -1: no bound.
    bool on_any = true;           // Any failure of the job's own…
    std::vector<int> exit_codes;  // …or, if not on_any, these only. Sorted.
    bool on_oom = false;          // Used when !on_any.
    Duration backoff{10'000};     // Doubles with each restart, up to 10 minutes.
    friend bool operator==(const RestartRule&, const RestartRule&) = default;
};

struct LogRule {
    enum class Action : std::uint8_t { Fail, ExcludeNode, Requeue };
    std::string match;  // ECMAScript regular expression, on one line.
    Action action = Action::Fail;
    friend bool operator==(const LogRule&, const LogRule&) = default;
};

struct Checkpoint {
    std::string dir;  // "" = none.
    std::string signal = "USR1";
    Duration grace{60'000};  // Notice to kill. Never 0.
    Duration interval;       // Wanted between two; 0: the job's own choice.
    friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

/// Where a gang's nodes must, or should, stand. Level names are the site's; "node" and, inside
/// nodes, "link" (one link group) and "numa" (one NUMA node) are always known.
struct TopologyAsk {
    std::string required;         // "" = anywhere.
    std::string preferred;        // "" = as near as it goes.
    std::int64_t slice = 0;       // Nodes in each slice; 0: no slices. Divides the gang's nodes.
    std::string slice_required;   // The level that holds each slice whole.
    std::int64_t spares = 0;      // Nodes kept beside the gang, to take a failed one's place.
    friend bool operator==(const TopologyAsk&, const TopologyAsk&) = default;
};

/// One axis of a sweep; the last axis varies fastest.
struct SweepAxis {
    std::string name;  // Also the environment variable.
    std::vector<std::string> values;
    friend bool operator==(const SweepAxis&, const SweepAxis&) = default;
};
/// Elements are numbered 0..count-1; `index_of(i)` = first + i·step is what the task sees.
struct Array {
    std::int64_t count = 0;  // 0: not an array.
    std::int64_t first = 0;
    std::int64_t step = 1;
    std::int64_t parallel = 0;  // At most so many at once; 0: no bound.
    std::vector<SweepAxis> sweep;
    friend bool operator==(const Array&, const Array&) = default;
};

struct JobSpec {
    std::string name;                                         // Never empty after normalisation.
    std::string queue;                                        // "" = the default queue.
    std::int64_t priority = 50;                               // 0–100, higher first.
    std::vector<std::pair<std::string, std::string>> labels;  // Sorted by key.
    std::vector<Role> roles;                                  // At least one.
    Duration time;                                            // Limit of one attempt; 0: none.
    Duration expected_time;                                   // 0: unknown.
    Time begin;                                               // 0: at once.
    Time deadline;        // 0: none. Not started after it; stopped at it.
    std::string image;    // "" = the host's file system.
    std::string workdir;  // "" = scratch of the job.
    std::vector<EnvVar> env;
    std::string setup;  // Runs before `run`, once a node.
    std::vector<Mount> mounts;
    std::vector<Secret> secrets;
    Launch launch = Launch::PerNode;
    RestartRule restart;
    std::vector<LogRule> log_rules;
    Checkpoint checkpoint;
    std::vector<Dependency> depends;
    Array array;
    bool exclusive = false;                  // Whole nodes.
    bool hold = false;                       // Submitted held.
    TopologyAsk topology;
    bool mixed_kinds = false;  // A gang's nodes may differ in their kind of device.
    bool preemptible = true;   // False: asks not to be; only where its queue is not preemptible.
    bool share_unenforced = false;  // Takes part of a device though nothing enforces its part.
    bool pty = false;                        // `run --pty`: one terminal on rank 0.
    std::vector<ConstraintTerm> constraint;  // All must hold.
    friend bool operator==(const JobSpec&, const JobSpec&) = default;

    std::int64_t nodes() const {
        std::int64_t sum = 0;
        for (const Role& role : roles) sum += role.nodes;
        return sum;
    }
};

/// The compact form that State keeps and the store writes. decode(encode(s)) == s.
std::string encode(const JobSpec& spec);
/// Old versions are read for ever. Empty: `bytes` is not a spec.
std::optional<JobSpec> decode_job_spec(std::string_view bytes);

/// The environment variables of element `element` (0-based) of the sweep, in axis order.
std::vector<EnvVar> sweep_values(const Array& array, std::int64_t element);

}  // namespace muster::model
