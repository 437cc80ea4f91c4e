#include "simulator/runtime.h"

#include <algorithm>
#include <utility>

namespace muster::simulator {

using protocol::TaskKey;
using protocol::TaskState;

std::vector<node::Started::Found> ModelRuntime::list() const {
    std::vector<node::Started::Found> found;
    for (const auto& [key, task] : tasks_)
        found.push_back({task.order, task.status, task.released});
    return found;
}

void ModelRuntime::set_sink(Sink sink) {
    sink_ = std::move(sink);
    const std::uint64_t absence = ++absences_;
    if (sink_) return;
    const Time orphaned = std::max(queue_.now() + absence_, lease_until_);
    queue_.at(orphaned, [this, absence] {
        if (absences_ == absence) stop_orphans();
    });
}

void ModelRuntime::set_lease(Duration absence, Time until) {
    absence_ = absence;
    lease_until_ = until;
}

void ModelRuntime::stop_orphans() {
    for (auto& [key, task] : tasks_) {
        if (!task.order.gang || task.order.gang->size() < 2) continue;
        if (task.status.state == TaskState::Ended || task.stopping) continue;
        tally_.hit("task.orphaned");
        stop(key, model::Cause::Fenced, protocol::kFenceGrace);
    }
}

ModelRuntime::Task* ModelRuntime::find(const TaskKey& key) {
    const auto task = tasks_.find(key);
    return task == tasks_.end() ? nullptr : &task->second;
}

void ModelRuntime::later(const Task& task, Duration wait, Move move) {
    queue_.after(wait, [this, key = task.order.key, serial = task.serial, move] {
        Task* still = find(key);
        if (still != nullptr && still->serial == serial) (this->*move)(*still);
    });
}

void ModelRuntime::tell(Task& task) {
    if (sink_) sink_(task.status);
}

void ModelRuntime::enter(Task& task, TaskState state) {
    task.status.state = state;
    tell(task);
}

void ModelRuntime::start(const protocol::StartTask& order) {
    if (tasks_.contains(order.key)) return;
    Task& task = tasks_[order.key];
    task.order = order;
    task.script = script_of_(order);
    task.serial = next_serial_++;
    task.status.key = order.key;
    task.first_step = std::max<std::int64_t>(order.checkpoint_step, 0);
    later(task, {random_.between(1, 5)}, &ModelRuntime::pull);
    enter(task, TaskState::Accepted);
}

void ModelRuntime::pull(Task& task) {
    if (task.stopping) return;
    if (task.script.pull.ms == 0) return prepare(task);
    enter(task, TaskState::Pulling);
    later(task, task.script.pull, &ModelRuntime::prepare);
}

void ModelRuntime::prepare(Task& task) {
    if (task.stopping) return;
    if (task.script.image_fails && task.script.pull.ms != 0) {
        tally_.hit("task.image-fails");
        return end(task, {.cause = model::Cause::Image,
                          .message = "image not found",
                          .permanent = task.order.key.rank % 2 == 0});
    }
    if (task.script.launch_fails) {
        tally_.hit("task.launch-fails");
        return end(task, {.cause = model::Cause::Launch, .message = "no cgroup could be made"});
    }
    task.holds_devices = true;
    watcher_.holds_devices(host_, task.order);
    enter(task, TaskState::Preparing);
    later(task, task.script.prepare, &ModelRuntime::become_ready);
}

void ModelRuntime::become_ready(Task& task) {
    if (task.stopping) return;
    task.status.port = 29'500;
    watcher_.ready(host_, task.order);
    if (task.order.barrier && !task.released) return enter(task, TaskState::Ready);
    run(task);
}

void ModelRuntime::release(const protocol::Go& go) {
    Task* task = find(go.key);
    if (task == nullptr || task->released || task->stopping) return;
    task->released = true;
    if (task->status.state == TaskState::Ready) run(*task);
}

void ModelRuntime::run(Task& task) {
    task.started = queue_.now();
    watcher_.runs(host_, task.order);
    later(task, task.script.work, &ModelRuntime::finish);
    if (task.script.reports_progress) later(task, {300}, &ModelRuntime::report);
    if (task.script.checkpoint_every.ms != 0 && task.order.key.rank == 0) {
        later(task, task.script.checkpoint_every, &ModelRuntime::checkpoint);
    }
    enter(task, TaskState::Running);
}

std::int64_t ModelRuntime::step_now(const Task& task) const {
    const std::int64_t span = std::max<std::int64_t>(task.script.work.ms, 1);
    return task.first_step + (queue_.now() - task.started).ms * task.script.steps / span;
}

void ModelRuntime::report(Task& task) {
    if (task.killed || task.status.state == TaskState::Ended) return;
    tally_.hit("task.progress");
    if (sink_)
        sink_(protocol::Progress{.key = task.order.key, .step = step_now(task), .metrics = {}});
    later(task, {random_.between(200, 3'000)}, &ModelRuntime::report);
}

void ModelRuntime::checkpoint(Task& task) {
    if (task.killed || task.status.state == TaskState::Ended) return;
    tally_.hit("task.checkpoint");
    const std::int64_t step = step_now(task);
    if (sink_)
        sink_(protocol::CheckpointDone{task.order.key, step, "/ckpt/" + std::to_string(step)});
    later(task, task.script.checkpoint_every, &ModelRuntime::checkpoint);
}

void ModelRuntime::finish(Task& task) {
    if (task.killed || task.status.state == TaskState::Ended) return;
    if (task.stopping && !task.script.ignores_term) return;  // It is on its way out already.
    model::TaskEnd how{.cause = task.script.end, .exit_code = task.script.exit_code};
    if (how.cause == model::Cause::Oom) how.message = "out of memory";
    end(task, std::move(how));
}

void ModelRuntime::notice(const protocol::NoticeTask& notice) {
    if (find(notice.key) != nullptr) tally_.hit("task.noticed");
}

void ModelRuntime::stop(const TaskKey& key, model::Cause cause, Duration grace) {
    Task* task = find(key);
    if (task == nullptr || task->status.state == TaskState::Ended || task->killed) return;
    if (!task->stopping) {
        task->stopping = true;
        task->stop_cause = cause;
        const bool running = task->status.state == TaskState::Running;
        enter(*task, TaskState::Stopping);
        const bool deaf = running && task->script.ignores_term;
        if (deaf)
            tally_.hit("task.ignores-term");
        else
            later(*task, {random_.between(1, running ? 1'500 : 50)}, &ModelRuntime::obey_term);
    }
    const Time kill_at = queue_.now() + grace;
    if (kill_at >= task->kill_at) return;
    task->kill_at = kill_at;
    later(*task, grace, &ModelRuntime::kill);
}

void ModelRuntime::obey_term(Task& task) {
    if (task.killed || task.status.state == TaskState::Ended) return;
    end(task, {.cause = task.stop_cause, .exit_code = 143});
}

void ModelRuntime::kill(Task& task) {
    if (task.killed || task.status.state == TaskState::Ended || queue_.now() < task.kill_at) return;
    task.killed = true;
    watcher_.killed(host_, task.order);
    if (task.script.dies_slowly.ms > 1'000) tally_.hit("task.dies-slowly");
    later(task, task.script.dies_slowly, &ModelRuntime::vanish);
}

void ModelRuntime::vanish(Task& task) {
    if (task.status.state == TaskState::Ended) return;
    end(task, {.cause = task.stop_cause, .exit_code = -1, .signal = 9});
}

void ModelRuntime::end(Task& task, model::TaskEnd how) {
    task.status.end = std::move(how);
    task.holds_devices = false;
    watcher_.gone(host_, task.order, task.status.end);
    enter(task, TaskState::Ended);
}

void ModelRuntime::clean(const TaskKey& key) {
    Task* task = find(key);
    if (task != nullptr && task->status.state == TaskState::Ended) tasks_.erase(key);
}

void ModelRuntime::power_off(bool keep_folders) {
    for (auto& [key, task] : tasks_) {
        task.serial = next_serial_++;  // Nothing that was to happen to it happens.
        if (task.status.state == TaskState::Ended) continue;
        tally_.hit("task.lost-with-node");
        task.status.state = TaskState::Ended;
        task.status.end = {.cause = model::Cause::Vanished, .message = "the node was restarted"};
        watcher_.gone(host_, task.order, task.status.end);
    }
    if (!keep_folders) tasks_.clear();
}

}  // namespace muster::simulator
