#include "os/task.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/cpu_list.h"
#include "os/environment.h"
#include "os/kept_logs.h"
#include "os/order_file.h"
#include "os/supervisor/group.h"
#include "os/supervisor/log_writer.h"
#include "os/task_signals.h"

namespace muster::os {
namespace {

using model::Cause;
using protocol::TaskState;

constexpr std::int64_t kReconnectMs = 50;

/// Without control groups: the processes that carry this task's socket in their environment.
void kill_marked(const std::string& folder) {
    const std::string mark = "MUSTER_SOCKET=" + folder + "/" + files::kRun + "/sock";
    for (const std::string& name : list_folder("/proc")) {
        const auto pid = static_cast<pid_t>(to_number(name));
        if (pid <= 1 || pid == ::getpid()) continue;
        const auto environment = read_file("/proc/" + name + "/environ", 4 << 20);
        if (environment && environment->find(mark + '\0') != std::string::npos)
            ::kill(pid, SIGKILL);
    }
}

/// A node that has no room for an image is itself at fault, not the image.
Refused refusal_of(const Error& error) {
    return {.cause = error.code == Code::NoSpace ? Cause::Launch : Cause::Image,
            .message = error.message,
            .permanent = error.code == Code::NotFound};
}

std::string told_file(Cause cause, int signo) {
    std::string text;
    put_record(text, "cause", static_cast<std::int64_t>(cause));
    put_record(text, "signal", signo);
    put_record(text, "end", 1);
    return text;
}

}  // namespace

Task::Task(Context& context, protocol::StartTask order)
    : context_(context), order_(std::move(order)) {
    status_.key = order_.key;
    status_.term = order_.term;
    folder_ = context_.tasks_dir + "/" + folder_name(order_.key);
}

Task::~Task() {
    *alive_ = false;
    context_.loop->cancel(retry_);
    context_.loop->cancel(tail_timer_);
    context_.loop->cancel(progress_timer_);
    if (pulling_ != 0) context_.images->forget(pulling_);
}

Status Task::write(const char* name, std::string_view bytes, bool sync) {
    if (const int failed = write_small_file(dir_.get(), name, bytes, sync); failed != 0)
        return system_error("write", folder_ + "/" + name, failed);
    return Ok{};
}

std::optional<std::string> Task::read(const char* name) const {
    std::string bytes;
    if (!read_small_file(dir_.get(), name, bytes)) return std::nullopt;
    return bytes;
}

void Task::report() {
    context_.tell(status_);
}

void Task::set_state(TaskState state) {
    if (status_.state == state) return;
    status_.state = state;
    if (ended()) context_.cpus->release(order_.key);
    report();
}

// ---- beginning --------------------------------------------------------------------------------

void Task::start() {
    if (auto socket = context_.spares->take(order_.user, folder_))
        listening_ = *std::move(socket);
    else if (::mkdir(folder_.c_str(), 0711) != 0 && errno != EEXIST)
        return refuse({.message = system_error("make folder", folder_).message});
    dir_ = Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!dir_) return refuse({.message = system_error("open", folder_).message});
    // Not synced: a power cut ends the task with its order, and the boot id tells of it.
    if (const int failed = write_new_file(dir_.get(), files::kOrder, encode(order_)); failed != 0)
        return refuse({.message = system_error("write", folder_ + "/order", failed).message});
    report();
    begin();
}

void Task::begin() {
    auto spec = model::decode_job_spec(order_.spec ? *order_.spec : std::string());
    if (!spec) return refuse({.message = "the order's job specification cannot be read"});
    spec_ = *std::move(spec);
    if (!order_.gang || order_.key.rank >= order_.gang->size() || order_.role >= spec_.roles.size())
        return refuse({.message = "the order names no place in its gang"});
    choose_cpus();
    if (!order_.barrier) port_ = context_.take_port();
    if (!spec_.image.empty()) return pull();
    if (spec_.checkpoint.dir.empty()) return launch(prepare(prepare_ask()));
    prepare_slowly();
}

void Task::choose_cpus() {
    const std::int64_t count = cpus_to_bind(order_, spec_.exclusive);
    CpuBook& book = *context_.cpus;
    cpus_ = format_cpu_list(
        count > 0 ? book.bind(order_.key, count, find_devices(context_.devices, order_.devices))
                  : std::vector<int>());
    if (cpus_.empty() && book.any_bound()) cpus_ = format_cpu_list(book.floating());
}

