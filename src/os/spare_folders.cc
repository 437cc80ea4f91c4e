#include "os/spare_folders.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/posix.h"
#include "os/supervisor_link.h"
#include "os/task_files.h"

namespace muster::os {
namespace {

constexpr std::size_t kSparesMax = 128;
constexpr std::int64_t kPage = 4096;

std::vector<std::string> names_in(int folder) {
    std::vector<std::string> names;
    DIR* listing = ::fdopendir(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (listing == nullptr) return {"?"};  // Not known, so not ours alone.
    while (const dirent* entry = ::readdir(listing))
        if (const std::string_view name = entry->d_name; name != "." && name != "..")
            names.emplace_back(name);
    ::closedir(listing);
    return names;
}

/// As it was made: a file that has no other name, or a folder that nothing is mounted on.
bool untouched(int folder, const char* name, bool is_folder, const struct stat& owner) {
    struct stat about {};
    if (::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return false;
    return about.st_dev == owner.st_dev && about.st_uid == owner.st_uid &&
           (is_folder ? about.st_mode == (S_IFDIR | 0700)
                      : about.st_mode == (S_IFREG | 0600) && about.st_nlink == 1);
}

/// The next task never takes what is in this file for its own: it is not whole any more.
bool cut(int folder, const char* name) {
    const Fd file(::openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0 || about.st_size == 0) return false;
    return ::ftruncate(file.get(), std::min<std::int64_t>(about.st_size, kPage) - 1) == 0;
}

bool only_ours(int folder) {
    struct stat top {};
    if (::fstat(folder, &top) != 0) return false;
    for (const std::string& name : names_in(folder)) {
        if (name == files::kRun || name == files::kScratch) continue;
        // As it was before a supervisor began.
        if (name == files::kLaunch && ::fchmodat(folder, files::kLaunch, 0600, 0) != 0)
            return false;
        const bool known = name == files::kOrder || name == files::kLaunch || name == files::kExit;
        if (!known || !untouched(folder, name.c_str(), false, top)) return false;
    }
    return true;
}

bool is_there(int run, const struct stat& owner, const ListeningSocket& socket) {
    struct stat about {};
    return socket.fd && ::fstatat(run, "sock", &about, AT_SYMLINK_NOFOLLOW) == 0 &&
           about.st_mode == (S_IFSOCK | 0600) && about.st_ino == socket.inode &&
           about.st_uid == owner.st_uid && about.st_nlink == 1;
}

/// What the task could write to. A socket that it put another in place of is closed.
bool only_left(int folder, ListeningSocket& socket) {
    struct stat user {
    }, top{};
    if (::fstat(folder, &top) != 0 ||
        ::fstatat(folder, files::kRun, &user, AT_SYMLINK_NOFOLLOW) != 0 ||
        user.st_dev != top.st_dev || !untouched(folder, files::kRun, true, user) ||
        !untouched(folder, files::kScratch, true, user))
        return false;
    constexpr int kHow = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    const Fd run(::openat(folder, files::kRun, kHow)),
        scratch(::openat(folder, files::kScratch, kHow));
    if (!run || !scratch || !names_in(scratch.get()).empty()) return false;
    const bool listens = is_there(run.get(), user, socket);
    if (!listens) socket.fd.reset();
    for (const std::string& name : names_in(run.get())) {
        if (name == "sock" && listens) continue;
        if (name == "sock" && ::unlinkat(run.get(), "sock", 0) == 0) continue;
        const bool known = name == "hostfile" || name == "topology.json";
        if (!known || !untouched(run.get(), name.c_str(), false, user)) return false;
    }
    return true;
}

}  // namespace

SpareFolders::SpareFolders(std::string dir) : dir_(std::move(dir)) {
    (void)remove_tree(AT_FDCWD, dir_.c_str());
    (void)make_folders(dir_, 0700);
}

std::optional<ListeningSocket> SpareFolders::take(const std::string& user,
                                                  const std::string& path) {
    const auto found = std::find_if(spares_.rbegin(), spares_.rend(),
                                    [&](const Spare& spare) { return spare.user == user; });
    if (found == spares_.rend()) return std::nullopt;
    Spare spare = std::move(*found);
    spares_.erase(std::prev(found.base()));
    if (::rename(spare.path.c_str(), path.c_str()) == 0) return std::move(spare.socket);
    (void)remove_tree(AT_FDCWD, spare.path.c_str());
    return std::nullopt;
}

bool SpareFolders::keep(const std::string& user, const std::string& path, int folder,
                        ListeningSocket socket) {
    // A supervisor that is still about to leave would act on the next task's files.
    if (!supervisor_gone(folder) || !only_ours(folder) || !only_left(folder, socket)) return false;
    if (!cut(folder, files::kOrder) || !cut(folder, files::kLaunch)) return false;
    const std::string exit_again = std::string(files::kExit) + ".new";
    if (::renameat(folder, files::kExit, folder, exit_again.c_str()) != 0) return false;
    Spare spare{
        .user = user, .path = dir_ + "/" + std::to_string(++last_), .socket = std::move(socket)};
    if (::rename(path.c_str(), spare.path.c_str()) != 0) return false;
    if (spares_.size() >= kSparesMax) {
        (void)remove_tree(AT_FDCWD, spares_.front().path.c_str());
        spares_.pop_front();
    }
    spares_.push_back(std::move(spare));
    return true;
}

}  // namespace muster::os
