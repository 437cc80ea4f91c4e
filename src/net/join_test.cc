// Joining, renewing, and agents' words to each other.
#include "net/test_link.h"

namespace muster::net::testing {
namespace {

/// A controller with one valid token, answering from another thread as the real loop would.
struct JoinController {
    JoinController() {
        AgentLinkCallbacks callbacks;
        callbacks.on_join = [this](JoinAsk ask, JoinReply reply) {
            const std::lock_guard lock(mutex);
            workers.emplace_back(
                [this, ask = std::move(ask), reply = std::move(reply)] { reply(judge(ask)); });
        };
        controller = std::make_unique<TestController>(AgentLinkServerOptions{}, callbacks);
        token = make_join_token(certificate_facts(test_ca().certificate_pem)->sha256,
                                controller->address());
    }
    ~JoinController() {
        controller.reset();  // Nothing comes after it.
        for (std::thread& worker : workers) worker.join();
    }
    Result<JoinAnswer> judge(const JoinAsk& ask) {
        last = ask;
        const bool known = ask.renewal || (ask.token_id == token.id &&
                                           equal_constant_time(sha256_hex(ask.token_secret),
                                                               sha256_hex(token.secret)));
        if (!known) {
            return Error{.code = Code::Denied,
                         .message = "the join token is not valid",
                         .cause = "it has expired or was used up",
                         .fix = "make a new one with `muster token create`",
                         .number = 1207};
        }
        MUSTER_LET(pem, sign_request(test_ca(), ask.request_pem,
                                     agent_certificate_ask(ask.node_name, test_now(), kDay)));
        return JoinAnswer{pem, test_ca().certificate_pem};
    }
    std::mutex mutex;
    std::vector<std::thread> workers;
    JoinAsk last;
    JoinToken token;
    std::unique_ptr<TestController> controller;
};

TEST(Join, ATokenGivesACertificateThatOpensTheLinkAndRenewsItself) {
    JoinController server;
    const auto request = make_signing_request("node1");
    const auto answer = join_cluster(server.token, "node1", request->request_pem, seconds(30));
    ASSERT_TRUE(answer) << answer.error().message << ": " << answer.error().cause;
    const KeyedCertificate own{answer->certificate_pem, request->key_pem};
    EXPECT_TRUE(verify_key(own));
    EXPECT_TRUE(server.last.peer_address.starts_with("127.0.0.1:"));
    EXPECT_FALSE(server.last.renewal);

    const LinkTls tls{own.certificate_pem, own.key_pem, answer->ca_pem};
    {
        TestAgent agent(server.controller->address(), tls);
        server.controller->log.wait_for_line("open node1");
    }
    const auto next = make_signing_request("someone-else");
    const auto renewed =
        renew_certificate(server.controller->address(), tls, next->request_pem, seconds(30));
    ASSERT_TRUE(renewed) << renewed.error().message;
    EXPECT_TRUE(server.last.renewal);
    EXPECT_EQ(server.last.node_name, "node1");  // The certificate's, not the request's.
    EXPECT_EQ(certificate_facts(renewed->certificate_pem)->name, "node1");
    EXPECT_TRUE(verify_key({renewed->certificate_pem, next->key_pem}));
}

TEST(Join, AWrongSecretIsDeniedWithTheControllersWords) {
    JoinController server;
    JoinToken wrong = server.token;
    wrong.secret = random_base62(40);
    const auto request = make_signing_request("node1");
    const auto answer = join_cluster(wrong, "node1", request->request_pem, seconds(30));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error(), (Error{.code = Code::Denied,
                                     .message = "the join token is not valid",
                                     .cause = "it has expired or was used up",
                                     .fix = "make a new one with `muster token create`",
                                     .number = 1207}));
}

TEST(Join, TheSecretIsNotSentToAServerWithAnotherCa) {
    JoinController server;
    JoinToken wrong = server.token;
    wrong.ca_sha256 = std::string(64, 'b');
    const auto request = make_signing_request("node1");
    const auto answer = join_cluster(wrong, "node1", request->request_pem, seconds(30));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::Denied);
    EXPECT_EQ(server.last.token_secret, "");
}

