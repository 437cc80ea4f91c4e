// What the server promises of requests and answers, over real sockets.
#include <atomic>
#include <thread>

#include "net/test_http.h"

namespace muster::net::testing {
namespace {

void echo(const HttpRequest& request, const Responder& responder) {
    std::string text = request.method + " " + request.path + "\n";
    for (const auto& [name, value] : request.query) text += name + "=" + value + "\n";
    responder.answer({.content_type = "text/plain", .body = text + request.body});
}

TEST(HttpServer, TakesARequestApart) {
    TestServer server(echo);
    const auto client = server.client();
    const auto reply = client->send({.method = "POST",
                                     .target = "/v1/jobs/a%20b?state=a,b&x=1&x=%E8%8A%82+y&watch",
                                     .body = "{}"});
    ASSERT_TRUE(reply) << reply.error().cause;
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->header("content-type"), "text/plain");
    EXPECT_EQ(reply->body, "POST /v1/jobs/a b\nstate=a,b\nx=1\nx=节 y\nwatch=\n{}");
}

TEST(HttpServer, TheKernelSaysWhoIsAtTheUnixSocket) {
    Peer seen;
    TestServer server([&](const HttpRequest& request, const Responder& responder) {
        seen = request.peer;
        responder.answer({});
    });
    ASSERT_TRUE(server.client()->send({}));
    EXPECT_TRUE(seen.local);
    EXPECT_EQ(seen.uid, ::getuid());
    EXPECT_EQ(seen.gid, ::getgid());
    EXPECT_EQ(seen.pid, ::getpid());
    EXPECT_EQ(seen.address, "unix");
}

TEST(HttpServer, OneConnectionCarriesManyRequests) {
    TestServer server(echo);
    const auto client = server.client();
    for (int i = 0; i < 50; ++i) {
        const auto reply = client->send({.target = "/" + std::to_string(i)});
        ASSERT_TRUE(reply);
        ASSERT_EQ(reply->body, "GET /" + std::to_string(i) + "\n");
    }
    EXPECT_EQ(server.server->stats().connections_accepted, 1U);
    EXPECT_EQ(server.server->stats().requests, 50U);
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrderEvenWhenAnsweredLate) {
    std::mutex mutex;
    std::vector<std::thread> late;
    TestServer server([&](const HttpRequest& request, const Responder& responder) {
        const std::lock_guard lock(mutex);
        late.emplace_back([path = request.path, responder] { responder.answer({.body = path}); });
    });
    RawClient client(server.endpoint);
    std::string many;
    for (int i = 0; i < 20; ++i)
        many += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    many += "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    ASSERT_TRUE(client.send(many));
    const std::string all = client.read_to_end();
    std::size_t at = 0;
    for (int i = 0; i < 20; ++i) {
        at = all.find("\r\n\r\n/" + std::to_string(i), at);
        ASSERT_NE(at, std::string::npos) << i;
    }
    EXPECT_NE(all.find("Connection: close"), std::string::npos);
    EXPECT_TRUE(all.ends_with("/end"));
    for (std::thread& thread : late) thread.join();
}

TEST(HttpServer, AnswersComeFromAnyThreadAndOnlyTheFirstCounts) {
    std::mutex mutex;
    std::vector<Responder> waiting;
    Signal arrived;
    TestServer server([&](const HttpRequest&, const Responder& responder) {
        const std::lock_guard lock(mutex);
        waiting.push_back(responder);
        arrived.raise();
    });
    std::vector<std::thread> clients;
    std::atomic<int> good{0};
    for (int i = 0; i < 8; ++i) {
        clients.emplace_back([&] {
            const auto reply = server.client()->send({});
            if (reply && reply->body == "only once") ++good;
        });
    }
    arrived.wait(8);
    std::atomic<int> accepted{0};
    std::vector<std::thread> answerers;
    for (int t = 0; t < 4; ++t) {
        answerers.emplace_back([&] {
            for (const Responder& responder : waiting) {
                if (responder.answer({.body = "only once"})) ++accepted;
            }
        });
    }
    for (std::thread& thread : answerers) thread.join();
    for (std::thread& thread : clients) thread.join();
    EXPECT_EQ(good.load(), 8);
    EXPECT_EQ(accepted.load(), 8);
}

TEST(HttpServer, ADroppedOrThrowingHandlerIsA500) {
    TestServer server([](const HttpRequest& request, const Responder&) {
        if (request.path == "/throw") throw std::runtime_error("out of ideas");
    });
    const auto client = server.client();
    const auto dropped = client->send({.target = "/drop"});
    ASSERT_TRUE(dropped);
    EXPECT_EQ(dropped->status, 500);
    const auto thrown = client->send({.target = "/throw"});
    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->status, 500);
    EXPECT_NE(thrown->body.find("out of ideas"), std::string::npos);
    EXPECT_EQ(thrown->header("content-type"), "application/problem+json");
}

