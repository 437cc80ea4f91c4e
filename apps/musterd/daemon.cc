#include "daemon.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/authority.h"

namespace muster::apps {
namespace {

sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    return set;
}

}  // namespace

void block_signals() {
    const sigset_t set = stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
}

void raise_open_files() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);
}

void wait_for_stop(const std::function<void()>& reload) {
    const sigset_t set = stop_signals();
    for (;;) {
        int signal = 0;
        if (::sigwait(&set, &signal) != 0) continue;
        if (signal != SIGHUP || !reload) return;
        reload();
    }
}

void notify_ready() {
    const char* path = std::getenv("NOTIFY_SOCKET");
    if (path == nullptr || *path == 0) return;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (address.sun_path[0] == '@') address.sun_path[0] = 0;
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
    (void)::sendto(fd, "READY=1", 7, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                   size);
    ::close(fd);
}

int report(const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.message.c_str());
    if (!error.cause.empty()) std::fprintf(stderr, "  cause: %s\n", error.cause.c_str());
    if (!error.fix.empty()) std::fprintf(stderr, "  fix: %s\n", error.fix.c_str());
    if (error.number != 0)
        std::fprintf(stderr, "  code: E%d (muster explain E%d)\n", error.number, error.number);
    switch (error.code) {
        case Code::Invalid: return 6;
        case Code::NotFound: return 3;
        case Code::Denied:
        case Code::Unauthenticated: return 4;
        case Code::Conflict:
        case Code::Precondition: return 5;
        default: return 1;
    }
}

std::optional<std::string> config_text(const std::string& file, bool asked_for) {
    auto text = controller::read_file(file);
    if (text) return *std::move(text);
    if (!asked_for && text.error().code == Code::NotFound) return std::string();
    Error error = std::move(text).error();
    error.fix = "name a file that can be read: --config FILE";
    report(error);
    return std::nullopt;
}

bool tell_problems(const std::vector<std::string>& problems) {
    for (const std::string& problem : problems)
        std::fprintf(stderr, "error: %s\n", problem.c_str());
    return problems.empty();
}

}  // namespace muster::apps
