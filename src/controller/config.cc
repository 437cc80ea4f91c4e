#include "controller/config.h"

#include <functional>
#include <set>

#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "base/units.h"

namespace muster::controller {
namespace {

class Reading {
public:
    Reading(ConfigResult& out, std::string file) : out_(out), file_(std::move(file)) {}

    void complain(const YAML::Node& node, const std::string& what) {
        const auto mark = node.Mark();
        out_.problems.push_back(file_ + ":" + std::to_string(mark.line + 1) + ":" +
                                std::to_string(mark.column + 1) + ": " + what);
    }
    std::string text(const YAML::Node& node, const std::string& field) {
        if (node.IsScalar()) return node.Scalar();
        if (!node.IsNull()) complain(node, field + ": must be text");
        return {};
    }
    Duration duration(const YAML::Node& node, const std::string& field, Duration least) {
        const auto parsed = parse_duration(text(node, field));
        if (!parsed)
            complain(node, field + ": " + parsed.error().message);
        else if (*parsed < least)
            complain(node, field + ": " + node.Scalar() + " is below the least, " +
                               format_duration(least));
        else
            return *parsed;
        return least;
    }
    std::int64_t integer(const YAML::Node& node, const std::string& field, std::int64_t low,
                         std::int64_t high) {
        const auto parsed = parse_integer(text(node, field), low, high);
        if (!parsed) complain(node, field + ": " + parsed.error().message);
        return parsed ? *parsed : low;
    }
    bool flag(const YAML::Node& node, const std::string& field) {
        const std::string word = lower(text(node, field));
        if (word == "true" || word == "yes" || word == "on") return true;
        if (word != "false" && word != "no" && word != "off")
            complain(node, field + ": " + word + " is not true or false");
        return false;
    }
    /// Calls take(key, node) for each entry of a map; complains of keys that are not in `known`.
    void entries(const YAML::Node& map, const std::vector<std::string>& known,
                 const std::string& prefix,
                 const std::function<void(const std::string&, const YAML::Node&)>& take) {
        if (!map.IsMap())
            return complain(map, (prefix.empty() ? "the file" : prefix) + ": must be a map");
        std::set<std::string> seen;
        for (const auto& entry : map) {
            const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
            if (std::find(known.begin(), known.end(), key) == known.end()) {
                const std::string near = nearest(key, known);
                complain(entry.first, prefix + key + ": unknown key" +
                                          (near.empty() ? "" : "; did you mean " + near + "?"));
            } else if (!seen.insert(key).second) {
                complain(entry.first, prefix + key + ": given twice");
            } else {
                take(key, entry.second);
            }
        }
    }

private:
    ConfigResult& out_;
    std::string file_;
};

/// As the controller's own problems look: "file:line:col: what".
std::string config_line(const spec::Problem& problem) {
    std::string line = problem.file;
    if (problem.line > 0)
        line += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
    return line + ": " + problem.message;
}

void read_lease(Reading& in, const YAML::Node& map, protocol::LeaseRules& rules) {
    in.entries(map, {"heartbeat", "suspect", "lost", "fence"}, "lease.",
               [&](const std::string& key, const YAML::Node& node) {
                   Duration& field = key == "heartbeat" ? rules.heartbeat
                                     : key == "suspect" ? rules.suspect
                                     : key == "lost"    ? rules.lost
                                                        : rules.fence;
                   field = in.duration(node, "lease." + key, {100});
               });
    if (!(rules.heartbeat < rules.suspect && rules.suspect < rules.lost &&
          rules.lost < rules.fence)) {
        in.complain(map, "lease: heartbeat < suspect < lost < fence must hold; they are " +
                             format_duration(rules.heartbeat) + ", " +
                             format_duration(rules.suspect) + ", " + format_duration(rules.lost) +
                             ", " + format_duration(rules.fence));
    }
}

void read_field(Reading& in, Config& config, const std::string& key, const YAML::Node& node) {
    if (key == "state_dir") config.state_dir = in.text(node, key);
    if (key == "socket") config.socket = in.text(node, key);
    if (key == "listen") config.listen = in.text(node, key);
    if (key == "agents") config.agents = in.text(node, key);
    if (key == "advertise") config.advertise = in.text(node, key);
    if (key == "bootstrap") config.settings.bootstrap = in.flag(node, key);
    if (key == "events_kept") config.events_kept = in.integer(node, key, 100, 10'000'000);
    if (key == "jobs_max") config.settings.jobs_max = in.integer(node, key, 1, 100'000'000);
    if (key == "lease") read_lease(in, node, config.settings.lease);
    if (key == "watermark") {
        const auto bytes = parse_bytes(in.text(node, key), kDiskBytesMax);
        if (bytes)
            config.watermark = *bytes;
        else
            in.complain(node, key + ": " + bytes.error().message);
    }
    if (key == "hosts") {
        if (!node.IsSequence())
            return in.complain(node, key + ": must be a list of names and addresses");
        for (const auto& host : node) config.hosts.push_back(in.text(host, key));
    }
}

}  // namespace

const std::vector<ConfigField>& config_fields() {
    static const std::vector<ConfigField> kFields = {
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
    Reading in(out, file);
    try {
        const YAML::Node root = YAML::Load(std::string(yaml));
        if (root.IsNull()) return out;
        std::vector<std::string> known;
        for (const ConfigField& field : config_fields()) known.push_back(field.name);
        in.entries(root, known, "", [&](const std::string& key, const YAML::Node& node) {
            read_field(in, out.config, key, node);
        });
        out.config.cluster = spec::read_cluster_parts(yaml, file);
        for (const spec::Problem& problem : out.config.cluster.problems)
            out.problems.push_back(config_line(problem));
    } catch (const YAML::Exception& error) {
        out.problems.push_back(file + ":" + std::to_string(error.mark.line + 1) + ":" +
                               std::to_string(error.mark.column + 1) + ": " + error.msg);
    }
    return out;
}

}  // namespace muster::controller
