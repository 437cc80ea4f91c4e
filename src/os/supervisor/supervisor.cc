#include "os/supervisor/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::os {
namespace {

constexpr std::int64_t kPeersGraceMs = 10'000;       // Of the other ranks when one failed.
constexpr std::int64_t kTerminateBeforeMs = 10'000;  // The end of a notice's grace.
constexpr std::int64_t kFenceGraceMs = 2'000;
constexpr std::int64_t kSyncWorthMs = 1'000;  // A shorter task is repeated after a power cut.
constexpr std::int64_t kStuckAfterMs = 5'000;
constexpr std::int64_t kRetryMaxMs = 1'000;
constexpr std::int64_t kListenAfterMs = 1'000;  // A shorter task needs no name to be reached by.

}  // namespace

Supervisor::Supervisor(int dir, Launch launch, int agent)
    : dir_(dir),
      launch_(std::move(launch)),
      group_(launch_.groups_to_join),
      log_(dir, launch_.log_bytes_max) {
    if (agent >= 0) connections_.push_back({.fd = agent});
}

Supervisor::~Supervisor() {
    for (const Connection& connection : connections_) ::close(connection.fd);
    for (const Pipe& pipe : pipes_) ::close(pipe.fd);
    for (const int fd : {signals_, control_, remote_})
        if (fd >= 0) ::close(fd);
}

int Supervisor::run() {
    if (!open_signals()) return 1;
    if (connections_.empty()) listen_control();
    if (control_ < 0) listen_at_ = steady_ms() + kListenAfterMs;
    begin();
    while (phase_ != Phase::Over) loop_once();
    return 0;
}

bool Supervisor::open_signals() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t all;
    ::sigemptyset(&all);
    for (const int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2, SIGQUIT})
        ::sigaddset(&all, s);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    sigset_t heard;
    ::sigemptyset(&heard);
    ::sigaddset(&heard, SIGCHLD);
    ::sigaddset(&heard, SIGTERM);
    signals_ = ::signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals_ >= 0;
}

void Supervisor::loop_once() {
    std::vector<pollfd> polled;
    polled.reserve(3 + pipes_.size() + connections_.size());
    polled.push_back({.fd = signals_, .events = POLLIN, .revents = 0});
    polled.push_back({.fd = control_, .events = POLLIN, .revents = 0});
    // Who is faster than this node's release waits in the kernel.
    const bool open = phase_ == Phase::Running && !stopping_;
    polled.push_back({.fd = open ? remote_ : -1, .events = POLLIN, .revents = 0});
    const std::size_t pipes = pipes_.size(), connections = connections_.size();
    for (const Pipe& pipe : pipes_)
        polled.push_back({.fd = pipe.fd, .events = POLLIN, .revents = 0});
    for (const Connection& connection : connections_)
        polled.push_back({.fd = connection.fd, .events = POLLIN, .revents = 0});
    if (::poll(polled.data(), polled.size(), wait_ms()) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < pipes; ++i)
        if (polled[3 + i].revents != 0) read_pipe(pipes_[i]);
    for (std::size_t i = 0; i < connections; ++i)
        if (polled[3 + pipes + i].revents != 0) read_connection(connections_[i]);
    for (const int fd : std::exchange(handed_, {})) add_connection(fd);
    if (polled[1].revents != 0) accept_control();
    if (polled[2].revents != 0) accept_remote();
    if (polled[0].revents != 0) {
        signalfd_siginfo info{};
        while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
            if (info.ssi_signo == SIGTERM) stop(kPeersGraceMs);
        on_children();
    }
    std::erase_if(pipes_, [](const Pipe& pipe) { return pipe.fd < 0; });
    on_timers();
    tell_log();
    std::erase_if(connections_, [](const Connection& c) { return c.fd < 0; });
    watch_for_agent();
}

int Supervisor::wait_ms() const {
    std::int64_t at = INT64_MAX;
    for (const Pipe& pipe : pipes_)
        if (pipe.flush_at != 0) at = std::min(at, pipe.flush_at);
    for (const std::int64_t timer : {terminate_at_, kill_at_, retry_at_, orphan_at_, listen_at_})
        if (timer != 0) at = std::min(at, timer);
    if (at == INT64_MAX) return -1;
    return static_cast<int>(std::clamp<std::int64_t>(at - steady_ms(), 0, 1'000'000));
}

