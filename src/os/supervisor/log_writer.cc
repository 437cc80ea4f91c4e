#include "os/supervisor/log_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

namespace muster::os {
namespace {

constexpr std::size_t kFrameMax = 64 * 1024;
constexpr int kFiles = 8;

std::int64_t read_clock(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

std::int64_t wall_ms() {
    return read_clock(CLOCK_REALTIME);
}
std::int64_t steady_ms() {
    return read_clock(CLOCK_BOOTTIME);
}

LogWriter::LogWriter(int dir, std::int64_t bytes_max)
    : dir_(dir), bytes_max_(std::max<std::int64_t>(bytes_max, kFiles * 4096)) {}

LogWriter::~LogWriter() {
    if (fd_ >= 0) ::close(fd_);
}

void LogWriter::write(int local_rank, int stream, std::string_view bytes) {
    if (dropped_ > 0) {
        char text[96];
        const int n = std::snprintf(text, sizeof text,
                                    "[muster: %lld bytes of output lost: no room on the disk]\n",
                                    static_cast<long long>(dropped_));
        const std::int64_t before = end_;
        write_frame(local_rank, 0, std::string_view(text, static_cast<std::size_t>(n)));
        if (end_ != before) dropped_ = 0;
    }
    while (!bytes.empty()) {
        write_frame(local_rank, stream, bytes.substr(0, kFrameMax));
        bytes.remove_prefix(std::min(bytes.size(), kFrameMax));
    }
}

void LogWriter::write_frame(int local_rank, int stream, std::string_view bytes) {
    const bool full = !files_.empty() && files_.back().bytes >= bytes_max_ / kFiles;
    if ((fd_ < 0 || full) && !open_next()) {
        dropped_ += static_cast<std::int64_t>(bytes.size());
        return;
    }
    LogFrame frame{.size = static_cast<std::uint32_t>(bytes.size()),
                   .local_rank = static_cast<std::uint16_t>(local_rank),
                   .stream = static_cast<std::uint8_t>(stream),
                   .time_ms = wall_ms()};
    const iovec parts[2] = {{&frame, sizeof frame},
                            {const_cast<char*>(bytes.data()), bytes.size()}};
    const auto whole = static_cast<ssize_t>(sizeof frame + bytes.size());
    ssize_t n = 0;
    do n = ::writev(fd_, parts, 2);
    while (n < 0 && errno == EINTR);
    if (n != whole) {
        // A torn frame would hide all that follows it.
        if (n > 0 && ::ftruncate(fd_, files_.back().bytes) == 0) {
            ::lseek(fd_, files_.back().bytes, SEEK_SET);
        }
        dropped_ += static_cast<std::int64_t>(bytes.size());
        return;
    }
    files_.back().bytes += whole;
    kept_ += whole;
    end_ += static_cast<std::int64_t>(bytes.size());
    while (kept_ > bytes_max_ && files_.size() > 1) {
        ::unlinkat(dir_, log_file_name(files_.front().offset).c_str(), 0);
        kept_ -= files_.front().bytes;
        files_.pop_front();
    }
}

bool LogWriter::open_next() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::openat(dir_, log_file_name(end_).c_str(),
                   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0) return false;
    if (files_.empty() || files_.back().offset != end_) files_.push_back({.offset = end_});
    return true;
}

}  // namespace muster::os
