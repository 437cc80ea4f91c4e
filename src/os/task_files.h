// The files in a task's folder that the agent writes and the task's supervisor reads, and back.
//
// All are "key=value" records, each ended by a NUL (values hold anything but NUL); unknown keys are
// ignored, so that agent and supervisor of neighbouring versions understand each other. No file is
// read before it is whole: each is written under another name and renamed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::os {

/// Names within a task's folder.
namespace files {
constexpr const char* kOrder = "order";  // The StartTask, as the agent got it.
// What to run; locked by the living supervisor, and read-only once one has begun.
constexpr const char* kLaunch = "launch";
constexpr const char* kGo = "go";           // Environment known only now; its presence releases.
constexpr const char* kExit = "exit";       // How it ended.
constexpr const char* kStop = "stop";       // Why it was told to stop.
constexpr const char* kNotice = "noticed";  // A notice was given.
constexpr const char* kDone = "done";       // The job said `done`.
// Unix socket, SOCK_SEQPACKET; made once the first agent is gone, or the task not a short one.
constexpr const char* kControl = "control";
constexpr const char* kEnd = "end";          // Written by the agent for a task it never started.
constexpr const char* kRun = "run";          // Directory that the task may see.
constexpr const char* kScratch = "scratch";  // The task's default working directory.
constexpr const char* kLogPrefix = "log.";
}  // namespace files

/// The first byte of every packet on the control socket; the rest is text.
namespace packet {
// To the supervisor.
constexpr char kGo = 'G';
constexpr char kNotice = 'N';    // "<signal number>"
constexpr char kStop = 'S';      // "<grace in ms>"
constexpr char kWatchLog = 'A';  // "<bytes known>": answer kLog once there are more.
constexpr char kFence = 'F';     // "<ms>": stop if no agent is there for so long; 0: never.
constexpr char kLease = 'U';     // "<ms> <ms>": as kFence, but not before the second has passed.
constexpr char kCpus = 'B';      // "<list>": the CPUs that it may run on from now on.
constexpr char kExec = 'X';      // Records: id=, arg=…, tty=1, columns=, rows=.
constexpr char kTerminal = 'P';  // Asks for the task's own terminal: answered by kStreams.
constexpr char kConnect = 'C';   // With a descriptor: one more connection.
// To the agent.
// "preparing", "ready [<port> <secret>]" (for commands of other nodes), "running", "stopping [why
// it takes long]"
constexpr char kState = 'T';
constexpr char kLog = 'L';      // "<bytes now>"
constexpr char kEnded = 'E';    // The exit file is there.
constexpr char kStreams = 'x';  // "<id>" with descriptors: 1 = terminal; 3 = stdin, stdout, stderr.
constexpr char kExecEnded = 'e';  // "<id> <exit code> [error]"
}  // namespace packet

struct RankLaunch {
    std::vector<std::string> env;  // "NAME=VALUE", on top of the task's.
};
struct LimitLaunch {
    int resource = 0;  // RLIMIT_*
    std::uint64_t soft = 0, hard = 0;
};
/// A control group that a task's processes join, and what can be read from it.
struct GroupLaunch {
    std::string path;
    bool unified = false;  // v2: cgroup.kill, cgroup.events; else the legacy hierarchy.
    bool memory = false;   // Has the memory controller: peak and OOM are read here.
    bool own = true;       // Removed at the end; false: shared by several tasks.
    bool join = true;      // False: an OCI runtime makes groups of its own below it.
    friend bool operator==(const GroupLaunch&, const GroupLaunch&) = default;
};

