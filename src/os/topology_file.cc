// MUSTER_TOPOLOGY_FILE, as docs/agent.md describes it.
#include "base/json_writer.h"
#include "os/environment.h"

namespace muster::os {
namespace {

void put_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
    json.key(key).begin_array();
    for (const std::string& text : texts) json.value(text);
    json.end_array();
}

void put_member(JsonWriter& json, const protocol::GangMember& member, std::int64_t rank,
                std::int64_t slice) {
    json.begin_object().field("rank", rank);
    json.field("name", member.name).field("address", member.address);
    json.field("role", static_cast<std::int64_t>(member.role));
    json.field("slots", static_cast<std::int64_t>(member.slots));
    put_texts(json, "path", member.path);
    if (slice > 0) json.field("slice", rank / slice);
    json.end_object();
}

void put_device(JsonWriter& json, const model::Device& device) {
    json.begin_object().field("id", device.id).field("kind", device.kind);
    json.field("class", device.device_class).field("numa", device.numa);
    json.field("link_group", device.link_group);
    put_texts(json, "nics", device.nics);
    json.end_object();
}

}  // namespace

std::string topology_json(const EnvironmentAsk& ask) {
    const std::int64_t slice = ask.spec.topology.slice;
    JsonWriter json;
    json.begin_object()
        .field("version", 1)
        .field("node_rank", static_cast<std::int64_t>(ask.order.key.rank));
    put_texts(json, "levels", ask.order.levels);
    if (slice > 0) json.field("slice_size", slice);
    json.key("nodes").begin_array();
    std::int64_t rank = 0;
    if (ask.order.gang)
        for (const protocol::GangMember& member : *ask.order.gang)
            put_member(json, member, rank++, slice);
    json.end_array().key("devices").begin_array();
    for (const model::Device& device : ask.devices) put_device(json, device);
    json.end_array();
    if (!ask.cpus.empty()) json.field("cpus", ask.cpus);
    json.end_object();
    return std::move(json).text() + "\n";
}

}  // namespace muster::os
