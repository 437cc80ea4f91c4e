// TLS on both sides: who is believed, who is refused, and with which words.
#include <thread>

#include "net/test_http.h"

namespace muster::net::testing {
namespace {

struct TlsServer : TestServer {
    explicit TlsServer(ServerTls tls, HttpServerOptions options = {})
        : TestServer(
              [](HttpRequest request, const Responder& responder) {
                  responder.answer({.headers = {{"X-Name", request.peer.certificate_name},
                                                {"X-Local", request.peer.local ? "yes" : "no"}},
                                    .body = std::move(request.body)});
              },
              with(std::move(options), std::move(tls)), true) {
        endpoint.ca_pem = test_ca().certificate_pem;
    }
    static HttpServerOptions with(HttpServerOptions options, ServerTls tls) {
        options.tls = std::move(tls);
        return options;
    }
};

/// With the CA in the chain, as the controller sends it.
ServerTls server_tls(Time not_after = Time{test_now().ms + 10 * kDay.ms}) {
    const KeyedCertificate own =
        test_certificate("controller", {.server = true}, {"127.0.0.1", "ctl.example"}, not_after);
    return {.certificate_pem = own.certificate_pem + test_ca().certificate_pem,
            .key_pem = own.key_pem};
}

Error refusal(const Endpoint& endpoint) {
    const auto reply = HttpClient::make({.endpoint = endpoint})->send({});
    if (!reply) return reply.error();
    ADD_FAILURE() << "was not refused";
    return {};
}

TEST(Tls, RequestsKeepAliveAndLargeBodiesWork) {
    TlsServer server(server_tls());
    const auto client = server.client();
    for (const std::size_t size : {0U, 5U, 20'000U, 1'500'000U}) {
        const std::string body(size, 'b');
        const auto reply = client->send({.method = "POST", .body = body});
        ASSERT_TRUE(reply) << reply.error().cause;
        EXPECT_EQ(reply->body, body);
        EXPECT_EQ(reply->header("x-local"), "no");
    }
    EXPECT_EQ(server.server->stats().connections_accepted, 1U);
}

TEST(Tls, TheCaMayBePinnedByItsHash) {
    TlsServer server(server_tls());
    Endpoint endpoint = server.endpoint;
    endpoint.ca_pem.clear();
    endpoint.ca_sha256 = certificate_facts(test_ca().certificate_pem)->sha256;
    const auto reply = HttpClient::make({.endpoint = endpoint})->send({});
    ASSERT_TRUE(reply) << reply.error().cause;
    endpoint.ca_sha256 = std::string(64, 'a');
    const Error wrong = refusal(endpoint);
    EXPECT_EQ(wrong.code, Code::Denied);
    EXPECT_NE(wrong.cause.find("not by the CA we were told of"), std::string::npos) << wrong.cause;
    EXPECT_NE(wrong.fix.find("CA hash"), std::string::npos);
}

TEST(Tls, AForgedChainUnderThePinnedHashIsRefused) {
    // The leaf is by another CA; the true CA's certificate, which is public, is merely appended.
    const KeyedCertificate other =
        *make_ca("muster test CA", test_now() - kDay, Time{test_now().ms + 30 * kDay.ms});
    const KeyedCertificate leaf =
        *issue_certificate(other, {.name = "controller",
                                   .hosts = {"127.0.0.1"},
                                   .use = {.server = true},
                                   .not_before = test_now() - kDay,
                                   .not_after = Time{test_now().ms + kDay.ms}});
    TlsServer server({.certificate_pem = leaf.certificate_pem + test_ca().certificate_pem,
                      .key_pem = leaf.key_pem});
    Endpoint endpoint = server.endpoint;
    EXPECT_EQ(refusal(endpoint).code, Code::Denied);
    endpoint.ca_pem.clear();
    endpoint.ca_sha256 = certificate_facts(test_ca().certificate_pem)->sha256;
    EXPECT_EQ(refusal(endpoint).code, Code::Denied);
}

TEST(Tls, AnotherCaAnotherNameAndAnExpiredCertificateAreRefused) {
    TlsServer server(server_tls());
    Endpoint other_ca = server.endpoint;
    other_ca.ca_pem =
        make_ca("x", test_now() - kDay, Time{test_now().ms + kDay.ms})->certificate_pem;
    EXPECT_NE(refusal(other_ca).cause.find("not by the CA"), std::string::npos);
    Endpoint other_name = server.endpoint;
    other_name.server_name = "elsewhere.example";
    EXPECT_NE(refusal(other_name).cause.find("not for elsewhere.example"), std::string::npos);
    Endpoint right_name = server.endpoint;
    right_name.server_name = "ctl.example";
    EXPECT_TRUE(HttpClient::make({.endpoint = right_name})->send({}));
    Endpoint nobody = server.endpoint;
    nobody.ca_pem.clear();
    EXPECT_NE(refusal(nobody).fix.find("muster login"), std::string::npos);

    TlsServer expired(server_tls(test_now() - seconds(60)));
    EXPECT_NE(refusal(expired.endpoint).cause.find("expired"), std::string::npos);
}

TEST(Tls, AClientCertificateNamesItsOwner) {
    ServerTls tls = server_tls();
    tls.client_ca_pem = test_ca().certificate_pem;
    TlsServer server(tls);
    Endpoint endpoint = server.endpoint;
    EXPECT_EQ(HttpClient::make({.endpoint = endpoint})->send({})->header("x-name"), "");
    const KeyedCertificate own = test_certificate("alice", {.client = true});
    endpoint.certificate_pem = own.certificate_pem;
    endpoint.key_pem = own.key_pem;
    EXPECT_EQ(HttpClient::make({.endpoint = endpoint})->send({})->header("x-name"), "alice");
}

TEST(Tls, WhereACertificateIsRequiredNoneWrongAndExpiredOnesAreRefused) {
    ServerTls tls = server_tls();
    tls.client_ca_pem = test_ca().certificate_pem;
    tls.require_client_certificate = true;
    TlsServer server(tls);
    const auto refused_with = [&](const KeyedCertificate& own) {
        Endpoint endpoint = server.endpoint;
        endpoint.certificate_pem = own.certificate_pem;
        endpoint.key_pem = own.key_pem;
        return !HttpClient::make({.endpoint = endpoint})->send({});
    };
    EXPECT_FALSE(refused_with(test_certificate("bob", {.client = true})));
    EXPECT_TRUE(refused_with({}));
    EXPECT_TRUE(
        refused_with(test_certificate("bob", {.client = true}, {}, test_now() - seconds(60))));
    const KeyedCertificate other = *make_ca("x", test_now() - kDay, Time{test_now().ms + kDay.ms});
    EXPECT_TRUE(
        refused_with(*issue_certificate(other, {.name = "bob",
                                                .use = {.client = true},
                                                .not_before = test_now() - kDay,
                                                .not_after = Time{test_now().ms + kDay.ms}})));
    EXPECT_TRUE(refused_with(test_certificate("bob", {.server = true})));
}

TEST(Tls, HalfOpenHandshakesAndPlainTalkAreCutOff) {
    TlsServer server(server_tls(), {.handshake_timeout = Duration{40}});
    RawClient silent(server.endpoint);
    EXPECT_EQ(silent.read_to_end(), "");
    RawClient plain(server.endpoint);
    ASSERT_TRUE(plain.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_EQ(plain.read_to_end().find("200"), std::string::npos);
    EXPECT_TRUE(server.client()->send({}));
}

TEST(Tls, PlainServersAreToldApart) {
    TestServer plain([](const HttpRequest&, const Responder& r) { r.answer({}); }, {}, true);
    Endpoint endpoint = plain.endpoint;
    endpoint.tls = true;
    endpoint.ca_pem = test_ca().certificate_pem;
    EXPECT_NE(refusal(endpoint).cause.find("does not speak TLS"), std::string::npos);
}

TEST(Tls, ARenewedCertificateIsUsedWithoutARestart) {
    TlsServer server(server_tls(test_now() - seconds(60)));
    EXPECT_EQ(refusal(server.endpoint).code, Code::Denied);
    ASSERT_TRUE(server.server->set_tls(server_tls()));
    EXPECT_TRUE(server.client()->send({}));
    EXPECT_FALSE(server.server->set_tls({.certificate_pem = "x", .key_pem = "y"}));
    EXPECT_TRUE(server.client()->send({}));
}

TEST(Tls, StreamsAndRawBytesRunOverIt) {
    Signal closed;
    TestServer server(
        [&](const HttpRequest& request, const Responder& responder) {
            if (request.path == "/raw") {
                auto box = std::make_shared<std::optional<RawStream>>();
                *box = *responder.upgrade(
                    {.on_data = [box](std::string_view b) { (*box)->write(std::string(b)); },
                     .on_closed = [&] { closed.raise(); }});
                return;
            }
            const HttpStream stream = *responder.stream({.buffer_max = 32 << 20});
            for (int i = 0; i < 1000; ++i) stream.write("line " + std::to_string(i) + "\n");
            stream.write(std::string(1'000'000, 'x'));
            stream.close();
        },
        TlsServer::with({}, server_tls()), true);
    server.endpoint.ca_pem = test_ca().certificate_pem;
    const auto body = *server.client()->open({});
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(body->read_line({})->data, "line " + std::to_string(i));
    }
    EXPECT_EQ(body->read_all({}, 2'000'000)->size(), 1'000'000U);

    const auto pipe = *server.client()->upgrade({.method = "POST", .target = "/raw"});
    std::thread writer([&] {
        for (int i = 0; i < 300; ++i) ASSERT_TRUE(pipe->write(std::string(1000, 'y')));
    });
    std::size_t got = 0;
    while (got < 300'000) {
        const auto some = pipe->read_some({});
        ASSERT_TRUE(some);
        ASSERT_EQ(some->end, ReadEnd::Data);
        got += some->data.size();
    }
    writer.join();
    pipe->shut_down();
    closed.wait();
}

}  // namespace
}  // namespace muster::net::testing
