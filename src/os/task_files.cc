#include "os/task_files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::os {
namespace {

constexpr std::size_t kSmallFileMax = 64 << 20;

/// "a:b:c" cut at the first two colons at most.
std::string_view take(std::string_view& text, char separator) {
    const std::size_t at = text.find(separator);
    const std::string_view head = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
    return head;
}

int write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
}

/// In place of what an older file held. Not O_TRUNC: ext4 puts a file that was cut to nothing and
/// written anew on the disk as it is closed.
int write_over(int fd, std::string_view bytes) {
    struct stat about {};
    const auto size = static_cast<off_t>(bytes.size());
    if (::fstat(fd, &about) != 0 || (about.st_size > size && ::ftruncate(fd, size) != 0))
        return errno;
    return write_all(fd, bytes);
}

}  // namespace

void put_record(std::string& out, std::string_view key, std::string_view value) {
    out.append(key).push_back('=');
    out.append(value.substr(0, value.find('\0'))).push_back('\0');
}

void put_record(std::string& out, std::string_view key, std::int64_t value) {
    char text[24];
    const int n = std::snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
    put_record(out, key, std::string_view(text, static_cast<std::size_t>(n)));
}

std::int64_t to_number(std::string_view text) {
    const bool negative = !text.empty() && text.front() == '-';
    if (negative) text.remove_prefix(1);
    std::int64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') break;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, c - '0', &value))
            return 0;
    }
    return negative ? -value : value;
}

std::string encode(const Launch& launch) {
    std::string out;
    out.reserve(4096);
    put_record(out, "version", 1);
    if (launch.switch_user) {
        put_record(out, "uid", launch.uid);
        put_record(out, "gid", launch.gid);
        for (const std::uint32_t group : launch.groups) put_record(out, "group", group);
    }
    for (const std::string& variable : launch.env) put_record(out, "env", variable);
    for (const std::string& secret : launch.secrets) put_record(out, "secret", secret);
    for (const std::string& word : launch.setup) put_record(out, "setup", word);
    for (const std::string& word : launch.run) put_record(out, "run", word);
    for (const std::string& word : launch.container) put_record(out, "container", word);
    for (const std::string& word : launch.enter) put_record(out, "enter", word);
    put_record(out, "workdir", launch.workdir);
    for (const RankLaunch& rank : launch.ranks) {
        put_record(out, "rank", "");
        for (const std::string& variable : rank.env) put_record(out, "rank-env", variable);
    }
    for (const LimitLaunch& limit : launch.limits) {
        put_record(out, "limit",
                   std::to_string(limit.resource) + ":" + std::to_string(limit.soft) + ":" +
                       std::to_string(limit.hard));
    }
    for (const GroupLaunch& group : launch.groups_to_join) {
        std::string flags;
        if (group.unified) flags.push_back('u');
        if (group.memory) flags.push_back('m');
        if (group.own) flags.push_back('o');
        if (group.join) flags.push_back('j');
        put_record(out, "cgroup", flags + ":" + group.path);
    }
    put_record(out, "remote", launch.remote);
    put_record(out, "shell", launch.shell);
    put_record(out, "remote-after", launch.remote_after);
    put_record(out, "barrier", launch.barrier);
    put_record(out, "pty", launch.pty);
    put_record(out, "container-id", launch.container_id);
    put_record(out, "overlay", launch.overlay);
    put_record(out, "overlay-target", launch.overlay_target);
    put_record(out, "reset-oom-score", launch.reset_oom_score);
    put_record(out, "fence-ms", launch.fence_ms);
    put_record(out, "log-bytes-max", launch.log_bytes_max);
    if (!launch.cpus.empty()) put_record(out, "cpus", launch.cpus);
    if (launch.cpus_bound) put_record(out, "cpus-bound", 1);
    put_record(out, "end", 1);
    return out;
}

namespace {

void take_limit(Launch& launch, std::string_view value) {
    const auto resource = static_cast<int>(to_number(take(value, ':')));
    const auto soft = std::strtoull(std::string(take(value, ':')).c_str(), nullptr, 10);
    launch.limits.push_back({.resource = resource,
                             .soft = soft,
                             .hard = std::strtoull(std::string(value).c_str(), nullptr, 10)});
}

void take_group(Launch& launch, std::string_view value) {
    const std::string_view flags = take(value, ':');
    launch.groups_to_join.push_back({.path = std::string(value),
                                     .unified = flags.find('u') != std::string_view::npos,
                                     .memory = flags.find('m') != std::string_view::npos,
                                     .own = flags.find('o') != std::string_view::npos,
                                     .join = flags.find('j') != std::string_view::npos});
}

void take_launch_record(Launch& launch, std::string_view key, std::string_view value) {
    const auto number = to_number(value);
    if (key == "uid") {
        launch.switch_user = true;
        launch.uid = static_cast<std::uint32_t>(number);
    } else if (key == "gid") {
        launch.gid = static_cast<std::uint32_t>(number);
    } else if (key == "group") {
        launch.groups.push_back(static_cast<std::uint32_t>(number));
    } else if (key == "env") {
        launch.env.emplace_back(value);
    } else if (key == "secret") {
        launch.secrets.emplace_back(value);
    } else if (key == "setup") {
        launch.setup.emplace_back(value);
    } else if (key == "run") {
        launch.run.emplace_back(value);
    } else if (key == "container") {
        launch.container.emplace_back(value);
    } else if (key == "enter") {
        launch.enter.emplace_back(value);
    } else if (key == "workdir") {
        launch.workdir = value;
    } else if (key == "rank") {
        launch.ranks.emplace_back();
    } else if (key == "rank-env" && !launch.ranks.empty()) {
        launch.ranks.back().env.emplace_back(value);
    } else if (key == "limit") {
        take_limit(launch, value);
    } else if (key == "cgroup") {
        take_group(launch, value);
    } else if (key == "remote") {
        launch.remote = value;
    } else if (key == "shell") {
        launch.shell = value;
    } else if (key == "remote-after") {
        launch.remote_after = value;
    } else if (key == "barrier") {
        launch.barrier = number != 0;
    } else if (key == "pty") {
        launch.pty = number != 0;
    } else if (key == "container-id") {
        launch.container_id = value;
    } else if (key == "overlay") {
        launch.overlay = value;
    } else if (key == "overlay-target") {
        launch.overlay_target = value;
    } else if (key == "reset-oom-score") {
        launch.reset_oom_score = number != 0;
    } else if (key == "fence-ms") {
        launch.fence_ms = number;
    } else if (key == "log-bytes-max") {
        launch.log_bytes_max = number;
    } else if (key == "cpus") {
        launch.cpus = value;
    } else if (key == "cpus-bound") {
        launch.cpus_bound = number != 0;
    }
}

}  // namespace

