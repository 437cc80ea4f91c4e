// Writes a task's log: frames of bytes with time, rank and stream, in files of bounded size.
//
// One write() a frame, so that a killed writer leaves whole frames. A full disk drops bytes, and
// says how many once there is room again; it never stops the task.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "os/task_files.h"

namespace muster::os {

class LogWriter {
public:
    /// `dir` stays the caller's. At most `bytes_max` are kept, in up to eight files.
    LogWriter(int dir, std::int64_t bytes_max);
    ~LogWriter();
    LogWriter(const LogWriter&) = delete;
    LogWriter& operator=(const LogWriter&) = delete;

    void write(int local_rank, int stream, std::string_view bytes);
    std::int64_t size() const { return end_; }  // Bytes ever written.

private:
    void write_frame(int local_rank, int stream, std::string_view bytes);
    bool open_next();

    struct File {
        std::int64_t offset = 0;
        std::int64_t bytes = 0;  // With headers.
    };
    int dir_;
    std::int64_t bytes_max_;
    int fd_ = -1;
    std::deque<File> files_;
    std::int64_t kept_ = 0;
    std::int64_t end_ = 0;
    std::int64_t dropped_ = 0;
};

/// Milliseconds since the epoch.
std::int64_t wall_ms();
/// Of a clock that never jumps.
std::int64_t steady_ms();

}  // namespace muster::os
