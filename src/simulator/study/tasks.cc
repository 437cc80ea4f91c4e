// The modelled runtime: tasks that stand at barriers, run, and end when their job's work is done,
// when they are told to, or with their node.
#include <algorithm>

#include "simulator/study/engine.h"

namespace muster::simulator::study {
namespace {

using protocol::TaskState;

constexpr int kPort = 29'500;

protocol::TaskKey key_of(const LiveJob& job, std::uint32_t rank) {
    return {job.id, job.epoch, rank};
}

}  // namespace

/// Of the attempt under way; null for those of earlier ones, and of jobs that are over.
LiveTask* Engine::find_task(const protocol::TaskKey& key) {
    LiveJob* job = find(key.job);
    if (job == nullptr || job->epoch != key.epoch || key.rank >= job->tasks.size()) return nullptr;
    LiveTask& task = job->tasks[key.rank];
    return task.started ? &task : nullptr;
}

void Engine::tell(std::uint32_t host, protocol::AgentMessage message) {
    under_way_.push_back(ToHost{host, 0, node::FromRuntime{std::move(message)}});
}

void Engine::start_task(std::uint32_t number, const protocol::StartTask& order) {
    const protocol::TaskKey& key = order.key;
    LiveJob* job = find(key.job);
    if (job == nullptr) return;
    if (job->tasks.empty() || job->epoch != key.epoch) {
        job->epoch = key.epoch;
        job->tasks.assign(std::max<std::size_t>(order.gang->size(), 1), {});
        job->ready = job->released = 0;
        job->barrier = order.barrier;
        job->finished = false;
        job->notice = model::Cause::None;
        job->done = std::max<std::int64_t>(order.checkpoint_step, 0) * kUnits;
    }
    LiveTask& task = job->tasks[key.rank];
    if (task.started) return;
    task.started = true;
    task.host = number;
    hosts_[number].tasks.emplace_back(key.job, key.rank);
    if (options_.launch.ms == 0) return task_ready(*job, key.rank);
    calendar_.put(now_ + options_.launch, Happening::TaskReady, key.rank, key.job.value, key.epoch);
}

void Engine::task_ready(LiveJob& job, std::uint32_t rank) {
    LiveTask& task = job.tasks[rank];
    if (task.ready || task.ended || task.stop != model::Cause::None) return;
    task.ready = true;
    ++job.ready;
    protocol::TaskStatus status{.key = key_of(job, rank)};
    status.state = job.barrier ? TaskState::Ready : TaskState::Running;
    if (rank == 0) status.port = kPort;
    tell(task.host, std::move(status));
    if (job.barrier) return;
    task.released = true;
    if (++job.released == job.tasks.size()) begin(job);
}

void Engine::release_task(const protocol::TaskKey& key) {
    LiveTask* task = find_task(key);
    if (task == nullptr || task->released || !task->ready || task->ended ||
        task->stop != model::Cause::None)
        return;
    LiveJob& job = *find(key.job);
    task->released = true;
    tell(task->host, protocol::TaskStatus{.key = key, .state = TaskState::Running});
    if (++job.released == job.tasks.size()) begin(job);
}

void Engine::stop_task(LiveJob& job, std::uint32_t rank, model::Cause cause) {
    LiveTask& task = job.tasks[rank];
    if (!task.started || task.ended || task.stop != model::Cause::None) return;
    task.stop = cause;
    halt(job);
    if (options_.stop.ms == 0) return end_task(job, rank, {.cause = cause, .exit_code = 143});
    calendar_.put(now_ + options_.stop, Happening::TaskStopped, rank, job.id.value, job.epoch);
}

void Engine::end_task(LiveJob& job, std::uint32_t rank, model::TaskEnd end) {
    LiveTask& task = job.tasks[rank];
    if (!task.started || task.ended) return;
    task.ended = true;
    protocol::TaskStatus status{.key = key_of(job, rank), .state = TaskState::Ended};
    status.end = std::move(end);
    tell(task.host, std::move(status));
}

void Engine::clean_task(std::uint32_t number, const protocol::TaskKey& key) {
    std::erase(hosts_[number].tasks, std::pair{key.job, key.rank});
}

}  // namespace muster::simulator::study
