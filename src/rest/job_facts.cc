#include "rest/job_facts.h"

#include <limits>

#include "base/json_writer.h"
#include "base/units.h"

namespace muster::rest {
namespace {

constexpr std::size_t kKnownMax = 4096;

std::string ask_text(const model::DeviceAsk& ask) {
    std::string out = ask.vendor;
    if (!ask.kind.empty()) out += (out.empty() ? "" : " ") + ask.kind;
    if (ask.memory_min.value != 0) {
        out += (out.empty() ? ">=" : " >=") + format_bytes(ask.memory_min);
    }
    return out + (out.empty() ? "" : ":") + std::to_string(ask.count);
}

std::string asks_text(const model::Role& role) {
    std::string out;
    for (const model::DeviceAsk& ask : role.devices)
        out += (out.empty() ? "" : "|") + ask_text(ask);
    return out;
}

}  // namespace

std::string gpus_text(const model::JobSpec& spec) {
    std::string out;
    bool any = false;
    for (std::size_t i = 0; i < spec.roles.size(); ++i) {
        const std::string asks = asks_text(spec.roles[i]);
        any = any || !asks.empty();
        out += (i == 0 ? "" : ",") + (asks.empty() ? std::string("0") : asks);
    }
    return any ? out : std::string();
}

std::string wants_text(const model::JobSpec& spec) {
    std::string out;
    for (const model::Role& role : spec.roles) {
        if (!out.empty()) out += ", ";
        if (!role.name.empty()) out += role.name + ": ";
        out += std::to_string(role.nodes) + (role.nodes == 1 ? " node" : " nodes");
        if (!role.devices.empty()) {
            const model::DeviceAsk& ask = role.devices.front();
            const bool one =
                role.devices.size() == 1 && ask.vendor.empty() && ask.memory_min.value == 0;
            out += " x " + (one ? std::to_string(ask.count) + " " +
                                      (!ask.kind.empty() ? ask.kind
                                       : ask.count == 1  ? "device"
                                                         : "devices")
                                : asks_text(role));
        }
        if (role.cpus.value != 0)
            out += ", " + format_cpus(role.cpus) + (role.cpus.value == 1000 ? " CPU" : " CPUs");
        if (role.memory.value != 0) out += ", " + format_bytes(role.memory);
    }
    return out;
}

JobFacts facts_of(const model::JobSpec& spec) {
    JobFacts facts{.labels = spec.labels,
                   .gpus_per_node = gpus_text(spec),
                   .nodes = spec.nodes(),
                   .time = spec.time,
                   .deadline = spec.deadline,
                   .is_array = spec.array.count > 0,
                   .array_first = spec.array.first,
                   .array_step = spec.array.step,
                   .array_count = spec.array.count,
                   .array_parallel = spec.array.parallel};
    bool cpus_known = true;
    for (const model::Role& role : spec.roles) {
        if (!role.devices.empty()) facts.gpus += role.nodes * role.devices.front().count;
        cpus_known = cpus_known && role.cpus.value != 0;
        facts.milli_cpus += role.nodes * role.cpus.value;
        // A million nodes of the most that one may have are more than there are numbers.
        if (std::int64_t all = 0; __builtin_mul_overflow(role.nodes, role.memory.value, &all) ||
                                  __builtin_add_overflow(facts.memory, all, &facts.memory))
            facts.memory = std::numeric_limits<std::int64_t>::max();
    }
    if (!cpus_known) facts.milli_cpus = 0;
    if (!spec.labels.empty()) {
        JsonWriter json;
        json.begin_object();
        for (const auto& [key, value] : spec.labels) json.field(key, value);
        json.end_object();
        facts.labels_json = std::move(json).text();
    }
    return facts;
}

std::shared_ptr<const JobFacts> JobFactsCache::get(const core::View& view, SpecId spec) {
    {
        const std::lock_guard lock(mutex_);
        const auto at = known_.find(spec.value);
        if (at != known_.end()) return at->second;
    }
    auto facts = std::make_shared<const JobFacts>(facts_of(*core::spec_of(view, spec)));
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kKnownMax) known_.clear();
    known_.emplace(spec.value, facts);
    return facts;
}

}  // namespace muster::rest
