#include "os/supervisor/group.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

namespace muster::os {
namespace {

std::string read_text(const std::string& path) {
    std::string text;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::read(fd, buffer, sizeof buffer)) > 0)
        text.append(buffer, static_cast<std::size_t>(n));
    ::close(fd);
    return text;
}

bool write_text(const std::string& path, std::string_view text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = ::write(fd, text.data(), text.size());
    ::close(fd);
    return n == static_cast<ssize_t>(text.size());
}

/// The number after "key " in a flat keyed file, or -1.
std::int64_t keyed(std::string_view text, std::string_view key) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        if (line.size() > key.size() && line.substr(0, key.size()) == key &&
            line[key.size()] == ' ')
            return to_number(line.substr(key.size() + 1));
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
    return -1;
}

void add_pids(std::string_view text, std::vector<pid_t>& pids) {
    while (!text.empty()) {
        const std::size_t end = text.find_first_of(" \n");
        if (const auto pid = static_cast<pid_t>(to_number(text.substr(0, end))); pid > 0)
            pids.push_back(pid);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
}

void add_children(pid_t parent, std::vector<pid_t>& pids) {
    const std::string base = "/proc/" + std::to_string(parent) + "/task/";
    DIR* threads = ::opendir(base.c_str());
    if (threads == nullptr) return;
    std::vector<pid_t> children;
    while (const dirent* entry = ::readdir(threads)) {
        if (entry->d_name[0] == '.') continue;
        add_pids(read_text(base + entry->d_name + "/children"), children);
    }
    ::closedir(threads);
    for (const pid_t child : children) {
        pids.push_back(child);
        add_children(child, pids);
    }
}

std::vector<pid_t> threads_of(pid_t pid) {
    std::vector<pid_t> threads;
    DIR* folder = ::opendir(("/proc/" + std::to_string(pid) + "/task").c_str());
    if (folder == nullptr) return threads;
    while (const dirent* entry = ::readdir(folder))
        if (entry->d_name[0] != '.')
            threads.push_back(static_cast<pid_t>(to_number(entry->d_name)));
    ::closedir(folder);
    return threads;
}

/// "0-3,8"
cpu_set_t cpu_set(std::string_view list) {
    cpu_set_t set;
    CPU_ZERO(&set);
    while (!list.empty()) {
        const std::string_view part = list.substr(0, list.find(','));
        list.remove_prefix(std::min(part.size() + 1, list.size()));
        const std::size_t dash = part.find('-');
        const std::int64_t first = to_number(part);
        const std::int64_t last = dash == part.npos ? first : to_number(part.substr(dash + 1));
        for (std::int64_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu)
            CPU_SET(static_cast<std::size_t>(cpu), &set);
    }
    return set;
}

/// Also of groups that a container or the task itself made below.
void add_group(const std::string& path, std::vector<pid_t>& pids) {
    add_pids(read_text(path + "/cgroup.procs"), pids);
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) return;
    while (const dirent* entry = ::readdir(folder))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            add_group(path + "/" + entry->d_name, pids);
    ::closedir(folder);
}

bool remove_group(const std::string& path) {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
    if (DIR* folder = ::opendir(path.c_str())) {
        while (const dirent* entry = ::readdir(folder))
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                remove_group(path + "/" + entry->d_name);
        ::closedir(folder);
    }
    return ::rmdir(path.c_str()) == 0;
}

}  // namespace

std::vector<pid_t> ProcessGroup::processes() const {
    std::vector<pid_t> pids;
    for (const GroupLaunch& group : groups_)
        if (group.own) add_group(group.path, pids);
    add_children(::getpid(), pids);
    std::sort(pids.begin(), pids.end());
    pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
    return pids;
}

void ProcessGroup::kill_all() const {
    bool killed = false;
    for (const GroupLaunch& group : groups_)
        if (group.own && group.unified) killed |= write_text(group.path + "/cgroup.kill", "1");
    // Those that are in no group of ours, and what forks while it is being listed.
    for (int pass = 0; pass < (killed ? 1 : 20); ++pass) {
        const std::vector<pid_t> pids = processes();
        if (pids.empty()) return;
        for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    }
}

