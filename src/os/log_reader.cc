#include "os/log_reader.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::os {
namespace {

constexpr std::uint32_t kFrameMax = 1 << 20;

/// Offsets of the log's files, rising.
std::vector<std::int64_t> log_files(const std::string& folder) {
    std::vector<std::int64_t> offsets;
    for (const std::string& name : list_folder(folder))
        if (const std::int64_t offset = log_file_offset(name); offset >= 0)
            offsets.push_back(offset);
    return offsets;
}

Fd open_log(const std::string& folder, std::int64_t offset) {
    return Fd(
        ::open((folder + "/" + log_file_name(offset)).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

/// True when the frame at `position` is whole.
bool read_frame(int file, std::int64_t position, LogFrame& frame) {
    struct stat about {};
    if (::pread(file, &frame, sizeof frame, position) != static_cast<ssize_t>(sizeof frame))
        return false;
    return frame.size > 0 && frame.size <= kFrameMax && ::fstat(file, &about) == 0 &&
           about.st_size >= position + static_cast<std::int64_t>(sizeof frame + frame.size);
}

}  // namespace

std::int64_t log_size(const std::string& folder) {
    const std::vector<std::int64_t> files = log_files(folder);
    if (files.empty()) return 0;
    const Fd file = open_log(folder, files.back());
    std::int64_t end = files.back(), position = 0;
    for (LogFrame frame; file && read_frame(file.get(), position, frame);) {
        end += frame.size;
        position += static_cast<std::int64_t>(sizeof frame + frame.size);
    }
    return end;
}

LogReader::LogReader(std::string folder, Ask ask) : folder_(std::move(folder)), ask_(ask) {}

bool LogReader::open_at(std::int64_t offset) {
    const std::vector<std::int64_t> files = log_files(folder_);
    if (files.empty()) return false;
    const auto after = std::upper_bound(files.begin(), files.end(), offset);
    const std::int64_t start = after == files.begin() ? files.front() : *std::prev(after);
    file_ = open_log(folder_, start);
    file_end_ = start;
    position_ = 0;
    skip_until_ = offset;
    return static_cast<bool>(file_);
}

bool LogReader::next_frame(LogFrame& frame) {
    while (true) {
        if (file_ && read_frame(file_.get(), position_, frame)) return true;
        // The file's end: the next one begins where this one ended.
        Fd next = open_log(folder_, file_end_);
        if (next && position_ > 0) {
            file_ = std::move(next);
            position_ = 0;
            continue;
        }
        // Rotated away below a slow reader?
        const std::vector<std::int64_t> files = log_files(folder_);
        if (files.empty() || files.front() <= file_end_) return false;
        file_ = open_log(folder_, files.front());
        file_end_ = files.front();
        position_ = 0;
        if (!file_) return false;
    }
}

LogPiece LogReader::next(std::size_t bytes_max) {
    if (!placed_) {
        const std::int64_t offset =
            ask_.offset >= 0 ? ask_.offset
                             : std::max<std::int64_t>(log_size(folder_) + ask_.offset, 0);
        if (!open_at(offset)) return {.offset = std::max<std::int64_t>(offset, 0), .bytes = {}};
        placed_ = true;
    }
    LogPiece piece;
    LogFrame frame;
    while (next_frame(frame)) {
        const std::int64_t start = file_end_;
        const bool wanted = start + frame.size > skip_until_ &&
                            (ask_.local_rank < 0 || frame.local_rank == ask_.local_rank) &&
                            frame.time_ms >= ask_.since.ms;
        if (!wanted && !piece.bytes.empty()) break;
        if (wanted) {
            const std::int64_t skip = std::max<std::int64_t>(skip_until_ - start, 0);
            const auto size = static_cast<std::size_t>(frame.size - skip);
            if (!piece.bytes.empty() && piece.bytes.size() + size > bytes_max) break;
            if (piece.bytes.empty()) piece.offset = start + skip;
            const std::size_t old = piece.bytes.size();
            piece.bytes.resize(old + size);
            const auto at = position_ + static_cast<std::int64_t>(sizeof frame) + skip;
            if (::pread(file_.get(), piece.bytes.data() + old, size, at) !=
                static_cast<ssize_t>(size)) {
                piece.bytes.resize(old);
                break;
            }
        }
        file_end_ += frame.size;
        position_ += static_cast<std::int64_t>(sizeof frame + frame.size);
    }
    if (piece.bytes.empty()) piece.offset = std::max(file_end_, skip_until_);
    return piece;
}

}  // namespace muster::os