void Task::pull() {
    if (!context_.oci.works())
        return refuse({.message = "the job wants a container, and none can be run here: " +
                                  context_.oci.why_not});
    set_state(TaskState::Pulling);
    pulling_ =
        context_.images->fetch(spec_.image, {.on_progress =
                                                 [this](std::int64_t done, std::int64_t total) {
                                                     status_.done = done;
                                                     status_.total = total;
                                                     report();
                                                 },
                                             .on_end =
                                                 [this](Result<Image> result) {
                                                     pulling_ = 0;
                                                     if (!result)
                                                         return refuse(refusal_of(result.error()));
                                                     image_ = *std::move(result);
                                                     prepare_slowly();
                                                 }});
}

/// The job's storage may stand still: not on this thread.
void Task::prepare_slowly() {
    set_state(TaskState::Preparing);
    context_.slow->post([ask = prepare_ask(), this, alive = alive_, loop = context_.loop] {
        auto result = std::make_shared<std::variant<Prepared, Refused>>(prepare(ask));
        loop->post([this, alive, result] {
            if (*alive) launch(std::move(*result));
        });
    });
}

PrepareAsk Task::prepare_ask() const {
    return {.order = order_,
            .spec = spec_,
            .folder = folder_,
            .devices = context_.devices,
            .shell = context_.shell,
            .interface = context_.interface,
            .root = context_.root,
            .log_bytes_max = context_.options.log_max.value,
            .port = port_,
            .cpus = cpus_,
            .cpus_bound = context_.cpus->bound(order_.key),
            .fence = context_.fence,
            .reset_oom_score = context_.reset_oom_score,
            .users = context_.users,
            .image = image_,
            .oci = context_.oci,
            .supervisor = context_.options.supervisor,
            .oci_root = context_.options.state_dir + "/oci",
            .cgroups_path = context_.oci.own_groups
                                ? context_.cgroups.nested_path(folder_name(order_.key))
                                : std::string(),
            .common_files = context_.options.common_files};
}

void Task::launch(std::variant<Prepared, Refused> result) {
    if (stop_wanted_) {
        model::TaskEnd end;
        end.cause = stop_wanted_->first;
        end.message = "stopped before it started";
        return finish(std::move(end));
    }
    if (const auto* refused = std::get_if<Refused>(&result)) return refuse(*refused);
    if (Status launched = launch_prepared(std::get<Prepared>(result)); !launched)
        refuse({.message = launched.error().message});
}

Status Task::launch_prepared(Prepared& prepared) {
    if (context_.cgroups.usable()) {
        GroupAsk ask{.name = folder_name(order_.key),
                     .cpus = order_.cpus,
                     .memory = order_.memory,
                     .pids = context_.options.pids_max,
                     .cpu_list = prepared.launch.cpus_bound ? prepared.launch.cpus : "",
                     .confine_devices = !context_.devices.empty() || image_.has_value(),
                     .devices = {}};
        for (const model::Device& device : prepared.devices)
            for (const std::string& file : device.files) {
                MUSTER_LET(number, device_number(file));
                ask.devices.push_back(number);
            }
        if (!ask.devices.empty())
            for (const std::string& file : context_.options.common_files)
                if (const auto number = device_number(file)) ask.devices.push_back(*number);
        MUSTER_LET(groups, context_.cgroups.make(ask));
        if (image_ && context_.oci.own_groups) groups = context_.cgroups.for_own_groups(ask.name);
        prepared.launch.groups_to_join = std::move(groups);
    }
    checkpoint_dir_ = prepared.checkpoint_dir;
    checkpoint_dir_on_node_ = prepared.checkpoint_dir_on_node;
    checkpoint_step_ = prepared.checkpoint_step;
    MUSTER_TRY(open_socket(prepared.user.uid));
    // The supervisor does not begin before it is whole.
    if (const int failed = write_new_file(dir_.get(), files::kLaunch, encode(prepared.launch));
        failed != 0)
        return system_error("write", folder_ + "/launch", failed);
    MUSTER_LET(socket, context_.spawner->start(folder_));
    asked_log_ = 0;
    connect(std::move(socket));
    if (prepared.checkpoint_step >= 0 && prepared.checkpoint_step != order_.checkpoint_step)
        context_.tell(protocol::CheckpointDone{.key = order_.key,
                                               .step = prepared.checkpoint_step,
                                               .path = prepared.latest_checkpoint});
    return Ok{};
}

