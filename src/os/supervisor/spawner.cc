#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/supervisor/supervisor.h"

namespace muster::os {

int attached(msghdr& message) {
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

int spawn_supervisors(int agent) {
    ::setsid();
    reset_signals();
    ::signal(SIGCHLD, SIG_IGN);  // Supervisors leave no zombies.
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    char folder[4096];
    while (true) {
        iovec part{folder, sizeof folder - 1};
        alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        const ssize_t n = ::recvmsg(agent, &message, MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        folder[n] = 0;
        const int connection = attached(message);
        const pid_t pid = connection >= 0 ? ::fork() : -1;
        if (pid == 0) {
            // What is ignored here would be in the task's programs too.
            for (const int signo : {SIGCHLD, SIGINT, SIGHUP}) ::signal(signo, SIG_DFL);
            ::dup2(connection, 3);
            ::_exit(supervise(folder, 3));
        }
        // Without a child nobody holds the connection, and the agent sees it close.
        if (connection >= 0) ::close(connection);
    }
}

}  // namespace muster::os
