// Folders of ended tasks, kept for the next tasks of the same user.
//
// Making and removing the ten files of a task costs more than the rest of a short one's start: each
// is an inode that the file system finds, writes and frees. A folder is kept only when nothing is
// in it but what its next task overwrites, so no task sees another's work.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "os/task_socket.h"

namespace muster::os {

/// On the loop's thread. Folders that an earlier agent kept are removed.
class SpareFolders {
public:
    explicit SpareFolders(std::string dir);

    /// Makes one the folder `path`, which is not there yet, and returns the socket that listens in
    /// it, if one does. None: there is no folder for this user.
    std::optional<ListeningSocket> take(const std::string& user, const std::string& path);
    /// Takes the folder `path` (`folder` is a descriptor of it) of an ended task away from its
    /// place. False: something else is in it, or its supervisor has not quite ended; it stays.
    bool keep(const std::string& user, const std::string& path, int folder, ListeningSocket socket);

private:
    struct Spare {
        std::string user, path;
        ListeningSocket socket;
    };
    std::string dir_;
    std::deque<Spare> spares_;
    std::uint64_t last_ = 0;
};

}  // namespace muster::os
