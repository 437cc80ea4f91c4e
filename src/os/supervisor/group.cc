#include "os/supervisor/group.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
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
