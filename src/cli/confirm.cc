#include "cli/confirm.h"

#include <termios.h>
#include <unistd.h>

#include "base/text.h"

namespace muster::cli {
namespace {

std::string read_line(int fd) {
    std::string line;
    char c = 0;
    while (line.size() < 64 * 1024 && ::read(fd, &c, 1) == 1 && c != '\n') line += c;
    return std::string(trim(line));
}

}  // namespace

bool confirm(App& app, const Invocation& invocation, const std::string& question) {
    if (invocation.has("yes")) return true;
    if (!app.world().in_tty || !app.world().err_tty) {
        app.note("muster: " + question + " Say so with --yes; nothing was done.");
        return false;
    }
    app.out().flush();
    app.err().write(question + " [y/N] ");
    app.err().flush();
    const std::string answer = lower(read_line(app.world().in_fd));
    if (answer == "y" || answer == "yes") return true;
    app.note("nothing was done");
    return false;
}

std::string read_secret(App& app, const std::string& prompt) {
    const int fd = app.world().in_fd;
    if (!app.world().in_tty) return read_line(fd);
    app.err().write(prompt);
    app.err().flush();
    termios before{};
    const bool known = ::tcgetattr(fd, &before) == 0;
    if (known) {
        termios quiet = before;
        quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        ::tcsetattr(fd, TCSAFLUSH, &quiet);
    }
    std::string line = read_line(fd);
    if (known) ::tcsetattr(fd, TCSAFLUSH, &before);
    app.err().write("\n");
    app.err().flush();
    return line;
}

}  // namespace muster::cli
