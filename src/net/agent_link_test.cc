// The agent link over real sockets: who gets in, what is carried, how it ends and begins again.
#include <atomic>
#include <thread>

#include "net/listener.h"
#include "net/test_link.h"

namespace muster::net::testing {
namespace {

TEST(AgentLink, CarriesMessagesBothWaysUnderTheCertificatesName) {
    TestController controller;
    TestAgent agent(controller.address(), agent_tls("node1"));
    controller.log.wait_for_line("open node1");
    agent.log.wait_for_line("open");
    ASSERT_TRUE(agent.link->send(protocol::Hello{}));
    controller.log.wait_for_line("message 0");
    for (std::uint64_t i = 1; i <= 100; ++i) {
        ASSERT_TRUE(agent.link->send(protocol::Heartbeat{i}));
    }
    agent.log.wait_for_line("grant 100");
    // In order, none missing.
    std::vector<std::string> grants;
    for (const std::string& line : agent.log.lines()) {
        if (line.starts_with("grant")) grants.push_back(line);
    }
    ASSERT_EQ(grants.size(), 100U);
    for (std::size_t i = 0; i < grants.size(); ++i) {
        EXPECT_EQ(grants[i], "grant " + std::to_string(i + 1));
    }
    EXPECT_EQ(controller.link->stats().sessions_open, 1U);
    agent.link->stop();
    controller.log.wait_for_line("close node1");
    EXPECT_FALSE(controller.link->send(controller.session("node1"), protocol::Go{}));
    EXPECT_FALSE(agent.link->send(protocol::Heartbeat{1}));
}

TEST(AgentLink, ManyAgentsAreKeptApart) {
    TestController controller;
    std::vector<std::unique_ptr<TestAgent>> agents;
    for (int i = 0; i < 12; ++i) {
        agents.push_back(std::make_unique<TestAgent>(controller.address(),
                                                     agent_tls("node" + std::to_string(i))));
    }
    for (int i = 0; i < 12; ++i) {
        const std::string name = "node" + std::to_string(i);
        controller.log.wait_for_line("open " + name);
        ASSERT_TRUE(controller.link->send(
            controller.session(name),
            protocol::LeaseGrant{.sequence = static_cast<std::uint64_t>(i), .peers = {}}));
    }
    for (int i = 0; i < 12; ++i) {
        agents[static_cast<std::size_t>(i)]->log.wait_for_line("grant " + std::to_string(i));
    }
}

TEST(AgentLink, ABurstIsCarriedInFewWrites) {
    std::atomic<std::uint64_t> got{0};
    Signal all;
    AgentLinkCallbacks callbacks;
    callbacks.on_messages = [&](SessionId, const std::vector<protocol::AgentMessage>& messages) {
        for (const auto& message : messages) {
            ASSERT_EQ(std::get<protocol::Heartbeat>(message).sequence, got.load());
            if (++got == 20'000) all.raise();
        }
    };
    TestController controller({}, callbacks);
    TestAgent agent(controller.address(), agent_tls("node1"));
    agent.log.wait_for_line("open");
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        ASSERT_TRUE(agent.link->send(protocol::Heartbeat{i}));
    }
    all.wait();
    const SessionId session = controller.session("node1");
    std::vector<protocol::ControllerMessage> orders(5'000, protocol::ForgetTask{});
    ASSERT_TRUE(controller.link->send(session, orders));
    agent.log.wait_until([](const auto& lines) { return lines.size() >= 5'001; });
    EXPECT_LE(controller.link->stats().writes, 100U);
    EXPECT_EQ(controller.link->stats().messages_out, 5'000U);
    EXPECT_EQ(controller.link->stats().messages_in, 20'000U);
}

TEST(AgentLink, LargeMessagesPassAndTooLargeOnesAreRefusedAtTheSender) {
    Signal got;
    AgentLinkCallbacks callbacks;
    callbacks.on_messages = [&](SessionId, const std::vector<protocol::AgentMessage>& messages) {
        for (const auto& m : messages) {
            if (std::get<protocol::LogTail>(m).bytes.size() == 12'000'000) got.raise();
        }
    };
    TestController controller({}, callbacks);
    TestAgent agent(controller.address(), agent_tls("node1"));
    agent.log.wait_for_line("open");
    ASSERT_TRUE(agent.link->send(protocol::LogTail{.bytes = std::string(12'000'000, 'x')}));
    got.wait();
    EXPECT_FALSE(agent.link->send(protocol::LogTail{.bytes = std::string(17'000'000, 'x')}));
    EXPECT_TRUE(agent.link->send(protocol::LogTail{.bytes = "x"}));
}

TEST(AgentLink, AnAgentThatDoesNotReadIsClosedWhenItsQueueIsFull) {
    TestController controller({.queue_bytes_max = 1 << 20});
    Signal opened;
    Signal release;
    AgentLinkClientCallbacks callbacks;
    callbacks.on_open = [&] { opened.raise(); };
    callbacks.on_messages = [&](const auto&) { release.wait(); };
    Signal closed;
    callbacks.on_close = [&](const Error&) { closed.raise(); };
    const auto agent = *AgentLinkClient::start({.address = controller.address(),
                                                .tls = agent_tls("node1"),
                                                .backoff_min = seconds(60),
                                                .backoff_max = seconds(60)},
                                               std::move(callbacks));
    controller.log.wait_for_line("open node1");
    opened.wait();
    const SessionId session = controller.session("node1");
    const protocol::TunnelInput big{.request = 1, .bytes = std::string(100'000, 'x')};
    while (controller.link->send(session, big)) {
    }
    EXPECT_EQ(controller.link->stats().overflows, 1U);
    controller.log.wait_for_line("close node1");
    release.raise();
    closed.wait();
    agent->stop();
}

TEST(AgentLink, ACloseSaysWhyAndTheAgentComesBack) {
    TestController controller;
    TestAgent agent(controller.address(), agent_tls("node1"));
    controller.log.wait_for_line("open node1");
    agent.log.wait_for_line("open");
    const SessionId first = controller.session("node1");
    controller.link->close(first, "another node1 has come");
    agent.log.wait_for_line("close another node1 has come");
    controller.log.wait_until([](const auto& lines) {
        return std::count(lines.begin(), lines.end(), "open node1") == 2;
    });
    EXPECT_NE(controller.session("node1"), first);
}

TEST(AgentLink, TheAgentFindsARestartedController) {
    auto controller = std::make_unique<TestController>();
    const std::string address = controller->address();
    TestAgent agent(address, agent_tls("node1"));
    agent.log.wait_for_line("open");
    controller.reset();
    agent.log.wait_until(
        [](const auto& lines) { return std::count(lines.begin(), lines.end(), "failed") >= 2; });
    EXPECT_FALSE(agent.link->send(protocol::Heartbeat{1}));
    controller =
        std::make_unique<TestController>(AgentLinkServerOptions{.address = address, .tls = {}});
    controller->log.wait_for_line("open node1");
    agent.log.wait_until(
        [](const auto& lines) { return std::count(lines.begin(), lines.end(), "open") == 2; });
    EXPECT_EQ(agent.first_failure().cause, "nothing listens there");
}

TEST(AgentLink, AShorterRedialPauseHoldsForTheOneUnderWay) {
    auto controller = std::make_unique<TestController>();
    const std::string address = controller->address();
    controller.reset();
    constexpr Duration kHour{3'600'000};
    TestAgent agent(address, agent_tls("node1"),
                    {.address = {}, .tls = {}, .backoff_min = kHour, .backoff_max = kHour});
    agent.log.wait_for_line("failed");
    controller =
        std::make_unique<TestController>(AgentLinkServerOptions{.address = address, .tls = {}});
    agent.link->set_backoff_max(Duration{50});
    controller->log.wait_for_line("open node1");
}

TEST(AgentLink, NewTargetsAreUsedAtTheNextDial) {
    TestController first;
    TestController second;
    TestAgent agent(first.address(), agent_tls("node1"));
    first.log.wait_for_line("open node1");
    EXPECT_FALSE(agent.link->set_target("nowhere", agent_tls("node1")));
    EXPECT_FALSE(agent.link->set_target(second.address(), {"x", "y", "z"}));
    ASSERT_TRUE(agent.link->set_target(second.address(), agent_tls("renamed")));
    agent.link->redial();
    second.log.wait_for_line("open renamed");
    first.log.wait_for_line("close node1");
}

/// Passes bytes between agents and a controller until it is told to drop them silently.
class Relay {
public:
    explicit Relay(std::uint16_t to) : to_(to), listener_(*listen_tcp("127.0.0.1:0")) {
        thread_ = std::thread([this] { run(); });
    }
    ~Relay() {
        stop_ = true;
        thread_.join();
    }
    std::string address() const { return "127.0.0.1:" + std::to_string(listener_.port); }
    void cut() { cut_ = true; }

private:
    void run() {
        std::vector<std::pair<UniqueFd, std::unique_ptr<RawClient>>> pairs;
        while (!stop_) {
            std::vector<pollfd> fds{{listener_.fd.get(), POLLIN, 0}};
            for (const auto& [from, to] : pairs) {
                fds.push_back({from.get(), POLLIN, 0});
                fds.push_back({to->fd(), POLLIN, 0});
            }
            ::poll(fds.data(), fds.size(), 5);
            if (cut_) continue;  // Nothing is read, nothing closed: as a pulled cable.
            for (std::size_t i = 1; i < fds.size(); ++i) {
                const auto& [from, to] = pairs[(i - 1) / 2];
                if (fds[i].revents != 0) pass(fds[i].fd, i % 2 == 1 ? to->fd() : from.get());
            }
            if (fds[0].revents == 0) continue;
            UniqueFd from(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!from) continue;
            pairs.emplace_back(std::move(from), std::make_unique<RawClient>(
                                                    Endpoint{.host = "127.0.0.1", .port = to_}));
        }
    }
    static void pass(int from, int to) {
        char bytes[65536];
        const ssize_t got = ::recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got > 0) (void)::send(to, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL);
        if (got == 0) ::shutdown(to, SHUT_WR);
    }
    const std::uint16_t to_;
    const TcpListener listener_;
    std::atomic<bool> cut_{false};
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

TEST(AgentLink, ALinkThatIsCutWithoutAWordIsNoticedAtBothEnds) {
    TestController controller;
    Relay relay(controller.link->port());
    TestAgent agent(relay.address(), agent_tls("node1"));
    agent.log.wait_for_line("open");
    controller.log.wait_for_line("open node1");
    relay.cut();
    // By their pings alone: neither end is sending anything.
    controller.log.wait_for_line("close node1");
    agent.log.wait_until([](const auto& lines) {
        return std::any_of(lines.begin(), lines.end(),
                           [](const std::string& line) { return line.starts_with("close"); });
    });
}

struct RefusedRow {
    const char* name;
    LinkTls tls;
    Code code;
    const char* cause;
};
void PrintTo(const RefusedRow& row, std::ostream* out) {
    *out << row.name;
}
std::vector<RefusedRow> refused_rows() {
    const auto tls_of = [](const KeyedCertificate& ca, const CertificateAsk& ask) {
        const KeyedCertificate own = *issue_certificate(ca, ask);
        return LinkTls{own.certificate_pem, own.key_pem, test_ca().certificate_pem};
    };
    const KeyedCertificate other =
        *make_ca("other CA", test_now() - kDay, Time{test_now().ms + kDay.ms});
    const CertificateAsk good = agent_certificate_ask("node1", test_now(), kDay);
    CertificateAsk expired = good;
    expired.not_before = test_now() - Duration{2 * kDay.ms};
    expired.not_after = test_now() - seconds(60);
    CertificateAsk user = good;
    user.hosts = {};
    CertificateAsk other_agent = good;
    other_agent.hosts = {agent_tls_name("node2")};
    LinkTls wrong_ca = tls_of(test_ca(), good);
    wrong_ca.ca_pem = other.certificate_pem;
    return {{"by-another-ca", tls_of(other, good), Code::Denied, "not valid under CA"},
            {"expired", tls_of(test_ca(), expired), Code::Denied, "expired"},
            {"a-users-certificate", tls_of(test_ca(), user), Code::Unauthenticated, "have joined"},
            {"name-and-host-differ", tls_of(test_ca(), other_agent), Code::Unauthenticated,
             "have joined"},
            {"agent-believes-another-ca", wrong_ca, Code::Denied, "not by the CA"}};
}
class Refused : public ::testing::TestWithParam<RefusedRow> {};
TEST_P(Refused, WithItsCause) {
    TestController controller;
    TestAgent agent(controller.address(), GetParam().tls);
    const Error error = agent.first_failure();
    EXPECT_EQ(error.code, GetParam().code) << error.message << ": " << error.cause;
    EXPECT_NE(error.cause.find(GetParam().cause), std::string::npos) << error.cause;
    EXPECT_EQ(controller.log.lines(), std::vector<std::string>());
}
INSTANTIATE_TEST_SUITE_P(Rows, Refused, ::testing::ValuesIn(refused_rows()));

TEST(AgentLink, AnAgentCannotPoseAsTheController) {
    // An agent's own certificate, valid under the CA, serves where the controller should be.
    TestController impostor({.address = "127.0.0.1:0", .tls = agent_tls("node2")});
    TestAgent agent(impostor.address(), agent_tls("node1"));
    const Error error = agent.first_failure();
    EXPECT_EQ(error.code, Code::Denied);
    EXPECT_NE(error.cause.find("not for controller.muster"), std::string::npos) << error.cause;
}

TEST(AgentLink, SilentAndGarbledServersAreGivenUp) {
    const auto listener = listen_tcp("127.0.0.1:0");
    TestAgent agent("127.0.0.1:" + std::to_string(listener->port), agent_tls("node1"),
                    {.address = {}, .tls = {}, .connect_timeout = Duration{100}});
    EXPECT_NE(agent.first_failure().cause.find("within 100 ms"), std::string::npos)
        << agent.failure.cause;
}

TEST(AgentLink, MessagesThatAreNoneEndTheSession) {
    // A plain HTTP/1 talker, and bytes: neither gets in, and others go on.
    TestController controller;
    RawClient raw({.host = "127.0.0.1", .port = controller.link->port()});
    raw.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    raw.read_to_end();
    TestAgent agent(controller.address(), agent_tls("node1"));
    agent.log.wait_for_line("open");
    EXPECT_EQ(controller.log.lines(), std::vector<std::string>{"open node1"});
}

TEST(AgentLink, BeyondTheBoundOfSessionsAgentsAreTurnedAway) {
    TestController controller({.sessions_max = 1});
    TestAgent one(controller.address(), agent_tls("node1"));
    one.log.wait_for_line("open");
    TestAgent two(controller.address(), agent_tls("node2"));
    EXPECT_EQ(two.first_failure().code, Code::Exhausted);
}

TEST(AgentLink, ATakenPortSaysSo) {
    TestController controller;
    const auto second =
        AgentLinkServer::start({.address = controller.address(), .tls = controller_tls()}, {});
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find(controller.address()), std::string::npos);
    EXPECT_EQ(second.error().cause, "Address already in use");
}

TEST(AgentLink, SendsFromManyThreadsWhileSessionsComeAndGo) {
    TestController controller;
    std::atomic<bool> stop{false};
    std::vector<std::thread> senders;
    for (int t = 0; t < 3; ++t) {
        senders.emplace_back([&] {
            while (!stop) {
                controller.link->send(controller.session("node1"), protocol::ForgetTask{});
                std::this_thread::yield();
            }
        });
    }
    for (int i = 0; i < 8; ++i) {
        TestAgent agent(controller.address(), agent_tls("node1"));
        agent.log.wait_until([](const auto& lines) { return lines.size() > 5; });
        if (i % 2 == 0) controller.link->close(controller.session("node1"), "churn");
    }
    stop = true;
    for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace muster::net::testing
