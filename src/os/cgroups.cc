#include "os/cgroups.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"
#include "os/posix.h"
#include "os/supervisor/group.h"

namespace muster::os {
namespace {

constexpr std::int64_t kPeriodUs = 100'000;
constexpr const char* kClosed = "no-devices";  // v1: shared by all tasks that asked for none.

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

Status make_group(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
        return system_error("make control group", path);
    return Ok{};
}

std::string number(std::int64_t value) {
    return std::to_string(value);
}

/// As the legacy devices controller writes it: "c 1:3 rwm".
std::string device_rule(const DeviceNumber& device) {
    return std::string(device.block ? "b " : "c ") + std::to_string(device.major) + ":" +
           (device.minor ? std::to_string(*device.minor) : "*") + " rwm";
}

std::int64_t quota_us(MilliCpu cpus) {
    return std::max<std::int64_t>(cpus.value * kPeriodUs / 1000, 1'000);
}

}  // namespace

Result<DeviceNumber> device_number(const std::string& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) return system_error("find device file", path);
    if (!S_ISCHR(about.st_mode) && !S_ISBLK(about.st_mode))
        return Error{.code = Code::Invalid, .message = path + " is not a device file"};
    return DeviceNumber{.block = S_ISBLK(about.st_mode),
                        .major = major(about.st_rdev),
                        .minor = minor(about.st_rdev)};
}

std::vector<DeviceNumber> standard_devices() {
    std::vector<DeviceNumber> devices;
    for (const unsigned minor : {3U, 5U, 7U, 8U, 9U})  // null, zero, full, random, urandom.
        devices.push_back({.major = 1, .minor = minor});
    for (const unsigned minor : {0U, 2U})  // tty, ptmx.
        devices.push_back({.major = 5, .minor = minor});
    for (unsigned major = 136; major < 144; ++major) devices.push_back({.major = major});
    return devices;
}

Cgroups Cgroups::none(std::string why) {
    Cgroups groups;
    groups.why_not_ = std::move(why);
    return groups;
}

Cgroups Cgroups::probe(std::string mount, std::string ours) {
    Cgroups groups;
    groups.mount_ = std::move(mount);
    groups.ours_ = std::move(ours);
    if (!exists(groups.mount_)) return none(groups.mount_ + " is not mounted");
    const bool pure = exists(groups.mount_ + "/cgroup.controllers");
    const std::string base = pure ? groups.mount_ : groups.mount_ + "/unified";
    if (exists(base + "/cgroup.procs") && exists(base + "/cgroup.controllers")) {
        groups.unified_ = base + "/" + groups.ours_;
        if (Status made = make_group(groups.unified_); !made) return none(made.error().message);
        groups.pure_v2_ = pure && groups.prepare_v2(base);
        if (pure && !groups.pure_v2_)
            return none("the controllers cpu, memory and pids are not given to " + groups.unified_ +
                        " (a service needs Delegate=yes)");
    }
    if (groups.pure_v2_) return groups;
    const auto have = [&](const char* controller) {
        const std::string path = groups.v1_path(controller);
        return exists(groups.mount_ + "/" + controller + "/cgroup.procs") && make_group(path) &&
               ::access(path.c_str(), W_OK) == 0;
    };
    groups.v1_cpu_ = have("cpu");
    groups.v1_memory_ = have("memory");
    groups.v1_pids_ = have("pids");
    groups.v1_devices_ = have("devices");
    if (!groups.v1_cpu_ || !groups.v1_memory_)
        return none("no cpu and memory controllers below " + groups.mount_);
    groups.prepare_cpuset_v1();
    if (exists(groups.v1_path("memory") + "/memory.use_hierarchy"))
        (void)write_kernel_file(groups.v1_path("memory") + "/memory.use_hierarchy", "1");
    return groups;
}

bool Cgroups::prepare_v2(const std::string& base) {
    const auto give = [](const std::string& path) {
        bool given = true;
        for (const char* controller : {"+cpu", "+memory", "+pids"})
            given &=
                static_cast<bool>(write_kernel_file(path + "/cgroup.subtree_control", controller));
        return given;
    };
    (void)give(base);
    if (!give(unified_)) return false;
    (void)write_kernel_file(base + "/cgroup.subtree_control", "+cpuset");
    if (!write_kernel_file(unified_ + "/cgroup.subtree_control", "+cpuset"))
        why_no_cpuset_ = "the controller cpuset is not given to " + unified_;
    return true;
}

/// A new group has neither CPUs nor memory nodes, and takes no process before it has both.
void Cgroups::prepare_cpuset_v1() {
    const std::string path = v1_path("cpuset"), above = mount_ + "/cpuset";
    why_no_cpuset_ = "no cpuset controller below " + mount_;
    if (!exists(above + "/cgroup.procs")) return;
    if (Status made = make_group(path); !made) {
        why_no_cpuset_ = made.error().message;
        return;
    }
    for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
        const auto all = read_file(above + file);
        if (!all) return;
        if (Status written = write_kernel_file(path + file, trim(*all)); !written) {
            why_no_cpuset_ = written.error().message;
            return;
        }
    }
    why_no_cpuset_.clear();
}