struct Launch {
    bool switch_user = false;  // Only a supervisor that runs as root can.
    std::uint32_t uid = 0, gid = 0;
    std::vector<std::uint32_t> groups;
    std::vector<std::string> env;      // "NAME=VALUE"
    std::vector<std::string> secrets;  // "NAME=FILE", read as the user.
    std::vector<std::string> setup;    // argv; empty: none.
    std::vector<std::string> run;      // argv of every rank.
    /// argv of the OCI runtime that runs one process of the task in a container; empty: no
    /// container. The word "{id}" becomes a name of its own for each.
    std::vector<std::string> container;
    /// argv that runs a command in the container {id} of rank 0; "{tty}" becomes --tty or nothing.
    std::vector<std::string> enter;
    std::string container_id;  // "{id}" is this, a dash, and the local rank or "setup".
    /// Mounted before the first process, unmounted after the last: the task's own layer on an
    /// image. Data of an overlay mount; "": none.
    std::string overlay, overlay_target;
    std::string workdir;
    std::vector<RankLaunch> ranks;
    std::vector<LimitLaunch> limits;
    std::vector<GroupLaunch> groups_to_join;
    /// Address to take commands of the gang's other nodes at; "": it takes none.
    std::string remote;
    std::string shell;         // That runs them.
    std::string remote_after;  // They wait until this file of the task's folder is there; "": no.
    bool barrier = false;
    bool pty = false;
    bool reset_oom_score = false;
    std::int64_t fence_ms = 0;  // As packet::kFence; for gangs, which must not run twice.
    std::int64_t log_bytes_max = 100 << 20;
    std::string cpus;         // Those that it may run on, as Linux lists them; "": as its agent.
    bool cpus_bound = false;  // They are its own, until it ends.
};
std::string encode(const Launch& launch);
bool decode_launch(std::string_view bytes, Launch& launch);

struct Exit {
    bool launch_failed = false;  // Nothing was run, or setup could not start: the node's fault.
    bool setup_failed = false;
    bool stopped = false;  // Told to stop before it ended.
    bool killed = false;   // …and had to be killed after the grace.
    bool fenced = false;   // …by itself: no agent was there for longer than the lease.
    int exit_code = -1;    // Of the first rank that failed; 0: all ended well.
    int signal = 0;
    int local_rank = 0;
    bool oom = false;
    std::int64_t peak_memory = 0;
    std::int64_t cpu_ms = 0;
    std::int64_t started_ms = 0, ended_ms = 0;  // Since the epoch; started_ms 0: never ran.
    std::string message;
    friend bool operator==(const Exit&, const Exit&) = default;
};
std::string encode(const Exit& exit);
bool decode_exit(std::string_view bytes, Exit& exit);  // False: not a whole one.

/// One record; `value` must hold no NUL.
void put_record(std::string& out, std::string_view key, std::string_view value);
void put_record(std::string& out, std::string_view key, std::int64_t value);
/// Calls `each(key, value)` for every whole record.
template <class Each>
void each_record(std::string_view bytes, Each each) {
    while (true) {
        const std::size_t end = bytes.find('\0');
        if (end == std::string_view::npos) return;
        const std::string_view record = bytes.substr(0, end);
        bytes.remove_prefix(end + 1);
        const std::size_t equal = record.find('=');
        if (equal == std::string_view::npos) continue;
        each(record.substr(0, equal), record.substr(equal + 1));
    }
}
std::int64_t to_number(std::string_view text);  // 0 for what is none.

/// The whole file, or false. Bounded: a file over 64 MiB is not ours.
bool read_small_file(int dir, const char* path, std::string& out);
/// Under another name, then renamed; synced in between (and the folder after) if `sync`.
/// 0, or the errno of what failed.
int write_small_file(int dir, const char* path, std::string_view bytes, bool sync,
                     unsigned mode = 0600);

/// Into a file that nobody looks for yet: no other name, no rename. 0, or the errno.
int write_new_file(int dir, const char* path, std::string_view bytes, unsigned mode = 0600);

// ---- the log ----------------------------------------------------------------------------------

/// Before each run of bytes in a log file. Offsets in a log count payload bytes only; the name of
/// a file, "log." and 16 hex digits, is the offset of its first byte.
struct LogFrame {
    std::uint32_t size = 0;
    std::uint16_t local_rank = 0;
    std::uint8_t stream = 1;  // 0: a word of the supervisor, 1: stdout or terminal, 2: stderr.
    std::uint8_t reserved = 0;
    std::int64_t time_ms = 0;
};
static_assert(sizeof(LogFrame) == 16);
std::string log_file_name(std::int64_t offset);
/// The offset in a log file's name, or -1.
std::int64_t log_file_offset(std::string_view name);

}  // namespace muster::os
