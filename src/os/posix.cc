#include "os/posix.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

namespace muster::os {
namespace {

std::int64_t now_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

Status remove_below(int folder, dev_t device) {
    DIR* listing = ::fdopendir(folder);
    if (listing == nullptr) return system_error("read folder", "");
    Status status = Ok{};
    while (const dirent* entry = ::readdir(listing)) {
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        struct stat about {};
        if (::fstatat(::dirfd(listing), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISDIR(about.st_mode)) {
            if (about.st_dev != device) {
                status = system_error("remove", name, EBUSY);
                continue;
            }
            const int below = ::openat(::dirfd(listing), entry->d_name,
                                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below >= 0) {
                if (Status part = remove_below(below, device); !part) status = std::move(part);
            }
        }
        if (::unlinkat(::dirfd(listing), entry->d_name,
                       S_ISDIR(about.st_mode) ? AT_REMOVEDIR : 0) != 0 &&
            errno != ENOENT)
            status = system_error("remove", name);
    }
    ::closedir(listing);
    return status;
}

}  // namespace

void Fd::reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

Error system_error(std::string_view what, std::string_view name, int error) {
    if (error == 0) error = errno;
    std::string message = "cannot " + std::string(what) + " " + std::string(name) + ": ";
    message += std::strerror(error);
    const Code code = error == ENOENT                      ? Code::NotFound
                      : error == ENOSPC || error == EDQUOT ? Code::NoSpace
                      : error == EACCES || error == EPERM  ? Code::Denied
                                                           : Code::Internal;
    return {.code = code, .message = std::move(message)};
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return system_error("open", path);
    std::string text;
    char buffer[16 * 1024];
    while (true) {
        const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return system_error("read", path);
        if (n == 0) return text;
        text.append(buffer, static_cast<std::size_t>(n));
        if (text.size() > bytes_max)
            return Error{
                .code = Code::TooLarge,
                .message = path + " is larger than " + std::to_string(bytes_max) + " bytes"};
    }
}

Status write_kernel_file(const std::string& path, std::string_view text) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return system_error("open", path);
    if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return system_error("write '" + std::string(text) + "' to", path);
    return Ok{};
}

Status make_folders(const std::string& path, mode_t mode) {
    for (std::size_t at = 1; at != std::string::npos;) {
        at = path.find('/', at);
        const std::string part = path.substr(0, at);
        if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST)
            return system_error("make folder", part);
        if (at != std::string::npos) ++at;
    }
    return Ok{};
}

Status remove_tree(int dir, const char* name) {
    struct stat about {};
    if (::fstatat(dir, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? Status(Ok{}) : Status(system_error("remove", name));
    if (S_ISDIR(about.st_mode)) {
        const int folder = ::openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0) return system_error("remove", name);
        MUSTER_TRY(remove_below(folder, about.st_dev));
    }
    if (::unlinkat(dir, name, S_ISDIR(about.st_mode) ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
        return system_error("remove", name);
    return Ok{};
}

std::vector<std::string> list_folder(const std::string& path) {
    std::vector<std::string> names;
    DIR* listing = ::opendir(path.c_str());
    if (listing == nullptr) return names;
    while (const dirent* entry = ::readdir(listing)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(listing);
    std::sort(names.begin(), names.end());
    return names;
}

Ran run_program(const RunAsk& ask) {
    const std::vector<std::string>& argv = ask.argv;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {.out = std::strerror(errno)};
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    pid_t pid = -1;
    const int failed = ::posix_spawnp(&pid, words[0], &actions, &attributes, words.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    Fd reading(ends[0]);
    if (failed != 0) return {.out = argv.front() + ": " + std::strerror(failed)};
    Ran ran;
    const std::int64_t until = now_ms() + ask.timeout_ms;
    char buffer[8192];
    while (true) {
        pollfd polled{.fd = reading.get(), .events = POLLIN, .revents = 0};
        const std::int64_t left = std::max<std::int64_t>(until - now_ms(), 0);
        const int ready = ::poll(
            &polled, 1, static_cast<int>(std::min<std::int64_t>(left, ask.on_tick ? 500 : left)));
        if (ready < 0 && errno == EINTR) continue;
        const bool go_on = !ask.on_tick || ask.on_tick();
        if (ready <= 0 && left > 0 && go_on) continue;
        if (ready <= 0 || !go_on) {
            ::kill(-pid, SIGKILL);
            if (go_on) ran.out += "[ended after " + std::to_string(ask.timeout_ms / 1000) + " s]";
            break;
        }
        const ssize_t n = ::read(reading.get(), buffer, sizeof buffer);
        if (n <= 0) break;
        if (ran.out.size() < ask.bytes_max) ran.out.append(buffer, static_cast<std::size_t>(n));
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ran;
}

void unmap_code() {
    const auto maps = read_file("/proc/self/maps");
    if (!maps) return;
    for (std::size_t at = 0; at < maps->size();) {
        const std::size_t end = std::min(maps->find('\n', at), maps->size());
        unsigned long begin = 0, after = 0;
        char rights[5] = {};
        // Only what is a file's and cannot be written: it comes back from the file as it was.
        if (std::sscanf(maps->c_str() + at, "%lx-%lx %4s", &begin, &after, rights) == 3 &&
            std::string_view(rights) == "r-xp" &&
            std::memchr(maps->data() + at, '/', end - at) != nullptr)
            (void)::madvise(reinterpret_cast<void*>(begin), after - begin, MADV_DONTNEED);
        at = end + 1;
    }
}

}  // namespace muster::os