void Task::adopt_cpus() {
    const std::string folder = folder_ + "/";
    std::string bytes;
    Launch launch;
    for (const char* ended : {files::kExit, files::kEnd})
        if (::access((folder + ended).c_str(), F_OK) == 0) return;
    if (!read_small_file(AT_FDCWD, (folder + files::kLaunch).c_str(), bytes) ||
        !decode_launch(bytes, launch) || !launch.cpus_bound)
        return;
    if (auto cpus = parse_cpu_list(launch.cpus); cpus)
        context_.cpus->adopt(order_.key, *std::move(cpus));
}

void Task::adopt() {
    dir_ = Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!dir_) return;
    read_told();
    log_end_ = log_size(folder_);
    struct stat about {};
    released_ = ::fstatat(dir_.get(), files::kGo, &about, 0) == 0;
    if (auto spec = model::decode_job_spec(*order_.spec)) spec_ = *std::move(spec);
    if (read(files::kExit) || read(files::kEnd)) return take_end();
    status_.state = TaskState::Preparing;
    checkpoint_dir_ = checkpoint_folder(prepare_ask());
    checkpoint_dir_on_node_ = path_on_node(prepare_ask(), checkpoint_dir_);
    reopen_socket();
    reconnect();
}

void Task::reconnect() {
    retry_ = 0;
    if (auto socket = connect_supervisor(dir_.get())) {
        asked_log_ = -1;
        connect(*std::move(socket));
        // It may have missed what became free while no agent was there.
        return tell_cpus(format_cpu_list(context_.cpus->floating()));
    }
    if (read(files::kExit)) return take_end();
    if (!supervisor_gone(dir_.get())) {
        // It lives, and has not come to listening yet, or not to its end.
        retry_ = context_.loop->after(kReconnectMs, [this] { reconnect(); });
        return;
    }
    if (read(files::kExit)) return take_end();
    if (supervisor_began(dir_.get())) return vanish();
    // Nothing of it ever ran.
    begin();
}

void Task::connect(Fd socket) {
    link_ = std::make_unique<SupervisorLink>(
        *context_.loop, std::move(socket),
        SupervisorLink::Callbacks{.on_packet = [this](char kind, std::string_view text,
                                                      std::vector<Fd>) { on_packet(kind, text); },
                                  .on_gone = [this] { on_gone(); }});
    watch_supervisor_log();
    tell_fence();
    tell_lease();
    if (stop_wanted_) stop(stop_wanted_->first, stop_wanted_->second);
}

void Task::tell_fence() {
    if (link_ && order_.gang && order_.gang->size() > 1)
        link_->send(packet::kFence, std::to_string(context_.fence.ms));
}

void Task::tell_lease() {
    if (!link_ || !context_.lease || !order_.gang || order_.gang->size() < 2) return;
    link_->send(packet::kLease, std::to_string(context_.lease->absence.ms) + " " +
                                    std::to_string(context_.lease->until_ms - steady_ms()));
}

void Task::tell_cpus(const std::string& floating) {
    if (!ended() && link_ && !context_.cpus->bound(order_.key))
        link_->send(packet::kCpus, floating);
}

// ---- orders -----------------------------------------------------------------------------------

void Task::release(const protocol::Go& go) {
    if (ended() || released_ || !dir_ || order_.role >= spec_.roles.size()) return;
    if (is_mpi_gang(order_, spec_))
        if (Status written = write_peers(prepare_ask(), go.launch); !written)
            return refuse({.message = written.error().message});
    // While it is being prepared the file is enough: the supervisor looks for it.
    if (Status written =
            write(files::kGo, go_file(prepare_ask(), go.master_address, go.master_port));
        !written)
        return refuse({.message = written.error().message});
    released_ = true;
    if (link_) link_->send(packet::kGo, "");
}

