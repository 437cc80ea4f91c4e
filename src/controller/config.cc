#include "controller/config.h"

#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "base/units.h"
#include "spec/config_reader.h"

namespace muster::controller {
namespace {

using spec::ConfigReader;

/// As the controller's own problems look: "file:line:col: what".
std::string config_line(const spec::Problem& problem) {
    std::string line = problem.file;
    if (problem.line > 0)
        line += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
    return line + ": " + problem.message;
}

void read_lease(ConfigReader& in, const YAML::Node& map, protocol::LeaseRules& rules) {
    in.entries(map, {"heartbeat", "suspect", "lost", "fence"}, "lease.",
               [&](const std::string& key, const YAML::Node& node) {
                   Duration& field = key == "heartbeat" ? rules.heartbeat
                                     : key == "suspect" ? rules.suspect
                                     : key == "lost"    ? rules.lost
                                                        : rules.fence;
                   in.duration(node, "lease." + key, {100}, field);
               });
    if (!(rules.heartbeat < rules.suspect && rules.suspect < rules.lost &&
          rules.lost < rules.fence)) {
        in.complain(map, "lease: heartbeat < suspect < lost < fence must hold; they are " +
                             format_duration(rules.heartbeat) + ", " +
                             format_duration(rules.suspect) + ", " + format_duration(rules.lost) +
                             ", " + format_duration(rules.fence));
    }
}

void read_field(ConfigReader& in, Config& config, const std::string& key, const YAML::Node& node) {
    if (key == "state_dir") config.state_dir = in.text(node, key);
    if (key == "socket") config.socket = in.text(node, key);
    if (key == "listen") config.listen = in.text(node, key);
    if (key == "agents") config.agents = in.text(node, key);
    if (key == "advertise") config.advertise = in.text(node, key);
    if (key == "bootstrap") config.settings.bootstrap = in.flag(node, key);
    if (key == "events_kept") in.integer(node, key, 100, 10'000'000, config.events_kept);
    if (key == "jobs_max") in.integer(node, key, 1, 100'000'000, config.settings.jobs_max);
    if (key == "lease") read_lease(in, node, config.settings.lease);
    if (key == "watermark")
        in.quantity(node, key, config.watermark,
                    [](std::string_view value) { return parse_bytes(value, kDiskBytesMax); });
    if (key == "hosts") config.hosts = in.texts(node, key);
}

}  // namespace

const spec::ConfigFields& config_fields() {
    static const spec::ConfigFields kFields = {
        {"state_dir", "folder",
         "Where the state, the history and the CA live. Default /var/lib/muster/controller.",
         false},
        {"socket", "path",
         "Unix socket of the REST API; the peer's uid says who asks. Default /run/muster/api.sock.",
         false},
        {"listen", "host:port", "REST API over TLS. Default 0.0.0.0:7070; empty: off.", false},
        {"agents", "host:port", "Where agents dial in (mutual TLS). Default 0.0.0.0:7071.", false},
        {"advertise", "host",
         "The name or address that join tokens carry. Default: this host's name.", false},
        {"hosts", "list", "Further names and addresses on the controller's certificate.", false},
        {"lease", "map", "heartbeat (1s), suspect (5s), lost (15s), fence (30s), in rising order.",
         true},
        {"bootstrap", "true or false",
         "With no state on disk: start empty (true), or wait for agents' running work to be "
         "adopted.",
         false},
        {"events_kept", "number", "Events kept for watchers. Default 100000.", false},
        {"watermark", "size",
         "New work is refused when less than this is free on the state's disk. Default 64MiB.",
         false},
        {"queues", "tree",
         "Queues and their settings, as in a file for `muster queues apply`, or a list of names. "
         "Those that it does not name stay as they are.",
         true},
        {"scheduling", "map",
         "Rules of the whole cluster: half_life, weights, speeds, backfill and more, as `rules` in "
         "a file for `muster queues apply`.",
         true},
        {"topology", "map",
         "levels: names of node labels from the top down; or file: a topology.conf, ibnetdiscover "
         "dump, table or tree, with format (auto) and levels. Default: levels [leaf].",
         true},
        {"jobs_max", "number", "Live jobs. Default 2000000.", true},
    };
    return kFields;
}

ConfigResult parse_config(std::string_view yaml, const std::string& file) {
    ConfigResult out;
    ConfigReader in(out.problems, file);
    const auto take = [&](const std::string& key, const YAML::Node& node) {
        read_field(in, out.config, key, node);
    };
    if (!in.document(yaml, config_fields(), take)) return out;
    out.config.cluster = spec::read_cluster_parts(yaml, file);
    for (const spec::Problem& problem : out.config.cluster.problems)
        out.problems.push_back(config_line(problem));
    return out;
}

}  // namespace muster::controller