/// Empty: the kernel would not (a CPU has gone); then its affinity has to do.
std::optional<std::string> Cgroups::make_cpuset_v1(const GroupAsk& ask) const {
    const std::string path = v1_path("cpuset") + "/" + ask.name;
    const auto mems = read_file(v1_path("cpuset") + "/cpuset.mems");
    if (mems && make_group(path) && write_kernel_file(path + "/cpuset.mems", trim(*mems)) &&
        write_kernel_file(path + "/cpuset.cpus", ask.cpu_list))
        return path;
    ::rmdir(path.c_str());
    return std::nullopt;
}

std::string Cgroups::describe() const {
    if (!usable()) return "none";
    if (pure_v2_) return "cgroup v2";
    return unified_.empty() ? "cgroup v1" : "cgroup v1 with a v2 twin";
}

Result<std::vector<GroupLaunch>> Cgroups::make(const GroupAsk& ask) {
    if (!usable()) return Error{.code = Code::Unavailable, .message = why_not_};
    auto made = pure_v2_ ? make_v2(ask) : make_v1(ask);
    if (made) return made;
    for (const GroupLaunch& group : find(ask.name)) ::rmdir(group.path.c_str());
    return made;
}

Result<std::vector<GroupLaunch>> Cgroups::make_v2(const GroupAsk& ask) {
    const std::string path = unified_ + "/" + ask.name;
    MUSTER_TRY(make_group(path));
    if (ask.cpus.value > 0) {
        MUSTER_TRY(write_kernel_file(path + "/cpu.max",
                                     number(quota_us(ask.cpus)) + " " + number(kPeriodUs)));
        const std::int64_t weight = std::clamp<std::int64_t>(ask.cpus.value / 10, 1, 10'000);
        MUSTER_TRY(write_kernel_file(path + "/cpu.weight", number(weight)));
    }
    if (ask.memory.value > 0) {
        MUSTER_TRY(write_kernel_file(path + "/memory.max", number(ask.memory.value)));
        if (exists(path + "/memory.swap.max"))
            MUSTER_TRY(write_kernel_file(path + "/memory.swap.max", "0"));
    }
    if (ask.pids > 0) MUSTER_TRY(write_kernel_file(path + "/pids.max", number(ask.pids)));
    // As in make_cpuset_v1: what cannot be bound has its affinity.
    if (!ask.cpu_list.empty() && why_no_cpuset_.empty())
        (void)write_kernel_file(path + "/cpuset.cpus", ask.cpu_list);
    if (ask.confine_devices) {
        std::vector<DeviceNumber> allowed = standard_devices();
        allowed.insert(allowed.end(), ask.devices.begin(), ask.devices.end());
        MUSTER_TRY(attach_device_filter(path, allowed));
    }
    return std::vector<GroupLaunch>{{.path = path, .unified = true, .memory = true}};
}

Status Cgroups::limit_devices_v1(const std::string& path, const GroupAsk& ask) const {
    MUSTER_TRY(write_kernel_file(path + "/devices.deny", "a"));
    std::vector<DeviceNumber> allowed = standard_devices();
    allowed.insert(allowed.end(), ask.devices.begin(), ask.devices.end());
    for (const DeviceNumber& device : allowed)
        MUSTER_TRY(write_kernel_file(path + "/devices.allow", device_rule(device)));
    return Ok{};
}

Result<std::vector<GroupLaunch>> Cgroups::make_v1(const GroupAsk& ask) {
    std::vector<GroupLaunch> groups;
    if (ask.memory.value > 0) {
        const std::string path = v1_path("memory") + "/" + ask.name;
        MUSTER_TRY(make_group(path));
        MUSTER_TRY(write_kernel_file(path + "/memory.limit_in_bytes", number(ask.memory.value)));
        // With swap accounting on, a task must not swap its way around the limit.
        if (exists(path + "/memory.memsw.limit_in_bytes"))
            (void)write_kernel_file(path + "/memory.memsw.limit_in_bytes",
                                    number(ask.memory.value));
        groups.push_back({.path = path, .memory = true});
    }
    if (ask.cpus.value > 0) {
        const std::string path = v1_path("cpu") + "/" + ask.name;
        MUSTER_TRY(make_group(path));
        MUSTER_TRY(write_kernel_file(path + "/cpu.cfs_quota_us", number(quota_us(ask.cpus))));
        const std::int64_t shares =
            std::clamp<std::int64_t>(ask.cpus.value * 1024 / 1000, 2, 262'144);
        MUSTER_TRY(write_kernel_file(path + "/cpu.shares", number(shares)));
        groups.push_back({.path = path});
    }
    if (ask.pids > 0 && v1_pids_) {
        const std::string path = v1_path("pids") + "/" + ask.name;
        MUSTER_TRY(make_group(path));
        MUSTER_TRY(write_kernel_file(path + "/pids.max", number(ask.pids)));
        groups.push_back({.path = path});
    }
    if (!ask.cpu_list.empty() && why_no_cpuset_.empty())
        if (auto path = make_cpuset_v1(ask)) groups.push_back({.path = *std::move(path)});
    if (ask.confine_devices) {
        if (!v1_devices_)
            return Error{
                .code = Code::Unavailable,
                .message = "devices cannot be confined: no devices controller below " + mount_};
        const bool shared = ask.devices.empty();
        const std::string path = v1_path("devices") + "/" + (shared ? kClosed : ask.name.c_str());
        if (!shared || !shared_closed_) {
            MUSTER_TRY(make_group(path));
            MUSTER_TRY(limit_devices_v1(path, ask));
            shared_closed_ = shared_closed_ || shared;
        }
        groups.push_back({.path = path, .own = !shared});
    }
    if (!unified_.empty()) {
        const std::string path = unified_ + "/" + ask.name;
        MUSTER_TRY(make_group(path));
        groups.push_back({.path = path, .unified = true});
    }
    return groups;
}

std::vector<GroupLaunch> Cgroups::find(const std::string& name) const {
    std::vector<GroupLaunch> groups;
    if (!usable()) return groups;
    const auto add = [&](const std::string& path, bool unified, bool memory) {
        if (exists(path)) groups.push_back({.path = path, .unified = unified, .memory = memory});
    };
    if (!pure_v2_)
        for (const char* controller : {"memory", "cpu", "pids", "devices", "cpuset"})
            add(v1_path(controller) + "/" + name, false, std::string_view(controller) == "memory");
    if (!unified_.empty()) add(unified_ + "/" + name, true, pure_v2_);
    return groups;
}

std::vector<GroupLaunch> Cgroups::for_own_groups(const std::string& name) const {
    std::vector<GroupLaunch> groups;
    if (pure_v2_) {
        groups.push_back({.path = unified_ + "/" + name, .unified = true, .memory = true});
    } else {
        for (const std::string& hierarchy : list_folder(mount_)) {
            const std::string path = mount_ + "/" + hierarchy + "/" + ours_ + "/" + name;
            groups.push_back(
                {.path = path, .unified = hierarchy == "unified", .memory = hierarchy == "memory"});
        }
    }
    for (GroupLaunch& group : groups) group.join = false;
    return groups;
}

void Cgroups::remove_if_empty() const {
    if (ours_.empty()) return;
    std::vector<std::string> bases{mount_ + "/" + ours_};
    for (const std::string& hierarchy : list_folder(mount_))
        bases.push_back(mount_ + "/" + hierarchy + "/" + ours_);
    for (const std::string& base : bases) {
        (void)::rmdir((base + "/no-devices").c_str());
        (void)::rmdir(base.c_str());
    }
}

void Cgroups::end(const std::string& name) const {
    const std::vector<GroupLaunch> groups = find(name);
    const ProcessGroup left(groups);
    left.kill_groups();
    for (int i = 0; i < 100 && !left.remove(); ++i) ::usleep(1'000);
}

std::vector<std::string> Cgroups::names() const {
    std::set<std::string> names;
    if (!usable()) return {};
    std::vector<std::string> bases;
    if (!pure_v2_)
        for (const char* controller : {"memory", "cpu", "pids", "devices", "cpuset"})
            bases.push_back(v1_path(controller));
    if (!unified_.empty()) bases.push_back(unified_);
    for (const std::string& base : bases)
        for (std::string& name : list_folder(base))
            if (name != kClosed && exists(base + "/" + name + "/cgroup.procs"))
                names.insert(std::move(name));
    return {names.begin(), names.end()};
}

}  // namespace muster::os
