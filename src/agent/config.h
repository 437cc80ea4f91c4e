// agent.yaml: every field optional, every error at once. Defaults need no file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/quantity.h"
#include "model/device.h"
#include "model/node.h"
#include "spec/config_field.h"

namespace muster::agent {

struct Config {
    std::string name;  // "" = this host's name.
    std::string state_dir = "/var/lib/muster/agent";
    std::string controller;  // "host:port" of the agent link; "" = as the join token said.
    std::string
        address;  // That other nodes reach this one at; "" = that of the way to the controller.
    std::string peers = "0.0.0.0:7072";                       // Where peers ask; "" = nowhere.
    std::vector<std::pair<std::string, std::string>> labels;  // Sorted by key.
    std::vector<model::Device> devices;                       // Sorted by id.
    std::vector<model::NumaNode> numa;  // In id order; empty: as the kernel says.
    std::vector<std::string> common_files;
    MilliCpu cpus;           // Offered; 0 = all.
    Bytes memory;            // Offered; 0 = all.
    std::string supervisor;  // "" = muster-task beside this program.
    Bytes log_max{100 << 20};
    Bytes kept_logs_max{std::int64_t{4} << 30};
    Duration kept_logs_for{std::int64_t{7} * 24 * 3600 * 1000};
    std::int64_t pids_max = 32'768;
    Duration pull_timeout{std::int64_t{3600} * 1000};
    std::vector<std::string> insecure_registries;
    friend bool operator==(const Config&, const Config&) = default;
};

/// For --check, --schema and the docs.
const spec::ConfigFields& config_fields();
/// Of one entry of `devices`.
const spec::ConfigFields& device_fields();

/// All problems at once, each "file:line:col: field: what is wrong".
struct ConfigResult {
    Config config;
    std::vector<std::string> problems;
};
ConfigResult parse_config(std::string_view yaml, const std::string& file);

}  // namespace muster::agent
