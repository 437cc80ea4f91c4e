// Sums over the cluster: devices by kind, queues, users, totals.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "rest/api.h"
#include "rest/explain_json.h"
#include "rest/ids.h"
#include "rest/node_json.h"
#include "rest/time_text.h"

namespace muster::rest {
namespace {

constexpr std::size_t kManyJobs = 5'000;

struct KindSums {
    std::string device_class, vendor;
    std::int64_t memory = 0, total = 0, free = 0, used = 0, unusable = 0, nodes = 0, most_free = 0;
};

bool wanted(const model::Device& device, const std::string& kind) {
    return kind.empty() || device.kind == kind || device.device_class == kind;
}

std::map<std::string, KindSums> sum_kinds(const core::View& view, const std::string& kind) {
    std::map<std::string, KindSums> kinds;
    view.nodes.for_each([&](std::uint64_t id, const core::Node& node) {
        if (node.forgotten || !node.facts) return;
        const core::NodeUse* use = view.node_use.find(id);
        const bool open = usable(view, node);
        std::map<std::string, std::int64_t> free_here;
        for (const model::Device& device : node.facts->devices) {
            if (!wanted(device, kind)) continue;
            KindSums& sums = kinds[device.kind];
            sums.device_class = device.device_class;
            sums.vendor = device.vendor;
            if (sums.total == 0 || device.memory.value < sums.memory) {
                sums.memory = device.memory.value;
            }
            ++sums.total;
            std::int64_t& free = free_here[device.kind];
            if (use != nullptr && use->uses(device.id))
                ++sums.used;
            else if (!device.healthy || !open)
                ++sums.unusable;
            else
                ++sums.free, ++free;
        }
        for (const auto& [name, free] : free_here) {
            ++kinds[name].nodes;
            kinds[name].most_free = std::max(kinds[name].most_free, free);
        }
    });
    return kinds;
}

void answer_gpus(const CallPtr& call, const core::View& view) {
    const std::string kind = lower(call->query("kind"));
    JsonWriter json;
    json.begin_object().key("kinds").begin_array();
    for (const auto& [name, sums] : sum_kinds(view, kind)) {
        json.begin_object().field("kind", name).field("class", sums.device_class);
        json.field("vendor", sums.vendor).field("memory_bytes", sums.memory);
        json.field("total", sums.total).field("free", sums.free).field("used", sums.used);
        json.field("unusable", sums.unusable).field("nodes", sums.nodes);
        json.field("most_free_on_a_node", sums.most_free).end_object();
    }
    json.end_array();
    if (call->query("devices") != "0") {
        json.key("devices").begin_array();
        view.nodes.for_each([&](std::uint64_t, const core::Node& node) {
            if (node.forgotten || !node.facts) return;
            for (const model::Device& device : node.facts->devices) {
                if (wanted(device, kind)) write_device(json, view, node, device, true);
            }
        });
        json.end_array();
    }
    json.field("revision", revision_text(view)).end_object();
    call->json(std::move(json).text(), {{"ETag", "\"" + revision_text(view) + "\""}});
}

struct JobSums {
    std::int64_t pending = 0, active = 0, held = 0, gpus_used = 0, gpus_pending = 0;
    Time oldest = kNever;

