// controller.yaml: every field optional, every error at once. Defaults need no file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/state.h"
#include "spec/cluster_file.h"
#include "spec/config_field.h"

namespace muster::controller {

struct Config {
    std::string state_dir = "/var/lib/muster/controller";
    std::string socket = "/run/muster/api.sock";  // "" = none.
    std::string listen = "0.0.0.0:7070";          // REST over TLS; "" = none.
    std::string agents = "0.0.0.0:7071";          // Where agents dial in; "" = none.
    std::string advertise;           // host that agents and clients use; "" = this host's name.
    std::vector<std::string> hosts;  // Further names and addresses on the certificate.
    core::Settings settings;
    std::int64_t events_kept = 100'000;
    Bytes watermark{64 << 20};
    spec::ClusterParts cluster;  // Queues, scheduling rules and topology, as far as it has them.
};

/// For --check, --schema and the docs.
const spec::ConfigFields& config_fields();

/// Reads the topology file that it names, too. All problems at once, each "file:line:col: field:
/// what is wrong".
struct ConfigResult {
    Config config;
    std::vector<std::string> problems;
};
ConfigResult parse_config(std::string_view yaml, const std::string& file);

}  // namespace muster::controller
