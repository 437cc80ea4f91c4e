#include "os/kept_logs.h"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/posix.h"
#include "os/supervisor/log_writer.h"
#include "os/task_files.h"

namespace muster::os {
namespace {

constexpr std::size_t kLogsMax = 50'000;  // Empty ones take no bytes, but a name each.
constexpr std::int64_t kOneFileMs = 3'600'000;

}  // namespace

void SilentLogs::add(const std::string& path) {
    const std::int64_t now = steady_ms();
    if (!file_.empty() && now - made_ms_ < kOneFileMs && ::link(file_.c_str(), path.c_str()) == 0)
        return;
    const Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!made) return;
    file_ = path;
    made_ms_ = now;
}

void keep_log_only(const std::string& folder) {
    for (const std::string& file : list_folder(folder))
        if (log_file_offset(file) < 0) (void)remove_tree(AT_FDCWD, (folder + "/" + file).c_str());
}

void sweep_kept_logs(const std::string& logs_dir, Duration keep, Bytes bytes_max) {
    struct Kept {
        std::int64_t changed_ms = 0, bytes = 0;
        std::string folder;
    };
    std::vector<Kept> all;
    std::int64_t sum = 0;
    for (const std::string& name : list_folder(logs_dir)) {
        Kept kept{.folder = logs_dir + "/" + name};
        struct stat about {};
        if (::lstat(kept.folder.c_str(), &about) == 0)
            kept.changed_ms = about.st_mtim.tv_sec * 1000;
        for (const std::string& file : list_folder(kept.folder)) {
            if (::lstat((kept.folder + "/" + file).c_str(), &about) != 0) continue;
            kept.bytes += about.st_blocks * 512;
            kept.changed_ms = std::max<std::int64_t>(kept.changed_ms, about.st_mtim.tv_sec * 1000);
        }
        sum += kept.bytes;
        all.push_back(std::move(kept));
    }
    std::sort(all.begin(), all.end(),
              [](const Kept& a, const Kept& b) { return a.changed_ms < b.changed_ms; });
    const std::int64_t oldest = static_cast<std::int64_t>(::time(nullptr)) * 1000 - keep.ms;
    std::size_t left = all.size();
    for (const Kept& kept : all) {
        if (kept.changed_ms >= oldest && sum <= bytes_max.value && left <= kLogsMax) break;
        if (remove_tree(AT_FDCWD, kept.folder.c_str())) sum -= kept.bytes;
        --left;
    }
}

}  // namespace muster::os
