// What a task's processes write: read, cut at lines, and put into the log.
#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "os/supervisor/supervisor.h"

namespace muster::os {
namespace {

constexpr std::size_t kPartialMax = 16 * 1024;
constexpr std::int64_t kPartialMs =
    200;  // A progress bar has no line end: it is not held for long.

}  // namespace

void Supervisor::add_pipe(int fd, int local_rank, int stream, bool terminal) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    pipes_.push_back({.fd = fd, .local_rank = local_rank, .stream = stream, .terminal = terminal});
}

void Supervisor::read_pipe(Pipe& pipe) {
    static char buffer[64 * 1024];
    while (pipe.fd >= 0) {
        const ssize_t n = ::read(pipe.fd, buffer, sizeof buffer);
        if (n > 0) {
            take_output(pipe, std::string_view(buffer, static_cast<std::size_t>(n)));
            if (static_cast<std::size_t>(n) < sizeof buffer) return;
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        // A terminal says EIO once nobody has it open: a later exec may open it anew, but the
        // task's own session is over.
        flush(pipe);
        if (pipe.fd == terminal_) terminal_ = -1;
        ::close(pipe.fd);
        pipe.fd = -1;
    }
}

void Supervisor::take_output(Pipe& pipe, std::string_view bytes) {
    const std::size_t last = pipe.terminal ? bytes.size() - 1 : bytes.rfind('\n');
    if (last != std::string_view::npos) {
        if (!pipe.partial.empty()) {
            pipe.partial.append(bytes.substr(0, last + 1));
            log_.write(pipe.local_rank, pipe.stream, pipe.partial);
            pipe.partial.clear();
        } else {
            log_.write(pipe.local_rank, pipe.stream, bytes.substr(0, last + 1));
        }
        pipe.flush_at = 0;
        bytes.remove_prefix(last + 1);
    }
    if (bytes.empty()) return;
    pipe.partial.append(bytes);
    if (pipe.partial.size() >= kPartialMax) return flush(pipe);
    if (pipe.flush_at == 0) pipe.flush_at = steady_ms() + kPartialMs;
}

void Supervisor::flush(Pipe& pipe) {
    if (!pipe.partial.empty()) log_.write(pipe.local_rank, pipe.stream, pipe.partial);
    pipe.partial.clear();
    pipe.flush_at = 0;
}

void Supervisor::drain() {
    for (Pipe& pipe : pipes_) {
        if (pipe.fd >= 0) read_pipe(pipe);
        flush(pipe);
    }
}

}  // namespace muster::os
