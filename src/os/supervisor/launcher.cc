// The other end of remote_server.cc: `muster-rsh HOST COMMAND…` as MPI's launchers call an ssh.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/remote.h"
#include "os/sha256.h"
#include "os/supervisor/address.h"
#include "os/supervisor/supervisor.h"

namespace muster::os {
namespace {

using remote::Kind;

constexpr int kFailed = 255;  // As ssh: nothing is known of the command.
constexpr int kConnectMs = 30'000;
constexpr int kAnswerMs = 120'000;  // The other node may be slower at the barrier.
constexpr std::size_t kHeldMax = 256 * 1024;

int fail(const std::string& why) {
    std::fprintf(stderr, "muster-rsh: %s\n", why.c_str());
    return kFailed;
}

/// The ssh that the user would have had without us. Comes back only if there is none.
void become_ssh(char** words) {
    struct stat own {};
    const char* variable = std::getenv("PATH");
    if (::stat("/proc/self/exe", &own) != 0 || variable == nullptr) return;
    std::string_view path = variable;
    while (!path.empty()) {
        const std::size_t end = std::min(path.find(':'), path.size());
        const std::string program = std::string(path.substr(0, end)) + "/ssh";
        path.remove_prefix(std::min(end + 1, path.size()));
        struct stat about {};
        if (::stat(program.c_str(), &about) != 0 ||
            (about.st_dev == own.st_dev && about.st_ino == own.st_ino))
            continue;
        ::execv(program.c_str(), words);
    }
}

std::string names_of(const remote::Peers& peers) {
    std::string names;
    for (const remote::Peer& peer : peers.nodes) names += (names.empty() ? "" : ", ") + peer.name;
    return names;
}

int connect_to(const remote::Peer& peer) {
    const SocketAddress address = socket_address(peer.address, peer.port);
    if (address.size == 0) {
        errno = EDESTADDRREQ;
        return -1;
    }
    const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    int error = ::connect(fd, address.get(), address.size) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
        pollfd polled{.fd = fd, .events = POLLOUT, .revents = 0};
        socklen_t size = sizeof error;
        if (::poll(&polled, 1, kConnectMs) <= 0)
            error = ETIMEDOUT;
        else if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
    }
    if (error != 0) {
        ::close(fd);
        errno = error;
        return -1;
    }
    ::fcntl(fd, F_SETFL, 0);
    tune_connection(fd);
    return fd;
}

/// Exactly `size` bytes, or "".
std::string receive(int fd, std::size_t size) {
    std::string bytes;
    while (bytes.size() < size) {
        pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
        if (::poll(&polled, 1, kAnswerMs) <= 0) return {};
        char buffer[256];
        const ssize_t n = ::recv(fd, buffer, std::min(sizeof buffer, size - bytes.size()), 0);
        if (n <= 0 && errno != EINTR) return {};
        if (n > 0) bytes.append(buffer, static_cast<std::size_t>(n));
    }
    return bytes;
}

bool write_whole(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

/// "" once both ends have shown that they know the secret.
std::string prove(int fd, const remote::Peer& peer) {
    const std::string hello = receive(fd, remote::kHelloSize);
    if (hello.empty()) return "closed the connection; it takes no commands now";
    if (!hello.starts_with(remote::kGreeting)) return "is no task of this job";
    const std::string theirs = hello.substr(remote::kGreeting.size());
    const std::string ours = remote::random_bytes(remote::kNonceSize);
    if (ours.empty() || !write_whole(fd, ours + remote::client_proof(peer.secret, theirs, ours)))
        return "closed the connection";
    const std::string proof = receive(fd, remote::kProofSize);
    if (proof.empty()) return "did not accept this job's secret";
    if (!same_secret(proof, remote::server_proof(peer.secret, theirs, ours)))
        return "does not know this job's secret";
    return {};
}

/// Standard streams and the exit code, until either end is done.
int relay(int fd, const std::string& host, bool no_input) {
    std::string in, out;
    bool input = !no_input;
    if (!input) remote::put_frame(out, Kind::InputEnd, "");
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    char buffer[32 * 1024];
    while (true) {
        pollfd polled[2] = {
            {.fd = input && out.size() < kHeldMax ? 0 : -1, .events = POLLIN, .revents = 0},
            {.fd = fd,
             .events = static_cast<short>(POLLIN | (out.empty() ? 0 : POLLOUT)),
             .revents = 0}};
        if (::poll(polled, 2, -1) < 0 && errno != EINTR) return kFailed;
        if (polled[0].revents != 0) {
            const ssize_t n = ::read(0, buffer, sizeof buffer);
            if (n > 0) {
                remote::put_frame(out, Kind::Input, {buffer, static_cast<std::size_t>(n)});
            } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
                input = false;
                remote::put_frame(out, Kind::InputEnd, "");
            }
        }
        if ((polled[1].revents & POLLOUT) != 0) {
            const ssize_t n = ::send(fd, out.data(), out.size(), MSG_NOSIGNAL);
            if (n > 0) out.erase(0, static_cast<std::size_t>(n));
        }
        if ((polled[1].revents & ~POLLOUT) == 0) continue;
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) return fail("the connection to " + host + " is lost");
        in.append(buffer, static_cast<std::size_t>(n));
        bool broken = false;
        while (const auto frame = remote::take_frame(in, broken)) {
            if (frame->kind == Kind::Output) write_whole(1, frame->bytes);
            if (frame->kind == Kind::Error) write_whole(2, frame->bytes);
            if (frame->kind == Kind::Exit) return static_cast<int>(to_number(frame->bytes));
            if (frame->kind == Kind::Refused) return fail(host + ": " + frame->bytes);
        }
        if (broken) return fail(host + " talks nonsense");
    }
}

