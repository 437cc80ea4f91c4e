// One task's supervisor: starts its processes, keeps its output and exit status, and ends it.
//
// It needs no agent while it runs, and answers whichever agent connects to its control socket. It
// promises that no process of the task is left when the exit file appears.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>

#include "os/supervisor/group.h"
#include "os/supervisor/log_writer.h"
#include "os/supervisor/process.h"
#include "os/task_files.h"

namespace muster::os {

class Supervisor {
public:
    /// `dir`: the task's folder, also the working directory. `agent`: a connection that is open
    /// already, or -1.
    Supervisor(int dir, Launch launch, int agent);
    ~Supervisor();
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;

    /// Until the task has ended and its exit file is written. The process's exit status.
    int run();

private:
    enum class Phase : std::uint8_t { Setup, Ready, Running, Emptying, Over };
    struct Pipe {
        int fd = -1;
        int local_rank = 0;
        int stream = 1;
        bool terminal = false;
        std::string partial = {};   // The begin of a line whose end has not come.
        std::int64_t flush_at = 0;  // steady_ms(); 0: nothing held.
    };
    struct Rank {
        pid_t pid = -1;
        int status = 0;
        bool ended = false;
    };
    struct Connection {
        int fd = -1;
        std::int64_t log_known = 0;  // -1: not asked.
    };
    struct Exec {
        pid_t pid = -1;
        int connection = -1;  // Descriptor of who asked; -1: gone.
        std::string id;
    };

    // The loop.
    bool open_signals();
    void listen_control();
    void loop_once();
    int wait_ms() const;
    void on_timers();
    void watch_for_agent();
    void on_children();
    void on_child(pid_t pid, int status);

    // The task's life.
    void begin();
    bool mount_layer();
    /// The command itself, or the runtime that runs it inside.
    Spawned spawn_inside(SpawnAsk ask, const std::string& which);
    void start_setup();
    void become_ready();
    void release();
    void start_ranks();
    bool start_rank(int local_rank);
    void fail_launch(const Spawned& spawned, bool setup);
    void on_rank_end(int local_rank, int status);
    void stop(std::int64_t grace_ms);
    void notice(int signo, std::int64_t grace_ms);
    void signal_task(int signo);
    void begin_emptying();
    void try_to_end();
    void end();
    void judge(Exit& exit) const;

    // Output.
    void add_pipe(int fd, int local_rank, int stream, bool terminal);
    void read_pipe(Pipe& pipe);
    void take_output(Pipe& pipe, std::string_view bytes);
    void flush(Pipe& pipe);
    void drain();

    // Control.
    void accept_control();
    void add_connection(int fd);
    void on_packet(Connection& connection, std::string_view packet, int fd);
    void read_connection(Connection& connection);
    void send(Connection& connection, char kind, std::string_view text,
              const std::vector<int>& fds = {});
    void tell_all(char kind, std::string_view text);
    void tell_log();
    void drop(Connection& connection);
    void start_exec(Connection& connection, std::string_view records);
    void give_terminal(Connection& connection);
    std::string state_text() const;
    /// A command beside the ranks: as the task's user, in its container.
    Spawned spawn_beside(const SpawnAsk& ask);

    // Commands of the gang's other nodes (remote_server.cc).
    bool listen_remote();
    void accept_remote();
    [[noreturn]] void serve_remote(int socket);

    int dir_;
    Launch launch_;
    ProcessGroup group_;
    LogWriter log_;
    Phase phase_ = Phase::Setup;
    int signals_ = -1, control_ = -1;
    int remote_ = -1;  // Listens for the gang's other nodes.
    int remote_port_ = 0;
    std::string remote_secret_;
    std::vector<pid_t> remotes_;  // One process a connection.
    int terminal_ = -1;
    pid_t setup_pid_ = -1;
    std::vector<Rank> ranks_;
    std::vector<Pipe> pipes_;
    std::vector<Connection> connections_;
    std::vector<int> handed_;  // Connections that came over another.
    std::vector<Exec> execs_;
    std::vector<std::string> go_env_;
    Exit exit_;
    bool judged_ = false;  // exit_ already says how: a rank failed, or nothing was run.
    bool stopping_ = false;
    bool no_children_ = false;       // waitpid said so.
    std::int64_t listen_at_ = 0;     // steady_ms(): when the control socket is made.
    std::int64_t kill_at_ = 0;       // steady_ms(): the end of a grace; 0: none.
    std::int64_t terminate_at_ = 0;  // Within a notice's grace: when SIGTERM follows.
    std::int64_t absence_ms_ = -1;   // How long it may be without an agent after…
    std::int64_t lease_until_ = 0;   // …the end of the lease; -1: not told, it is fence_ms.
    std::int64_t orphan_at_ = 0;     // When it has been without an agent for too long.
    std::int64_t retry_at_ = 0;      // Emptying: when to look and kill again.
    std::int64_t retry_ms_ = 5;
    std::int64_t emptying_since_ = 0;
    std::string stuck_;
    std::int64_t children_cpu_ms_ = 0;
};

/// The descriptor that came with a packet, or -1.
int attached(msghdr& message);

/// `muster-task FOLDER`, with the agent's connection as descriptor 3.
int supervise(const char* folder, int agent);
/// `muster-task --spawn`: descriptor 3 is a SOCK_SEQPACKET socket to the agent. Each packet is a
/// folder, with that task's agent connection attached; a supervisor is forked for it. Starting one
/// this way costs a fraction of an exec. Ends with the agent; the supervisors stay.
int spawn_supervisors(int agent);
/// `muster-task --wait [FILE]`: makes an empty FILE and does nothing until SIGTERM. What the other
/// nodes of an mpi job run.
int wait_for_end(const char* here);
/// `muster-task --rsh …`, also under the names muster-rsh and ssh: runs a command on another node
/// of the job and takes the words that ssh takes. As `ssh`, hosts that are not the job's go to the
/// ssh that comes later in PATH.
int launch_remote(bool as_ssh, int count, char** words);
/// `muster-task --init`: the first process in a container. Takes environment and command from
/// descriptor 3, runs it, reaps, and ends as it ended.
int container_init();
/// `muster-task --without MOUNT -- COMMAND…`: runs a command that does not see MOUNT.
int run_without_mount(const char* mount, char** command);

}  // namespace muster::os