/// A gang's task must not outlive its node's lease: its place is taken by another then. Whether the
/// lease lives only the agent knows; what it said of it last holds when it is gone.
void Supervisor::watch_for_agent() {
    if (launch_.fence_ms <= 0 || !connections_.empty() || stopping_) {
        orphan_at_ = 0;
    } else if (orphan_at_ == 0) {
        orphan_at_ = absence_ms_ < 0 ? steady_ms() + launch_.fence_ms
                                     : std::max(steady_ms() + absence_ms_, lease_until_);
    }
}

void Supervisor::on_timers() {
    const std::int64_t now = steady_ms();
    if (listen_at_ != 0 && listen_at_ <= now) listen_control();
    if (orphan_at_ != 0 && orphan_at_ <= now && phase_ != Phase::Over) {
        orphan_at_ = 0;
        exit_.fenced = true;
        stop(kFenceGraceMs);
    }
    for (Pipe& pipe : pipes_)
        if (pipe.flush_at != 0 && pipe.flush_at <= now) flush(pipe);
    if (terminate_at_ != 0 && terminate_at_ <= now) {
        terminate_at_ = 0;
        signal_task(SIGTERM);
    }
    if (kill_at_ != 0 && kill_at_ <= now) {
        kill_at_ = 0;
        if (phase_ != Phase::Over) {
            exit_.killed = true;
            group_.kill_all();
        }
    }
    if (phase_ == Phase::Emptying && retry_at_ != 0 && retry_at_ <= now) try_to_end();
}

void Supervisor::on_children() {
    int status = 0;
    rusage usage{};
    while (true) {
        const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
        if (pid < 0 && errno == EINTR) continue;
        no_children_ = pid < 0 && errno == ECHILD;
        if (pid <= 0) break;
        children_cpu_ms_ += (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                            (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
        on_child(pid, status);
    }
    const bool all_ended =
        phase_ == Phase::Running &&
        std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended; });
    if (all_ended) begin_emptying();
    if (phase_ == Phase::Emptying) try_to_end();
}

void Supervisor::on_child(pid_t pid, int status) {
    std::erase(remotes_, pid);
    if (pid == setup_pid_) {
        setup_pid_ = -1;
        if (phase_ != Phase::Setup) return;
        if (status == 0 && !stopping_) return become_ready();
        exit_.setup_failed = !stopping_;
        exit_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        exit_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        judged_ = true;
        return begin_emptying();
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i)
        if (ranks_[i].pid == pid && !ranks_[i].ended) {
            return on_rank_end(static_cast<int>(i), status);
        }
    for (Exec& exec : execs_) {
        if (exec.pid != pid) continue;
        exec.pid = -1;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        for (Connection& connection : connections_)
            if (connection.fd == exec.connection && connection.fd >= 0)
                send(connection, packet::kExecEnded, exec.id + " " + std::to_string(code));
    }
    std::erase_if(execs_, [](const Exec& exec) { return exec.pid < 0; });
}

// ---- the task's life --------------------------------------------------------------------------

void Supervisor::begin() {
    // Its own too, which all that it starts inherits.
    if (!launch_.cpus.empty()) run_self_on(launch_.cpus);
    if (!mount_layer())
        return fail_launch({.error = std::string("cannot mount the task's layer on its image: ") +
                                     std::strerror(errno)},
                           false);
    if (!launch_.remote.empty() && !listen_remote())
        return fail_launch({.error = std::string("cannot listen for the job's other nodes on ") +
                                     launch_.remote + ": " + std::strerror(errno)},
                           false);
    if (!launch_.setup.empty()) return start_setup();
    become_ready();
}

void Supervisor::start_setup() {
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
        return fail_launch({.error = "cannot make a pipe"}, true);
    const Spawned spawned = spawn_inside({.launch = launch_,
                                          .argv = launch_.setup,
                                          .env = {&launch_.env, &launch_.ranks.front().env},
                                          .stdio = {-1, out[1], err[1]}},
                                         "setup");
    ::close(out[1]);
    ::close(err[1]);
    add_pipe(out[0], 0, 1, false);
    add_pipe(err[0], 0, 2, false);
    if (spawned.pid < 0) return fail_launch(spawned, true);
    setup_pid_ = spawned.pid;
}

void Supervisor::become_ready() {
    phase_ = Phase::Ready;
    std::string go;
    if (!launch_.barrier || read_small_file(dir_, files::kGo, go)) return release();
    tell_all(packet::kState, state_text());
}

void Supervisor::release() {
    if (phase_ != Phase::Ready || stopping_) return;
    std::string go;
    if (read_small_file(dir_, files::kGo, go))
        each_record(go, [&](std::string_view key, std::string_view value) {
            if (key == "env") go_env_.emplace_back(value);
        });
    start_ranks();
}