void ProcessGroup::kill_groups() const {
    for (const GroupLaunch& group : groups_) {
        if (!group.own) continue;
        if (group.unified && write_text(group.path + "/cgroup.kill", "1")) continue;
        std::vector<pid_t> pids;
        add_group(group.path, pids);
        for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    }
}

void run_self_on(std::string_view cpus) {
    const cpu_set_t set = cpu_set(cpus);
    if (CPU_COUNT(&set) > 0) ::sched_setaffinity(0, sizeof set, &set);
}

void ProcessGroup::run_on(std::string_view cpus) const {
    cpu_set_t before, now;
    if (::sched_getaffinity(0, sizeof before, &before) != 0) return;
    run_self_on(cpus);
    if (::sched_getaffinity(0, sizeof now, &now) != 0 || CPU_EQUAL(&before, &now)) return;
    // Twice: what forks while it is being listed inherits from who had not been moved yet.
    for (int pass = 0; pass < 2; ++pass)
        for (const pid_t pid : processes())
            for (const pid_t thread : threads_of(pid)) {
                cpu_set_t its;
                if (::sched_getaffinity(thread, sizeof its, &its) == 0 && CPU_EQUAL(&its, &before))
                    ::sched_setaffinity(thread, sizeof now, &now);
            }
}

bool ProcessGroup::empty() const {
    for (const GroupLaunch& group : groups_) {
        if (!group.own) continue;
        if (group.unified) {
            if (keyed(read_text(group.path + "/cgroup.events"), "populated") == 1) return false;
        } else {
            std::vector<pid_t> pids;
            add_group(group.path, pids);
            if (!pids.empty()) return false;
        }
    }
    return true;
}

bool ProcessGroup::oom_killed() const {
    for (const GroupLaunch& group : groups_) {
        if (!group.memory || !group.own) continue;
        const char* file = group.unified ? "/memory.events" : "/memory.oom_control";
        if (keyed(read_text(group.path + file), "oom_kill") > 0) return true;
    }
    return false;
}

std::int64_t ProcessGroup::peak_memory() const {
    for (const GroupLaunch& group : groups_) {
        if (!group.memory || !group.own) continue;
        const char* file = group.unified ? "/memory.peak" : "/memory.max_usage_in_bytes";
        return to_number(read_text(group.path + file));
    }
    return 0;
}

std::int64_t ProcessGroup::cpu_ms() const {
    for (const GroupLaunch& group : groups_) {
        if (!group.unified || !group.own) continue;
        const std::int64_t us = keyed(read_text(group.path + "/cpu.stat"), "usage_usec");
        if (us >= 0) return us / 1000;
    }
    return -1;
}

bool ProcessGroup::remove() const {
    bool removed = true;
    for (const GroupLaunch& group : groups_)
        if (group.own) removed &= remove_group(group.path);
    return removed;
}

std::string describe_stuck(pid_t pid) {
    const std::string base = "/proc/" + std::to_string(pid);
    const std::string stat = read_text(base + "/stat");
    const std::size_t open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) return {};
    std::string wait = read_text(base + "/wchan");
    if (wait.empty() || wait == "0") wait = "an unknown place";
    std::string text = "pid " + std::to_string(pid) + " " + stat.substr(open, close - open + 1) +
                       " state " + stat.substr(std::min(close + 2, stat.size()), 1) + " in " + wait;
    DIR* folder = ::opendir((base + "/fd").c_str());
    if (folder == nullptr) return text;
    std::string file;
    while (const dirent* entry = ::readdir(folder)) {
        char target[512];
        const ssize_t n =
            ::readlink((base + "/fd/" + entry->d_name).c_str(), target, sizeof target);
        const std::string_view name(target, n > 0 ? static_cast<std::size_t>(n) : 0);
        if (name.empty() || name.front() != '/' || name == "/dev/null" ||
            name.substr(0, 9) == "/dev/pts/")
            continue;
        // A device says more than a file: keep the first device, else the first file.
        const bool device = name.substr(0, 5) == "/dev/";
        if (file.empty() || device) file = name;
        if (device) break;
    }
    ::closedir(folder);
    if (!file.empty()) text += ", file " + file;
    return text;
}

}  // namespace muster::os
