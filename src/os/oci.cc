#include "os/oci.h"

#include <algorithm>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "os/cgroups.h"
#include "os/posix.h"
#include "os/task_files.h"

namespace muster::os {
namespace {

constexpr std::int64_t kShmDefault = 64 << 20;

// System calls by which a container reached out of its confinement in the past, or that change the
// whole machine: what the usual default profile refuses to a process without capabilities.
constexpr const char* kRefusedCalls[] = {"acct",
                                         "add_key",
                                         "bpf",
                                         "clock_adjtime",
                                         "clock_settime",
                                         "create_module",
                                         "delete_module",
                                         "finit_module",
                                         "fsconfig",
                                         "fsmount",
                                         "fsopen",
                                         "fspick",
                                         "get_kernel_syms",
                                         "init_module",
                                         "io_uring_enter",
                                         "io_uring_register",
                                         "io_uring_setup",
                                         "ioperm",
                                         "iopl",
                                         "kexec_file_load",
                                         "kexec_load",
                                         "keyctl",
                                         "lookup_dcookie",
                                         "mount",
                                         "mount_setattr",
                                         "move_mount",
                                         "nfsservctl",
                                         "open_by_handle_at",
                                         "open_tree",
                                         "perf_event_open",
                                         "pivot_root",
                                         "query_module",
                                         "quotactl",
                                         "quotactl_fd",
                                         "reboot",
                                         "request_key",
                                         "setns",
                                         "settimeofday",
                                         "stime",
                                         "swapoff",
                                         "swapon",
                                         "sysfs",
                                         "_sysctl",
                                         "umount",
                                         "umount2",
                                         "unshare",
                                         "uselib",
                                         "userfaultfd",
                                         "ustat",
                                         "vhangup",
                                         "vm86",
                                         "vm86old"};
constexpr std::int64_t kNewNamespaces = 0x7e020000;  // CLONE_NEW* but for time.

void texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& values) {
    json.key(key).begin_array();
    for (const std::string& value : values) json.value(value);
    json.end_array();
}

void mount(JsonWriter& json, const std::string& target, const std::string& type,
           const std::string& source, const std::vector<std::string>& options) {
    json.begin_object().field("destination", target).field("type", type).field("source", source);
    texts(json, "options", options);
    json.end_object();
}

void bind_mount(JsonWriter& json, const std::string& source, const std::string& target,
                bool read_only) {
    mount(json, target, "bind", source, {"rbind", read_only ? "ro" : "rw", "rprivate", "nosuid"});
}

void write_process(JsonWriter& json, const BundleAsk& ask) {
    json.key("process").begin_object().field("terminal", ask.spec.pty);
    json.key("user").begin_object();
    json.field("uid", static_cast<std::int64_t>(ask.user.uid));
    json.field("gid", static_cast<std::int64_t>(ask.user.gid));
    json.key("additionalGids").begin_array();
    for (const std::uint32_t group : ask.user.groups) json.value(static_cast<std::int64_t>(group));
    json.end_array().end_object();
    texts(json, "args", {inside::kInit, "--init"});
    texts(json, "env", ask.image.env);
    const bool own_dir = !ask.image.workdir.empty() && ask.image.workdir != "/";
    json.field("cwd", !ask.spec.workdir.empty() ? ask.spec.workdir
                      : own_dir                 ? ask.image.workdir
                                                : std::string(inside::kScratch));
    json.key("capabilities").begin_object();
    const std::vector<std::string> roots = {"CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FSETID",
                                            "CAP_FOWNER",  "CAP_SETGID",           "CAP_SETUID",
                                            "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_KILL"};
    for (const char* set : {"bounding", "effective", "permitted"})
        texts(json, set, ask.user.uid == 0 ? roots : std::vector<std::string>{});
    json.end_object().field("noNewPrivileges", true).end_object();
}

void write_mounts(JsonWriter& json, const BundleAsk& ask) {
    json.key("mounts").begin_array();
    mount(json, "/proc", "proc", "proc", {"nosuid", "noexec", "nodev"});
    mount(json, "/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"});
    mount(json, "/dev/pts", "devpts", "devpts",
          {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"});
    mount(json, "/dev/shm", "tmpfs", "shm",
          {"nosuid", "nodev", "mode=1777",
           "size=" + std::to_string(ask.shm.value > 0 ? ask.shm.value : kShmDefault)});
    mount(json, "/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"});
    // The network is the host's, so its sysfs is shown, not mounted anew.
    mount(json, "/sys", "bind", "/sys", {"rbind", "ro", "rprivate", "nosuid", "noexec", "nodev"});
    bind_mount(json, ask.supervisor, inside::kInit, true);
    bind_mount(json, ask.folder + "/" + files::kRun, inside::kRun, false);
    bind_mount(json, ask.folder + "/" + files::kScratch, inside::kScratch, false);
    for (const char* file : {"/job/hostfile", "/etc/mpi/hostfile"})
        bind_mount(json, ask.folder + "/" + files::kRun + "/hostfile", file, true);
    for (const char* file : {"/etc/resolv.conf", "/etc/hosts"})
        if (::access(file, R_OK) == 0) bind_mount(json, file, file, true);
    std::set<std::string> taken;
    for (const model::Mount& each : ask.spec.mounts) {
        bind_mount(json, each.source, each.target, each.read_only);
        taken.insert(each.target);
    }
    if (!ask.checkpoint_dir.empty() && !taken.contains(ask.checkpoint_dir) &&
        ::access(ask.checkpoint_dir.c_str(), F_OK) == 0)
        bind_mount(json, ask.checkpoint_dir, ask.checkpoint_dir, false);
    json.end_array();
}

void write_devices(JsonWriter& json, const BundleAsk& ask) {
    json.key("devices").begin_array();
    std::vector<DeviceNumber> numbers = standard_devices();
    for (const std::string& file : ask.device_files) {
        struct stat about {};
        const auto number = device_number(file);
        if (!number || ::stat(file.c_str(), &about) != 0) continue;
        numbers.push_back(*number);
        json.begin_object().field("path", file).field("type", number->block ? "b" : "c");
        json.field("major", static_cast<std::int64_t>(number->major));
        json.field("minor", static_cast<std::int64_t>(number->minor.value_or(0)));
        json.field("fileMode", static_cast<std::int64_t>(about.st_mode & 0777));
        json.field("uid", static_cast<std::int64_t>(about.st_uid));
        json.field("gid", static_cast<std::int64_t>(about.st_gid)).end_object();
    }
    json.end_array();
    // For a runtime with groups of its own; ours confine in any case.
    json.key("resources").begin_object().key("devices").begin_array();
    json.begin_object().field("allow", false).field("access", "rwm").end_object();
    for (const DeviceNumber& device : numbers) {
        json.begin_object().field("allow", true).field("type", device.block ? "b" : "c");
        json.field("major", static_cast<std::int64_t>(device.major));
        if (device.minor) json.field("minor", static_cast<std::int64_t>(*device.minor));
        json.field("access", "rwm").end_object();
    }
    json.end_array().end_object();
}

void write_seccomp(JsonWriter& json) {
    json.key("seccomp").begin_object().field("defaultAction", "SCMP_ACT_ALLOW");
    json.key("syscalls").begin_array();
    json.begin_object();
    texts(json, "names", {std::begin(kRefusedCalls), std::end(kRefusedCalls)});
    json.field("action", "SCMP_ACT_ERRNO").field("errnoRet", 1).end_object();
    // A masked comparison is for equality, so each bit is a rule.
    for (std::int64_t bit = 1; bit <= kNewNamespaces; bit <<= 1) {
        if ((kNewNamespaces & bit) == 0) continue;
        json.begin_object();
        texts(json, "names", {"clone"});
        json.field("action", "SCMP_ACT_ERRNO").field("errnoRet", 1).key("args").begin_array();
        json.begin_object().field("index", 0).field("value", bit).field("valueTwo", bit);
        json.field("op", "SCMP_CMP_MASKED_EQ").end_object().end_array().end_object();
    }
    // Its flags lie in memory, where a filter cannot look: "not there" makes libraries use clone.
    json.begin_object();
    texts(json, "names", {"clone3"});
    json.field("action", "SCMP_ACT_ERRNO").field("errnoRet", 38).end_object();
    json.end_array().end_object();
}

void write_linux(JsonWriter& json, const BundleAsk& ask) {
    json.key("linux").begin_object();
    json.key("namespaces").begin_array();
    for (const char* type : {"mount", "pid", "ipc"})
        json.begin_object().field("type", type).end_object();
    json.end_array();
    write_devices(json, ask);
    if (!ask.cgroups_path.empty()) json.field("cgroupsPath", ask.cgroups_path);
    texts(json, "maskedPaths",
          {"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
           "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"});
    texts(
        json, "readonlyPaths",
        {"/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"});
    write_seccomp(json);
    json.end_object();
}

}  // namespace

