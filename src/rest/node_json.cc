#include "rest/node_json.h"

#include <algorithm>
#include <map>

#include "base/error_codes.h"
#include "base/text.h"
#include "rest/ids.h"
#include "rest/job_json.h"
#include "rest/time_text.h"

namespace muster::rest {
namespace {

const core::NodeLive& live_of(const core::View& view, const core::Node& node) {
    static const core::NodeLive kNothing;
    const core::NodeLive* live = view.node_live.find(node.id.value);
    return live != nullptr ? *live : kNothing;
}

const core::NodeUse& use_of(const core::View& view, const core::Node& node) {
    static const core::NodeUse kNothing;
    const core::NodeUse* use = view.node_use.find(node.id.value);
    return use != nullptr ? *use : kNothing;
}

bool person(std::string_view owner) {
    return owner.substr(0, 6) == "admin:";
}

/// Of the holds, or of the silence.
std::string reason_of(const core::View& view, const core::Node& node) {
    std::string out;
    for (const model::NodeHold& hold : node.holds) {
        if (!out.empty()) out += "; ";
        out += hold.owner + (hold.reason.empty() ? "" : ": " + hold.reason);
    }
    if (!out.empty()) return out;
    switch (live_of(view, node).health) {
        case model::NodeHealth::Ready: break;
        case model::NodeHealth::Unknown: return "not heard since this controller started";
        case model::NodeHealth::Suspect: return "silent for a moment";
        case model::NodeHealth::Lost: return "silent";
    }
    if (!live_of(view, node).strays.empty()) {
        return std::to_string(live_of(view, node).strays.size()) +
               " tasks on it that nobody wants have not ended yet";
    }
    return {};
}

void write_holds(JsonWriter& json, const core::Node& node) {
    json.begin_array();
    for (const model::NodeHold& hold : node.holds) {
        json.begin_object().field("owner", hold.owner).field("reason", hold.reason);
        write_time(json, "since", hold.since);
        write_time(json, "until", hold.until);
        json.end_object();
    }
    json.end_array();
}

void write_strings(JsonWriter& json, const std::vector<std::string>& list) {
    json.begin_array();
    for (const std::string& each : list) json.value(each);
    json.end_array();
}

double whole_cpus(MilliCpu cpus) {
    return static_cast<double>(cpus.value) / 1000;
}

using Write = void (*)(JsonWriter&, const core::View&, const core::Node&);
struct Field {
    std::string_view name;
    Write write;
};

constexpr Field kFields[] = {
    {"name", [](JsonWriter &json, const core::View &,
                const core::Node &node) { json.value(node.facts->name); }},
    {"state",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(node_state(view, node));
     }},
    {"health",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(health_text(live_of(view, node).health));
     }},
    {"usable", [](JsonWriter &json, const core::View &view,
                  const core::Node &node) { json.value(usable(view, node)); }},
    {"reason",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       write_text(json, reason_of(view, node));
     }},
    {"since",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       write_time(json, live_of(view, node).since);
     }},
    {"heard",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       write_time(json, live_of(view, node).heard);
     }},
    {"fenced",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(live_of(view, node).fenced);
     }},
    {"holds", [](JsonWriter &json, const core::View &,
                 const core::Node &node) { write_holds(json, node); }},
    {"gpus",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(count_devices(view, node).total);
     }},
    {"gpus_used",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(count_devices(view, node).used);
     }},
    {"gpus_unusable",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(count_devices(view, node).unusable);
     }},
    {"gpu_kinds",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(gpu_kinds(*node.facts));
     }},
    {"cpus",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(whole_cpus(node.facts->cpus));
     }},
    {"cpus_used",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(whole_cpus(use_of(view, node).cpus));
     }},
    {"memory_bytes",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(node.facts->memory.value);
     }},
    {"memory_used_bytes",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(use_of(view, node).memory.value);
     }},
    {"disk_bytes",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(node.facts->disk.value);
     }},
    {"disk_used_bytes",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(use_of(view, node).disk.value);
     }},
    {"jobs",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.begin_array();
       JobId last;
       for (const JobId job : use_of(view, node).jobs) {
         if (job != last)
           json.value(job_name(view, job));
         last = job;
       }
       json.end_array();
     }},
    {"exclusive",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.value(use_of(view, node).exclusive);
     }},
    {"labels",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.begin_object();
       for (const auto &[key, value] : node.facts->labels)
         json.field(key, value);
       json.end_object();
     }},
    {"addresses",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       write_strings(json, node.facts->addresses);
     }},
    {"version",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(node.facts->version);
     }},
    {"runtime",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(node.facts->runtime);
     }},
    {"boot_id",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(node.facts->boot_id);
     }},
    {"joined", [](JsonWriter &json, const core::View &,
                  const core::Node &node) { write_time(json, node.joined); }},
    {"limits_enforced",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(node.facts->limits_enforced);
     }},
    {"disk_enforced",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       json.value(node.facts->disk_enforced);
     }},
    {"domain",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       const auto path = model::path_of(*view.topology, *node.facts);
       write_text(json, join(path, "/").size() < path.size() ? "" : join(path, "/"));
     }},
    {"unenforced_why",
     [](JsonWriter &json, const core::View &, const core::Node &node) {
       write_text(json, node.facts->unenforced_why);
     }},
    {"devices",
     [](JsonWriter &json, const core::View &view, const core::Node &node) {
       json.begin_array();
       for (const model::Device &device : node.facts->devices) {
         write_device(json, view, node, device, false);
       }
       json.end_array();
     }},
};

}  // namespace