void Task::notice(const protocol::NoticeTask& notice) {
    if (ended() || told_.notice != Cause::None) return;
    told_.notice = notice.cause;
    told_.notice_signal = signal_number(spec_.checkpoint.signal);
    (void)write(files::kNotice, told_file(told_.notice, told_.notice_signal));
    notice_until_ms_ = steady_ms() + notice.grace.ms;
    write_notice(notice);
    if (link_)
        link_->send(packet::kNotice,
                    std::to_string(told_.notice_signal) + " " + std::to_string(notice.grace.ms));
}

void Task::stop(Cause cause, Duration grace) {
    if (ended()) return;
    if (told_.stop == Cause::None) {
        told_.stop = cause;
        (void)write(files::kStop, told_file(cause, 0));
    }
    stop_wanted_ = {cause, grace};
    if (pulling_ != 0) {
        context_.images->forget(std::exchange(pulling_, 0));
        return launch(Refused{});
    }
    if (link_) {
        link_->send(packet::kStop, std::to_string(grace.ms));
        stop_wanted_.reset();
        set_state(TaskState::Stopping);
    }
}

void Task::read_told() {
    const auto read_one = [&](const char* name, Cause& cause, int* signo) {
        if (const auto text = read(name))
            each_record(*text, [&](std::string_view key, std::string_view value) {
                if (key == "cause") cause = static_cast<Cause>(to_number(value));
                if (key == "signal" && signo != nullptr)
                    *signo = static_cast<int>(to_number(value));
            });
    };
    read_one(files::kStop, told_.stop, nullptr);
    read_one(files::kNotice, told_.notice, &told_.notice_signal);
    struct stat about {};
    told_.done = ::fstatat(dir_.get(), files::kDone, &about, 0) == 0;
}

std::unique_ptr<SupervisorLink> Task::open_exec(const protocol::OpenTunnel& ask,
                                                ExecCallbacks callbacks) {
    auto socket = dir_ ? connect_supervisor(dir_.get()) : Result<Fd>(Error{});
    if (!socket && link_) socket = link_->connect_again();  // It has only just started.
    if (ended() || !socket) {
        callbacks.on_end(125, ended() ? "the task has ended" : "the task is not running yet");
        return nullptr;
    }
    auto shared = std::make_shared<ExecCallbacks>(std::move(callbacks));
    auto link = std::make_unique<SupervisorLink>(
        *context_.loop, *std::move(socket),
        SupervisorLink::Callbacks{
            .on_packet =
                [shared](char kind, std::string_view text, std::vector<Fd> fds) {
                    if (kind == packet::kStreams) return shared->on_streams(std::move(fds));
                    if (kind != packet::kExecEnded) return;
                    text.remove_prefix(std::min(text.find(' ') + 1, text.size()));
                    const std::size_t space = std::min(text.find(' '), text.size());
                    shared->on_end(static_cast<int>(to_number(text.substr(0, space))),
                                   std::string(text.substr(std::min(space + 1, text.size()))));
                },
            .on_gone = [shared] { shared->on_end(125, "the task ended"); }});
    if (ask.kind == protocol::OpenTunnel::Kind::Attach) {
        link->send(packet::kTerminal, "");
        return link;
    }
    std::string records;
    put_record(records, "id", static_cast<std::int64_t>(ask.request));
    for (const std::string& word : ask.argv) put_record(records, "arg", word);
    put_record(records, "tty", ask.tty);
    put_record(records, "columns", ask.columns);
    put_record(records, "rows", ask.rows);
    link->send(packet::kExec, records);
    return link;
}

void Task::clean() {
    if (!ended() || !dir_) return;
    if (!spec_.image.empty()) (void)::umount2((folder_ + "/bundle/rootfs").c_str(), MNT_DETACH);
    const std::string kept = context_.logs_dir + "/" + folder_name(order_.key);
    bool gone = log_end_ == 0 &&
                context_.spares->keep(order_.user, folder_, dir_.get(), std::move(listening_));
    const bool has_log = !gone && (log_end_ > 0 || log_size(folder_) > 0);
    // From now on no agent finds a task here.
    if (!gone) ::unlinkat(dir_.get(), files::kOrder, 0);
    if (!gone && !has_log &&
        (::unlinkat(dir_.get(), files::kScratch, AT_REMOVEDIR) == 0 || errno == ENOENT)) {
        (void)remove_tree(AT_FDCWD, folder_.c_str());
        gone = true;
    }
    if (gone) return context_.silent->add(kept);
    (void)remove_tree(AT_FDCWD, kept.c_str());
    if (::rename(folder_.c_str(), kept.c_str()) != 0) return;
    context_.slow->post([kept] { keep_log_only(kept); });
}

