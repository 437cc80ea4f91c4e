// Small owners of kernel objects, and file helpers that say what failed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace muster::os {

class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~Fd() { reset(); }
    int get() const { return fd_; }
    int release() { return std::exchange(fd_, -1); }
    void reset(int fd = -1);
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_ = -1;
};

/// "cannot WHAT NAME: No such file or directory", of the present errno unless `error` is given.
Error system_error(std::string_view what, std::string_view name, int error = 0);

Result<std::string> read_file(const std::string& path, std::size_t bytes_max = 64 << 20);
/// One write(), for files of the kernel.
Status write_kernel_file(const std::string& path, std::string_view text);
/// With all parents.
Status make_folders(const std::string& path, mode_t mode = 0755);
/// All below and itself, never following a symbolic link or leaving the file system of `name`.
Status remove_tree(int dir, const char* name);
/// Names in a folder, sorted, without "." and ".."; empty when there is none.
std::vector<std::string> list_folder(const std::string& path);

/// A program's output and status; killed when its time is over. Its environment is ours.
struct Ran {
    int exit_code = -1;  // 128 + signal; -1: not started.
    std::string out;     // Standard output and error.
};
struct RunAsk {
    std::vector<std::string> argv;
    std::int64_t timeout_ms = 30'000;
    std::size_t bytes_max = 1 << 20;
    /// Called about twice a second; false ends the program.
    std::function<bool()> on_tick = {};
};
Ran run_program(const RunAsk& ask);

/// Code that this process has run, and may not run again, is no longer mapped until it does.
void unmap_code();

}  // namespace muster::os
