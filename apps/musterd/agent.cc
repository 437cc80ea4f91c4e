// `musterd agent`: the hands on a node.
#include "agent/agent.h"

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "controller/authority.h"
#include "daemon.h"
#include "log.h"
#include "verbs.h"

namespace muster::apps {
namespace {

constexpr const char* kDefaultFile = "/etc/muster/agent.yaml";

/// The identity of an earlier join; a token replaces it.
Result<agent::Identity> identity_of(const agent::Config& config, const std::string& token) {
    const std::string name = config.name.empty() ? agent::host_name() : config.name;
    if (!token.empty()) return agent::join(config.state_dir, name, token);
    auto known = agent::load_identity(config.state_dir);
    if (known || known.error().code != Code::NotFound) return known;
    return Error{Code::NotFound, "this node has not joined a cluster yet",
                 "no certificate in " + config.state_dir,
                 "on the controller: muster token create --join; here: musterd agent --join TOKEN"};
}

}  // namespace

std::string program_folder() {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
}

int agent_verb(int argc, char** argv) {
    CLI::App app("musterd agent: runs tasks on this node");
    std::string file = kDefaultFile, token, state_dir, name;
    bool schema = false, check = false, local = false;
    auto* file_option =
        app.add_option("--config", file, "Configuration file")->capture_default_str();
    app.add_flag("--check", check, "Only check the configuration");
    app.add_flag("--schema", schema, "Print the JSON schema of the file");
    app.add_option("--join", token,
                   "Join token, from muster token create --join on the controller");
    app.add_option("--state-dir", state_dir, "Where tasks, logs, images and the certificate live");
    app.add_flag("--local", local,
                 "Controller and all other nodes are on this machine; no port is opened");
    app.add_option("--name", name, "The node's name; default: this host's");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (schema) {
        std::puts(spec::config_schema("agent.yaml", agent::config_fields(), agent::device_fields())
                      .c_str());
        return 0;
    }
    agent::Config config;
    if (!read_config(file, !file_option->empty(), agent::parse_config, config)) return 6;
    if (!state_dir.empty()) config.state_dir = state_dir;
    if (!name.empty()) config.name = name;
    if (local) config.peers.clear(), config.address = "127.0.0.1";
    if (check) {
        std::printf("%s: good\n", file.c_str());
        return 0;
    }
    block_signals();
    raise_open_files();
    const auto identity = identity_of(config, token);
    if (!identity) return report(identity.error());
    auto started =
        agent::Agent::start(config, *identity, {log_line, MUSTER_VERSION, program_folder()});
    if (!started) return report(started.error());
    log_line("agent " MUSTER_VERSION " of node " + (*started)->name() + " runs; controller " +
             identity->controller);
    notify_ready();
    wait_for_stop([&] {
        agent::Config fresh;
        if (!read_config(file, !file_option->empty(), agent::parse_config, fresh))
            return log_error("reload refused: the file has errors");
        (*started)->reload(fresh);
        log_line("configuration reloaded");
    });
    log_line("stopping; tasks run on");
    return 0;
}

}  // namespace muster::apps
