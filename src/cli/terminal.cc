#include "cli/terminal.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

extern char** environ;

namespace muster::cli {
namespace {

constexpr std::size_t kBufferMax = 64 * 1024;

Time wall_clock() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

std::string_view code_of(Tone tone) {
    switch (tone) {
        case Tone::Plain: return "";
        case Tone::Bold: return "1";
        case Tone::Dim: return "2";
        case Tone::Good: return "32";
        case Tone::Busy: return "36";
        case Tone::Warn: return "33";
        case Tone::Bad: return "31;1";
    }
    return "";
}

std::string below(const World& world, std::string_view variable, std::string_view folder) {
    if (const std::string_view base = world.variable(variable); base.starts_with('/'))
        return std::string(base) + "/muster";
    const std::string home = world.home();
    return home.empty() ? "" : home + std::string(folder) + "/muster";
}

}  // namespace

void Output::write(std::string_view bytes) {
    if (error_ != 0) return;
    if (fd_ >= 0 && bytes.size() >= kBufferMax) {
        flush();
        write_out(bytes);  // Large pieces go out uncopied.
        return;
    }
    buffer_ += bytes;
    if (fd_ >= 0 && buffer_.size() >= kBufferMax) flush();
}

void Output::flush() {
    if (fd_ < 0) return;
    write_out(buffer_);
    buffer_.clear();
}

void Output::write_out(std::string_view left) {
    while (!left.empty() && error_ == 0) {
        const ssize_t wrote = ::write(fd_, left.data(), left.size());
        if (wrote > 0) {
            left.remove_prefix(static_cast<std::size_t>(wrote));
        } else if (errno == EAGAIN) {
            pollfd ready{fd_, POLLOUT, 0};
            ::poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            error_ = errno;
        }
    }
}

std::string_view World::variable(std::string_view name) const {
    const auto it = environment.find(name);
    return it == environment.end() ? std::string_view{} : std::string_view(it->second);
}

std::string World::home() const {
    const std::string_view named = variable("HOME");
    return named.starts_with('/') ? std::string(named == "/" ? "" : named) : "";
}

std::string World::config_dir() const {
    return below(*this, "XDG_CONFIG_HOME", "/.config");
}
std::string World::data_dir() const {
    return below(*this, "XDG_DATA_HOME", "/.local/share");
}
std::string World::cache_dir() const {
    return below(*this, "XDG_CACHE_HOME", "/.cache");
}

bool use_color(const World& world, ColorChoice choice, bool is_tty) {
    if (choice != ColorChoice::Auto) return choice == ColorChoice::Always;
    if (const std::string_view force = world.variable("CLICOLOR_FORCE");
        !force.empty() && force != "0")
        return true;
    if (!world.variable("NO_COLOR").empty()) return false;
    const std::string_view term = world.variable("TERM");
    return is_tty && term != "dumb" && !term.empty();
}

bool terminal_size(int fd, int& columns, int& rows) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return false;
    columns = size.ws_col;
    rows = size.ws_row;
    return true;
}

World real_world(const char* program) {
    World world;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::size_t equals = text.find('=');
        if (equals != std::string_view::npos)
            world.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    if (world.variable("HOME").empty()) {
        if (const passwd* entry = ::getpwuid(::getuid())) world.environment["HOME"] = entry->pw_dir;
    }
    char path[4096];
    if (::getcwd(path, sizeof path) != nullptr) world.directory = path;
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
    world.program = length > 0 ? std::string(path, static_cast<std::size_t>(length)) : program;
    world.in_tty = ::isatty(0) != 0;
    world.out_tty = ::isatty(1) != 0;
    world.err_tty = ::isatty(2) != 0;
    for (const int fd : {1, 2, 0})
        if (terminal_size(fd, world.columns, world.rows)) break;
    world.now = wall_clock;
    world.uid = ::getuid();
    return world;
}

std::string paint(std::string_view text, Tone tone, bool color) {
    std::string out;
    append_painted(out, text, tone, color);
    return out;
}

void append_painted(std::string& out, std::string_view text, Tone tone, bool color) {
    if (!color || tone == Tone::Plain || text.empty()) {
        out += text;
        return;
    }
    out += "\x1b[";
    out += code_of(tone);
    out += 'm';
    out += text;
    out += "\x1b[0m";
}

std::string paint_rank(std::string_view text, std::int64_t rank, bool color) {
    static constexpr const char* kColors[] = {"36", "33", "35", "32", "34", "96", "93", "95"};
    if (!color) return std::string(text);
    return "\x1b[" + std::string(kColors[static_cast<std::uint64_t>(rank) % 8]) + "m" +
           std::string(text) + "\x1b[0m";
}

}  // namespace muster::cli