bool usable(const core::View& view, const core::Node& node) {
    const core::NodeLive& live = live_of(view, node);
    return !node.forgotten && node.holds.empty() && live.strays.empty() &&
           live.health == model::NodeHealth::Ready;
}

std::string_view health_text(model::NodeHealth health) {
    switch (health) {
        case model::NodeHealth::Unknown: return "unknown";
        case model::NodeHealth::Ready: return "ready";
        case model::NodeHealth::Suspect: return "suspect";
        case model::NodeHealth::Lost: return "lost";
    }
    return "unknown";
}

std::string_view node_state(const core::View& view, const core::Node& node) {
    const core::NodeLive& live = live_of(view, node);
    if (live.health != model::NodeHealth::Ready) return health_text(live.health);
    if (node.holds.empty()) return live.strays.empty() ? "ready" : "held";
    const bool by_person = std::ranges::any_of(
        node.holds, [](const model::NodeHold& hold) { return person(hold.owner); });
    if (!by_person) return "held";
    return use_of(view, node).jobs.empty() ? "drained" : "draining";
}

std::string gpu_kinds(const model::NodeFacts& facts) {
    std::map<std::string, int> kinds;
    for (const model::Device& device : facts.devices) ++kinds[device.kind];
    std::string out;
    for (const auto& [kind, count] : kinds) {
        out += (out.empty() ? "" : ",") + kind + ":" + std::to_string(count);
    }
    return out;
}

DeviceSums count_devices(const core::View& view, const core::Node& node) {
    const core::NodeUse& use = use_of(view, node);
    DeviceSums sums;
    for (const model::Device& device : node.facts->devices) {
        ++sums.total;
        if (use.uses(device.id))
            ++sums.used;
        else if (!device.healthy)
            ++sums.unusable;
    }
    return sums;
}

std::vector<std::string> node_fields() {
    std::vector<std::string> out;
    for (const Field& field : kFields) out.emplace_back(field.name);
    return out;
}

Result<std::vector<std::string>> parse_node_fields(std::string_view text, bool whole) {
    std::vector<std::string> known = node_fields();
    if (trim(text).empty()) {
        if (!whole) known.pop_back();
        return known;
    }
    std::vector<std::string> out;
    for (const std::string_view part : split(text, ',')) {
        const std::string name(trim(part));
        if (std::ranges::find(known, name) == known.end()) {
            const std::string near = nearest(name, known);
            return numbered(errors::kBadParameter,
                            "fields: a node has no field \"" + name.substr(0, 64) + "\"" +
                                (near.empty() ? "" : "; did you mean " + near + "?"),
                            {}, "the fields are " + join(known, ", "));
        }
        out.push_back(name);
    }
    return out;
}

void write_node(JsonWriter& json, const core::View& view, const core::Node& node,
                const std::vector<std::string>& fields) {
    json.begin_object();
    for (const std::string& name : fields) {
        const auto* field = std::ranges::find(kFields, name, &Field::name);
        json.key(name);
        field->write(json, view, node);
    }
    json.end_object();
}

void write_device(JsonWriter& json, const core::View& view, const core::Node& node,
                  const model::Device& device, bool with_node) {
    const core::NodeUse& use = use_of(view, node);
    const auto shares = use.shares_of(device.id);
    const bool used = !shares.empty();
    const JobId owner = used ? shares.front().job : JobId{};
    json.begin_object().field("id", device.id);
    if (with_node) json.field("node", node.facts->name);
    json.field("kind", device.kind).field("class", device.device_class);
    json.field("vendor", device.vendor).field("memory_bytes", device.memory.value).key("numa");
    if (device.numa < 0)
        json.null();
    else
        json.value(device.numa);
    json.field("link_group", device.link_group).field("healthy", device.healthy);
    const bool free = device.healthy && usable(view, node);
    json.field("state", used ? "used" : free ? "free" : "unusable").key("job");
    const core::Job* job = used ? view.jobs.find(owner.value) : nullptr;
    if (used)
        json.value(job_name(view, owner));
    else
        json.null();
    json.key("user");
    if (job != nullptr)
        json.value(user_name(view, job->user));
    else
        json.null();
    json.end_object();
}

}  // namespace muster::rest