TEST(HttpServer, BodilessAnswersHaveNoBody) {
    TestServer server([](const HttpRequest& request, const Responder& responder) {
        responder.answer({.status = request.path == "/304" ? 304 : 200, .body = "text"});
    });
    const auto client = server.client();
    for (int round = 0; round < 2; ++round) {
        const auto head = client->send({.method = "HEAD"});
        ASSERT_TRUE(head);
        EXPECT_EQ(head->header("content-length"), "4");
        EXPECT_EQ(head->body, "");
        const auto unchanged = client->send({.target = "/304"});
        ASSERT_TRUE(unchanged);
        EXPECT_EQ(unchanged->status, 304);
        EXPECT_EQ(unchanged->header("content-length"), "");
    }
    EXPECT_EQ(server.server->stats().connections_accepted, 1U);
}

TEST(HttpServer, LargeBodiesGoBothWaysWhole) {
    const auto shared = std::make_shared<const std::string>(9'000'000, 's');
    TestServer server([&](HttpRequest request, const Responder& responder) {
        if (request.path == "/shared") return (void)responder.answer({.shared_body = shared});
        responder.answer({.body = std::move(request.body)});
    });
    const auto client = server.client();
    std::string big;
    for (int i = 0; big.size() < 2'000'000; ++i) big += std::to_string(i) + " ";
    const auto echoed = client->send({.method = "POST", .body = big});
    ASSERT_TRUE(echoed);
    EXPECT_EQ(echoed->body, big);
    EXPECT_EQ(client->send({.target = "/shared"})->body, *shared);
    EXPECT_EQ(client->send({.target = "/shared"})->body, *shared);
}