std::string bundle_config(const BundleAsk& ask) {
    JsonWriter json;
    json.begin_object().field("ociVersion", "1.0.2");
    write_process(json, ask);
    json.key("root").begin_object().field("path", "rootfs").field("readonly", false).end_object();
    write_mounts(json, ask);
    write_linux(json, ask);
    json.end_object();
    return std::move(json).text();
}

std::vector<std::string> container_command(const OciRuntime& runtime, const std::string& root,
                                           const std::string& bundle) {
    std::vector<std::string> argv = runtime.command;
    const std::vector<std::string> rest = {"--root", root,       "run",  "--preserve-fds",
                                           "1",      "--bundle", bundle, "{id}"};
    argv.insert(argv.end(), rest.begin(), rest.end());
    return argv;
}

std::vector<std::string> enter_command(const OciRuntime& runtime, const std::string& root,
                                       const UserFacts& user, const std::string& workdir) {
    std::vector<std::string> argv = runtime.command;
    const std::vector<std::string> rest = {
        "--root",         root,
        "exec",           "{tty}",
        "--preserve-fds", "1",
        "--user",         std::to_string(user.uid) + ":" + std::to_string(user.gid),
        "--cwd",          workdir,
        "{id}",           inside::kInit,
        "--init"};
    argv.insert(argv.end(), rest.begin(), rest.end());
    return argv;
}

