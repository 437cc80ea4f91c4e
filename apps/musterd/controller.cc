// `musterd controller`: the brain.
#include "controller/controller.h"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "controller/authority.h"
#include "daemon.h"
#include "log.h"
#include "verbs.h"

namespace muster::apps {
namespace {

constexpr const char* kDefaultFile = "/etc/muster/controller.yaml";

}  // namespace

controller::ControllerHooks controller_hooks() {
    controller::ControllerHooks hooks;
    hooks.log = log_line;
    hooks.version = MUSTER_VERSION;
    hooks.fatal = [](const Error& error) {
        log_error("fatal: " + error.message + ": " + error.cause +
                  "; the process ends and recovers at its next start");
        ::_exit(70);
    };
    return hooks;
}

int controller_verb(int argc, char** argv) {
    CLI::App app("musterd controller: the brain of the cluster");
    std::string file = kDefaultFile, state_dir, socket, listen, agents, advertise;
    bool schema = false, check = false;
    auto* file_option =
        app.add_option("--config", file, "Configuration file")->capture_default_str();
    app.add_flag("--check", check, "Only check the configuration");
    app.add_flag("--schema", schema, "Print the JSON schema of the file");
    auto* state_option =
        app.add_option("--state-dir", state_dir, "Where state, history and CA live");
    auto* socket_option = app.add_option("--socket", socket, "Unix socket of the REST API");
    auto* listen_option =
        app.add_option("--listen", listen, "REST API over TLS, host:port; '' turns it off");
    auto* agents_option = app.add_option("--agents", agents, "Where agents dial in, host:port");
    auto* advertise_option =
        app.add_option("--advertise", advertise, "Name or address that join tokens carry");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (schema) {
        std::puts(spec::config_schema("controller.yaml", controller::config_fields()).c_str());
        return 0;
    }
    controller::Config config;
    if (!read_config(file, !file_option->empty(), controller::parse_config, config)) return 6;
    if (!state_option->empty()) config.state_dir = state_dir;
    if (!socket_option->empty()) config.socket = socket;
    if (!listen_option->empty()) config.listen = listen;
    if (!agents_option->empty()) config.agents = agents;
    if (!advertise_option->empty()) config.advertise = advertise;
    if (check) {
        std::printf("%s: good\n", file.c_str());
        return 0;
    }
    block_signals();
    raise_open_files();
    auto started = controller::Controller::start(config, controller_hooks());
    if (!started) return report(started.error());
    auto& running = **started;
    log_line("controller " MUSTER_VERSION " serves: socket " +
             (config.socket.empty() ? "off" : config.socket) + ", REST port " +
             std::to_string(running.rest_port()) + ", agents' port " +
             std::to_string(running.agent_port()) + ", state in " + config.state_dir);
    notify_ready();
    wait_for_stop([&] {
        controller::Config fresh;
        if (!read_config(file, !file_option->empty(), controller::parse_config, fresh))
            return log_error("reload refused: the file has errors");
        running.reload(fresh);
        log_line("configuration reloaded");
    });
    log_line("stopping");
    return 0;
}

}  // namespace muster::apps