TEST(Join, ARequestThatIsNoneAndAnAbsentControllerAreErrors) {
    JoinController server;
    EXPECT_FALSE(join_cluster(server.token, "node1", "no request", seconds(30)));
    JoinToken nowhere = server.token;
    nowhere.address = "127.0.0.1:1";
    const auto answer = join_cluster(nowhere, "node1", "x", seconds(30));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().cause, "nothing listens there");
}

TEST(Join, RenewingNeedsAnAgentsCertificate) {
    JoinController server;
    const KeyedCertificate user = test_certificate("node1", {.client = true});
    const auto request = make_signing_request("node1");
    const auto answer =
        renew_certificate(server.controller->address(),
                          {user.certificate_pem, user.key_pem, test_ca().certificate_pem},
                          request->request_pem, seconds(30));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::Unauthenticated);
}

Result<protocol::PeerWord> ask_and_wait(const protocol::PeerAddress& peer, const LinkTls& tls,
                                        Duration timeout = seconds(30)) {
    Signal done;
    std::optional<Result<protocol::PeerWord>> word;
    ask_peer(peer, tls, timeout, [&](Result<protocol::PeerWord> result) {
        word = std::move(result);
        done.raise();
    });
    done.wait();
    return *word;
}

TEST(Peer, SaysWhetherItHasAController) {
    std::string asker;
    bool has = true;
    const auto server =
        PeerServer::start("127.0.0.1:0", agent_tls("node2"), [&](const protocol::PeerAsk& ask) {
            asker = ask.asker;
            return protocol::PeerWord{has};
        });
    ASSERT_TRUE(server) << server.error().message;
    const protocol::PeerAddress peer{"node2", "127.0.0.1", (*server)->port()};
    auto word = ask_and_wait(peer, agent_tls("node1"));
    ASSERT_TRUE(word) << word.error().message;
    EXPECT_TRUE(word->has_controller);
    EXPECT_EQ(asker, "node1");
    has = false;
    word = ask_and_wait(peer, agent_tls("node3"));
    ASSERT_TRUE(word);
    EXPECT_FALSE(word->has_controller);
}

TEST(Peer, WhoDoesNotKnowYetSaysNothing) {
    const auto server =
        PeerServer::start("127.0.0.1:0", agent_tls("node2"), [](const protocol::PeerAsk&) {
            return Result<protocol::PeerWord>(Error{.code = Code::Unavailable, .message = "new"});
        });
    ASSERT_TRUE(server) << server.error().message;
    const auto word = ask_and_wait({"node2", "127.0.0.1", (*server)->port()}, agent_tls("node1"));
    ASSERT_FALSE(word);
    EXPECT_EQ(word.error().code, Code::Unavailable);
}

TEST(Peer, NobodyElsesWordIsTaken) {
    const auto answer = [](const protocol::PeerAsk&) { return protocol::PeerWord{true}; };
    const auto server = PeerServer::start("127.0.0.1:0", agent_tls("node2"), answer);
    const int port = (*server)->port();
    // Not the peer that was meant.
    EXPECT_FALSE(ask_and_wait({"node9", "127.0.0.1", port}, agent_tls("node1")));
    // Not an agent that asks.
    EXPECT_FALSE(ask_and_wait({"node2", "127.0.0.1", port}, {{}, {}, test_ca().certificate_pem}));
    const KeyedCertificate user = test_certificate("node1", {.client = true});
    const auto refused =
        ask_and_wait({"node2", "127.0.0.1", port},
                     {user.certificate_pem, user.key_pem, test_ca().certificate_pem});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::Unauthenticated);
    EXPECT_FALSE(ask_and_wait({"node2", "127.0.0.1", 0}, agent_tls("node1")));
}

TEST(Peer, ASilentOneIsGivenUp) {
    const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(0, ::bind(silent.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
    ASSERT_EQ(0, ::listen(silent.get(), 8));
    socklen_t size = sizeof address;
    ::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size);
    const auto word = ask_and_wait({"node2", "127.0.0.1", ntohs(address.sin_port)},
                                   agent_tls("node1"), Duration{100});
    ASSERT_FALSE(word);
    EXPECT_EQ(word.error().code, Code::Unavailable);
}

}  // namespace
}  // namespace muster::net::testing
