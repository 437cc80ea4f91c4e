// The world a command runs in: environment, streams, terminal, clock. Everything a verb reads or
// writes goes through it, so that tests run whole commands and see what a person would.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/id.h"

namespace muster::cli {

enum class ColorChoice : std::uint8_t { Auto, Always, Never };

/// Bytes to a file descriptor in few writes, or kept (fd -1) for a test.
class Output {
public:
    explicit Output(int fd) : fd_(fd) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    ~Output() { flush(); }

    /// Buffered up to 64 KiB; flush() before waiting for anything.
    void write(std::string_view bytes);
    void flush();
    /// False once the reader has gone (a closed pipe) or the disk is full; writing is then a no-op.
    bool good() const { return error_ == 0; }
    int error() const { return error_; }
    const std::string& kept() const { return buffer_; }
    int fd() const { return fd_; }

private:
    void write_out(std::string_view left);
    int fd_;
    int error_ = 0;
    std::string buffer_;
};

struct World {
    std::map<std::string, std::string, std::less<>> environment;
    std::string directory;  // Where the user is.
    std::string program;    // This binary, absolute; to find its siblings.
    bool in_tty = false, out_tty = false, err_tty = false;
    int columns = 80, rows = 24;  // Of the terminal, when there is one.
    int in_fd = 0;
    int interrupt_fd = -1;  // Readable after SIGINT or SIGTERM.
    Time (*now)() = nullptr;
    std::uint32_t uid = 0;

    std::string_view variable(std::string_view name) const;
    /// The user's home, and the XDG folders below it; "" when there is none.
    std::string home() const;
    std::string config_dir() const;  // $XDG_CONFIG_HOME/muster or ~/.config/muster
    std::string data_dir() const;    // $XDG_DATA_HOME/muster or ~/.local/share/muster
    std::string cache_dir() const;   // $XDG_CACHE_HOME/muster or ~/.cache/muster
};

/// NO_COLOR, CLICOLOR_FORCE, TERM=dumb and `choice`, in that order of weakness.
bool use_color(const World& world, ColorChoice choice, bool is_tty);
/// The present size of the terminal on `fd`; false when it is none.
bool terminal_size(int fd, int& columns, int& rows);
World real_world(const char* program);

/// How a piece of text is meant; colours follow from it.
enum class Tone : std::uint8_t { Plain, Bold, Dim, Good, Busy, Warn, Bad };
/// `text` in the colour of `tone`, or as it is.
std::string paint(std::string_view text, Tone tone, bool color);
void append_painted(std::string& out, std::string_view text, Tone tone, bool color);
/// The colour of rank `rank`'s prefix in merged logs; neighbours differ.
std::string paint_rank(std::string_view text, std::int64_t rank, bool color);

}  // namespace muster::cli
