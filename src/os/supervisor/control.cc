// The control socket: how agents that come and go steer a supervisor that stays.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/supervisor/supervisor.h"

namespace muster::os {
namespace {

constexpr std::size_t kConnectionsMax = 16;

}  // namespace

void Supervisor::listen_control() {
    listen_at_ = 0;
    if (control_ >= 0) return;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, files::kControl, sizeof address.sun_path - 1);
    control_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ::unlinkat(dir_, files::kControl, 0);
    const mode_t old = ::umask(0177);
    if (control_ >= 0 &&
        (::bind(control_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
         ::listen(control_, 8) != 0)) {
        ::close(control_);
        control_ = -1;
    }
    ::umask(old);
}

void Supervisor::accept_control() {
    const int fd = ::accept4(control_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) add_connection(fd);
}

void Supervisor::add_connection(int fd) {
    if (connections_.size() >= kConnectionsMax) {
        ::close(fd);
        return;
    }
    connections_.push_back({.fd = fd, .log_known = -1});
    send(connections_.back(), packet::kState, state_text());
}

std::string Supervisor::state_text() const {
    if (phase_ == Phase::Emptying || stopping_)
        return stuck_.empty() ? "stopping" : "stopping " + stuck_;
    switch (phase_) {
        case Phase::Setup: return "preparing";
        case Phase::Ready:
            return remote_ < 0 ? "ready"
                               : "ready " + std::to_string(remote_port_) + " " + remote_secret_;
        default: return "running";
    }
}

void Supervisor::read_connection(Connection& connection) {
    char buffer[16 * 1024];
    while (connection.fd >= 0) {
        iovec part{buffer, sizeof buffer};
        alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        const ssize_t n = ::recvmsg(connection.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n > 0) {
            on_packet(connection, std::string_view(buffer, static_cast<std::size_t>(n)),
                      attached(message));
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        drop(connection);
    }
}

void Supervisor::drop(Connection& connection) {
    // Whoever sat at the other end of a command is gone: it hangs up.
    for (Exec& exec : execs_) {
        if (exec.connection != connection.fd || exec.pid < 0) continue;
        exec.connection = -1;
        ::kill(-exec.pid, SIGHUP);
        ::kill(-exec.pid, SIGCONT);
    }
    ::close(connection.fd);
    connection.fd = -1;
    listen_control();  // The agent may be gone, and the next one must find the way.
}

void Supervisor::on_packet(Connection& connection, std::string_view text, int fd) {
    const char kind = text.front();
    if (kind == packet::kConnect && fd >= 0) return handed_.push_back(fd);
    if (fd >= 0) ::close(fd);
    text.remove_prefix(1);
    const std::size_t space = text.find(' ');
    const std::string_view second =
        space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
    switch (kind) {
        case packet::kGo: return release();
        case packet::kNotice: return notice(static_cast<int>(to_number(text)), to_number(second));
        case packet::kStop: return stop(to_number(text));
        case packet::kWatchLog: connection.log_known = to_number(text); return;
        case packet::kFence: launch_.fence_ms = to_number(text); return;
        case packet::kLease:
            absence_ms_ = to_number(text);
            lease_until_ = steady_ms() + to_number(second);
            return;
        case packet::kCpus: return group_.run_on(text);
        case packet::kExec: return start_exec(connection, text);
        case packet::kTerminal: return give_terminal(connection);
        default: return;  // Of a newer agent.
    }
}

void Supervisor::send(Connection& connection, char kind, std::string_view text,
                      const std::vector<int>& fds) {
    if (connection.fd < 0) return;
    iovec parts[2] = {{&kind, 1}, {const_cast<char*>(text.data()), text.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    alignas(cmsghdr) char space[CMSG_SPACE(3 * sizeof(int))] = {};
    if (!fds.empty()) {
        message.msg_control = space;
        message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
        std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    // An agent that does not read is as good as gone: it connects anew.
    if (::sendmsg(connection.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) drop(connection);
}

void Supervisor::tell_all(char kind, std::string_view text) {
    for (Connection& connection : connections_) send(connection, kind, text);
}

void Supervisor::tell_log() {
    for (Connection& connection : connections_) {
        if (connection.fd < 0 || connection.log_known < 0 || connection.log_known >= log_.size())
            continue;
        connection.log_known = -1;
        send(connection, packet::kLog, std::to_string(log_.size()));
    }
}

void Supervisor::give_terminal(Connection& connection) {
    if (terminal_ >= 0) return send(connection, packet::kStreams, "0", {terminal_});
    send(connection, packet::kExecEnded, "0 125 the task has no terminal (ask for one: --pty)");
}

Spawned Supervisor::spawn_beside(const SpawnAsk& ask) {
    if (launch_.enter.empty()) return spawn(ask);
    std::vector<std::string> enter;
    for (const std::string& word : launch_.enter) {
        if (word == "{id}") {
            enter.push_back(launch_.container_id + "-0");
        } else if (word != "{tty}") {
            enter.push_back(word);
        } else if (ask.terminal) {
            enter.emplace_back("--tty");
        }
    }
    return spawn({.launch = launch_,
                  .argv = enter,
                  .env = ask.env,
                  .as = SpawnAs::Container,
                  .inside = &ask.argv,
                  .terminal = ask.terminal,
                  .stdio = {ask.stdio[0], ask.stdio[1], ask.stdio[2]}});
}

void Supervisor::start_exec(Connection& connection, std::string_view records) {
    std::string id = "1";
    std::vector<std::string> argv;
    bool tty = false;
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    each_record(records, [&](std::string_view key, std::string_view value) {
        if (key == "id") id = value;
        if (key == "arg") argv.emplace_back(value);
        if (key == "tty") tty = value == "1";
        if (key == "columns") size.ws_col = static_cast<unsigned short>(to_number(value));
        if (key == "rows") size.ws_row = static_cast<unsigned short>(to_number(value));
    });
    const auto refuse = [&](std::string_view why, int code = 125) {
        send(connection, packet::kExecEnded,
             id + " " + std::to_string(code) + " " + std::string(why));
    };
    if (phase_ != Phase::Running || stopping_) return refuse("the task is not running");
    if (argv.empty()) return refuse("no command was given");
    SpawnAsk ask{.launch = launch_,
                 .argv = argv,
                 .env = {&launch_.env, &go_env_, &launch_.ranks.front().env},
                 .terminal = tty};
    std::vector<int> ours, theirs;
    if (tty) {
        const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        int slave = -1;
        if (master >= 0 && ::unlockpt(master) == 0)
            slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0) return refuse("cannot open a terminal");
        ::ioctl(master, TIOCSWINSZ, &size);
        if (launch_.switch_user && ::fchown(slave, launch_.uid, static_cast<gid_t>(-1)) != 0)
            return refuse("cannot give the terminal to the user");
        std::fill(ask.stdio, ask.stdio + 3, slave);
        ours = {master};
        theirs = {slave};
    } else {
        int in[2], out[2], err[2];
        if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 ||
            ::pipe2(err, O_CLOEXEC) != 0)
            return refuse("cannot make pipes");
        ask.stdio[0] = in[0];
        ask.stdio[1] = out[1];
        ask.stdio[2] = err[1];
        ours = {in[1], out[0], err[0]};
        theirs = {in[0], out[1], err[1]};
    }
    const Spawned spawned = spawn_beside(ask);
    for (const int fd : theirs) ::close(fd);
    if (spawned.pid > 0) {
        execs_.push_back({.pid = spawned.pid, .connection = connection.fd, .id = id});
        send(connection, packet::kStreams, id, ours);
    } else {
        // Of a container this is the runtime, whose own failure is ours.
        const bool own = launch_.enter.empty() && spawned.exec_code != 0;
        refuse(spawned.error, own ? spawned.exec_code : 125);
    }
    for (const int fd : ours) ::close(fd);
}

}  // namespace muster::os
