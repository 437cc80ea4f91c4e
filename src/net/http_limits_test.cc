// What misbehaving clients get: bounds, time-outs, refusals.
#include <thread>

#include <sys/resource.h>

#include "base/prng.h"
#include "net/test_http.h"

namespace muster::net::testing {
namespace {

void ok(const HttpRequest&, const Responder& responder) {
    responder.answer({.body = "ok"});
}

struct Row {
    const char* name;
    std::string wire;
    const char* status;  // Of the first answer.
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

const Row kRows[] = {
    {"garbage", "\x16\x03\x01garbage\r\n\r\n", "400"},
    {"no-target", "GET\r\n\r\n", "400"},
    {"relative-target", "GET x HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"bad-escape", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"nul-escape", "GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
    {"no-host", "GET / HTTP/1.1\r\n\r\n", "400"},
    {"two-hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400"},
    {"http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
    {"header-of-64k", "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(65536, 'x') + "\r\n\r\n",
     "431"},
    {"header-without-end", "GET / HTTP/1.1\r\nX: " + std::string(40000, 'x'), "431"},
    {"many-headers",
     [] {
         std::string text = "GET / HTTP/1.1\r\nHost: x\r\n";
         for (int i = 0; i < 3000; ++i) text += "A" + std::to_string(i) + ": b\r\n";
         return text + "\r\n";
     }(),
     "431"},
    {"long-target", "GET /" + std::string(10000, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n", "414"},
    {"huge-length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", "413"},
    {"length-2^64", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551616\r\n\r\n",
     "400"},
    {"negative-length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
    {"two-lengths",
     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
    {"length-and-chunked",
     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     "400"},
    {"gzip-encoding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "501"},
    {"huge-chunk",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n" +
         std::string(300'000, 'x'),
     "413"},
    {"bad-chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
    {"folded-header", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", "200"},
    {"good", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200"},
};

class BadRequests : public ::testing::TestWithParam<Row> {};

TEST_P(BadRequests, AreAnsweredWithTheirStatusAndOthersGoOn) {
    TestServer server(ok, {.body_max = 200'000});
    for (const std::size_t step : {std::size_t{1} << 20, std::size_t{1000}}) {
        RawClient client(server.endpoint);
        std::string_view left = GetParam().wire;
        while (!left.empty() && client.send(left.substr(0, step))) {
            left.remove_prefix(std::min(step, left.size()));
        }
        const std::string reply = client.read_until("\r\n\r\n");
        EXPECT_TRUE(reply.starts_with("HTTP/1.1 " + std::string(GetParam().status))) << reply;
        if (*GetParam().status != '2') {
            EXPECT_NE(reply.find("Connection: close"), std::string::npos);
        }
    }
    EXPECT_EQ(server.client()->send({})->body, "ok");
}
INSTANTIATE_TEST_SUITE_P(Rows, BadRequests, ::testing::ValuesIn(kRows));

TEST(HttpLimits, ABodyAtTheBoundIsTakenOneByteMoreIsNot) {
    TestServer server(ok, {.body_max = 5000});
    const auto client = server.client();
    EXPECT_EQ(client->send({.method = "POST", .body = std::string(5000, 'x')})->status, 200);
    const auto large = client->send({.method = "POST", .body = std::string(5001, 'x')});
    ASSERT_TRUE(large);
    EXPECT_EQ(large->status, 413);
    EXPECT_NE(large->body.find("5000"), std::string::npos);
    // Even a body that is still being sent gets its refusal, not a reset.
    const auto huge = client->send({.method = "POST", .body = std::string(8'000'000, 'x')});
    ASSERT_TRUE(huge) << huge.error().cause;
    EXPECT_EQ(huge->status, 413);
}

TEST(HttpLimits, GarbageNeverCrashesTheServer) {
    TestServer server(ok);
    Prng prng(3);
    const std::string base =
        "POST /a?b=c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
        "\r\n5\r\nhello\r\n0\r\n\r\n";
    for (int round = 0; round < 300; ++round) {
        std::string text = base;
        for (std::uint64_t i = 1 + prng.below(8); i > 0; --i) {
            text[prng.below(text.size())] = static_cast<char>(prng.below(256));
        }
        RawClient client(server.endpoint);
        client.send(text);
        client.finish();
        client.read_to_end();
    }
    EXPECT_EQ(server.client()->send({})->body, "ok");
}

TEST(HttpLimits, ASlowHeaderASlowBodyAndSilenceAreTimedOut) {
    TestServer server(ok, {.header_timeout = Duration{40},
                           .body_timeout = Duration{40},
                           .idle_timeout = Duration{40}});
    RawClient header(server.endpoint);
    ASSERT_TRUE(header.send("GET / HTT"));
    EXPECT_TRUE(header.read_to_end().starts_with("HTTP/1.1 408"));
    RawClient body(server.endpoint);
    ASSERT_TRUE(body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"));
    EXPECT_TRUE(body.read_to_end().starts_with("HTTP/1.1 408"));
    RawClient silent(server.endpoint);
    EXPECT_EQ(silent.read_to_end(), "");
    RawClient idle(server.endpoint);
    ASSERT_TRUE(idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(idle.read_to_end().ends_with("ok"));
}

TEST(HttpLimits, DrippingBytesDoNotStretchTheTimeOut) {
    TestServer server(ok, {.header_timeout = Duration{60}});
    RawClient slow(server.endpoint);
    ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\nHost: x\r\nX: "));
    while (slow.send("y")) std::this_thread::yield();
    SUCCEED();
}

TEST(HttpLimits, ConnectionsBeyondTheBoundGet503AndTheRestGoOn) {
    TestServer server(ok, {.connections_max = 3});
    std::vector<std::unique_ptr<RawClient>> held;
    for (int i = 0; i < 3; ++i) {
        held.push_back(std::make_unique<RawClient>(server.endpoint));
        ASSERT_TRUE(held.back()->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        held.back()->read_until("ok");
    }
    RawClient one_more(server.endpoint);
    EXPECT_TRUE(one_more.read_to_end().starts_with("HTTP/1.1 503"));
    ASSERT_TRUE(held[0]->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(held[0]->read_until("ok").ends_with("ok"));
    held.pop_back();
    while (server.server->stats().connections_open == 3) std::this_thread::yield();
    EXPECT_EQ(server.client()->send({})->body, "ok");
}

TEST(HttpLimits, RunningOutOfDescriptorsRefusesNewClientsAndRecovers) {
    TestServer server(ok);
    RawClient before(server.endpoint);
    ASSERT_TRUE(before.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    before.read_until("ok");
    RawClient late(server.endpoint);
    ASSERT_TRUE(late.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    late.read_until("ok");
    rlimit old{};
    ASSERT_EQ(0, ::getrlimit(RLIMIT_NOFILE, &old));
    std::vector<UniqueFd> extra;
    {
        // A socket made before the limit bites; connected after it.
        UniqueFd pending(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        rlimit low = old;
        low.rlim_cur = 256;
        ASSERT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &low));
        for (UniqueFd fd(::dup(0)); fd; fd = UniqueFd(::dup(0))) extra.push_back(std::move(fd));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, server.endpoint.unix_path.data(),
                    server.endpoint.unix_path.size());
        ASSERT_EQ(0,
                  ::connect(pending.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
        char byte = 0;
        EXPECT_EQ(0, ::recv(pending.get(), &byte, 1, 0));  // Refused, not left hanging.
        ASSERT_TRUE(before.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        EXPECT_TRUE(before.read_until("ok").ends_with("ok"));
    }
    extra.clear();
    ASSERT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &old));
    EXPECT_EQ(server.client()->send({})->body, "ok");
}

}  // namespace
}  // namespace muster::net::testing