    void add(const core::Job& job, const JobFacts& facts) {
        const core::JobExtra& extra = core::extra_of(job);
        if (job.state == model::JobState::Pending) {
            std::int64_t count = 1;
            if (extra.array) {
                count = static_cast<std::int64_t>(extra.array->held.size());
                for (const core::ElementRange& range : extra.array->waiting) {
                    count += range.last - range.first;
                }
            }
            pending += count;
            if (job.held) held += count;
            gpus_pending += count * facts.gpus;
            oldest = std::min(oldest, job.submitted);
        } else if (model::active(job.state)) {
            ++active;
            if (!extra.allocation) return;
            for (const core::Placed& slot : extra.allocation->slots) {
                gpus_used += static_cast<std::int64_t>(slot.devices.size());
            }
        }
    }
    void write(JsonWriter& json) const {
        json.field("pending", pending).field("active", active).field("held", held);
        json.field("gpus_used", gpus_used).field("gpus_pending", gpus_pending);
    }
};

template <class KeyOf>
std::map<std::uint32_t, JobSums> sum_jobs(Api& api, const core::View& view, KeyOf key_of) {
    std::map<std::uint32_t, JobSums> sums;
    view.jobs.for_each([&](std::uint64_t, const core::Job& job) {
        sums[key_of(job)].add(job, *api.facts.get(view, job.spec));
    });
    return sums;
}

void answer_queues(const CallPtr& call, const core::View& view) {
    auto sums = sum_jobs(*call->api, view, [](const core::Job& job) { return job.queue; });
    std::map<std::string, std::uint32_t> names;
    view.queues.for_each([&](std::uint64_t id, const core::Queue& queue) {
        names.emplace(queue.name, static_cast<std::uint32_t>(id));
    });
    JsonWriter json;
    json.begin_object().key("items").begin_array();
    for (const auto& [name, id] : names) {
        json.begin_object().field("name", name);
        sums[id].write(json);
        write_time(json, "oldest_pending", sums[id].oldest);
        const model::QueueSettings& settings = view.queues.at(id).settings;
        json.field("policy", model::to_text(settings.policy));
        json.field("weight", static_cast<double>(settings.weight) / 100);
        write_amounts(json, "guarantee", settings.guarantee);
        write_amounts(json, "limit", settings.limit);
        json.end_object();
    }
    json.end_array();
    if (call->query_flag("yaml")) json.field("yaml", queues_yaml(view));
    json.field("revision", revision_text(view)).end_object();
    call->json(std::move(json).text());
}

void answer_users(const CallPtr& call, const core::View& view) {
    auto sums = sum_jobs(*call->api, view, [](const core::Job& job) { return job.user; });
    std::map<std::string, const core::User*> names;
    view.users.for_each(
        [&](std::uint64_t, const core::User& user) { names.emplace(user.name, &user); });
    JsonWriter json;
    json.begin_object().key("items").begin_array();
    for (const auto& [name, user] : names) {
        json.begin_object().field("name", name).field("admin", user->admin);
        sums[static_cast<std::uint32_t>(user->id.value)].write(json);
        json.end_object();
    }
    json.end_array().field("revision", revision_text(view)).end_object();
    call->json(std::move(json).text());
}

struct ClusterSums {
    std::int64_t nodes = 0, held = 0, unenforced = 0, cpus = 0, cpus_used = 0, memory = 0,
                 memory_used = 0;
    std::int64_t by_health[4] = {};
    KindSums devices;
    std::int64_t jobs[8] = {};
    std::int64_t jobs_held = 0;
};

ClusterSums sum_cluster(const core::View& view) {
    ClusterSums sums;
    view.nodes.for_each([&](std::uint64_t id, const core::Node& node) {
        if (node.forgotten || !node.facts) return;
        ++sums.nodes;
        const core::NodeLive* live = view.node_live.find(id);
        ++sums.by_health[live != nullptr ? static_cast<int>(live->health) : 0];
        if (!node.holds.empty()) ++sums.held;
        if (!node.facts->limits_enforced) ++sums.unenforced;
        sums.cpus += node.facts->cpus.value;
        sums.memory += node.facts->memory.value;
        if (const core::NodeUse* use = view.node_use.find(id)) {
            sums.cpus_used += use->cpus.value;
            sums.memory_used += use->memory.value;
        }
    });
    for (const auto& [name, kind] : sum_kinds(view, "")) {
        sums.devices.total += kind.total;
        sums.devices.free += kind.free;
        sums.devices.used += kind.used;
        sums.devices.unusable += kind.unusable;
    }
    view.jobs.for_each([&](std::uint64_t, const core::Job& job) {
        ++sums.jobs[static_cast<int>(job.state)];
        if (job.held) ++sums.jobs_held;
    });
    return sums;
}

void answer_cluster(const CallPtr& call, const core::View& view) {
    using model::JobState;
    using model::NodeHealth;
    const ClusterSums sums = sum_cluster(view);
    const Backend::Health health = call->api->backend.health();
    const auto nodes = [&](NodeHealth state) { return sums.by_health[static_cast<int>(state)]; };
    const auto jobs = [&](JobState state) { return sums.jobs[static_cast<int>(state)]; };
    JsonWriter json;
    json.begin_object().key("nodes").begin_object().field("total", sums.nodes);
    json.field("ready", nodes(NodeHealth::Ready)).field("suspect", nodes(NodeHealth::Suspect));
    json.field("lost", nodes(NodeHealth::Lost)).field("unknown", nodes(NodeHealth::Unknown));
    json.field("held", sums.held).field("unenforced", sums.unenforced).end_object();
    json.key("jobs").begin_object().field("pending", jobs(JobState::Pending));
    json.field("starting", jobs(JobState::Starting)).field("running", jobs(JobState::Running));
    json.field("stopping", jobs(JobState::Stopping)).field("fencing", jobs(JobState::Fencing));
    json.field("held", sums.jobs_held).end_object();
    json.key("gpus").begin_object().field("total", sums.devices.total);
    json.field("free", sums.devices.free).field("used", sums.devices.used);
    json.field("unusable", sums.devices.unusable).end_object();
    json.key("cpus").begin_object().field("total", static_cast<double>(sums.cpus) / 1000);
    json.field("used", static_cast<double>(sums.cpus_used) / 1000).end_object();
    json.key("memory_bytes").begin_object().field("total", sums.memory);
    json.field("used", sums.memory_used).end_object();
    json.field("frozen", view.frozen).field("disk_full", health.disk_full);
    json.key("levels").begin_array();
    for (const std::string& level : view.topology->levels) json.value(level);
    json.end_array();
    json.field("term", view.meta.term);
    write_time(json, "at", call->now);
    json.field("revision", revision_text(view)).end_object();
    call->json(std::move(json).text());
}

/// Off the I/O thread when there is much to add up.
void sum_up(const CallPtr& call, void (*answer)(const CallPtr&, const core::View&)) {
    with_view(call, [answer](const CallPtr& ready, const ViewPtr& view) {
        if (view->jobs.size() + view->nodes.size() < kManyJobs) return answer(ready, *view);
        ready->api->reads.post([ready, view, answer] { answer(ready, *view); });
    });
}

}  // namespace

void list_gpus(const CallPtr& call) {
    with_view(call, [](const CallPtr& ready, const ViewPtr& view) {
        if (answered_unchanged(*ready, "\"" + revision_text(*view) + "\"")) return;
        if (view->nodes.size() < 200) return answer_gpus(ready, *view);
        ready->api->reads.post([ready, view] { answer_gpus(ready, *view); });
    });
}
void list_queues(const CallPtr& call) {
    sum_up(call, answer_queues);
}
void list_users(const CallPtr& call) {
    sum_up(call, answer_users);
}
void get_cluster(const CallPtr& call) {
    sum_up(call, answer_cluster);
}

}  // namespace muster::rest