TEST(HttpServer, ChunkedUploadsAndExpectContinueAreUnderstood) {
    TestServer server(echo);
    RawClient client(server.endpoint);
    ASSERT_TRUE(
        client.send("POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                    "Expect: 100-continue\r\n\r\n"));
    EXPECT_NE(client.read_until("\r\n\r\n").find("100 Continue"), std::string::npos);
    ASSERT_TRUE(client.send("5\r\nhello\r\n0\r\n\r\n"));
    EXPECT_NE(client.read_until("hello").find("POST /up\nhello"), std::string::npos);
}

TEST(HttpServer, HttpTenGetsItsAnswerAndTheEnd) {
    TestServer server(echo);
    RawClient client(server.endpoint);
    ASSERT_TRUE(client.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    EXPECT_TRUE(client.read_to_end().ends_with("GET /old\n"));
}

TEST(HttpServer, AClientThatFinishesSendingStillGetsItsAnswer) {
    Signal handled;
    std::mutex mutex;
    std::vector<Responder> waiting;
    TestServer server([&](const HttpRequest&, const Responder& responder) {
        const std::lock_guard lock(mutex);
        waiting.push_back(responder);
        handled.raise();
    });
    RawClient client(server.endpoint);
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    client.finish();
    handled.wait();
    waiting[0].answer({.body = "late"});
    EXPECT_TRUE(client.read_to_end().ends_with("late"));
}

TEST(HttpServer, AnAnswerToAClientThatLeftHarmsNobody) {
    Signal handled;
    std::vector<Responder> waiting;
    TestServer server([&](const HttpRequest& request, const Responder& responder) {
        if (request.path == "/ok") return (void)responder.answer({});
        waiting.push_back(responder);
        handled.raise();
    });
    auto client = std::make_unique<RawClient>(server.endpoint);
    ASSERT_TRUE(client->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    handled.wait();
    client.reset();
    while (!waiting[0].gone()) std::this_thread::yield();
    EXPECT_FALSE(waiting[0].answer({.body = "nobody"}));
    EXPECT_EQ(server.client()->send({.target = "/ok"})->status, 200);
}

TEST(HttpServer, HeaderValuesCannotSplitTheAnswer) {
    TestServer server([](const HttpRequest&, const Responder& responder) {
        responder.answer({.headers = {{"Location", "/x\r\nSet-Cookie: evil=1"}}});
    });
    const auto reply = server.client()->send({});
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header("set-cookie"), "");
    EXPECT_EQ(reply->header("location"), "/x  Set-Cookie: evil=1");
}

TEST(HttpServer, AStaleSocketIsReplacedALiveOneIsNot) {
    const TempFolder folder;
    const std::string path = folder.file("s");
    {
        UniqueFd stale(::socket(AF_UNIX, SOCK_STREAM, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.data(), path.size());
        ASSERT_EQ(0, ::bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
    }
    const auto first = HttpServer::start({.unix_path = path}, echo);
    ASSERT_TRUE(first) << first.error().cause;
    const auto second = HttpServer::start({.unix_path = path}, echo);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::Conflict);
    EXPECT_TRUE(std::filesystem::exists(path));
    (*first)->stop(Duration{0});
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HttpServer, WhatCannotBeListenedOnSaysWhy) {
    const auto refused = [](HttpServerOptions options) {
        auto started = HttpServer::start(std::move(options), echo);
        return started ? std::string("started")
                       : started.error().message + ": " + started.error().cause;
    };
    EXPECT_NE(refused({}).find("nothing to listen on"), std::string::npos);
    EXPECT_NE(refused({.unix_path = "/no/such/folder/s"}).find("No such file"), std::string::npos);
    EXPECT_NE(refused({.unix_path = "/tmp/" + std::string(200, 'x')}).find("at most 107"),
              std::string::npos);
    EXPECT_NE(refused({.tcp_address = "127.0.0.1"}).find("port is missing"), std::string::npos);
    EXPECT_NE(refused({.tcp_address = "0.0.0.0:0"}).find("plain HTTP is not served"),
              std::string::npos);
    const TempFolder folder;
    ASSERT_EQ(0, ::close(::creat(folder.file("f").c_str(), 0600)));
    EXPECT_NE(refused({.unix_path = folder.file("f")}).find("no socket"), std::string::npos);
}

TEST(HttpServer, AGracefulStopLetsRequestsInFlightEnd) {
    Signal handled;
    std::vector<Responder> waiting;
    TestServer server([&](const HttpRequest&, const Responder& responder) {
        waiting.push_back(responder);
        handled.raise();
    });
    RawClient idle(server.endpoint);
    RawClient busy(server.endpoint);
    ASSERT_TRUE(busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    handled.wait();
    std::thread stopper([&] { server.server->stop(seconds(60)); });
    EXPECT_EQ(idle.read_to_end(), "");  // Idle ones end at once; only then is the other answered.
    waiting[0].answer({.body = "just in time"});
    const std::string reply = busy.read_to_end();
    EXPECT_TRUE(reply.ends_with("just in time"));
    EXPECT_NE(reply.find("Connection: close"), std::string::npos);
    idle.close();
    busy.close();
    stopper.join();
    EXPECT_FALSE(waiting[0].answer({}));
}

TEST(HttpServer, AStopWithoutGraceLeavesNobodyWaiting) {
    Signal handled;
    Responder* kept = nullptr;
    std::unique_ptr<Responder> holder;
    auto server = std::make_unique<TestServer>([&](const HttpRequest&, const Responder& responder) {
        holder = std::make_unique<Responder>(responder);
        kept = holder.get();
        handled.raise();
    });
    RawClient busy(server->endpoint);
    ASSERT_TRUE(busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    handled.wait();
    server.reset();
    EXPECT_EQ(busy.read_to_end(), "");
    EXPECT_FALSE(kept->answer({.body = "too late"}));
    EXPECT_TRUE(kept->gone());
}

TEST(HttpServer, ManyClientsAtOnceOnTwoThreads) {
    TestServer server(echo, {.io_threads = 2});
    std::vector<std::thread> clients;
    std::atomic<int> good{0};
    for (int c = 0; c < 8; ++c) {
        clients.emplace_back([&, c] {
            const auto client = server.client();
            for (int i = 0; i < 100; ++i) {
                const std::string path = "/" + std::to_string(c) + "/" + std::to_string(i);
                const auto reply = client->send({.method = "PUT", .target = path, .body = path});
                if (reply && reply->body == "PUT " + path + "\n" + path) ++good;
            }
        });
    }
    for (std::thread& thread : clients) thread.join();
    EXPECT_EQ(good.load(), 800);
}

}  // namespace
}  // namespace muster::net::testing
