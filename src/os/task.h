// One task of this node, as its agent sees it: from its order to its end, across agents' lives.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "os/context.h"
#include "os/line_rule.h"
#include "os/log_reader.h"
#include "os/prepare.h"
#include "os/supervisor_link.h"
#include "os/task_socket.h"
#include "os/verdict.h"
#include "ports/runtime.h"

namespace muster::os {

/// All on the loop's thread.
class Task {
public:
    Task(Context& context, protocol::StartTask order);
    ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

    /// A new task: its folder is made, its order written.
    void start();
    /// One whose folder is there already, left by an earlier agent.
    void adopt();
    /// Before that, of all: the CPUs that are bound to it are in the book again.
    void adopt_cpus();
    /// The CPUs that a task without any of its own may run on have changed.
    void tell_cpus(const std::string& floating);
    void release(const protocol::Go& go);
    void notice(const protocol::NoticeTask& notice);
    void stop(model::Cause cause, Duration grace);
    /// Tells the supervisor of a gang's task how long it may be without an agent.
    void tell_fence();
    void tell_lease();
    /// The folder goes; the log is kept. Only of an ended task.
    void clean();

    const protocol::StartTask& order() const { return order_; }
    const protocol::TaskStatus& status() const { return status_; }
    bool ended() const { return status_.state == protocol::TaskState::Ended; }
    bool released() const { return released_; }
    const std::string& folder() const { return folder_; }
    bool has_terminal() const { return spec_.pty && order_.key.rank == 0; }
    /// False once this object is gone.
    std::shared_ptr<bool> alive() const { return alive_; }

    /// Calls once when the log grows beyond `known` bytes or the task ends. Returns a handle for
    /// forget_watch().
    using WatchId = std::uint64_t;
    WatchId watch_log(std::int64_t known, std::function<void()> then);
    void forget_watch(WatchId id);
    std::int64_t log_end() const { return log_end_; }

    /// What became of an exec or of the ask for the terminal: descriptors, or an exit code.
    struct ExecCallbacks {
        std::function<void(std::vector<Fd>)> on_streams;
        std::function<void(int exit_code, std::string error)> on_end;
    };
    /// An exec has a supervisor connection of its own, so that it ends with its asker.
    std::unique_ptr<SupervisorLink> open_exec(const protocol::OpenTunnel& ask,
                                              ExecCallbacks callbacks);

private:
    void begin();
    void pull();
    void prepare_slowly();
    void launch(std::variant<Prepared, Refused> result);
    Status launch_prepared(Prepared& prepared);
    void connect(Fd socket);
    void reconnect();
    void on_packet(char kind, std::string_view text);
    void on_gone();
    void take_end();
    void vanish();
    void refuse(const Refused& refused);
    void finish(model::TaskEnd end);
    void set_state(protocol::TaskState state);
    void report();
    PrepareAsk prepare_ask() const;
    void choose_cpus();
    Status write(const char* name, std::string_view bytes, bool sync = false);
    std::optional<std::string> read(const char* name) const;
    void read_told();

    /// The last of what one rank said of its progress, and whether it is still to be told.
    struct Spoken {
        ProgressLine line;
        bool waiting = false;
        std::int64_t sent_ms = -1'000'000;
    };
    Status open_socket(std::uint32_t uid);
    void reopen_socket();
    void on_line(TaskLine line, TaskSocket::Answer answer);
    void on_progress(const ProgressLine& line);
    void send_progress(int local_rank, Spoken& spoken);
    void send_all_progress();
    void on_checkpoint(const CheckpointLine& line, TaskSocket::Answer answer);

    void write_notice(const protocol::NoticeTask& notice);
    void watch_supervisor_log();
    void on_log(std::int64_t end);
    void send_tail();
    void match_rules(std::string_view bytes);

    Context& context_;
    protocol::StartTask order_;
    model::JobSpec spec_;
    protocol::TaskStatus status_;
    std::string folder_;
    Fd dir_;
    bool released_ = false;
    Told told_;
    std::optional<std::pair<model::Cause, Duration>> stop_wanted_;  // Before there is a supervisor.
    std::unique_ptr<SupervisorLink> link_;
    EventLoop::Timer retry_ = 0;
    Images::Ask pulling_ = 0;
    std::optional<Image> image_;
    int port_ = 0;
    std::string cpus_;  // As Launch::cpus.

    ListeningSocket listening_;  // Before and after: it goes with the folder to the next task.
    std::unique_ptr<TaskSocket> socket_;
    std::map<int, Spoken> progress_;
    EventLoop::Timer progress_timer_ = 0;
    std::string checkpoint_dir_, checkpoint_dir_on_node_;  // As the task sees it; as the node does.
    std::int64_t checkpoint_step_ = -1;
    std::int64_t notice_until_ms_ = 0;  // steady_ms()

    std::int64_t log_end_ = 0;
    bool log_told_ = false;        // That there will be no more than log_end_.
    std::int64_t asked_log_ = -1;  // What the supervisor was last told to report beyond.
    std::unique_ptr<LogReader> tail_;
    std::vector<std::optional<LineRule>> rules_;  // By number; empty: matched, or not to be read.
    std::string rule_line_;
    EventLoop::Timer tail_timer_ = 0;
    struct Watch {
        std::int64_t known;
        std::function<void()> then;
    };
    std::map<WatchId, Watch> watches_;
    WatchId last_watch_ = 0;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::os
