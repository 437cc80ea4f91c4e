#include "os/prepare.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/checkpoints.h"
#include "os/environment.h"
#include "os/posix.h"
#include "os/remote.h"

namespace muster::os {
namespace {

// Words that a shell takes for itself: a command that begins with one needs a shell. `true` and
// `false` are programs too, and mean the same.
constexpr std::array<std::string_view, 68> kShellWords = {
    ".",        ":",      "[",       "[[",    "alias",    "bg",        "bind",     "break",
    "builtin",  "caller", "case",    "cd",    "command",  "compgen",   "compopt",  "complete",
    "continue", "coproc", "declare", "dirs",  "disown",   "do",        "done",     "echo",
    "elif",     "else",   "enable",  "esac",  "eval",     "exec",      "exit",     "export",
    "fc",       "fg",     "fi",      "for",   "function", "getopts",   "hash",     "help",
    "history",  "if",     "jobs",    "kill",  "let",      "local",     "logout",   "mapfile",
    "popd",     "printf", "pushd",   "pwd",   "read",     "readarray", "readonly", "return",
    "select",   "set",    "shift",   "shopt", "source",   "suspend",   "test",     "then",
    "time",     "times",  "trap",    "type"};
constexpr std::array<std::string_view, 11> kMoreShellWords = {
    "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "in", "{", "!"};

bool shell_word(std::string_view word) {
    return std::find(kShellWords.begin(), kShellWords.end(), word) != kShellWords.end() ||
           std::find(kMoreShellWords.begin(), kMoreShellWords.end(), word) != kMoreShellWords.end();
}

/// Letters that mean nothing but themselves to a shell, anywhere in a word.
bool plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./,:@%+=").find(c) != std::string_view::npos;
}

constexpr const char* kPeersFile = "peers";

Status give(int dir, const char* path, const UserFacts& user, bool root) {
    if (!root) return Ok{};
    struct stat about {};
    if (::fstatat(dir, path, &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_uid == user.uid &&
        about.st_gid == user.gid)
        return Ok{};
    if (::fchownat(dir, path, user.uid, user.gid, AT_SYMLINK_NOFOLLOW) != 0)
        return system_error("give to user " + user.name, path);
    return Ok{};
}

Status make_folder(int dir, const char* path, const UserFacts& user, bool root) {
    if (::mkdirat(dir, path, 0700) != 0 && errno != EEXIST)
        return system_error("make folder", path);
    return give(dir, path, user, root);
}

Status write_for_user(int dir, const char* path, std::string_view text, const UserFacts& user,
                      bool root) {
    if (const int failed = write_new_file(dir, path, text); failed != 0)
        return system_error("write", path, failed);
    return give(dir, path, user, root);
}

/// muster-task, as the task sees it.
std::string own_program(const PrepareAsk& ask) {
    return ask.spec.image.empty() ? ask.supervisor : inside::kInit;
}

EnvironmentAsk environment_ask(const PrepareAsk& ask, UserFacts user) {
    const bool contained = !ask.spec.image.empty();
    const std::string run = contained ? inside::kRun : ask.folder + "/" + files::kRun;
    const bool gang = is_mpi_gang(ask.order, ask.spec);
    return {.order = ask.order,
            .spec = ask.spec,
            .user = std::move(user),
            .devices = find_devices(ask.devices, ask.order.devices),
            .interface = ask.interface,
            .cpus = ask.cpus_bound ? ask.cpus : std::string(),
            .interfaces = interfaces_among(find_devices(ask.devices, ask.order.devices)),
            .shell = ask.shell,
            .socket = run + "/sock",
            .notice_file = run + "/notice",
            .topology_file = run + "/topology.json",
            .host_file = run + "/hostfile",
            .scratch = contained ? inside::kScratch : ask.folder + "/" + files::kScratch,
            .machine_file = run + "/machinefile",
            .launch_file = gang ? run + "/" + kPeersFile : "",
            .launch_bin = gang ? run + "/bin" : "",
            .checkpoint_dir = {},
            .latest_checkpoint = {}};
}

std::variant<UserFacts, Refused> user_of(const PrepareAsk& ask) {
    auto user = ask.users ? ask.users->find(ask.order.user) : find_user(ask.order.user);
    if (!user) return Refused{.message = user.error().message};
    if (!ask.root && user->uid != ::geteuid())
        return Refused{.message = "the agent runs without root as uid " +
                                  std::to_string(::geteuid()) + " and cannot run tasks of " +
                                  ask.order.user};
    return *std::move(user);
}

Status make_files(const PrepareAsk& ask, const EnvironmentAsk& environment) {
    const Fd dir(::open(ask.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir) return system_error("open", ask.folder);
    MUSTER_TRY(make_folder(dir.get(), files::kRun, environment.user, ask.root));
    MUSTER_TRY(make_folder(dir.get(), files::kScratch, environment.user, ask.root));
    const Fd run(::openat(dir.get(), files::kRun, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!run) return system_error("open", files::kRun);
    MUSTER_TRY(
        write_for_user(run.get(), "hostfile", host_file(ask.order), environment.user, ask.root));
    if (ask.spec.launch == model::Launch::Mpi) {
        MUSTER_TRY(write_for_user(run.get(), "machinefile", machine_file(ask.order),
                                  environment.user, ask.root));
    }
    if (is_mpi_gang(ask.order, ask.spec)) {
        MUSTER_TRY(make_folder(run.get(), "bin", environment.user, ask.root));
        for (const char* name : {"bin/muster-rsh", "bin/ssh"})
            if (::symlinkat(own_program(ask).c_str(), run.get(), name) != 0 && errno != EEXIST)
                return system_error("make link", name);
    }
    return write_for_user(run.get(), "topology.json", topology_json(environment), environment.user,
                          ask.root);
}

/// What `launch: mpi` over several nodes needs of the supervisor.
void prepare_gang(const PrepareAsk& ask, const std::string& shell, Launch& launch) {
    launch.remote = (*ask.order.gang)[ask.order.key.rank].address;
    launch.shell = shell;
    if (runs_command(ask.order, ask.spec)) return;
    const bool contained = !ask.spec.image.empty();
    const std::string up = std::string(files::kRun) + "/up";
    launch.run = {own_program(ask), "--wait",
                  contained ? std::string(inside::kRun) + "/up" : ask.folder + "/" + up};
    if (contained) launch.remote_after = up;
}

/// Locked memory is what RDMA registers; more is not given than the agent has itself.
std::vector<LimitLaunch> limits() {
    std::vector<LimitLaunch> all;
    for (const auto resource : {RLIMIT_MEMLOCK, RLIMIT_NOFILE}) {
        rlimit now{};
        if (::getrlimit(resource, &now) != 0 || now.rlim_cur == now.rlim_max) continue;
        all.push_back({.resource = resource, .soft = now.rlim_max, .hard = now.rlim_max});
    }
    all.push_back({.resource = RLIMIT_CORE, .soft = 0, .hard = RLIM_INFINITY});
    return all;
}

/// Links in an image are the image's own and must not be followed here.
std::string shell_in(const std::string& rootfs) {
    struct stat about {};
    for (const char* bash : {"/bin/bash", "/usr/bin/bash"})
        if (::lstat((rootfs + bash).c_str(), &about) == 0) return bash;
    return "/bin/sh";
}

/// In a container these come from the image, unless the job sets them itself.
void leave_to_image(const PrepareAsk& ask, const UserFacts& user, std::vector<std::string>& env) {
    const auto own = [&](std::string_view name) {
        for (const auto* variables : {&ask.spec.env, &ask.spec.roles[ask.order.role].env})
            for (const model::EnvVar& variable : *variables)
                if (variable.name == name) return true;
        return false;
    };
    for (const char* name : {"PATH", "SHELL", "HOME"})
        if (!own(name))
            std::erase_if(env, [&](const std::string& variable) {
                return variable.starts_with(std::string(name) + "=");
            });
    if (!own("HOME"))
        env.push_back(user.uid == 0 ? "HOME=/root" : std::string("HOME=") + inside::kScratch);
}

Status make_bundle(const PrepareAsk& ask, const EnvironmentAsk& environment, Prepared& prepared) {
    const std::string bundle = ask.folder + "/bundle";
    for (const char* folder : {"/bundle/rootfs", "/upper", "/work"})
        MUSTER_TRY(make_folders(ask.folder + folder, 0755));
    BundleAsk wanted{
        .spec = ask.spec,
        .image = *ask.image,
        .user = environment.user,
        .folder = ask.folder,
        .supervisor = ask.supervisor,
        .device_files = {},
        .shm = ask.spec.roles[ask.order.role].shm,
        .checkpoint_dir = ask.spec.checkpoint.dir.starts_with("/") ? ask.spec.checkpoint.dir : "",
        .cgroups_path = ask.cgroups_path};
    for (const model::Device& device : environment.devices)
        wanted.device_files.insert(wanted.device_files.end(), device.files.begin(),
                                   device.files.end());
    if (!environment.devices.empty())
        wanted.device_files.insert(wanted.device_files.end(), ask.common_files.begin(),
                                   ask.common_files.end());
    if (const int failed = write_small_file(AT_FDCWD, (bundle + "/config.json").c_str(),
                                            bundle_config(wanted), false);
        failed != 0)
        return system_error("write", bundle + "/config.json", failed);
    Launch& launch = prepared.launch;
    leave_to_image(ask, environment.user, launch.env);
    launch.workdir = !ask.spec.workdir.empty()       ? ask.spec.workdir
                     : ask.image->workdir.size() > 1 ? ask.image->workdir
                                                     : inside::kScratch;
    launch.container = container_command(ask.oci, ask.oci_root, bundle);
    launch.enter = enter_command(ask.oci, ask.oci_root, environment.user, launch.workdir);
    launch.container_id = "muster-" + ask.folder.substr(ask.folder.rfind('/') + 1);
    launch.overlay = "lowerdir=" + ask.image->rootfs + ",upperdir=" + ask.folder +
                     "/upper,workdir=" + ask.folder + "/work";
    launch.overlay_target = bundle + "/rootfs";
    return Ok{};
}

std::string absolute(const std::string& path, const std::string& base) {
    return path.empty() || path.front() == '/' ? path : base + "/" + path;
}

}  // namespace

std::vector<std::string> command_of(const std::string& script, const std::string& shell) {
    std::string_view text = script;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    std::vector<std::string> words;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const std::string_view word = text.substr(at, end - at);
        if (!std::all_of(word.begin(), word.end(), plain)) return {shell, "-c", script};
        if (!word.empty()) words.emplace_back(word);
        at = end + 1;
    }
    // `exec` takes programs alone, never what the shell has built in; its options are the shell's.
    const bool exec = words.size() > 1 && words.front() == "exec" && words[1].front() != '-';
    if (exec) words.erase(words.begin());
    if (words.empty() || (!exec && shell_word(words.front())) ||
        words.front().find('=') != std::string::npos)
        return {shell, "-c", script};
    return words;
}

std::variant<Prepared, Refused> prepare(const PrepareAsk& ask) {
    if (!ask.order.gang || ask.order.key.rank >= ask.order.gang->size() ||
        ask.order.role >= ask.spec.roles.size())
        return Refused{.message = "the order names no place in its gang"};
    auto resolved = user_of(ask);
    if (auto* refused = std::get_if<Refused>(&resolved)) return std::move(*refused);
    EnvironmentAsk environment = environment_ask(ask, std::get<UserFacts>(std::move(resolved)));
    if (environment.devices.size() != ask.order.devices.size())
        return Refused{.cause = model::Cause::DeviceFault,
                       .message = "a device of the order is not on this node any more"};
    const std::string workdir = ask.spec.workdir.empty() ? environment.scratch : ask.spec.workdir;
    Prepared prepared;
    prepared.checkpoint_dir = checkpoint_folder(ask);
    prepared.checkpoint_dir_on_node = path_on_node(ask, prepared.checkpoint_dir);
    environment.checkpoint_dir = prepared.checkpoint_dir;
    if (!prepared.checkpoint_dir.empty()) {
        const auto newest = newest_checkpoint(
            prepared.checkpoint_dir_on_node, prepared.checkpoint_dir,
            {.step = ask.order.checkpoint_step, .path = ask.order.latest_checkpoint});
        if (newest) {
            prepared.latest_checkpoint = environment.latest_checkpoint = newest->path;
            prepared.checkpoint_step = newest->step;
        }
    }
    if (Status made = make_files(ask, environment); !made)
        return Refused{.message = made.error().message};

    const std::string shell = ask.image ? shell_in(ask.image->rootfs) : ask.shell;
    Launch& launch = prepared.launch;
    launch.switch_user = ask.root;
    launch.uid = environment.user.uid;
    launch.gid = environment.user.gid;
    launch.groups = environment.user.groups;
    launch.env = task_environment(environment);
    for (const model::Secret& secret : ask.spec.secrets)
        launch.secrets.push_back(secret.name + "=" + secret.file);
    if (!ask.spec.setup.empty()) launch.setup = {shell, "-c", ask.spec.setup};
    launch.run = command_of(ask.spec.roles[ask.order.role].run, shell);
    if (is_mpi_gang(ask.order, ask.spec)) prepare_gang(ask, shell, launch);
    launch.workdir = workdir;
    for (int rank = 0; rank < local_ranks(ask.order, ask.spec); ++rank)
        launch.ranks.push_back({.env = rank_environment(environment, rank)});
    launch.limits = limits();
    launch.barrier = ask.order.barrier;
    if (ask.order.gang->size() > 1) launch.fence_ms = ask.fence.ms;
    launch.pty = ask.spec.pty && ask.order.key.rank == 0;
    launch.reset_oom_score = ask.reset_oom_score;
    launch.log_bytes_max = ask.log_bytes_max;
    launch.cpus = ask.cpus;
    launch.cpus_bound = ask.cpus_bound;
    if (!ask.order.barrier)
        prepared.master =
            master_environment(environment, ask.order.gang->front().address, ask.port);
    for (const std::string& variable : prepared.master) launch.env.push_back(variable);
    if (ask.image) {
        if (Status made = make_bundle(ask, environment, prepared); !made)
            return Refused{.message = made.error().message};
    }
    prepared.user = std::move(environment.user);
    prepared.devices = std::move(environment.devices);
    return prepared;
}

std::string checkpoint_folder(const PrepareAsk& ask) {
    const std::string scratch =
        ask.spec.image.empty() ? ask.folder + "/" + files::kScratch : inside::kScratch;
    return absolute(ask.spec.checkpoint.dir, ask.spec.workdir.empty() ? scratch : ask.spec.workdir);
}

std::string path_on_node(const PrepareAsk& ask, const std::string& seen) {
    if (ask.spec.image.empty() || seen.empty()) return seen;
    std::vector<std::pair<std::string, std::string>> shown = {
        {inside::kScratch, ask.folder + "/" + files::kScratch}};
    for (const model::Mount& mount : ask.spec.mounts)
        shown.emplace_back(mount.target, mount.source);
    std::size_t longest = 0;
    std::string found = seen;  // Else it is shown at its own path.
    for (const auto& [target, source] : shown) {
        const bool below = seen == target || seen.starts_with(target + "/");
        if (!below || target.size() < longest) continue;
        longest = target.size();
        found = source + seen.substr(target.size());
    }
    return found;
}

std::string go_file(const PrepareAsk& ask, const std::string& address, int port) {
    std::string text;
    for (const std::string& variable : master_environment(environment_ask(ask, {}), address, port))
        put_record(text, "env", variable);
    put_record(text, "end", 1);
    return text;
}

Status write_peers(const PrepareAsk& ask, const std::vector<protocol::LaunchPoint>& points) {
    auto found = user_of(ask);
    const auto* user = std::get_if<UserFacts>(&found);
    const protocol::Gang& gang = *ask.order.gang;
    if (user == nullptr || points.size() != gang.size())
        return Error{.code = Code::Internal, .message = "the release names not all of the gang"};
    remote::Peers peers{.user = user->name, .self = ask.order.key.rank, .nodes = {}};
    for (std::size_t rank = 0; rank < gang.size(); ++rank)
        peers.nodes.push_back({.name = gang[rank].name,
                               .address = gang[rank].address,
                               .port = points[rank].port,
                               .secret = points[rank].secret});
    const std::string folder = ask.folder + "/" + files::kRun;
    const Fd run(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    // The folder is the user's own by now, and what lies there may be a link to elsewhere.
    (void)::unlinkat(run.get(), kPeersFile, 0);
    const Fd file(::openat(run.get(), kPeersFile,
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const std::string bytes = encode(peers);
    if (!file || (ask.root && ::fchown(file.get(), user->uid, user->gid) != 0) ||
        ::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        return system_error("write", folder + "/" + kPeersFile);
    return Ok{};
}

std::vector<model::Device> find_devices(const std::vector<model::Device>& known,
                                        const std::vector<std::string>& ids) {
    std::vector<model::Device> found;
    for (const std::string& id : ids)
        for (const model::Device& device : known)
            if (device.id == id) found.push_back(device);
    return found;
}

std::set<std::string> interfaces_among(const std::vector<model::Device>& devices) {
    std::set<std::string> found;
    for (const model::Device& device : devices)
        for (const std::string& nic : device.nics)
            if (::access(("/sys/class/net/" + nic).c_str(), F_OK) == 0) found.insert(nic);
    return found;
}

std::string interface_of(const std::string& address) {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return {};
    std::string name;
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr) continue;
        const int family = each->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        char text[NI_MAXHOST];
        const auto size =
            static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        if (::getnameinfo(each->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) ==
                0 &&
            address == text) {
            name = each->ifa_name;
            break;
        }
    }
    ::freeifaddrs(all);
    return name;
}

}  // namespace muster::os
