// For tests of the agent link: certificates, servers and agents that record what they see.
#pragma once

#include <map>

#include "net/agent_link.h"
#include "net/test_http.h"

namespace muster::net::testing {

inline LinkTls controller_tls() {
    const KeyedCertificate own = *issue_certificate(
        test_ca(), controller_certificate_ask({"127.0.0.1"}, test_now(), Duration{10 * kDay.ms}));
    return {own.certificate_pem, own.key_pem, test_ca().certificate_pem};
}
inline LinkTls agent_tls(std::string_view name) {
    const KeyedCertificate own = *issue_certificate(
        test_ca(), agent_certificate_ask(name, test_now(), Duration{10 * kDay.ms}));
    return {own.certificate_pem, own.key_pem, test_ca().certificate_pem};
}

/// Keeps what happened; wait_until blocks till it is as wished.
class Log {
public:
    void add(std::string line) {
        const std::lock_guard lock(mutex_);
        lines_.push_back(std::move(line));
        changed_.notify_all();
    }
    template <class Condition>
    void wait_until(Condition condition) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return condition(lines_); });
    }
    void wait_for_line(const std::string& line) {
        wait_until([&](const std::vector<std::string>& lines) {
            return std::find(lines.begin(), lines.end(), line) != lines.end();
        });
    }
    std::vector<std::string> lines() {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> lines_;
};

/// A controller's end that answers each Heartbeat with a LeaseGrant of the same number.
struct TestController {
    explicit TestController(AgentLinkServerOptions options = {},
                            AgentLinkCallbacks callbacks = {}) {
        if (options.address == AgentLinkServerOptions{}.address) options.address = "127.0.0.1:0";
        if (options.tls.key_pem.empty()) options.tls = controller_tls();
        callbacks.on_open = [this](SessionId id, const std::string& name, const std::string&) {
            const std::lock_guard lock(mutex);
            sessions[name] = id;
            names[id] = name;
            log.add("open " + name);
        };
        if (!callbacks.on_messages) {
            callbacks.on_messages = [this](SessionId id, std::vector<protocol::AgentMessage> all) {
                for (const protocol::AgentMessage& message : all) {
                    if (const auto* beat = std::get_if<protocol::Heartbeat>(&message)) {
                        link->send(id, protocol::LeaseGrant{
                                           .term = 1, .sequence = beat->sequence, .peers = {}});
                    } else {
                        log.add("message " + std::to_string(message.index()));
                    }
                }
            };
        }
        callbacks.on_close = [this](SessionId id, const std::string&) {
            const std::lock_guard lock(mutex);
            log.add("close " + names[id]);
        };
        if (!callbacks.on_join) {
            callbacks.on_join = [](const JoinAsk&, const JoinReply& reply) {
                reply(Error{.code = Code::Denied, .message = "nobody may join here"});
            };
        }
        auto started = AgentLinkServer::start(std::move(options), std::move(callbacks));
        if (!started) {
            ADD_FAILURE() << started.error().message << ": " << started.error().cause;
            std::abort();
        }
        link = *std::move(started);
    }
    ~TestController() { link->stop(); }
    std::string address() const { return "127.0.0.1:" + std::to_string(link->port()); }
    SessionId session(const std::string& name) {
        const std::lock_guard lock(mutex);
        return sessions[name];
    }

    std::mutex mutex;
    std::map<std::string, SessionId> sessions;
    std::map<SessionId, std::string> names;
    Log log;
    std::unique_ptr<AgentLinkServer> link;
};

struct TestAgent {
    TestAgent(const std::string& address, LinkTls tls, AgentLinkClientOptions options = {}) {
        options.address = address;
        options.tls = std::move(tls);
        if (options.backoff_max == AgentLinkClientOptions{}.backoff_max) {
            options.backoff_min = Duration{10};
            options.backoff_max = Duration{50};
        }
        AgentLinkClientCallbacks callbacks;
        callbacks.on_open = [this] { log.add("open"); };
        callbacks.on_messages = [this](const std::vector<protocol::ControllerMessage>& all) {
            for (const protocol::ControllerMessage& message : all) {
                if (const auto* grant = std::get_if<protocol::LeaseGrant>(&message)) {
                    log.add("grant " + std::to_string(grant->sequence));
                } else {
                    log.add("message " + std::to_string(message.index()));
                }
            }
        };
        callbacks.on_close = [this](const Error& error) { log.add("close " + error.message); };
        callbacks.on_failed = [this](const Error& error) {
            const std::lock_guard lock(mutex);
            failure = error;
            log.add("failed");
        };
        auto started = AgentLinkClient::start(std::move(options), std::move(callbacks));
        if (!started) {
            ADD_FAILURE() << started.error().message << ": " << started.error().cause;
            std::abort();
        }
        link = *std::move(started);
    }
    ~TestAgent() { link->stop(); }
    Error first_failure() {
        log.wait_for_line("failed");
        const std::lock_guard lock(mutex);
        return failure;
    }

    Log log;
    std::mutex mutex;
    Error failure;
    std::unique_ptr<AgentLinkClient> link;
};

}  // namespace muster::net::testing
