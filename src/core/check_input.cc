// The bounds of what comes in, once more: no number that is past these checks can make a sum
// overflow or give credit (F25, F30).
#include <algorithm>

#include "base/utf8.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

struct Bound {
    const char* field;
    std::int64_t value, low, high;
};

Status within(const Bound& bound) {
    if (bound.low <= bound.value && bound.value <= bound.high) return Ok{};
    return Error{.code = Code::Invalid,
                 .message = std::string(bound.field) + ": " + std::to_string(bound.value) +
                            " is not between " + std::to_string(bound.low) + " and " +
                            std::to_string(bound.high),
                 .fix = std::string("give ") + bound.field + " a value within these bounds"};
}
Status all_within(std::initializer_list<Bound> bounds) {
    for (const Bound& bound : bounds) MUSTER_TRY(within(bound));
    return Ok{};
}
Error invalid(std::string message, std::string fix = {}) {
    return {.code = Code::Invalid, .message = std::move(message), .fix = std::move(fix)};
}

Status check_role(const model::Role& role) {
    MUSTER_TRY(all_within({{"nodes", role.nodes, 1, model::kNodesMax},
                           {"cpus", role.cpus.value, 0, kMilliCpuMax},
                           {"memory", role.memory.value, 0, kBytesMax},
                           {"disk", role.disk.value, 0, kDiskBytesMax},
                           {"shm", role.shm.value, 0, kBytesMax},
                           {"gpus", static_cast<std::int64_t>(role.devices.size()), 0, 64}}));
    for (const model::DeviceAsk& ask : role.devices) {
        MUSTER_TRY(all_within({{"gpus", ask.count, 1, model::kGpusPerNodeMax},
                               {"gpu memory", ask.memory_min.value, 0, kBytesMax},
                               {"gpu fraction (thousandths)", ask.fraction, 0, 999},
                               {"gpu share_memory", ask.share_memory.value, 0, kBytesMax}}));
        const int parts = (ask.fraction > 0 ? 1 : 0) + (ask.share_memory.value > 0 ? 1 : 0) +
                          (ask.profile.empty() ? 0 : 1);
        if (parts > 1)
            return invalid("gpus: a fraction, an amount of memory and a profile exclude each other",
                           "give one of them");
        if ((ask.fraction > 0 || ask.share_memory.value > 0) && ask.count != 1)
            return invalid("gpus: " + std::to_string(ask.count) + " parts of devices are asked for",
                           "a part is of one device: leave out the count");
    }
    return Ok{};
}

}  // namespace

Status check_spec(const model::JobSpec& spec, Time now) {
    if (spec.name.empty()) return invalid("name: must not be empty", "name the job");
    if (!utf8_valid(spec.name)) return invalid("name: is not valid UTF-8", "use UTF-8 text");
    if (spec.roles.empty()) return invalid("run: a job needs a command", "give the job a run:");
    const std::int64_t time_low = 0, time_high = (now + kDurationMax).ms;
    MUSTER_TRY(
        all_within({{"roles", static_cast<std::int64_t>(spec.roles.size()), 1, 1024},
                    {"priority", spec.priority, 0, 100},
                    {"time", spec.time.ms, 0, kDurationMax.ms},
                    {"expected_time", spec.expected_time.ms, 0, kDurationMax.ms},
                    {"begin", spec.begin.ms, time_low, time_high},
                    {"deadline", spec.deadline.ms, time_low, time_high},
                    {"restart.max", spec.restart.max, -1, model::kRestartsMax},
                    {"restart.backoff", spec.restart.backoff.ms, 0, kDurationMax.ms},
                    {"checkpoint.grace", spec.checkpoint.grace.ms, 1, kDurationMax.ms},
                    {"checkpoint.interval", spec.checkpoint.interval.ms, 0, kDurationMax.ms},
                    {"array", spec.array.count, 0, model::kArrayMax},
                    {"parallel", spec.array.parallel, 0, model::kArrayMax},
                    {"depends", static_cast<std::int64_t>(spec.depends.size()), 0, 10'000},
                    {"log_rules", static_cast<std::int64_t>(spec.log_rules.size()), 0, 1000}}));
    std::int64_t nodes = 0;
    for (const model::Role& role : spec.roles) {
        MUSTER_TRY(check_role(role));
        const bool first = &role == &spec.roles.front();
        if (role.nodes_max > role.nodes) {
            MUSTER_TRY(within({"nodes (most)", role.nodes_max, 1, model::kNodesMax}));
            if (!first)
                return invalid("nodes: role " + role.name + " is elastic",
                               "only the first role may have a range of nodes");
        }
        nodes += std::max(role.nodes, role.nodes_max);
    }
    MUSTER_TRY(within({"topology.spares", spec.topology.spares, 0, model::kNodesMax}));
    MUSTER_TRY(within({"nodes", nodes + spec.topology.spares, 1, model::kNodesMax}));
    const model::Role& gang = spec.roles.front();
    const std::int64_t slice = spec.topology.slice;
    MUSTER_TRY(within({"topology.slice.size", slice, 0, model::kNodesMax}));
    for (const std::int64_t count : {gang.nodes, std::max(gang.nodes, gang.nodes_max)})
        if (slice > 0 && count % slice != 0)
            return invalid("topology.slice.size: " + std::to_string(slice) + " does not divide " +
                               std::to_string(count) + " nodes",
                           "choose a size that divides the nodes");
    return Ok{};
}

Status check_facts(const model::NodeFacts& facts, const std::string& name) {
    if (facts.name != name)
        return Error{.code = Code::Denied,
                     .message = "node " + facts.name + ": its certificate is for " + name,
                     .fix = "join under its own name"};
    if (!utf8_valid(facts.name) || facts.name.empty())
        return invalid("node name: is empty or not valid UTF-8");
    MUSTER_TRY(all_within({{"cpus", facts.cpus.value, 0, kMilliCpuMax},
                           {"memory", facts.memory.value, 0, kBytesMax * 64},
                           {"disk", facts.disk.value, 0, kDiskBytesMax * 1024},
                           {"peer port", facts.peer_port, 0, 65535},
                           {"devices", static_cast<std::int64_t>(facts.devices.size()), 0, 4096}}));
    for (std::size_t i = 0; i < facts.devices.size(); ++i) {
        const model::Device& device = facts.devices[i];
        if (device.id.empty()) return invalid("node " + name + ": a device has no id");
        if (i > 0 && !(facts.devices[i - 1].id < device.id))
            return invalid(
                "node " + name + ": device " + device.id + " is listed twice or out of order",
                "give every device an id of its own");
        MUSTER_TRY(within({"device memory", device.memory.value, 0, kBytesMax}));
        const auto parent =
            std::ranges::lower_bound(facts.devices, device.parent, {}, &model::Device::id);
        if (!device.parent.empty() && parent != facts.devices.end() &&
            parent->id == device.parent && parent->healthy && device.healthy)
            return invalid("node " + name + ": device " + device.id + " is a partition of " +
                               device.parent + ", which is listed as a whole device too",
                           "list either the whole device or its partitions");
    }
    if (!std::ranges::is_sorted(facts.labels))
        return invalid("node " + name + ": labels are not sorted");
    return Ok{};
}

}  // namespace muster::core
