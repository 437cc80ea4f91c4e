#include "os/runtime.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/prng.h"
#include "os/cpu_book.h"
#include "os/cpu_list.h"
#include "os/kept_logs.h"
#include "os/node_facts.h"
#include "os/order_file.h"
#include "os/streams.h"
#include "os/supervisor/log_writer.h"
#include "os/task.h"

namespace muster::os {
namespace {

using protocol::TaskKey;
using protocol::TaskState;

constexpr int kSlowThreads = 4;
constexpr int kPortFirst = 20'000, kPortLast = 32'000;  // Below those that the kernel gives away.
constexpr std::size_t kPortsRemembered = 2'000;
constexpr std::int64_t kSweepMs = 600'000;
constexpr std::int64_t kTellCpusMs = 1'000;  // Short tasks need not hear of each other.
constexpr std::size_t kSocketPathMax = 107;
constexpr std::size_t kTaskPathMax =
    42;  // "/tasks/2147483647-99999-1048575/run/sock" and some more.

class PortBook {
public:
    explicit PortBook(std::uint64_t seed) : prng_(seed) {}
    int take() {
        for (int i = 0; i < 1000; ++i) {
            const auto port = static_cast<int>(prng_.between(kPortFirst, kPortLast));
            if (given_.contains(port) || !is_free(port)) continue;
            given_.insert(port);
            order_.push_back(port);
            if (order_.size() > kPortsRemembered) {
                given_.erase(order_.front());
                order_.erase(order_.begin());
            }
            return port;
        }
        return 0;
    }

private:
    static bool is_free(int port) {
        const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        return socket &&
               ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    }
    Prng prng_;
    std::set<int> given_;
    std::vector<int> order_;
};

class NodeRuntime : public TaskRuntime {
public:
    explicit NodeRuntime(RuntimeOptions options)
        : slow_(kSlowThreads), ports_(static_cast<std::uint64_t>(::getpid()) * 2654435761U) {
        context_.options = std::move(options);
    }
    ~NodeRuntime() override {
        loop_.run_and_wait([this] {
            streams_.clear();
            tasks_.clear();
        });
        loop_.stop();
        images_.reset();
        context_.cgroups.remove_if_empty();
    }

    Status open();

    void set_sink(Sink sink) override {
        loop_.run_and_wait([&] { sink_ = std::move(sink); });
    }
    void describe(model::NodeFacts& facts) override;
    std::vector<ports::FoundTask> list() override;
    void start(const protocol::StartTask& order) override {
        loop_.post([this, order] { start_task(order); });
    }
    void release(const protocol::Go& go) override {
        loop_.post([this, go] {
            if (Task* task = find(go.key)) task->release(go);
        });
    }
    void notice(const protocol::NoticeTask& notice) override {
        loop_.post([this, notice] {
            if (Task* task = find(notice.key)) task->notice(notice);
        });
    }
    void stop(const TaskKey& key, model::Cause cause, Duration grace) override {
        loop_.post([this, key, cause, grace] {
            if (Task* task = find(key)) task->stop(cause, grace);
        });
    }
    void clean(const TaskKey& key) override {
        loop_.post([this, key] {
            const auto found = tasks_.find(key);
            if (found == tasks_.end() || !found->second->ended()) return;
            found->second->clean();
            tasks_.erase(found);
        });
    }
    std::unique_ptr<ports::RuntimeStream> read_log(const protocol::ReadLog& ask, Sink out) override;
    std::unique_ptr<ports::RuntimeStream> open_tunnel(const protocol::OpenTunnel& ask,
                                                      Sink out) override;
    void set_devices(std::vector<model::Device> devices) override {
        loop_.run_and_wait([&] { context_.devices = std::move(devices); });
    }
    void set_numa(std::vector<model::NumaNode> numa) override {
        loop_.run_and_wait([&] {
            context_.options.numa = std::move(numa);
            read_cpus();
        });
    }
    void set_fence(Duration fence) override {
        loop_.post([this, fence] {
            if (context_.fence == fence) return;
            context_.fence = fence;
            for (const auto& [key, task] : tasks_) task->tell_fence();
        });
    }
    void set_lease(Duration absence, Duration left) override {
        loop_.post([this, absence, until_ms = steady_ms() + left.ms] {
            context_.lease = LeaseTold{absence, until_ms};
            for (const auto& [key, task] : tasks_) task->tell_lease();
        });
    }

private:
    class Handle;