void Supervisor::start_ranks() {
    phase_ = Phase::Running;
    exit_.started_ms = wall_ms();
    ranks_.resize(launch_.ranks.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
        if (!start_rank(static_cast<int>(i))) return;
    tell_all(packet::kState, state_text());
}

bool Supervisor::start_rank(int local_rank) {
    const auto rank = static_cast<std::size_t>(local_rank);
    const bool terminal = launch_.pty && local_rank == 0;
    SpawnAsk ask{.launch = launch_,
                 .argv = launch_.run,
                 .env = {&launch_.env, &go_env_, &launch_.ranks[rank].env},
                 .terminal = terminal};
    std::vector<int> theirs;
    if (terminal) {
        const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        int slave = -1;
        if (master >= 0 && ::unlockpt(master) == 0)
            slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0) {
            fail_launch({.error = std::string("cannot open a terminal: ") + std::strerror(errno)},
                        false);
            return false;
        }
        if (launch_.switch_user && ::fchown(slave, launch_.uid, static_cast<gid_t>(-1)) != 0) {
            fail_launch({.error = "cannot give the terminal to the user"}, false);
            return false;
        }
        terminal_ = master;
        std::fill(ask.stdio, ask.stdio + 3, slave);
        theirs = {slave};
        add_pipe(master, local_rank, 1, true);
    } else {
        int out[2], err[2];
        if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) {
            fail_launch({.error = std::string("cannot make a pipe: ") + std::strerror(errno)},
                        false);
            return false;
        }
        ask.stdio[1] = out[1];
        ask.stdio[2] = err[1];
        theirs = {out[1], err[1]};
        add_pipe(out[0], local_rank, 1, false);
        add_pipe(err[0], local_rank, 2, false);
    }
    const Spawned spawned = spawn_inside(ask, std::to_string(local_rank));
    for (const int fd : theirs) ::close(fd);
    if (spawned.pid < 0) {
        fail_launch(spawned, false);
        return false;
    }
    ranks_[rank].pid = spawned.pid;
    return true;
}

void Supervisor::fail_launch(const Spawned& spawned, bool setup) {
    exit_.message = spawned.error;
    exit_.launch_failed = !spawned.users_fault;
    exit_.setup_failed = setup && spawned.users_fault;
    exit_.exit_code = spawned.users_fault ? 127 : -1;
    log_.write(0, 0, "[muster: " + spawned.error + "]\n");
    judged_ = true;
    begin_emptying();
    group_.kill_all();
    try_to_end();
}

void Supervisor::on_rank_end(int local_rank, int status) {
    Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
    rank.ended = true;
    rank.status = status;
    if (status == 0 || judged_) return;
    judged_ = true;
    exit_.local_rank = local_rank;
    exit_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    exit_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    // An OCI runtime tells a signal as a shell does.
    if (!launch_.container.empty() && exit_.exit_code > 128 && exit_.exit_code < 128 + NSIG)
        exit_.signal = std::exchange(exit_.exit_code, -1) - 128;
    const bool others =
        std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& other) { return !other.ended; });
    if (!others || stopping_) return;
    signal_task(SIGTERM);
    kill_at_ = steady_ms() + kPeersGraceMs;
}

void Supervisor::stop(std::int64_t grace_ms) {
    if (phase_ == Phase::Over) return;
    const std::int64_t at = steady_ms() + std::max<std::int64_t>(grace_ms, 0);
    const bool first = !stopping_;
    stopping_ = true;
    if (phase_ != Phase::Emptying || kill_at_ != 0) exit_.stopped = true;
    kill_at_ = kill_at_ == 0 ? at : std::min(kill_at_, at);
    if (phase_ == Phase::Ready) {
        judged_ = true;
        begin_emptying();
        return try_to_end();
    }
    if (first && grace_ms > 0) signal_task(SIGTERM);
    if (grace_ms <= 0) {
        kill_at_ = 0;
        exit_.killed = true;
        group_.kill_all();
    }
    tell_all(packet::kState, state_text());
}

void Supervisor::notice(int signo, std::int64_t grace_ms) {
    if (phase_ != Phase::Running || kill_at_ != 0) return;
    const std::int64_t now = steady_ms();
    const std::int64_t grace = std::max<std::int64_t>(grace_ms, 1);
    signal_task(signo);
    terminate_at_ = now + grace - std::min<std::int64_t>(kTerminateBeforeMs, grace / 3);
    kill_at_ = now + grace;
}