// ---- what the supervisor says -----------------------------------------------------------------

void Task::on_packet(char kind, std::string_view text) {
    if (kind == packet::kLog) return on_log(to_number(text));
    if (kind == packet::kEnded) {
        log_end_ = to_number(text);
        log_told_ = true;
        return take_end();
    }
    if (kind != packet::kState) return;
    const std::string_view word = text.substr(0, text.find(' '));
    if (word == "stopping") {
        // What keeps it from ending is told while it lasts (F45).
        const std::string stuck(text.substr(std::min(word.size() + 1, text.size())));
        if (status_.end.message != stuck) {
            status_.end.message = stuck;
            status_.state = TaskState::Stopping;
            report();
        }
        return set_state(TaskState::Stopping);
    }
    if (word == "preparing") return set_state(TaskState::Preparing);
    if (word == "running") return set_state(TaskState::Running);
    if (word != "ready") return;
    if (word.size() < text.size()) {
        text.remove_prefix(word.size() + 1);
        const std::size_t space = std::min(text.find(' '), text.size());
        status_.launch = {.port = static_cast<int>(to_number(text.substr(0, space))),
                          .secret = std::string(text.substr(std::min(space + 1, text.size())))};
    }
    if (order_.key.rank == 0 && status_.port == 0) status_.port = context_.take_port();
    set_state(TaskState::Ready);
}

void Task::on_gone() {
    link_.reset();
    if (ended()) return;
    retry_ = context_.loop->after(1, [this] { reconnect(); });
}

void Task::take_end() {
    if (ended()) return;
    model::TaskEnd end;
    Exit exit;
    if (const auto text = read(files::kExit); text && decode_exit(*text, exit)) {
        Told told = told_;
        told.memory = order_.memory;
        end = judge(exit, told);
    } else if (const auto own = read(files::kEnd)) {
        each_record(*own, [&](std::string_view key, std::string_view value) {
            if (key == "cause") end.cause = static_cast<Cause>(to_number(value));
            if (key == "message") end.message = value;
            if (key == "permanent") end.permanent = value == "1";
        });
    } else {
        return vanish();
    }
    status_.end = std::move(end);
    send_all_progress();
    send_tail();
    if (!rule_line_.empty()) match_rules("\n");  // A last line without an end is one too.
    if (socket_) listening_ = socket_->release();
    socket_.reset();
    link_.reset();
    set_state(TaskState::Ended);
    auto watches = std::exchange(watches_, {});
    for (auto& [id, watch] : watches) watch.then();
}

void Task::vanish() {
    (void)::umount2((folder_ + "/bundle/rootfs").c_str(), MNT_DETACH);
    const std::vector<GroupLaunch> groups = context_.cgroups.find(folder_name(order_.key));
    const ProcessGroup left(groups);
    left.kill_groups();
    if (!context_.cgroups.usable()) kill_marked(folder_);
    if (!left.empty()) {
        set_state(TaskState::Stopping);
        retry_ = context_.loop->after(kReconnectMs, [this] { vanish(); });
        return;
    }
    (void)left.remove();
    model::TaskEnd end;
    end.cause = Cause::Vanished;
    end.message = "its supervisor ended without a word (killed, or the node was restarted)";
    finish(std::move(end));
}

void Task::refuse(const Refused& refused) {
    const std::vector<GroupLaunch> groups = context_.cgroups.find(folder_name(order_.key));
    (void)ProcessGroup(groups).remove();
    model::TaskEnd end;
    end.cause = refused.cause;
    end.message = refused.message;
    end.permanent = refused.permanent;
    finish(std::move(end));
}

void Task::finish(model::TaskEnd end) {
    std::string text;
    put_record(text, "cause", static_cast<std::int64_t>(end.cause));
    put_record(text, "message", end.message);
    put_record(text, "permanent", end.permanent);
    put_record(text, "end", 1);
    if (dir_) (void)write(files::kEnd, text);
    status_.end = std::move(end);
    socket_.reset();
    send_tail();
    set_state(TaskState::Ended);
    auto watches = std::exchange(watches_, {});
    for (auto& [id, watch] : watches) watch.then();
}

}  // namespace muster::os