    Task* find(const TaskKey& key) {
        const auto found = tasks_.find(key);
        return found == tasks_.end() ? nullptr : found->second.get();
    }
    void start_task(const protocol::StartTask& order);
    void adopt_all();
    void read_cpus();
    void tell_cpus();
    void tell(protocol::AgentMessage message);
    void after_round();
    void sweep();
    std::unique_ptr<ports::RuntimeStream> add_stream(std::function<std::shared_ptr<Stream>()> make);

    EventLoop loop_;
    WorkerPool slow_;
    Context context_;
    PortBook ports_;
    CpuBook cpus_;
    std::uint64_t cpus_told_ = 0;  // The book's revision.
    EventLoop::Timer cpus_timer_ = 0;
    Sink sink_;
    std::vector<protocol::AgentMessage> waiting_;
    std::map<TaskKey, std::unique_ptr<Task>> tasks_;
    std::map<std::uint64_t, std::shared_ptr<Stream>> streams_;
    std::uint64_t last_stream_ = 0;
    std::optional<Spawner> spawner_;
    std::optional<SpareFolders> spares_;
    SilentLogs silent_;
    std::optional<Images> images_;
};

/// What the caller holds of a stream that lives on the loop.
class NodeRuntime::Handle : public ports::RuntimeStream {
public:
    Handle(NodeRuntime& runtime, std::uint64_t id) : runtime_(runtime), id_(id) {}
    ~Handle() override {
        runtime_.loop_.post([&runtime = runtime_, id = id_] { runtime.streams_.erase(id); });
    }
    void input(const protocol::TunnelInput& input) override {
        runtime_.loop_.post([&runtime = runtime_, id = id_, input] {
            const auto found = runtime.streams_.find(id);
            if (found != runtime.streams_.end() && found->second) found->second->input(input);
        });
    }

private:
    NodeRuntime& runtime_;
    std::uint64_t id_;
};

Status NodeRuntime::open() {
    RuntimeOptions& options = context_.options;
    if (options.state_dir.empty() || options.state_dir.front() != '/')
        return Error{.code = Code::Invalid,
                     .message = "state_dir '" + options.state_dir + "' is not an absolute path"};
    if (options.state_dir.size() + kTaskPathMax > kSocketPathMax)
        return Error{.code = Code::Invalid,
                     .message = "state_dir is " + std::to_string(options.state_dir.size()) +
                                " bytes long, at most " +
                                std::to_string(kSocketPathMax - kTaskPathMax) +
                                " are possible: " + options.state_dir,
                     .cause = "a task's Unix socket lies below it, and its path has room for 107",
                     .fix = "give a shorter state_dir"};
    if (::access(options.supervisor.c_str(), X_OK) != 0)
        return system_error("run the task supervisor", options.supervisor);
    context_.tasks_dir = options.state_dir + "/tasks";
    context_.logs_dir = options.state_dir + "/logs";
    // Tasks' own files lie below: their users must get through, and see nothing on the way.
    MUSTER_TRY(make_folders(options.state_dir, 0711));
    MUSTER_TRY(make_folders(context_.tasks_dir, 0711));
    MUSTER_TRY(make_folders(context_.logs_dir, 0700));
    context_.root = ::geteuid() == 0;
    context_.boot_id = read_boot_id();
    context_.shell = ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
    const auto oom_score = read_file("/proc/self/oom_score_adj");
    context_.reset_oom_score = oom_score && !oom_score->starts_with("0");
    context_.interface = interface_of(options.address);
    context_.devices = options.devices;
    context_.cpus = &cpus_;
    read_cpus();
    cpus_told_ = cpus_.revision();
    if (!options.cgroups) {
        context_.cgroups = Cgroups::none("switched off");
    } else if (!context_.root) {
        context_.cgroups = Cgroups::none("the agent runs without root");
    } else {
        context_.cgroups = Cgroups::probe(options.cgroup_root, group_name(options));
    }
    spawner_.emplace(options.supervisor);
    spares_.emplace(options.state_dir + "/spare");
    images_.emplace(loop_, Images::Options{.dir = options.state_dir + "/images",
                                           .timeout = options.pull_timeout,
                                           .insecure_registries = options.insecure_registries});
    context_.images = &*images_;
    if (!context_.root) {
        context_.oci.why_not = "the agent runs without root";
    } else if (!options.containers) {
        context_.oci.why_not = "switched off";
    } else {
        context_.oci = probe_runtime(options.supervisor, options.state_dir + "/probe",
                                     options.cgroup_root, group_name(options));
    }
    context_.loop = &loop_;
    context_.slow = &slow_;
    context_.tell = [this](protocol::AgentMessage message) { tell(std::move(message)); };
    context_.spawner = &*spawner_;
    context_.spares = &*spares_;
    context_.silent = &silent_;
    context_.take_port = [this] { return ports_.take(); };
    loop_.after_each_round([this] { after_round(); });
    adopt_all();
    sweep();
    loop_.start();
    return Ok{};
}

void NodeRuntime::describe(model::NodeFacts& facts) {
    read_node_facts(facts, context_.options.state_dir);
    loop_.run_and_wait([&] { facts.devices = context_.devices; });
    std::sort(facts.devices.begin(), facts.devices.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    facts.limits_enforced = context_.cgroups.usable();
    facts.disk_enforced = false;
    facts.runtime = context_.oci.name;
    facts.unenforced_why = context_.cgroups.why_not();
    if (context_.cgroups.usable() && !context_.cgroups.why_no_cpuset().empty())
        facts.unenforced_why =
            "CPUs are bound by affinity alone: " + context_.cgroups.why_no_cpuset();
    if (!context_.oci.works() && context_.options.containers)
        facts.unenforced_why +=
            (facts.unenforced_why.empty() ? "no containers: " : "; no containers: ") +
            context_.oci.why_not;
}

void NodeRuntime::read_cpus() {
    const std::vector<int> usable = usable_cpus();
    const std::vector<model::NumaNode>& declared = context_.options.numa;
    cpus_.set_node(usable, declared.empty() ? read_numa("", usable) : declared);
}

/// Tasks that float keep off what has become another's, and come back to what has become free.
void NodeRuntime::tell_cpus() {
    cpus_timer_ = 0;
    cpus_told_ = cpus_.revision();
    const std::string floating = format_cpu_list(cpus_.floating());
    for (const auto& [key, task] : tasks_) task->tell_cpus(floating);
}

void NodeRuntime::adopt_all() {
    std::set<std::string> known;
    for (const std::string& name : list_folder(context_.tasks_dir)) {
        const std::string folder = context_.tasks_dir + "/" + name;
        const auto key = parse_folder_name(name);
        const auto bytes = read_file(folder + "/" + files::kOrder);
        auto order = bytes ? decode_order(*bytes) : std::nullopt;
        if (!key || !order || order->key != *key) {
            // Without its order nobody can say what it was; nothing ran before it was written.
            (void)remove_tree(AT_FDCWD, folder.c_str());
            continue;
        }
        known.insert(name);
        auto& task = tasks_[*key];
        task = std::make_unique<Task>(context_, *std::move(order));
        task->adopt_cpus();
    }
    for (const auto& [key, task] : tasks_) task->adopt();
    // Groups without a task: of a folder that is gone. Nobody would ever end them.
    for (const std::string& name : context_.cgroups.names()) {
        if (known.contains(name)) continue;
        context_.cgroups.end(name);
    }
}

std::vector<ports::FoundTask> NodeRuntime::list() {
    std::vector<ports::FoundTask> found;
    loop_.run_and_wait([&] {
        for (const auto& [key, task] : tasks_)
            found.push_back(
                {.order = task->order(), .status = task->status(), .released = task->released()});
    });
    return found;
}

void NodeRuntime::start_task(const protocol::StartTask& order) {
    if (Task* task = find(order.key)) return tell(task->status());
    auto& task = tasks_[order.key];
    task = std::make_unique<Task>(context_, order);
    task->start();
}

void NodeRuntime::tell(protocol::AgentMessage message) {
    // Of states that follow each other within one round only the last is worth a message.
    if (const auto* status = std::get_if<protocol::TaskStatus>(&message))
        std::erase_if(waiting_, [&](const protocol::AgentMessage& other) {
            const auto* older = std::get_if<protocol::TaskStatus>(&other);
            return older != nullptr && older->key == status->key;
        });
    waiting_.push_back(std::move(message));
}

void NodeRuntime::after_round() {
    std::erase_if(streams_, [](const auto& entry) { return entry.second && entry.second->over(); });
    if (cpus_told_ != cpus_.revision() && cpus_timer_ == 0)
        cpus_timer_ = loop_.after(kTellCpusMs, [this] { tell_cpus(); });
    if (!sink_ || waiting_.empty()) return;
    std::vector<protocol::AgentMessage> messages;
    messages.swap(waiting_);
    for (protocol::AgentMessage& message : messages) sink_(std::move(message));
}

void NodeRuntime::sweep() {
    slow_.post([dir = context_.logs_dir, keep = context_.options.kept_logs_for,
                max = context_.options.kept_logs_max] { sweep_kept_logs(dir, keep, max); });
    loop_.after(kSweepMs, [this] { sweep(); });
}

std::unique_ptr<ports::RuntimeStream> NodeRuntime::add_stream(
    std::function<std::shared_ptr<Stream>()> make) {
    std::uint64_t id = 0;
    loop_.run_and_wait([&] {
        id = ++last_stream_;
        streams_[id] = make();
    });
    return std::make_unique<Handle>(*this, id);
}

std::unique_ptr<ports::RuntimeStream> NodeRuntime::read_log(const protocol::ReadLog& ask,
                                                            Sink out) {
    return add_stream([this, ask, out = std::move(out)]() -> std::shared_ptr<Stream> {
        const std::string kept = context_.logs_dir + "/" + folder_name(ask.key);
        if (Task* task = find(ask.key)) return os::read_log(loop_, task, task->folder(), ask, out);
        if (::access(kept.c_str(), F_OK) == 0) return os::read_log(loop_, nullptr, kept, ask, out);
        out(protocol::LogChunk{
            .request = ask.request,
            .offset = 0,
            .bytes = {},
            .end = true,
            .error = "node " + context_.options.node_name + " has no log of this task (any more)"});
        return nullptr;
    });
}

std::unique_ptr<ports::RuntimeStream> NodeRuntime::open_tunnel(const protocol::OpenTunnel& ask,
                                                               Sink out) {
    return add_stream([this, ask, out = std::move(out)]() -> std::shared_ptr<Stream> {
        Task* task = find(ask.key);
        if (task != nullptr && ask.kind == protocol::OpenTunnel::Kind::Exec)
            return os::open_exec(loop_, *task, ask, out);
        if (task != nullptr) return os::open_attach(loop_, *task, ask, out);
        out(protocol::TunnelOutput{.request = ask.request,
                                   .bytes = {},
                                   .end = true,
                                   .exit_code = 125,
                                   .error = "the task is not on this node"});
        return nullptr;
    });
}

}  // namespace

std::string group_name(const RuntimeOptions& options) {
    Fnv fnv;
    fnv.add(options.state_dir);
    char suffix[8];
    std::snprintf(suffix, sizeof suffix, "-%06x", static_cast<unsigned>(fnv.hash() & 0xffffff));
    return "muster-" + options.node_name + suffix;
}

Result<std::unique_ptr<TaskRuntime>> TaskRuntime::open(RuntimeOptions options) {
    auto runtime = std::make_unique<NodeRuntime>(std::move(options));
    MUSTER_TRY(runtime->open());
    return std::unique_ptr<TaskRuntime>(std::move(runtime));
}

}  // namespace muster::os