namespace {

std::string version_of(const std::string& program) {
    const Ran ran = run_program({.argv = {program, "--version"}, .timeout_ms = 10'000});
    if (ran.exit_code != 0) return {};
    const std::string_view line = std::string_view(ran.out).substr(0, ran.out.find('\n'));
    return program + " " + std::string(line.substr(line.rfind(' ') + 1));
}

/// A container whose only program is the supervisor's help: it needs no image.
Ran try_runtime(const OciRuntime& runtime, const std::string& supervisor, const std::string& dir,
                const std::string& cgroups_path) {
    (void)remove_tree(AT_FDCWD, dir.c_str());
    for (const char* folder : {"/rootfs/muster/run", "/rootfs/muster/scratch", "/rootfs/job",
                               "/rootfs/etc/mpi", "/run", "/scratch"})
        if (Status made = make_folders(dir + folder); !made) return {.out = made.error().message};
    (void)write_small_file(AT_FDCWD, (dir + "/run/hostfile").c_str(), "", false);
    const model::JobSpec spec;
    const Image image;
    std::string config = bundle_config({.spec = spec,
                                        .image = image,
                                        .user = {},
                                        .folder = dir,
                                        .supervisor = supervisor,
                                        .device_files = {},
                                        .shm = {},
                                        .checkpoint_dir = {},
                                        .cgroups_path = cgroups_path});
    const std::string word = "\"--init\"";
    config.replace(config.find(word), word.size(), "\"--help\"");
    (void)write_small_file(AT_FDCWD, (dir + "/config.json").c_str(), config, false);
    std::vector<std::string> argv = runtime.command;
    const std::vector<std::string> rest = {"--root", dir + "/state",
                                           "run",    "--bundle",
                                           dir,      "muster-probe-" + std::to_string(::getpid())};
    argv.insert(argv.end(), rest.begin(), rest.end());
    return run_program({.argv = std::move(argv), .timeout_ms = 20'000});
}

}  // namespace

OciRuntime probe_runtime(const std::string& supervisor, const std::string& work_dir,
                         const std::string& cgroup_root, const std::string& groups_name) {
    const std::string unified = cgroup_root + "/unified";
    const bool hybrid = ::access((unified + "/cgroup.procs").c_str(), F_OK) == 0;
    OciRuntime none;
    for (const char* program : {"crun", "runc"}) {
        OciRuntime runtime;
        const std::string version = version_of(program);
        if (version.empty()) {
            none.why_not +=
                std::string(none.why_not.empty() ? "" : "; ") + program + " is not installed";
            continue;
        }
        const bool crun = std::string_view(program) == "crun";
        // crun refuses machines that mount both versions, unless it does not see the second.
        if (crun && hybrid) runtime.command = {supervisor, "--without", unified, "--"};
        runtime.command.emplace_back(program);
        if (crun) runtime.command.emplace_back("--cgroup-manager=disabled");
        runtime.own_groups = !crun;
        const Ran ran =
            try_runtime(runtime, supervisor, work_dir, crun ? "" : "/" + groups_name + "/probe");
        (void)remove_tree(AT_FDCWD, work_dir.c_str());
        if (ran.exit_code == 0) {
            runtime.name = version;
            return runtime;
        }
        none.why_not += std::string(none.why_not.empty() ? "" : "; ") + version + ": " +
                        std::string(trim(ran.out).substr(0, 200));
    }
    return none;
}

}  // namespace muster::os
