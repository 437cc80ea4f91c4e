// The parts of a container that are ours: its layer, its first process, and hiding a mount from
// an OCI runtime that cannot stand it.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/supervisor/supervisor.h"

namespace muster::os {
namespace {

std::string read_all(int fd) {
    std::string text;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::read(fd, buffer, sizeof buffer)) > 0)
        text.append(buffer, static_cast<std::size_t>(n));
    return text;
}

int start_program(ProgramStart& start, const std::vector<std::string>& argv) {
    const int error = start.run(argv);
    std::fprintf(stderr, "[muster: cannot run %s: %s]\n", argv.front().c_str(),
                 std::strerror(error));
    return error == ENOENT ? 127 : 126;
}

}  // namespace

bool Supervisor::mount_layer() {
    return launch_.overlay.empty() || ::mount("overlay", launch_.overlay_target.c_str(), "overlay",
                                              MS_NODEV | MS_NOSUID, launch_.overlay.c_str()) == 0;
}

Spawned Supervisor::spawn_inside(SpawnAsk ask, const std::string& which) {
    if (launch_.container.empty()) return spawn(ask);
    std::vector<std::string> argv = launch_.container;
    for (std::string& word : argv)
        if (word == "{id}") word = launch_.container_id + "-" + which;
    const SpawnAsk inside{.launch = launch_,
                          .argv = argv,
                          .env = ask.env,
                          .as = SpawnAs::Container,
                          .inside = &ask.argv,
                          .terminal = ask.terminal,
                          .stdio = {ask.stdio[0], ask.stdio[1], ask.stdio[2]}};
    return spawn(inside);
}

int container_init() {
    std::vector<std::string> argv;
    ProgramStart start;
    std::vector<std::string> environment;
    for (char** variable = environ; *variable != nullptr; ++variable)
        environment.emplace_back(*variable);  // The image's own.
    start.set_env(environment);
    bool whole = false;
    each_record(read_all(3), [&](std::string_view key, std::string_view value) {
        if (key == "env") start.set(std::string(value));
        if (key == "arg") argv.emplace_back(value);
        if (key == "end") whole = true;
    });
    for (const std::string& variable : start.env())
        if (constexpr std::string_view bin = "MUSTER_LAUNCH_BIN="; variable.starts_with(bin)) {
            // The image's PATH is not known to whoever made the variables.
            start.set("PATH=" + variable.substr(bin.size()) + ":" + std::string(start.path()));
            break;
        }
    ::close(3);
    if (!whole || argv.empty()) return 126;
    if (::getpid() != 1) return start_program(start, argv);
    // The kernel shields a first process from signals, so the command must not be it.
    const pid_t child = ::fork();
    if (child < 0) return 126;
    if (child == 0) ::_exit(start_program(start, argv));
    for (const int signo : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
        ::signal(signo, SIG_IGN);
    while (true) {
        int status = 0;
        const pid_t ended = ::wait(&status);
        if (ended < 0 && errno == ECHILD) return 126;
        if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

int run_without_mount(const char* mount, char** command) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        (::umount2(mount, MNT_DETACH) != 0 && errno != EINVAL)) {
        std::fprintf(stderr, "[muster: cannot hide %s: %s]\n", mount, std::strerror(errno));
        return 126;
    }
    ::execvp(command[0], command);
    std::fprintf(stderr, "[muster: cannot run %s: %s]\n", command[0], std::strerror(errno));
    return 127;
}

}  // namespace muster::os
