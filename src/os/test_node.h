// For tests: a runtime on a folder of its own, what it said, and orders that are easily written.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>

#include "model/job_spec.h"
#include "os/posix.h"
#include "os/runtime.h"

namespace muster::os {

/// Held while a test owns the device nodes in /dev: tests run side by side, in processes of their
/// own.
inline Fd own_test_devices() {
    Fd lock(::open("/tmp/muster-test-devices.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (lock) ::flock(lock.get(), LOCK_EX);
    return lock;
}

class TestNode {
public:
    explicit TestNode(std::function<void(RuntimeOptions&)> change = {});
    ~TestNode();  // Ends what still runs.
    TestNode(const TestNode&) = delete;
    TestNode& operator=(const TestNode&) = delete;

    ports::Runtime& operator*() { return *runtime_; }
    TaskRuntime* operator->() { return runtime_.get(); }
    /// As if the agent had been killed and started again.
    void restart();
    /// As if the agent had been killed; restart() brings the next.
    void leave() { runtime_.reset(); }
    const std::string& folder() const { return options_.state_dir; }
    std::string task_folder(const protocol::TaskKey& key) const;

    /// Waits until a status of this task satisfies; fails the test after 30 s.
    protocol::TaskStatus wait(const protocol::TaskKey& key,
                              const std::function<bool(const protocol::TaskStatus&)>& good);
    protocol::TaskStatus wait_state(const protocol::TaskKey& key, protocol::TaskState state);
    model::TaskEnd wait_end(const protocol::TaskKey& key);
    /// Waits until `good` holds of all messages so far.
    bool wait_messages(const std::function<bool(const std::vector<protocol::AgentMessage>&)>& good);
    std::vector<protocol::AgentMessage> messages();
    /// All of the log, as text.
    std::string log(const protocol::TaskKey& key, int local_rank = -1, std::int64_t offset = 0);
    /// Output and error, then "exit N".
    std::string exec(const protocol::TaskKey& key, std::vector<std::string> argv, bool tty = false,
                     const std::string& input = "");
    std::string attach(const protocol::TaskKey& key, const std::string& input);

private:
    std::string tunnel(const protocol::OpenTunnel& ask, const std::string& input);
    void open();

    RuntimeOptions options_;
    std::unique_ptr<TaskRuntime> runtime_;
    std::mutex mutex_;
    std::condition_variable told_;
    std::vector<protocol::AgentMessage> messages_;
};

/// A one-node order of `run`, as this process's user.
protocol::StartTask make_order(std::uint64_t job, const std::string& run,
                               const std::function<void(model::JobSpec&)>& change = {});
/// Root with usable control groups; else prints why the test is skipped.
bool can_limit();

}  // namespace muster::os