bool decode_launch(std::string_view bytes, Launch& launch) {
    bool whole = false;
    each_record(bytes, [&](std::string_view key, std::string_view value) {
        if (key == "end") whole = true;
        take_launch_record(launch, key, value);
    });
    return whole && !launch.run.empty() && !launch.ranks.empty();
}

std::string encode(const Exit& exit) {
    std::string out;
    put_record(out, "launch-failed", exit.launch_failed);
    put_record(out, "setup-failed", exit.setup_failed);
    put_record(out, "stopped", exit.stopped);
    put_record(out, "killed", exit.killed);
    put_record(out, "fenced", exit.fenced);
    put_record(out, "exit-code", exit.exit_code);
    put_record(out, "signal", exit.signal);
    put_record(out, "local-rank", exit.local_rank);
    put_record(out, "oom", exit.oom);
    put_record(out, "peak-memory", exit.peak_memory);
    put_record(out, "cpu-ms", exit.cpu_ms);
    put_record(out, "started-ms", exit.started_ms);
    put_record(out, "ended-ms", exit.ended_ms);
    put_record(out, "message", exit.message);
    put_record(out, "end", 1);
    return out;
}

bool decode_exit(std::string_view bytes, Exit& exit) {
    bool whole = false;
    each_record(bytes, [&](std::string_view key, std::string_view value) {
        const std::int64_t number = to_number(value);
        if (key == "launch-failed") exit.launch_failed = number != 0;
        if (key == "setup-failed") exit.setup_failed = number != 0;
        if (key == "stopped") exit.stopped = number != 0;
        if (key == "killed") exit.killed = number != 0;
        if (key == "fenced") exit.fenced = number != 0;
        if (key == "exit-code") exit.exit_code = static_cast<int>(number);
        if (key == "signal") exit.signal = static_cast<int>(number);
        if (key == "local-rank") exit.local_rank = static_cast<int>(number);
        if (key == "oom") exit.oom = number != 0;
        if (key == "peak-memory") exit.peak_memory = number;
        if (key == "cpu-ms") exit.cpu_ms = number;
        if (key == "started-ms") exit.started_ms = number;
        if (key == "ended-ms") exit.ended_ms = number;
        if (key == "message") exit.message = value;
        if (key == "end") whole = true;
    });
    return whole;
}

bool read_small_file(int dir, const char* path, std::string& out) {
    const int fd = ::openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    out.clear();
    char buffer[16 * 1024];
    while (out.size() <= kSmallFileMax) {
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        if (n == 0) {
            ::close(fd);
            return true;
        }
        out.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(fd);
    return false;
}

int write_small_file(int dir, const char* path, std::string_view bytes, bool sync, unsigned mode) {
    const std::string temporary = std::string(path) + ".new";
    const int fd =
        ::openat(dir, temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return errno;
    int failed = write_over(fd, bytes);
    if (failed == 0 && sync && ::fdatasync(fd) != 0) failed = errno;
    ::close(fd);
    if (failed == 0 && ::renameat(dir, temporary.c_str(), dir, path) != 0) failed = errno;
    if (failed == 0 && sync) {
        const int folder = ::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 || ::fsync(folder) != 0) failed = errno;
        if (folder >= 0) ::close(folder);
    }
    return failed;
}

int write_new_file(int dir, const char* path, std::string_view bytes, unsigned mode) {
    const int fd = ::openat(dir, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return errno;
    const int failed = write_over(fd, bytes);
    ::close(fd);
    return failed;
}

std::string log_file_name(std::int64_t offset) {
    char text[32];
    std::snprintf(text, sizeof text, "log.%016llx", static_cast<unsigned long long>(offset));
    return text;
}

std::int64_t log_file_offset(std::string_view name) {
    constexpr std::string_view kPrefix = "log.";
    if (name.size() != kPrefix.size() + 16 || name.substr(0, kPrefix.size()) != kPrefix) return -1;
    std::int64_t value = 0;
    for (const char c : name.substr(kPrefix.size())) {
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return -1;
        value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 4) | digit;
    }
    return value;
}

}  // namespace muster::os
