// The net room alone: requests per second and CPU of the server per request, over the Unix socket
// and TLS; idle event streams and their memory; messages over the agent link. One JSON line a
// figure.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/agent_link.h"
#include "net/http.h"
#include "net/http_client.h"
#include "net/pki.h"

namespace {

using namespace muster;       // NOLINT: a program.
using namespace muster::net;  // NOLINT

void print(const std::string& what, double value, const char* unit, bool higher) {
    std::printf(R"({"bench":"net","what":"%s","value":%.2f,"unit":"%s","better":"%s"})"
                "\n",
                what.c_str(), value, unit, higher ? "higher" : "lower");
    std::fflush(stdout);
}

double wall_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
double cpu_s_of(pid_t pid) {
    clockid_t clock = 0;
    timespec t{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}
double rss_mb_of(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
    }
    return 0;
}

struct Keys {
    KeyedCertificate ca;
    KeyedCertificate controller;
    KeyedCertificate agent;
};
Keys make_keys() {
    const Time now{std::int64_t{std::time(nullptr)} * 1000};
    const Duration day{24 * 3600 * 1000};
    Keys keys;
    keys.ca = *make_ca("bench", now - day, now + day);
    keys.controller =
        *issue_certificate(keys.ca, controller_certificate_ask({"127.0.0.1"}, now, day));
    keys.agent = *issue_certificate(keys.ca, agent_certificate_ask("node1", now, day));
    return keys;
}

/// Serves in a process of its own, so that its CPU and memory are its own; ends with `stop`.
struct ServerProcess {
    pid_t pid = 0;
    std::uint16_t port = 0;

    ServerProcess(const Keys& keys, const std::string& path) {
        int pipe_fds[2];
        if (::pipe(pipe_fds) != 0) std::abort();
        pid = ::fork();
        if (pid == 0) {
            HttpServerOptions options;
            options.unix_path = path;
            options.tcp_address = "127.0.0.1:0";
            options.tls = ServerTls{keys.controller.certificate_pem, keys.controller.key_pem};
            const std::string body(512, 'x');
            auto server = HttpServer::start(
                options, [&](const HttpRequest& request, const Responder& responder) {
                    if (request.path == "/stream") return (void)responder.stream({});
                    responder.answer({.body = body});
                });
            if (!server) std::abort();
            const std::uint16_t mine = (*server)->port();
            if (::write(pipe_fds[1], &mine, sizeof mine) != sizeof mine) std::abort();
            ::pause();
            std::_Exit(0);
        }
        if (::read(pipe_fds[0], &port, sizeof port) != sizeof port) std::abort();
        ::close(pipe_fds[0]);
        ::close(pipe_fds[1]);
    }
    ~ServerProcess() {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
};

void requests(const ServerProcess& server, const Endpoint& endpoint, const std::string& name,
              int connections, int total) {
    std::vector<std::thread> clients;
    std::atomic<int> failed{0};
    const double cpu = cpu_s_of(server.pid);
    const double begin = wall_s();
    for (int c = 0; c < connections; ++c) {
        clients.emplace_back([&] {
            const auto client = HttpClient::make({.endpoint = endpoint});
            for (int i = 0; i < total / connections; ++i) {
                if (!client->send({.target = "/v1/jobs/17?fields=state"})) ++failed;
            }
        });
    }
    for (std::thread& client : clients) client.join();
    if (failed > 0) std::fprintf(stderr, "%d of %d requests failed\n", failed.load(), total);
    const std::string key = name + "_" + std::to_string(connections);
    print(key + "_requests", total / (wall_s() - begin), "req/s", true);
    print(key + "_server_cpu", (cpu_s_of(server.pid) - cpu) / total * 1e6, "us/req", false);
}

void streams(const ServerProcess& server, const Endpoint& endpoint, int count) {
    const double before = rss_mb_of(server.pid);
    std::vector<std::unique_ptr<HttpBodyReader>> held;
    for (int i = 0; i < count; ++i) {
        auto reader = HttpClient::make({.endpoint = endpoint})->open({.target = "/stream"});
        if (!reader) {
            std::fprintf(stderr, "%s: %s\n", reader.error().message.c_str(),
                         reader.error().cause.c_str());
            break;
        }
        held.push_back(*std::move(reader));
    }
    const auto n = static_cast<double>(held.size());
    print("idle_streams", n, "streams", true);
    print("idle_stream_memory", (rss_mb_of(server.pid) - before) * 1024 / n, "KiB/stream", false);
}

void link_messages(const Keys& keys, int total) {
    std::mutex mutex;
    std::condition_variable changed;
    int got = 0;
    bool open = false;
    AgentLinkCallbacks callbacks;
    callbacks.on_open = [](SessionId, const std::string&, const std::string&) {};
    callbacks.on_close = [](SessionId, const std::string&) {};
    callbacks.on_messages = [&](SessionId, const std::vector<protocol::AgentMessage>& messages) {
        const std::lock_guard lock(mutex);
        got += static_cast<int>(messages.size());
        if (got >= total) changed.notify_all();
    };
    const auto server =
        *AgentLinkServer::start({.address = "127.0.0.1:0",
                                 .tls = {keys.controller.certificate_pem, keys.controller.key_pem,
                                         keys.ca.certificate_pem}},
                                callbacks);
    AgentLinkClientCallbacks own;
    own.on_open = [&] {
        const std::lock_guard lock(mutex);
        open = true;
        changed.notify_all();
    };
    const auto client = *AgentLinkClient::start(
        {.address = "127.0.0.1:" + std::to_string(server->port()),
         .tls = {keys.agent.certificate_pem, keys.agent.key_pem, keys.ca.certificate_pem}},
        own);
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return open; });
    }
    const double cpu = cpu_s_of(::getpid());
    const double begin = wall_s();
    for (int i = 0; i < total; ++i) {
        client->send(
            protocol::TaskStatus{.key = {.job = {17}}, .state = protocol::TaskState::Running});
    }
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return got >= total; });
    }
    print("link_messages", total / (wall_s() - begin), "messages/s", true);
    print("link_cpu_both_ends", (cpu_s_of(::getpid()) - cpu) / total * 1e6, "us/message", false);
    client->stop();
    server->stop();
}

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
    const int total = quick ? 4'000 : 40'000;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    const Keys keys = make_keys();
    const std::string path = "/tmp/muster-net-bench." + std::to_string(::getpid());
    {
        const ServerProcess server(keys, path);
        const Endpoint local{.unix_path = path};
        const Endpoint tls{
            .host = "127.0.0.1", .port = server.port, .ca_pem = keys.ca.certificate_pem};
        for (const int connections : {1, 8}) {
            requests(server, local, "unix", connections, total);
            requests(server, tls, "tls", connections, total);
        }
        streams(server, local, quick ? 500 : 5'000);
    }
    ::unlink(path.c_str());
    link_messages(keys, total * 5);
}
