// `musterd up` (and `muster up`): a controller and an agent on this machine, no configuration, no
// root needed.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <CLI/CLI.hpp>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identity.h"
#include "controller/controller.h"
#include "daemon.h"
#include "log.h"
#include "verbs.h"

namespace muster::apps {
namespace {

std::string default_folder() {
    if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data == '/')
        return std::string(data) + "/muster";
    const char* home = std::getenv("HOME");
    return (home != nullptr && *home == '/' ? std::string(home) : "/tmp") + "/.local/share/muster";
}

/// The agent as a process of its own, so that it can be killed and come back alone.
class AgentProcess {
public:
    AgentProcess(std::string folder, std::string name)
        : folder_(std::move(folder)), name_(std::move(name)) {
        keeper_ = std::thread([this] { keep(); });
    }
    ~AgentProcess() {
        stopping_ = true;
        if (const pid_t pid = pid_; pid > 0) ::kill(pid, SIGTERM);
        keeper_.join();
    }

private:
    void keep() {
        while (!stopping_) {
            pid_ = ::fork();
            if (pid_ == 0) run();
            int status = 0;
            ::waitpid(pid_, &status, 0);
            pid_ = -1;
            if (stopping_) return;
            log_error("the agent ended (status " + std::to_string(status) +
                      "); starting it again; tasks run on");
            std::this_thread::sleep_for(std::chrono::seconds(1));
        }
    }
    [[noreturn]] void run() {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, nullptr);
        const std::string program = program_folder() + "/musterd", state = folder_ + "/agent",
                          file = folder_ + "/agent.yaml";
        std::vector<const char*> words = {program.c_str(), "agent",  "--local",    "--state-dir",
                                          state.c_str(),   "--name", name_.c_str()};
        if (::access(file.c_str(), R_OK) == 0)
            words.insert(words.end(), {"--config", file.c_str()});
        words.push_back(nullptr);
        ::execv(program.c_str(), const_cast<char* const*>(words.data()));
        std::perror(program.c_str());
        ::_exit(127);
    }

    const std::string folder_, name_;
    std::atomic<bool> stopping_ = false;
    std::atomic<pid_t> pid_ = -1;
    std::thread keeper_;
};

}  // namespace

int up_verb(int argc, char** argv) {
    CLI::App app("muster up: a controller and an agent on this machine, in the foreground");
    std::string folder = default_folder();
    app.add_option("--state-dir", folder, "Where everything lives; an agent.yaml in it is read")
        ->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    block_signals();
    raise_open_files();
    controller::Config config;
    config.state_dir = folder + "/controller";
    config.socket = folder + "/api.sock";
    config.listen.clear();
    config.agents = "127.0.0.1:0";
    config.advertise = "127.0.0.1";
    auto started = controller::Controller::start(config, controller_hooks());
    if (!started) return report(started.error());
    controller::Controller& running = **started;

    agent::Identity identity;
    identity.name = agent::host_name();
    identity.controller = "127.0.0.1:" + std::to_string(running.agent_port());
    auto tls = running.admit_local_node(identity.name);
    if (!tls) return report(tls.error());
    identity.tls = *std::move(tls);
    if (const Status saved = agent::save_identity(folder + "/agent", identity); !saved)
        return report(saved.error());
    AgentProcess agent(folder, identity.name);
    for (int i = 0; i < 500 && !running.node_ready(identity.name); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::printf(
        "muster is up: node %s, API at %s\n"
        "  try    muster run --follow -- echo hello    (in another terminal)\n"
        "  stop   Ctrl-C; tasks run on, and the next `muster up` takes them over\n",
        identity.name.c_str(), config.socket.c_str());
    std::fflush(stdout);
    notify_ready();
    wait_for_stop({});
    return 0;
}

}  // namespace muster::apps
