#include "os/supervisor_link.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/task_files.h"

namespace muster::os {
namespace {

struct Pair {
    Fd ours, theirs;
};
Result<Pair> make_pair_for(const std::string& name) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return system_error("make a socket for", name);
    return Pair{Fd(ends[0]), Fd(ends[1])};
}

bool send_with(int socket, std::string_view text, int fd, int flags) {
    iovec part{const_cast<char*>(text.data()), text.size()};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return ::sendmsg(socket, &message, MSG_NOSIGNAL | flags) >= 0;
}

}  // namespace

SupervisorLink::SupervisorLink(EventLoop& loop, Fd socket, Callbacks callbacks)
    : loop_(loop), socket_(std::move(socket)), callbacks_(std::move(callbacks)) {
    loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { read(); });
}

SupervisorLink::~SupervisorLink() {
    if (socket_) loop_.forget(socket_.get());
}

void SupervisorLink::send(char kind, std::string_view text) {
    std::string packet(1, kind);
    packet.append(text);
    // A supervisor reads at once; one that does not is gone, and read() will say so.
    (void)::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Result<Fd> SupervisorLink::connect_again() {
    MUSTER_LET(pair, make_pair_for("one more connection"));
    const char kind = packet::kConnect;
    if (!send_with(socket_.get(), std::string_view(&kind, 1), pair.theirs.get(), MSG_DONTWAIT))
        return system_error("connect to", files::kControl);
    return std::move(pair.ours);
}

void SupervisorLink::read() {
    char buffer[4096];
    while (socket_) {
        iovec part{buffer, sizeof buffer};
        alignas(cmsghdr) char space[CMSG_SPACE(3 * sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        std::vector<Fd> fds;
        for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
             header = CMSG_NXTHDR(&message, header)) {
            if (header->cmsg_type != SCM_RIGHTS) continue;
            const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
                fds.emplace_back(fd);
            }
        }
        if (n <= 0) {
            loop_.forget(socket_.get());
            socket_.reset();
            const auto gone = callbacks_.on_gone;
            return gone();  // May destroy this.
        }
        const auto on_packet = callbacks_.on_packet;
        const bool last = buffer[0] == packet::kEnded;
        on_packet(buffer[0], std::string_view(buffer + 1, static_cast<std::size_t>(n - 1)),
                  std::move(fds));
        if (last) return;  // The task is over; this may be destroyed.
    }
}

Result<Fd> connect_supervisor(int folder) {
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return system_error("make a socket for", files::kControl);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // Paths may be longer than a socket's address takes.
    const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + files::kControl;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        return system_error("connect to", files::kControl);
    return socket;
}

Spawner::~Spawner() {
    close();
}

void Spawner::close() {
    socket_.reset();  // It ends by this.
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

Status Spawner::open() {
    close();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return system_error("make a socket for", program_);
    Fd ours(ends[0]), theirs(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), 3);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(&actions, 0, 1);
    ::posix_spawn_file_actions_adddup2(&actions, 0, 2);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    char option[] = "--spawn";
    char* argv[] = {program_.data(), option, nullptr};
    char* environment[] = {nullptr};
    pid_t pid = -1;
    const int failed =
        ::posix_spawn(&pid, program_.c_str(), &actions, &attributes, argv, environment);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return system_error("start", program_, failed);
    pid_ = pid;
    socket_ = std::move(ours);
    return Ok{};
}

Result<Fd> Spawner::start(const std::string& folder) {
    MUSTER_LET(pair, make_pair_for(folder));
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (!socket_) MUSTER_TRY(open());
        if (send_with(socket_.get(), folder, pair.theirs.get(), 0)) return std::move(pair.ours);
        socket_.reset();
    }
    return system_error("reach the spawner", program_);
}

bool supervisor_gone(int folder) {
    const Fd lock(::openat(folder, files::kLaunch, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    return !lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

bool supervisor_began(int folder) {
    struct stat about {};
    return ::fstatat(folder, files::kControl, &about, AT_SYMLINK_NOFOLLOW) == 0 ||
           (::fstatat(folder, files::kLaunch, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            (about.st_mode & S_IWUSR) == 0);
}

}  // namespace muster::os
