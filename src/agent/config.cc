#include "agent/config.h"

#include <algorithm>
#include <set>

#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "base/units.h"
#include "net/listener.h"
#include "os/cpu_list.h"
#include "spec/config_reader.h"

namespace muster::agent {
namespace {

constexpr std::size_t kDevicesMax = 1024;
constexpr std::int64_t kPidsMax = 4'194'304;  // The kernel's own bound.

using spec::ConfigField;
using spec::ConfigReader;
using spec::names_of;

std::string address_of(ConfigReader& in, const YAML::Node& node, const std::string& field) {
    std::string value = in.text(node, field);
    if (!value.empty() && !net::split_host_port(value))
        in.complain(node, field + ": '" + value + "' is not HOST:PORT");
    return value;
}
std::string path_of(ConfigReader& in, const YAML::Node& node, const std::string& field) {
    std::string value = in.text(node, field);
    if (!value.empty() && value.front() != '/')
        in.complain(node, field + ": '" + value + "' is not an absolute path");
    return value;
}

auto bytes_up_to(std::int64_t max) {
    return [max](std::string_view value) { return parse_bytes(value, max); };
}

void read_device(ConfigReader& in, const YAML::Node& map, std::size_t number, Config& config) {
    const std::string prefix = "devices[" + std::to_string(number) + "].";
    model::Device device;
    in.entries(map, names_of(device_fields()), prefix,
               [&](const std::string& key, const YAML::Node& node) {
                   const std::string field = prefix + key;
                   std::int64_t numa = -1;
                   if (key == "id") device.id = in.text(node, field);
                   if (key == "kind") device.kind = lower(in.text(node, field));
                   if (key == "class") device.device_class = lower(in.text(node, field));
                   if (key == "vendor") device.vendor = lower(in.text(node, field));
                   if (key == "link_group") device.link_group = in.text(node, field);
                   if (key == "profile") device.profile = lower(in.text(node, field));
                   if (key == "parent") device.parent = in.text(node, field);
                   if (key == "share_enforced") device.share_enforced = in.flag(node, field);
                   if (key == "nics") device.nics = in.texts(node, field);
                   if (key == "memory")
                       in.quantity(node, field, device.memory, bytes_up_to(kBytesMax));
                   if (key == "numa") {
                       in.integer(node, field, 0, 1023, numa);
                       device.numa = static_cast<int>(numa);
                   }
                   if (key == "files") {
                       device.files = in.texts(node, field);
                       for (const std::string& file : device.files)
                           if (!file.starts_with("/dev/"))
                               in.complain(node, field + ": '" + file + "' is not below /dev");
                   }
               });
    if (!map.IsMap()) return;
    if (device.id.empty())
        in.complain(map, prefix + "id: is missing; it must survive a reboot (a UUID, a serial)");
    if (device.profile.empty() != device.parent.empty())
        in.complain(map, prefix + (device.parent.empty()
                                       ? "parent: is missing; which device is this partition of?"
                                       : "profile: is missing; a partition has the id of one"));
    if (!device.profile.empty() && device.share_enforced)
        in.complain(map, prefix + "share_enforced: a partition is given whole; take it away");
    if (device.device_class.empty()) device.device_class = "gpu";
    if (device.kind.empty()) device.kind = device.device_class;
    for (const model::Device& other : config.devices)
        if (other.id == device.id && !device.id.empty())
            in.complain(map, prefix + "id: '" + device.id + "' is another device's already");
    config.devices.push_back(std::move(device));
}

/// A device that is given whole cannot be given in parts, too (F28).
void check_partitions(ConfigReader& in, const YAML::Node& list, const Config& config) {
    for (const model::Device& each : config.devices)
        for (const model::Device& other : config.devices)
            if (!each.parent.empty() && each.parent == other.id)
                in.complain(list,
                            "devices: '" + each.id + "' is a partition of '" + other.id +
                                "', which is listed as a device itself; list one or the other");
}

/// {0: "0-15", 1: "16-31"}.
void read_numa(ConfigReader& in, const YAML::Node& map, Config& config) {
    std::set<int> taken;
    in.entries(map, {}, "numa.", [&](const std::string& key, const YAML::Node& node) {
        const std::string field = "numa." + key;
        const auto id = parse_integer(key, 0, 1023);
        if (!id) return in.complain(node, field + ": a NUMA node's number must be in 0..1023");
        const auto cpus = os::parse_cpu_list(in.text(node, field));
        if (!cpus) return in.complain(node, field + ": " + cpus.error().message);
        if (cpus->empty()) return in.complain(node, field + ": names no CPU");
        for (const int cpu : *cpus)
            if (!taken.insert(cpu).second)
                return in.complain(
                    node, field + ": CPU " + std::to_string(cpu) + " is another node's already");
        config.numa.push_back({static_cast<int>(*id), os::format_cpu_list(*cpus)});
    });
    std::sort(config.numa.begin(), config.numa.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
}

void read_lists(ConfigReader& in, Config& config, const std::string& key, const YAML::Node& node) {
    if (key == "labels") {
        in.entries(node, {}, "labels.", [&](const std::string& name, const YAML::Node& value) {
            config.labels.emplace_back(name, in.text(value, "labels." + name));
        });
        std::sort(config.labels.begin(), config.labels.end());
    } else if (key == "devices") {
        if (!node.IsSequence()) return in.complain(node, "devices: must be a list of maps");
        if (node.size() > kDevicesMax)
            return in.complain(node, "devices: " + std::to_string(node.size()) +
                                         " are too many; at most " + std::to_string(kDevicesMax));
        for (std::size_t i = 0; i < node.size(); ++i) read_device(in, node[i], i, config);
        std::sort(config.devices.begin(), config.devices.end(),
                  [](const auto& a, const auto& b) { return a.id < b.id; });
        check_partitions(in, node, config);
    } else if (key == "numa") {
        read_numa(in, node, config);
    } else if (key == "common_files") {
        config.common_files = in.texts(node, key);
    } else if (key == "insecure_registries") {
        config.insecure_registries = in.texts(node, key);
    }
}

void read_field(ConfigReader& in, Config& config, const std::string& key, const YAML::Node& node) {
    if (key == "name") {
        config.name = in.text(node, key);
        if (config.name.size() > 60) in.complain(node, "name: longer than 60 characters");
        for (const char c : config.name)
            if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' &&
                c != '.' && c != '_') {
                in.complain(node, "name: only letters, digits, '-', '.' and '_' may be in it");
                break;
            }
    }
    if (key == "state_dir") config.state_dir = path_of(in, node, key);
    if (key == "controller") config.controller = address_of(in, node, key);
    if (key == "address") config.address = in.text(node, key);
    if (key == "peers") config.peers = address_of(in, node, key);
    if (key == "supervisor") config.supervisor = path_of(in, node, key);
    if (key == "cpus") in.quantity(node, key, config.cpus, parse_cpus);
    if (key == "memory") in.quantity(node, key, config.memory, bytes_up_to(kBytesMax));
    if (key == "log_max") in.quantity(node, key, config.log_max, bytes_up_to(kDiskBytesMax));
    if (key == "kept_logs_max")
        in.quantity(node, key, config.kept_logs_max, bytes_up_to(kDiskBytesMax));
    if (key == "kept_logs_for") in.quantity(node, key, config.kept_logs_for, parse_duration);
    if (key == "pull_timeout") in.quantity(node, key, config.pull_timeout, parse_duration);
    if (key == "pids_max") in.integer(node, key, 16, kPidsMax, config.pids_max);
    read_lists(in, config, key, node);
}

}  // namespace

const spec::ConfigFields& config_fields() {
    static const spec::ConfigFields kFields = {
        {"name", "text",
         "The node's name. Default: this host's name. Bound to the certificate at the first join.",
         false},
        {"state_dir", "folder",
         "Where tasks, logs and the certificate live. Default /var/lib/muster/agent; at most 65 "
         "bytes long.",
         false},
        {"controller", "host:port",
         "Where the controller takes agents. Default: as the join token said.", false},
        {"address", "address",
         "The address that other nodes reach this one at. Default: that of the way to the "
         "controller.",
         false},
        {"peers", "host:port",
         "Where other agents ask whether this one has a controller. Default 0.0.0.0:7072; empty: "
         "nowhere.",
         false},
        {"labels", "map", "Words that jobs' constraints can name. `leaf` names the switch.", true},
        {"devices", "devices",
         "Accelerators and other devices, until they are found by themselves.", true},
        {"numa", "map", "CPUs of each NUMA node: {0: 0-15, 1: 16-31}. Default: as the kernel says.",
         true},
        {"common_files", "list",
         "Device nodes that every task with a device may open (/dev/nvidiactl, "
         "/dev/infiniband/uverbs0, …).",
         false},
        {"cpus", "cpus", "CPUs offered to jobs. Default: all that the agent may use.", true},
        {"memory", "size", "Memory offered to jobs. Default: all.", true},
        {"supervisor", "path", "The program muster-task. Default: the one beside musterd.", false},
        {"log_max", "size", "Of one task's log; the oldest goes first. Default 100MiB.", false},
        {"kept_logs_max", "size", "Of the logs of ended tasks, all together. Default 4GiB.", false},
        {"kept_logs_for", "duration", "How long logs of ended tasks are kept. Default 7d.", false},
        {"pids_max", "number", "Processes and threads of one task. Default 32768.", false},
        {"pull_timeout", "duration", "How long an image may take to come. Default 1h.", false},
        {"insecure_registries", "list", "host:port of registries that are spoken to without TLS.",
         false},
    };
    return kFields;
}

const spec::ConfigFields& device_fields() {
    static const spec::ConfigFields kFields = {
        {"id", "text", "Stable: a UUID or a serial, never an index. Required.", true},
        {"kind", "text", "The model, as jobs ask for it: h100. Default: the class.", true},
        {"class", "text", "gpu, npu, fpga or a site's own. Default gpu.", true},
        {"vendor", "text", "nvidia, amd, huawei, …: decides which variables show it.", true},
        {"memory", "size", "Of the device.", true},
        {"numa", "number", "NUMA node that it hangs on.", true},
        {"link_group", "text", "Devices with fast links among each other share one.", true},
        {"profile", "text",
         "A partition's profile id, as jobs ask for it: 1g.10gb. Default: a whole device.", true},
        {"parent", "text", "A partition's: the id of the device that it is part of.", true},
        {"share_enforced", "true or false",
         "Something (MPS or like) keeps the parts of the device apart that jobs get. Default "
         "false.",
         true},
        {"nics", "list", "Network devices near it, nearest first: mlx5_0.", true},
        {"files", "list", "Device nodes that the owner of the device may open, and nobody else.",
         true},
    };
    return kFields;
}

ConfigResult parse_config(std::string_view yaml, const std::string& file) {
    ConfigResult out;
    ConfigReader in(out.problems, file);
    in.document(yaml, config_fields(), [&](const std::string& key, const YAML::Node& node) {
        read_field(in, out.config, key, node);
    });
    return out;
}

}  // namespace muster::agent