/// A job's notice goes to every process of it; that must not cost it its connections.
void ignore_notices() {
    for (const int signo :
         {SIGUSR1, SIGUSR2, SIGURG, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGWINCH})
        ::signal(signo, SIG_IGN);
    for (int signo = SIGRTMIN; signo <= SIGRTMAX; ++signo) ::signal(signo, SIG_IGN);
}

}  // namespace

int launch_remote(bool as_ssh, int count, char** words) {
    const auto parsed = remote::parse_call({words + 1, words + count});
    const auto* call = std::get_if<remote::Call>(&parsed);
    const char* file = std::getenv("MUSTER_LAUNCH_FILE");
    std::string bytes;
    const bool have = file != nullptr && read_small_file(AT_FDCWD, file, bytes);
    const auto peers = have ? remote::decode_peers(bytes) : std::nullopt;
    const remote::Peer* peer =
        peers && call != nullptr ? remote::find_peer(*peers, call->host) : nullptr;
    if (peer == nullptr && as_ssh) {
        become_ssh(words);
        return fail("there is no ssh in PATH");
    }
    if (call == nullptr) return fail(std::get<std::string>(parsed));
    if (!peers)
        return fail(
            "MUSTER_LAUNCH_FILE names no list of this job's nodes; it works inside a job "
            "of several nodes with launch: mpi");
    if (peer == nullptr)
        return fail(call->host + " is not a node of this job, whose nodes are " + names_of(*peers));
    if (!call->user.empty() && call->user != peers->user)
        return fail("user " + call->user + ": a job's commands run as its own user, " +
                    peers->user);
    if (call->command.size() > remote::kFrameMax)
        return fail("the command is " + std::to_string(call->command.size()) +
                    " bytes long, at most " + std::to_string(remote::kFrameMax) + " are possible");
    if (peer->port == 0)
        return fail("node " + peer->name + " takes no commands of this job; is its muster older?");
    ignore_notices();
    const int fd = connect_to(*peer);
    if (fd < 0)
        return fail("cannot connect to node " + peer->name + " at " + peer->address + " port " +
                    std::to_string(peer->port) + ": " + std::strerror(errno));
    if (const std::string why = prove(fd, *peer); !why.empty())
        return fail("node " + peer->name + " at " + peer->address + " port " +
                    std::to_string(peer->port) + " " + why);
    std::string command;
    remote::put_frame(command, Kind::Command, call->command);
    if (!write_whole(fd, command)) return fail("the connection to " + peer->name + " is lost");
    if (call->background && ::fork() > 0) return 0;
    return relay(fd, peer->name, call->no_input);
}

}  // namespace muster::os
