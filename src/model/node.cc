#include "model/node.h"

#include <algorithm>

#include "base/bytes.h"

namespace muster::model {
namespace {

constexpr std::uint64_t kVersion = 2;  // 1: without partitions, NICs and NUMA nodes.

void put(Writer& out, const Device& device) {
    out.text(device.id);
    out.text(device.kind);
    out.text(device.device_class);
    out.text(device.vendor);
    out.signed_number(device.memory.value);
    out.signed_number(device.numa);
    out.text(device.link_group);
    out.number(device.files.size());
    for (const std::string& file : device.files) out.text(file);
    out.flag(device.healthy);
    out.text(device.profile);
    out.text(device.parent);
    out.flag(device.share_enforced);
    out.number(device.nics.size());
    for (const std::string& nic : device.nics) out.text(nic);
}
Device get_device(Reader& in, std::uint64_t version) {
    Device device;
    device.id = in.text();
    device.kind = in.text();
    device.device_class = in.text();
    device.vendor = in.text();
    device.memory.value = in.signed_number();
    device.numa = static_cast<int>(in.signed_number());
    device.link_group = in.text();
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) device.files.emplace_back(in.text());
    device.healthy = in.flag();
    if (version < 2) return device;
    device.profile = in.text();
    device.parent = in.text();
    device.share_enforced = in.flag();
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) device.nics.emplace_back(in.text());
    return device;
}

}  // namespace

std::string_view label(const NodeFacts& facts, std::string_view key) {
    const auto at = std::ranges::lower_bound(
        facts.labels, key, {}, [](const auto& pair) { return std::string_view(pair.first); });
    return at != facts.labels.end() && at->first == key ? std::string_view(at->second)
                                                        : std::string_view();
}

std::string encode(const NodeFacts& facts) {
    Writer out;
    out.number(kVersion);
    out.text(facts.name);
    out.number(facts.addresses.size());
    for (const std::string& address : facts.addresses) out.text(address);
    out.signed_number(facts.peer_port);
    out.text(facts.boot_id);
    out.text(facts.version);
    out.signed_number(facts.cpus.value);
    out.signed_number(facts.memory.value);
    out.signed_number(facts.disk.value);
    out.number(facts.devices.size());
    for (const Device& device : facts.devices) put(out, device);
    out.number(facts.labels.size());
    for (const auto& [key, value] : facts.labels) out.text(key), out.text(value);
    out.text(facts.runtime);
    out.flag(facts.limits_enforced);
    out.flag(facts.disk_enforced);
    out.text(facts.unenforced_why);
    out.number(facts.numa.size());
    for (const NumaNode& numa : facts.numa) out.signed_number(numa.id), out.text(numa.cpus);
    return std::move(out).bytes();
}

std::optional<NodeFacts> decode_node_facts(std::string_view bytes) {
    Reader in(bytes);
    const std::uint64_t version = in.number();
    if (version < 1 || version > kVersion) return std::nullopt;
    NodeFacts facts;
    facts.name = in.text();
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) facts.addresses.emplace_back(in.text());
    facts.peer_port = static_cast<int>(in.signed_number());
    facts.boot_id = in.text();
    facts.version = in.text();
    facts.cpus.value = in.signed_number();
    facts.memory.value = in.signed_number();
    facts.disk.value = in.signed_number();
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n)
        facts.devices.push_back(get_device(in, version));
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
        std::string key(in.text());
        facts.labels.emplace_back(std::move(key), in.text());
    }
    facts.runtime = in.text();
    facts.limits_enforced = in.flag();
    facts.disk_enforced = in.flag();
    facts.unenforced_why = in.text();
    for (std::size_t n = version < 2 ? 0 : in.count(); n > 0 && in.ok(); --n) {
        NumaNode& numa = facts.numa.emplace_back();
        numa.id = static_cast<int>(in.signed_number());
        numa.cpus = in.text();
    }
    if (!in.ok() || !in.at_end()) return std::nullopt;
    return facts;
}

}  // namespace muster::model
