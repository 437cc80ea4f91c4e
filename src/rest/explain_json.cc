#include "rest/explain_json.h"

#include "rest/ids.h"
#include "rest/job_json.h"
#include "rest/node_json.h"
#include "rest/reason.h"
#include "rest/time_text.h"

namespace muster::rest {
namespace {

using scheduler::Explanation;
constexpr std::size_t kNodesOutMax = 8;

void write_job_head(JsonWriter& json, const core::View& view, JobId id) {
    json.field("job", job_name(view, id));
    const core::Job* job = view.jobs.find(id.value);
    json.key("name");
    write_text(json, job == nullptr ? std::string() : core::spec_of(view, job->spec)->name);
    json.key("user");
    write_text(json, job == nullptr ? std::string() : user_name(view, job->user));
}

void write_holders(JsonWriter& json, const core::View& view, const Explanation& why) {
    json.key("holders").begin_array();
    for (const Explanation::Holder& holder : why.holders) {
        json.begin_object();
        write_job_head(json, view, holder.job);
        json.field("nodes", holder.nodes).field("devices", holder.devices);
        write_time(json, "end", holder.end);
        json.end_object();
    }
    json.end_array();
}

void write_closest(JsonWriter& json, const Explanation& why) {
    json.key("closest");
    if (!why.closest) {
        json.null();
        return;
    }
    json.begin_object().field("level", why.closest->level).key("path").begin_array();
    for (const std::string& name : why.closest->path) json.value(name);
    json.end_array().field("nodes_fit", why.closest->nodes_fit);
    json.field("nodes_wanted", why.closest->nodes_wanted).end_object();
}

std::string_view field_of(Explanation::Sooner::Change change) {
    using Change = Explanation::Sooner::Change;
    switch (change) {
        case Change::Nodes: return "nodes";
        case Change::Devices:
        case Change::Kind: return "gpus";
        case Change::Time: return "time";
        case Change::Topology: return "topology.required";
        case Change::Queue: return "queue";
    }
    return "";
}

void write_sooner(JsonWriter& json, const scheduler::Shape& shape, const Explanation& why) {
    json.key("sooner").begin_array();
    for (const Explanation::Sooner& change : why.sooner) {
        std::string value = change.value;
        if (change.change == Explanation::Sooner::Change::Devices && !shape.groups.empty() &&
            !shape.groups[0].devices.empty()) {
            const std::string& kind = shape.groups[0].devices[0].kind;
            if (!kind.empty()) value = kind + ":" + value;
        }
        json.begin_object().field("field", field_of(change.change)).field("value", value);
        write_time(json, "start", change.start);
        json.end_object();
    }
    json.end_array();
}

/// Some of the nodes that nothing new may start on, with the reason.
void write_nodes_out(JsonWriter& json, const core::View& view) {
    json.key("nodes_out").begin_array();
    std::size_t count = 0;
    view.nodes.for_each([&](std::uint64_t, const core::Node& node) {
        if (count >= kNodesOutMax || node.forgotten || !node.facts || usable(view, node)) return;
        ++count;
        json.begin_object().field("node", node.facts->name);
        json.field("state", node_state(view, node)).key("reason");
        write_text(json, node.holds.empty() ? std::string() : node.holds.front().reason);
        json.end_object();
    });
    json.end_array();
}

}  // namespace

void write_share(JsonWriter& json, std::string_view name, std::int64_t millionths) {
    json.field(name, static_cast<double>(millionths) / 1'000'000);
}

void write_amount(JsonWriter& json, std::string_view resource, std::int64_t value) {
    if (resource == "memory")
        json.value(value);
    else
        json.value(static_cast<double>(value) / 1000);
}

std::string_view to_text(scheduler::StopReason reason) {
    using scheduler::StopReason;
    switch (reason) {
        case StopReason::Priority: return "priority";
        case StopReason::Reclaim: return "reclaim";
        case StopReason::Defragment: return "defragment";
        case StopReason::Shrink: return "shrink";
        case StopReason::Grow: return "grow";
    }
    return "";
}

void write_explanation(JsonWriter& json, const core::View& view, const core::Job* job,
                       const scheduler::Shape& shape, const Explanation& why) {
    json.begin_object().field("position", why.position).field("queued", why.queued);
    json.field("priority", why.priority);
    write_share(json, "queue_share", why.queue_share);
    write_share(json, "user_share", why.user_share);
    json.key("blocked").begin_array();
    for (const scheduler::Blocked& each : why.blocked) write_reason(json, view, job, &shape, each);
    json.end_array();
    write_holders(json, view, why);
    write_closest(json, why);
    write_time(json, "expected_start", why.expected_start);
    write_time(json, "earliest", why.earliest);
    write_time(json, "latest", why.latest);
    write_sooner(json, shape, why);
    write_nodes_out(json, view);
    json.end_object();
}

void write_forecast(JsonWriter& json, const core::View& view, const scheduler::Shape& shape,
                    const scheduler::Forecast& forecast) {
    using Reason = scheduler::Blocked::Reason;
    const scheduler::Explanation& why = forecast.why;
    const Reason reason = why.blocked.empty() ? Reason::NotEvaluated : why.blocked[0].reason;
    const bool never = reason == Reason::NeverFits || reason == Reason::NoNodes;
    json.begin_object().field("starts_now", forecast.start.has_value());
    json.field("could_run", !never).key("slots").begin_array();
    if (forecast.start) {
        for (const scheduler::Slot& slot : forecast.start->slots) {
            json.begin_object().field("node", node_name(view, slot.node));
            json.field("group", slot.group).field("spare", slot.spare).end_object();
        }
    }
    json.end_array().key("preempts").begin_array();
    for (const scheduler::Stop& stop : forecast.stops) {
        json.begin_object();
        write_job_head(json, view, stop.job);
        json.field("reason", to_text(stop.reason)).end_object();
    }
    json.end_array().key("why");
    if (forecast.start || why.blocked.empty())
        json.null();
    else
        write_reason(json, view, nullptr, &shape, why.blocked[0]);
    json.key("explanation");
    if (forecast.start || why.blocked.empty())
        json.null();
    else
        write_explanation(json, view, nullptr, shape, why);
    json.end_object();
}

}  // namespace muster::rest
