// Reads a task's log while it is being written, from any offset, by rank and time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "os/posix.h"
#include "os/task_files.h"

namespace muster::os {

/// Bytes that follow each other in the log: offset + bytes.size() is where reading may go on.
struct LogPiece {
    std::int64_t offset = 0;
    std::string bytes;
};

class LogReader {
public:
    struct Ask {
        std::int64_t offset = 0;  // Negative: so many before the end.
        int local_rank = -1;      // -1: all.
        Time since{};             // Frames written before are passed over.
    };
    /// `folder`: of the task, or of its kept log.
    LogReader(std::string folder, Ask ask);

    /// At most about `bytes_max`; empty bytes: nothing more for now. `offset` of an empty piece is
    /// where the end is.
    LogPiece next(std::size_t bytes_max);

private:
    bool open_at(std::int64_t offset);
    bool next_frame(LogFrame& frame);

    std::string folder_;
    Ask ask_;
    bool placed_ = false;
    Fd file_;
    std::int64_t file_end_ = 0;  // Log offset of the file's read position.
    std::int64_t position_ = 0;  // Byte in the file of the next frame header.
    std::int64_t skip_until_ = 0;
};

/// Bytes ever written to the log in `folder`; 0: there is none.
std::int64_t log_size(const std::string& folder);

}  // namespace muster::os
