// The modelled runtime of one node: tasks with durations, failures, pulls, checkpoints, and ends.
//
// Tasks and their folders outlive the agent, as real supervisors do; a reboot ends the tasks and
// leaves the folders. Whoever watches is told of every process that begins and ends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/id.h"
#include "base/prng.h"
#include "model/job.h"
#include "node/step.h"
#include "protocol/messages.h"
#include "simulator/event_queue.h"
#include "simulator/tally.h"

namespace muster::simulator {

/// What one modelled task does from its order to its end.
struct TaskScript {
    Duration pull;  // 0: no image.
    bool image_fails = false;
    bool launch_fails = false;  // The node's fault.
    Duration prepare{50};
    Duration work{1'000};                      // From release to its own end.
    model::Cause end = model::Cause::Success;  // Success, UserError or Oom.
    int exit_code = 0;
    Duration checkpoint_every;  // 0: never.
    std::int64_t steps = 100;   // In `work`.
    bool reports_progress = false;
    bool ignores_term = false;  // Only the kill at the end of the grace ends it.
    Duration dies_slowly{5};    // From the kill to the empty cgroup.
};

/// The truth about processes, for whoever judges a run.
class Watcher {
public:
    virtual ~Watcher() = default;
    virtual void holds_devices(std::uint32_t host, const protocol::StartTask& order) = 0;
    virtual void ready(std::uint32_t host, const protocol::StartTask& order) = 0;
    virtual void runs(std::uint32_t host, const protocol::StartTask& order) = 0;
    /// It executes nothing any more, but may still hold its devices.
    virtual void killed(std::uint32_t host, const protocol::StartTask& order) = 0;
    virtual void gone(std::uint32_t host, const protocol::StartTask& order,
                      const model::TaskEnd& end) = 0;
};

class ModelRuntime {
public:
    using ScriptOf = std::function<TaskScript(const protocol::StartTask&)>;
    using Sink = std::function<void(protocol::AgentMessage)>;

    ModelRuntime(std::uint32_t host, EventQueue& queue, Prng& random, Tally& tally,
                 ScriptOf script_of, Watcher& watcher)
        : host_(host),
          queue_(queue),
          random_(random),
          tally_(tally),
          script_of_(std::move(script_of)),
          watcher_(watcher) {}

    /// Who is told; empty while no agent lives. What happens meanwhile is found by list().
    void set_sink(Sink sink);
    /// As the agent sees it: without one, tasks of gangs stop themselves after `absence`, but not
    /// before the lease is over, at `until` of the world's time.
    void set_lease(Duration absence, Time until);
    std::vector<node::Started::Found> list() const;
    void start(const protocol::StartTask& order);
    void release(const protocol::Go& go);
    void notice(const protocol::NoticeTask& notice);
    void stop(const protocol::TaskKey& key, model::Cause cause, Duration grace);
    void clean(const protocol::TaskKey& key);
    /// The node loses power: no process is left. `keep_folders`: its disk is not a RAM disk.
    void power_off(bool keep_folders);
    std::size_t size() const { return tasks_.size(); }

private:
    struct Task {
        protocol::StartTask order;
        protocol::TaskStatus status;
        TaskScript script;
        bool released = false;
        bool stopping = false, killed = false, holds_devices = false;
        model::Cause stop_cause = model::Cause::None;
        Time started;  // Running since.
        Time kill_at = kNever;
        std::int64_t first_step = 0;  // Of the checkpoint that it resumes from.
        std::uint64_t serial = 0;     // Tells it from a later task of the same key.
    };
    using Move = void (ModelRuntime::*)(Task&);

    void stop_orphans();

    Task* find(const protocol::TaskKey& key);
    void later(const Task& task, Duration wait, Move move);
    void tell(Task& task);
    void enter(Task& task, protocol::TaskState state);
    void pull(Task& task);
    void prepare(Task& task);
    void become_ready(Task& task);
    void run(Task& task);
    void report(Task& task);
    void checkpoint(Task& task);
    void finish(Task& task);
    void obey_term(Task& task);
    void kill(Task& task);
    void vanish(Task& task);
    void end(Task& task, model::TaskEnd how);
    std::int64_t step_now(const Task& task) const;

    std::uint32_t host_;
    EventQueue& queue_;
    Prng& random_;
    Tally& tally_;
    ScriptOf script_of_;
    Watcher& watcher_;
    Duration absence_;
    Time lease_until_;
    std::uint64_t absences_ = 0;  // Tells an absence of the agent from a later one.
    Sink sink_;
    std::map<protocol::TaskKey, Task> tasks_;
    std::uint64_t next_serial_ = 1;
};

}  // namespace muster::simulator
