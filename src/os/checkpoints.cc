#include "os/checkpoints.h"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "os/posix.h"

namespace muster::os {
namespace {

constexpr std::string_view kMarker = ".muster-complete";
constexpr std::size_t kPathMax = 1024;

Error refusal(std::string message) {
    return {.code = Code::Invalid, .message = std::move(message)};
}

std::string_view without_trailing_slashes(std::string_view path) {
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    return path;
}

/// Opens below `dir` without following any link or leaving it.
Fd open_beneath(int dir, const std::string& path) {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    return Fd(static_cast<int>(::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how)));
}

bool regular_file(int dir, const std::string& name) {
    struct stat about {};
    return ::fstatat(dir, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode);
}

/// "step-120.pt" → 120; -1: not a checkpoint's name.
std::int64_t step_of(std::string_view name) {
    if (!name.starts_with("step-")) return -1;
    name.remove_prefix(5);
    std::size_t digits = 0;
    std::int64_t step = 0;
    while (digits < name.size() && name[digits] >= '0' && name[digits] <= '9' && digits < 17)
        step = step * 10 + (name[digits++] - '0');
    if (digits == 0 || digits > 16) return -1;
    std::string_view rest = name.substr(digits);
    if (rest.empty()) return step;
    if (rest.front() != '.') return -1;
    rest.remove_prefix(1);
    const auto plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (rest.empty() || rest.size() > 16 || !std::all_of(rest.begin(), rest.end(), plain))
        return -1;
    return rest == "tmp" || rest == "partial" ? -1 : step;
}

bool complete_entry(int dir, const std::string& name) {
    struct stat about {};
    if (::fstatat(dir, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (S_ISREG(about.st_mode))
        return about.st_size > 0 && regular_file(dir, name + std::string(kMarker));
    return S_ISDIR(about.st_mode) && regular_file(dir, name + "/" + std::string(kMarker));
}

}  // namespace

Status check_announced(const std::string& dir, std::string_view seen_dir, std::string_view path) {
    if (dir.empty()) return refusal("this task has no checkpoint directory");
    if (path.size() > kPathMax) return refusal("path longer than 1024 bytes");
    const std::string_view base = without_trailing_slashes(seen_dir);
    const std::string_view full = without_trailing_slashes(path);
    if (full.size() <= base.size() + 1 || !full.starts_with(base) || full[base.size()] != '/')
        return refusal("path is not below the checkpoint directory " + std::string(base));
    const std::string rest(full.substr(base.size() + 1));
    for (const std::string_view part : split(rest, '/')) {
        if (part.empty() || part == "." || part == "..")
            return refusal("path has an empty, '.' or '..' component");
        for (const std::string_view end : {".tmp", ".partial", ".muster-complete"})
            if (part.ends_with(end)) return refusal("a name in path ends in " + std::string(end));
    }
    const Fd top(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) return refusal("the checkpoint directory cannot be opened on the node");
    const Fd found = open_beneath(top.get(), rest);
    if (!found)
        return refusal("no such checkpoint below the directory, or through a symbolic link");
    struct stat about {};
    if (::fstat(found.get(), &about) != 0) return refusal("the checkpoint cannot be looked at");
    if (S_ISDIR(about.st_mode)) {
        if (regular_file(found.get(), std::string(kMarker))) return Ok{};
        return refusal("directory without .muster-complete");
    }
    if (S_ISREG(about.st_mode) && about.st_size > 0) return Ok{};
    return refusal("neither a directory nor a regular file that is not empty");
}

std::optional<CheckpointFound> scan_checkpoints(const std::string& dir, std::string_view seen_dir) {
    const Fd top(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) return std::nullopt;
    std::vector<std::pair<std::int64_t, std::string>> names;
    for (std::string& name : list_folder(dir))
        if (const std::int64_t step = step_of(name); step >= 0)
            names.emplace_back(step, std::move(name));
    std::sort(names.rbegin(), names.rend());
    for (const auto& [step, name] : names)
        if (complete_entry(top.get(), name))
            return CheckpointFound{
                .step = step, .path = std::string(without_trailing_slashes(seen_dir)) + "/" + name};
    return std::nullopt;
}

std::optional<CheckpointFound> newest_checkpoint(const std::string& dir, std::string_view seen_dir,
                                                 const CheckpointFound& recorded) {
    std::optional<CheckpointFound> newest = scan_checkpoints(dir, seen_dir);
    if (recorded.path.empty() || !check_announced(dir, seen_dir, recorded.path)) return newest;
    if (!newest || recorded.step >= newest->step) return recorded;
    return newest;
}

}  // namespace muster::os