void Supervisor::signal_task(int signo) {
    for (const pid_t pid : group_.processes()) {
        // An OCI runtime is not the task: it has to live to tell how the task ended.
        const bool runtime =
            !launch_.container.empty() &&
            (pid == setup_pid_ || std::any_of(ranks_.begin(), ranks_.end(),
                                              [&](const Rank& r) { return r.pid == pid; }));
        if (!runtime) ::kill(pid, signo);
    }
}

void Supervisor::begin_emptying() {
    if (phase_ == Phase::Emptying || phase_ == Phase::Over) return;
    phase_ = Phase::Emptying;
    emptying_since_ = steady_ms();
    // Inside a grace those that still save their state may; else whoever was left behind goes.
    if (kill_at_ == 0 && !no_children_) group_.kill_all();
}

void Supervisor::try_to_end() {
    if (phase_ != Phase::Emptying) return;
    int status = 0;
    while (true) {
        const pid_t pid = ::waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            on_child(pid, status);
        } else if (pid == 0 || errno != EINTR) {
            no_children_ = pid < 0;
            break;
        }
    }
    if (no_children_ && group_.empty()) return end();
    const std::int64_t now = steady_ms();
    retry_at_ = now + retry_ms_;
    retry_ms_ = std::min(retry_ms_ * 2, kRetryMaxMs);
    if (kill_at_ != 0) return;
    if (now - emptying_since_ > retry_ms_) group_.kill_all();
    if (now - emptying_since_ < kStuckAfterMs) return;
    std::string stuck;
    for (const pid_t pid : group_.processes()) {
        if (stuck = describe_stuck(pid); !stuck.empty()) break;
    }
    if (stuck.empty() || stuck == stuck_) return;
    stuck_ = stuck;
    log_.write(0, 0, "[muster: killed, but does not end: " + stuck + "]\n");
    tell_all(packet::kState, state_text());
}

void Supervisor::end() {
    drain();
    for (const Rank& rank : ranks_)
        if (!rank.ended) judged_ = true;
    if (!judged_) exit_.exit_code = 0;
    judge(exit_);
    if (!launch_.overlay.empty()) ::umount2(launch_.overlay_target.c_str(), MNT_DETACH);
    if (!group_.remove()) {
        // The last process may need a moment to leave its group for good.
        for (int i = 0; i < 50 && !group_.remove(); ++i) ::usleep(2'000);
    }
    const bool sync = exit_.started_ms != 0 && exit_.ended_ms - exit_.started_ms >= kSyncWorthMs;
    // Without room for the exit file the end cannot be told: wait for room.
    struct stat folder {};
    while (write_small_file(dir_, files::kExit, encode(exit_), sync) != 0) {
        // A folder that was removed has nobody who waits for its end.
        if (::fstat(dir_, &folder) != 0 || folder.st_nlink == 0) break;
        ::usleep(500'000);
    }
    phase_ = Phase::Over;
    tell_all(packet::kEnded, std::to_string(log_.size()));
    if (control_ >= 0) ::unlinkat(dir_, files::kControl, 0);
}

void Supervisor::judge(Exit& exit) const {
    exit.ended_ms = wall_ms();
    exit.oom = group_.oom_killed();
    exit.peak_memory = group_.peak_memory();
    if (exit.peak_memory == 0) {
        rusage usage{};
        if (::getrusage(RUSAGE_CHILDREN, &usage) == 0)
            exit.peak_memory = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
    }
    const std::int64_t cpu = group_.cpu_ms();
    exit.cpu_ms = cpu >= 0 ? cpu : children_cpu_ms_;
    if (exit.message.empty() && !stuck_.empty()) exit.message = "was slow to end: " + stuck_;
}

int supervise(const char* folder, int agent) {
    ::setsid();
    ::close_range(static_cast<unsigned>(std::max(agent, 2)) + 1, ~0U, 0);
    if (::chdir(folder) != 0) return 1;
    const int dir = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    std::string bytes;
    Launch launch;
    const int lock = ::openat(dir, files::kLaunch, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    // Held as long as this process lives: no second supervisor, and no doubt about the first.
    if (lock < 0 || ::flock(lock, LOCK_EX | LOCK_NB) != 0) return 1;
    if (!read_small_file(dir, files::kLaunch, bytes) || !decode_launch(bytes, launch)) return 1;
    // Whatever becomes of this process: from here on nobody starts the task a second time.
    if (::fchmod(lock, 0400) != 0) return 1;
    if (agent >= 0) {
        ::fcntl(agent, F_SETFD, FD_CLOEXEC);
        ::fcntl(agent, F_SETFL, O_NONBLOCK);
    }
    return Supervisor(dir, std::move(launch), agent).run();
}

}  // namespace muster::os
