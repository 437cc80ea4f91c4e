// The larger parts of a whole job: its allocation, its ranks, its past
// attempts.
#include <map>

#include "rest/explain_json.h"
#include "rest/ids.h"
#include "rest/job_json.h"
#include "rest/time_text.h"

namespace muster::rest {
namespace {

void write_known(JsonWriter& json, std::string_view name, std::int64_t number) {
    json.key(name);
    if (number < 0)
        json.null();
    else
        json.value(number);
}

void write_cause(JsonWriter& json, model::Cause cause) {
    json.key("cause");
    if (cause == model::Cause::None)
        json.null();
    else
        json.value(model::to_text(cause));
}

std::string_view role_name(const std::vector<model::Role>& roles, std::uint32_t group) {
    return group < roles.size() ? std::string_view(roles[group].name) : std::string_view();
}

std::string_view health_of(const core::View& view, NodeId node) {
    const core::NodeLive* live = view.node_live.find(node.value);
    if (live == nullptr) return "unknown";
    switch (live->health) {
        case model::NodeHealth::Unknown: return "unknown";
        case model::NodeHealth::Ready: return "ready";
        case model::NodeHealth::Suspect: return "suspect";
        case model::NodeHealth::Lost: return "lost";
    }
    return "unknown";
}

void write_signal(JsonWriter& json, int signal) {
    json.key("signal");
    if (signal == 0)
        json.null();
    else
        json.value(signal);
}

void write_task(JsonWriter& json, const protocol::TaskStatus& task) {
    json.field("state", protocol::to_text(task.state));
    if (task.state == protocol::TaskState::Pulling) {
        json.field("pulled_bytes", task.done).key("pull_total_bytes");
        if (task.total == 0)
            json.null();
        else
            json.value(task.total);
    }
    if (task.state != protocol::TaskState::Ended) return;
    write_cause(json, task.end.cause);
    write_known(json, "exit_code", task.end.exit_code);
    write_signal(json, task.end.signal);
    json.key("message");
    write_text(json, task.end.message);
}

}  // namespace

void write_text(JsonWriter& json, std::string_view text) {
    if (text.empty())
        json.null();
    else
        json.value(text);
}

void write_progress(JsonWriter& json, const protocol::Progress& progress) {
    json.begin_object().field("step", progress.step).key("total");
    if (progress.total > 0)
        json.value(progress.total);
    else
        json.null();
    json.key("fraction");
    if (progress.total > 0) {
        json.value(static_cast<double>(progress.step) / static_cast<double>(progress.total));
    } else {
        json.null();
    }
    json.key("metrics").begin_object();
    for (const auto& [name, value] : progress.metrics) json.field(name, value);
    json.end_object().end_object();
}

void write_allocation(JsonWriter& json, const core::View& view, const core::Job& job,
                      const std::vector<model::Role>& roles) {
    const core::JobExtra& extra = core::extra_of(job);
    if (!extra.allocation) {
        json.null();
        return;
    }
    json.begin_object().field("attempt", extra.allocation->epoch);
    write_time(json, "at", extra.allocation->at);
    json.key("levels").begin_array();
    for (const std::string& level : view.topology->levels) json.value(level);
    json.end_array().key("slots").begin_array();
    int rank = 0;
    for (const core::Placed& slot : extra.allocation->slots) {
        json.begin_object().field("rank", rank++).field("node", node_name(view, slot.node));
        json.field("role", role_name(roles, slot.group)).field("spare", slot.spare);
        json.key("path").begin_array();
        if (const core::Node* node = view.nodes.find(slot.node.value); node && node->facts)
            for (const std::string& name : model::path_of(*view.topology, *node->facts))
                json.value(name);
        json.end_array().key("devices").begin_array();
        for (const std::string& device : slot.devices) json.value(device);
        json.end_array().field("cpus", static_cast<double>(slot.cpus.value) / 1000);
        json.key("memory_bytes");
        if (slot.memory.value == 0)
            json.null();
        else
            json.value(slot.memory.value);
        json.end_object();
    }
    json.end_array().end_object();
}

void write_ranks(JsonWriter& json, const core::View& view, const core::Job& job,
                 const std::vector<model::Role>& roles) {
    const core::JobExtra& extra = core::extra_of(job);
    const core::JobLive* live = view.live.find(job.id.value);
    json.begin_array();
    const std::size_t count = extra.allocation ? core::ranks_of(*extra.allocation) : 0;
    for (std::size_t rank = 0; rank < count; ++rank) {
        const core::Placed& slot = extra.allocation->slots[rank];
        json.begin_object().field("rank", static_cast<std::uint64_t>(rank));
        json.field("node", node_name(view, slot.node));
        json.field("role", role_name(roles, slot.group));
        json.field("node_state", health_of(view, slot.node));
        if (live != nullptr && rank < live->tasks.size())
            write_task(json, live->tasks[rank]);
        else
            json.field("state", protocol::to_text(protocol::TaskState::Accepted));
        json.key("progress");
        if (live != nullptr && rank < live->progress.size() && live->progress[rank].step >= 0) {
            write_progress(json, live->progress[rank]);
        } else {
            json.null();
        }
        json.end_object();
    }
    json.end_array();
}

void write_attempts(JsonWriter& json, const core::View& view, const core::Job& job) {
    json.begin_array();
    for (const core::Attempt& attempt : core::extra_of(job).attempts) {
        json.begin_object().field("attempt", attempt.epoch);
        write_time(json, "queued", attempt.queued);
        write_time(json, "started", attempt.started);
        write_time(json, "running", attempt.running);
        write_time(json, "ended", attempt.ended);
        write_cause(json, attempt.cause);
        write_known(json, "exit_code", attempt.exit_code);
        write_signal(json, attempt.signal);
        json.field("rank", attempt.rank).field("node", attempt.node).key("message");
        write_text(json, attempt.message);
        write_known(json, "last_step", attempt.last_step);
        write_known(json, "resumed_step", attempt.resumed_step);
        json.field("lost_ms", attempt.lost.ms).key("beneficiary");
        if (attempt.beneficiary)
            json.value(job_name(view, attempt.beneficiary)).key("preempted_for");
        else
            json.null().key("preempted_for");
        write_text(json, attempt.beneficiary ? to_text(attempt.reason) : std::string_view());
        json.end_object();
    }
    json.end_array();
}

}  // namespace muster::rest
