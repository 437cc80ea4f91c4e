// Control groups behind one interface: v2 in full; v1 for limits, with a v2 twin for killing and
// seeing emptiness where the machine mounts both.
//
// A group costs microseconds (memory: 0.2 ms), so a task gets only the controllers it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "os/task_files.h"

namespace muster::os {

/// One device node: what the kernel is to let a task open.
struct DeviceNumber {
    bool block = false;
    unsigned major = 0;
    std::optional<unsigned> minor;  // Empty: all of them.
    friend auto operator<=>(const DeviceNumber&, const DeviceNumber&) = default;
};
/// Of a device file; symbolic links are followed.
Result<DeviceNumber> device_number(const std::string& path);

struct GroupAsk {
    std::string name;              // Within ours: no slash.
    MilliCpu cpus;                 // 0: no limit.
    Bytes memory;                  // 0: no limit.
    std::int64_t pids = 0;         // 0: no limit.
    std::string cpu_list;          // The only CPUs that it may run on; "": all.
    bool confine_devices = false;  // Only standard ones, and these:
    std::vector<DeviceNumber> devices;
};

class Cgroups {
public:
    /// `mount` is /sys/fs/cgroup, or a tree like it; `ours` the name of the group above all tasks.
    /// What cannot be had is in why_not().
    static Cgroups probe(std::string mount, std::string ours);
    static Cgroups none(std::string why);

    bool usable() const { return why_not_.empty(); }
    const std::string& why_not() const { return why_not_; }
    /// "": CPUs can be bound. Else make() leaves them unbound.
    const std::string& why_no_cpuset() const { return why_no_cpuset_; }
    /// "cgroup v2", "cgroup v1 with a v2 twin".
    std::string describe() const;

    /// All groups of a task, made and limited, in the order to join them.
    Result<std::vector<GroupLaunch>> make(const GroupAsk& ask);
    /// For a runtime that makes its own groups below ours, in whatever is mounted: all that has to
    /// be looked through and removed at the end, none of it to be joined.
    std::vector<GroupLaunch> for_own_groups(const std::string& name) const;
    /// The groups that make() gave or gives to this name, as far as they exist.
    std::vector<GroupLaunch> find(const std::string& name) const;
    /// Names of all tasks' groups that exist: to find what was left behind.
    std::vector<std::string> names() const;
    /// Kills what is left in the groups of this name and removes them, as far as that goes at once.
    void end(const std::string& name) const;
    /// Removes our group above all tasks wherever no task is left in it; else it stays.
    void remove_if_empty() const;
    /// The path for an OCI runtime's cgroupsPath that nests below the task's own groups.
    std::string nested_path(const std::string& name) const {
        return "/" + ours_ + "/" + name + "/oci";
    }

private:
    enum class Controller { Cpu, Memory, Pids, Devices };
    Result<std::string> parent(const std::string& hierarchy) const;
    std::string v1_path(const char* controller) const {
        return mount_ + "/" + controller + "/" + ours_;
    }
    bool prepare_v2(const std::string& base);
    void prepare_cpuset_v1();
    std::optional<std::string> make_cpuset_v1(const GroupAsk& ask) const;
    Result<std::vector<GroupLaunch>> make_v2(const GroupAsk& ask);
    Result<std::vector<GroupLaunch>> make_v1(const GroupAsk& ask);
    Status limit_devices_v1(const std::string& path, const GroupAsk& ask) const;

    std::string mount_, ours_, why_not_, why_no_cpuset_;
    std::string unified_;   // Our group in v2; "": v2 is not mounted.
    bool pure_v2_ = false;  // v2 has cpu, memory and pids.
    bool v1_cpu_ = false, v1_memory_ = false, v1_pids_ = false, v1_devices_ = false;
    bool shared_closed_ = false;  // v1: the group of all tasks without devices is there.
};

/// Attaches a program to a v2 group that lets only these devices be opened, made or read.
Status attach_device_filter(const std::string& group, const std::vector<DeviceNumber>& allowed);
/// null, zero, full, random, urandom, tty, ptmx and terminals.
std::vector<DeviceNumber> standard_devices();

}  // namespace muster::os
