#include "os/test_node.h"

#include <chrono>
#include <cstdio>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/cgroups.h"
#include "os/order_file.h"
#include "os/posix.h"
#include "os/user.h"

namespace muster::os {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

}  // namespace

TestNode::TestNode(std::function<void(RuntimeOptions&)> change) {
    char folder[] = "/tmp/muster-os-XXXXXX";
    if (::mkdtemp(folder) == nullptr) std::abort();
    if (::chmod(folder, 0711) != 0) std::abort();
    options_.state_dir = folder;
    options_.supervisor = std::string(MUSTER_BINARY_DIR) + "/bin/muster-task";
    options_.node_name = std::string("test-") + (folder + 15);
    options_.address = "127.0.0.1";
    options_.containers = false;
    if (change) change(options_);
    open();
}

TestNode::~TestNode() {
    for (const ports::FoundTask& task : runtime_->list()) {
        if (task.status.state == protocol::TaskState::Ended) continue;
        runtime_->stop(task.order.key, model::Cause::Cancelled, Duration{0});
        wait_end(task.order.key);
    }
    runtime_.reset();
    (void)remove_tree(AT_FDCWD, options_.state_dir.c_str());
    // Our groups above the tasks', empty by now.
    for (const char* controller : {"cpu", "memory", "pids", "devices", "cpuset", "unified", "."}) {
        const std::string base =
            options_.cgroup_root + "/" + controller + "/" + group_name(options_);
        ::rmdir((base + "/no-devices").c_str());
        ::rmdir(base.c_str());
    }
}

void TestNode::open() {
    auto opened = TaskRuntime::open(options_);
    if (!opened) {
        std::fprintf(stderr, "%s\n", opened.error().message.c_str());
        std::abort();
    }
    runtime_ = *std::move(opened);
    runtime_->set_sink([this](protocol::AgentMessage message) {
        const std::lock_guard lock(mutex_);
        messages_.push_back(std::move(message));
        told_.notify_all();
    });
}

void TestNode::restart() {
    runtime_.reset();
    open();
}

std::string TestNode::task_folder(const protocol::TaskKey& key) const {
    return options_.state_dir + "/tasks/" + folder_name(key);
}

bool TestNode::wait_messages(
    const std::function<bool(const std::vector<protocol::AgentMessage>&)>& good) {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, kPatience, [&] { return good(messages_); });
}

protocol::TaskStatus TestNode::wait(const protocol::TaskKey& key,
                                    const std::function<bool(const protocol::TaskStatus&)>& good) {
    protocol::TaskStatus found;
    for (const ports::FoundTask& task : runtime_->list())
        if (task.order.key == key && good(task.status)) return task.status;
    const bool seen = wait_messages([&](const auto& messages) {
        for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
            const auto* status = std::get_if<protocol::TaskStatus>(&*message);
            if (status == nullptr || status->key != key || !good(*status)) continue;
            found = *status;
            return true;
        }
        return false;
    });
    EXPECT_TRUE(seen) << "task " << folder_name(key) << " never came to the state waited for";
    return found;
}

protocol::TaskStatus TestNode::wait_state(const protocol::TaskKey& key, protocol::TaskState state) {
    return wait(key, [state](const protocol::TaskStatus& status) { return status.state == state; });
}

model::TaskEnd TestNode::wait_end(const protocol::TaskKey& key) {
    return wait_state(key, protocol::TaskState::Ended).end;
}

std::vector<protocol::AgentMessage> TestNode::messages() {
    const std::lock_guard lock(mutex_);
    return messages_;
}

std::string TestNode::log(const protocol::TaskKey& key, int local_rank, std::int64_t offset) {
    std::mutex mutex;
    std::condition_variable ended;
    std::string text;
    bool end = false;
    const auto stream = runtime_->read_log(
        {.request = 1, .key = key, .local_rank = local_rank, .offset = offset, .limit = 1 << 30},
        [&](protocol::AgentMessage message) {
            const std::lock_guard lock(mutex);
            auto& chunk = std::get<protocol::LogChunk>(message);
            text += chunk.bytes;
            text += chunk.error;
            end = chunk.end;
            if (end) ended.notify_all();
        });
    std::unique_lock lock(mutex);
    EXPECT_TRUE(ended.wait_for(lock, kPatience, [&] { return end; }));
    return text;
}

std::string TestNode::tunnel(const protocol::OpenTunnel& ask, const std::string& input) {
    std::mutex mutex;
    std::condition_variable ended;
    std::string out, err, last;
    const auto stream = runtime_->open_tunnel(ask, [&](protocol::AgentMessage message) {
        const std::lock_guard lock(mutex);
        const auto& output = std::get<protocol::TunnelOutput>(message);
        (output.is_stderr ? err : out) += output.bytes;
        if (!output.end) return;
        last = (output.error.empty() ? "" : output.error + "\n") + "exit " +
               std::to_string(output.exit_code);
        ended.notify_all();
    });
    if (!input.empty()) stream->input({.request = ask.request, .bytes = input});
    if (!ask.tty && ask.kind == protocol::OpenTunnel::Kind::Exec)
        stream->input({.request = ask.request, .bytes = {}, .end = true});
    std::unique_lock lock(mutex);
    EXPECT_TRUE(ended.wait_for(lock, kPatience, [&] { return !last.empty(); }));
    // Errors stand where a person would have seen them: after the first line.
    const std::size_t line = out.find('\n');
    if (!err.empty() && line != std::string::npos) return out.insert(line + 1, err) + last;
    return out + err + last;
}

std::string TestNode::exec(const protocol::TaskKey& key, std::vector<std::string> argv, bool tty,
                           const std::string& input) {
    return tunnel({.request = 1,
                   .key = key,
                   .kind = protocol::OpenTunnel::Kind::Exec,
                   .argv = std::move(argv),
                   .tty = tty},
                  input);
}

std::string TestNode::attach(const protocol::TaskKey& key, const std::string& input) {
    return tunnel({.request = 1,
                   .key = key,
                   .kind = protocol::OpenTunnel::Kind::Attach,
                   .argv = {},
                   .tty = true},
                  input);
}

protocol::StartTask make_order(std::uint64_t job, const std::string& run,
                               const std::function<void(model::JobSpec&)>& change) {
    model::JobSpec spec;
    spec.name = "test";
    spec.roles = {model::Role{.run = run}};
    if (change) change(spec);
    protocol::StartTask order;
    order.term = 1;
    order.key.job = JobId{job};
    order.user = own_user()->name;
    order.job_name = spec.name;
    order.queue = "default";
    order.spec = std::make_shared<const std::string>(model::encode(spec));
    order.gang = std::make_shared<const protocol::Gang>(
        protocol::Gang{{.name = "here", .address = "127.0.0.1"}});
    return order;
}

bool can_limit() {
    if (::geteuid() != 0) {
        std::fprintf(stderr, "skipped: only root can make control groups\n");
        return false;
    }
    const Cgroups groups = Cgroups::probe("/sys/fs/cgroup", "muster-probe");
    for (const char* controller : {"cpu", "memory", "pids", "devices", "cpuset", "unified", "."})
        ::rmdir((std::string("/sys/fs/cgroup/") + controller + "/muster-probe").c_str());
    if (!groups.usable()) std::fprintf(stderr, "skipped: %s\n", groups.why_not().c_str());
    return groups.usable();
}

}  // namespace muster::os
