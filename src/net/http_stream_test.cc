// Streams: events, slow readers, lost clients, raw upgrades.
#include <atomic>
#include <thread>

#include "net/test_http.h"
#include "net/tty_frame.h"

namespace muster::net::testing {
namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// Keeps the streams that clients opened.
struct StreamServer {
    explicit StreamServer(StreamOptions options = {}, HttpServerOptions server_options = {})
        : server(
              [this, options](const HttpRequest&, const Responder& responder) {
                  const std::lock_guard lock(mutex);
                  streams.push_back(*responder.stream(options));
                  opened.raise();
              },
              server_options) {}
    HttpStream stream(int index = 0) {
        opened.wait(index + 1);
        const std::lock_guard lock(mutex);
        return streams[static_cast<std::size_t>(index)];
    }
    std::mutex mutex;
    std::vector<HttpStream> streams;
    Signal opened;
    TestServer server;
};

TEST(HttpStream, EventsArriveAsTheyAreWritten) {
    StreamServer server;
    const auto client = server.server.client();
    auto body = client->open({.target = "/v1/events?watch=1"});
    ASSERT_TRUE(body);
    EXPECT_EQ((*body)->header("content-type"), "text/event-stream");
    const HttpStream stream = server.stream();
    EventParser parser;
    for (int i = 0; i < 20; ++i) {
        const std::string n = std::to_string(i);
        EXPECT_EQ(
            stream.write("id: " + n + "\nevent: put\ndata: {\"a\":1,\ndata: \"n\":" + n + "}\n\n"),
            Write::Accepted);
        EXPECT_EQ(stream.write(": beat\n\n"), Write::Accepted);
        const auto event = parser.read(**body, {});
        ASSERT_TRUE(event);
        EXPECT_EQ(event->event, (ServerEvent{n, "put", "{\"a\":1,\n\"n\":" + n + "}"}));
    }
    stream.close();
    EXPECT_EQ(stream.write("more"), Write::Closed);
    EXPECT_EQ(parser.read(**body, {})->end, ReadEnd::Eof);
}

TEST(HttpStream, ATimeOutOrInterruptLosesNothing) {
    StreamServer server;
    const auto body = *server.server.client()->open({});
    const HttpStream stream = server.stream();
    int pipe_fds[2];
    ASSERT_EQ(0, ::pipe(pipe_fds));
    const UniqueFd reader(pipe_fds[0]);
    const UniqueFd writer(pipe_fds[1]);
    EventParser parser;
    stream.write("data: half");
    EXPECT_EQ(body->read_line({.timeout = Duration{1}})->end, ReadEnd::TimedOut);
    ASSERT_EQ(1, ::write(writer.get(), "x", 1));
    EXPECT_EQ(parser.read(*body, {.interrupt_fd = reader.get()})->end, ReadEnd::Interrupted);
    stream.write(" and half\n\n");
    EXPECT_EQ(parser.read(*body, {})->event.data, "half and half");
}

TEST(HttpStream, TheConnectionServesRequestsAfterwards) {
    StreamServer server;
    RawClient client(server.server.endpoint);
    ASSERT_TRUE(client.send(kGet));
    server.stream(0).write("one");
    server.stream(0).close();
    EXPECT_TRUE(client.read_until("0\r\n\r\n").ends_with("3\r\none\r\n0\r\n\r\n"));
    ASSERT_TRUE(client.send(kGet));
    server.stream(1).close();
    client.read_until("0\r\n\r\n");
    EXPECT_EQ(server.server.server->stats().connections_accepted, 1U);
}

TEST(HttpStream, OnClosedComesOnceWhenTheClientLeaves) {
    StreamServer server;
    auto client = std::make_unique<RawClient>(server.server.endpoint);
    ASSERT_TRUE(client->send(kGet));
    const HttpStream stream = server.stream();
    Signal closed;
    stream.on_closed([&] { closed.raise(); });
    client->read_until("text/event-stream");
    client.reset();
    closed.wait();
    EXPECT_EQ(stream.write("gone"), Write::Closed);
    Signal at_once;
    stream.on_closed([&] { at_once.raise(); });
    EXPECT_EQ(at_once.count(), 1);
    EXPECT_EQ(closed.count(), 1);
    EXPECT_EQ(server.server.server->stats().streams_open, 0U);
}

TEST(HttpStream, ASlowReaderIsToldWhatItMissed) {
    StreamServer server({.buffer_max = 64 * 1024, .drop_notice = [](std::uint64_t dropped) {
                             return "<" + std::to_string(dropped) + " dropped>";
                         }});
    RawClient client(server.server.endpoint);
    ASSERT_TRUE(client.send(kGet));
    const HttpStream stream = server.stream();
    Signal drained;
    stream.on_drain([&] { drained.raise(); });
    std::uint64_t dropped = 0;
    std::string accepted;
    // The kernel's own buffer fills first, then ours.
    for (int i = 0; dropped < 10; ++i) {
        ASSERT_LT(i, 1'000'000);
        const std::string line = std::to_string(i) + std::string(4000, '.') + "\n";
        if (stream.write(line) == Write::Accepted) {
            accepted += line;
        } else {
            ++dropped;
        }
        ASSERT_LE(stream.buffered(), 64U * 1024 + 4096);
    }
    // The kernel takes some in between: then there are several notices, and their sum is right.
    std::string all;
    std::uint64_t told = 0;
    for (std::size_t at = 0; told < dropped;) {
        all += client.read_until(" dropped>");
        for (at = all.find('<', at); at != std::string::npos; at = all.find('<', at)) {
            const std::size_t end = all.find(" dropped>", at);
            if (end == std::string::npos) break;
            told += std::stoul(all.substr(at + 1));
            at = end;
        }
        if (at == std::string::npos) at = all.size();
    }
    drained.wait();
    EXPECT_EQ(told, 10U);
    EXPECT_EQ(stream.write("after"), Write::Accepted);
    stream.close();
    all += client.read_until("0\r\n\r\n");
    EXPECT_LT(all.rfind(" dropped>"), all.find("after"));
    EXPECT_EQ(server.server.server->stats().chunks_dropped, 10U);
}

TEST(HttpStream, AReaderThatNeverReadsIsCutOff) {
    StreamServer server({.buffer_max = 1 << 20}, {.write_timeout = Duration{40}});
    RawClient client(server.server.endpoint);
    ASSERT_TRUE(client.send(kGet));
    const HttpStream stream = server.stream();
    Signal closed;
    stream.on_closed([&] { closed.raise(); });
    while (stream.write(std::string(100'000, 'x')) != Write::Full) {
    }
    closed.wait();
    EXPECT_EQ(stream.write("x"), Write::Closed);
}

TEST(HttpStream, HeartbeatsKeepAnIdleStreamAndNeedNoWriter) {
    StreamServer server({.heartbeat = ": beat\n\n", .heartbeat_every = Duration{1}},
                        {.idle_timeout = Duration{40}});
    RawClient client(server.server.endpoint);
    ASSERT_TRUE(client.send(kGet));
    client.read_until(": beat");
    client.read_until(": beat");
    EXPECT_EQ(server.stream().write("x"), Write::Accepted);
}

TEST(HttpStream, OneTextGoesToHundredsOfIdleStreamsUncopied) {
    constexpr int kStreams = 400;
    StreamServer server({}, {.io_threads = 2});
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < kStreams; ++i) {
        clients.push_back(std::make_unique<RawClient>(server.server.endpoint));
        ASSERT_TRUE(clients.back()->send(kGet));
    }
    server.opened.wait(kStreams);
    EXPECT_EQ(server.server.server->stats().streams_open, std::uint64_t{kStreams});
    const auto text =
        std::make_shared<const std::string>("data: " + std::string(40'000, 'x') + "\n\n");
    for (int i = 0; i < kStreams; ++i) {
        EXPECT_EQ(server.stream(i).write(text), Write::Accepted);
    }
    EXPECT_LE(text.use_count(), kStreams + 2);
    for (const auto& client : clients) {
        EXPECT_NE(client->read_until("x\n\n").find("data: xxx"), std::string::npos);
    }
    server.server.server->stop(seconds(1));
    for (const auto& client : clients) EXPECT_TRUE(client->read_to_end().ends_with("0\r\n\r\n"));
}

TEST(HttpStream, ManyThreadsMayWriteToOne) {
    StreamServer server({.buffer_max = 64 << 20});
    const auto body = *server.server.client()->open({});
    const HttpStream stream = server.stream();
    std::vector<std::thread> writers;
    for (int w = 0; w < 4; ++w) {
        writers.emplace_back([&, w] {
            for (int i = 0; i < 500; ++i) {
                stream.write(std::to_string(w) + " " + std::to_string(i) + "\n");
            }
        });
    }
    for (std::thread& writer : writers) writer.join();
    stream.close();
    int next[4] = {};
    for (int lines = 0; lines < 2000; ++lines) {
        const auto line = body->read_line({});
        ASSERT_TRUE(line);
        ASSERT_EQ(line->end, ReadEnd::Data);
        const int w = line->data[0] - '0';
        ASSERT_EQ(line->data, std::to_string(w) + " " + std::to_string(next[w]++));
    }
    EXPECT_EQ(body->read_line({})->end, ReadEnd::Eof);
}

TEST(HttpStream, HttpTenReadsAStreamToTheEndOfTheConnection) {
    StreamServer server({.content_type = "text/plain"});
    RawClient client(server.server.endpoint);
    ASSERT_TRUE(client.send("GET / HTTP/1.0\r\n\r\n"));
    server.stream().write("plain ");
    server.stream().write("text");
    server.stream().close();
    EXPECT_TRUE(client.read_to_end().ends_with("\r\n\r\nplain text"));
}

TEST(HttpStream, AStreamOpenedAfterTheClientLeftIsClosedAtOnce) {
    Signal handled;
    std::vector<Responder> waiting;
    TestServer server([&](const HttpRequest&, const Responder& responder) {
        waiting.push_back(responder);
        handled.raise();
    });
    auto client = std::make_unique<RawClient>(server.endpoint);
    ASSERT_TRUE(client->send(kGet));
    handled.wait();
    client.reset();
    while (!waiting[0].gone()) std::this_thread::yield();
    Signal closed;
    waiting[0].stream()->on_closed([&] { closed.raise(); });
    closed.wait();
}

/// Serves one echoing raw connection: what comes in goes out in upper case.
struct RawServer {
    explicit RawServer(HttpServerOptions options = {}, bool tcp = false)
        : server(
              [this](const HttpRequest&, const Responder& responder) {
                  auto box = std::make_shared<std::optional<RawStream>>();
                  auto raw = responder.upgrade({.on_data =
                                                    [box](std::string_view bytes) {
                                                        std::string text(bytes);
                                                        for (char& c : text) {
                                                            if (c >= 'a' && c <= 'z') {
                                                                c = static_cast<char>(c - 32);
                                                            }
                                                        }
                                                        (*box)->pause_reading(text == "!");
                                                        (*box)->write(std::move(text));
                                                    },
                                                .on_closed = [this] { closed.raise(); }});
                  if (!raw) return (void)responder.fail(raw.error());
                  *box = *raw;
                  const std::lock_guard lock(mutex);
                  streams.push_back(*raw);
                  opened.raise();
              },
              std::move(options), tcp) {}
    std::mutex mutex;
    std::vector<RawStream> streams;
    Signal opened;
    Signal closed;
    TestServer server;
};

std::string read_exactly(RawPipe& pipe, std::size_t size) {
    std::string text;
    while (text.size() < size) {
        const auto got = pipe.read_some({});
        if (!got || got->end != ReadEnd::Data) break;
        text += got->data;
    }
    return text;
}

TEST(RawUpgrade, CarriesBytesBothWays) {
    RawServer server;
    auto pipe = server.server.client()->upgrade({.method = "POST", .target = "/exec"});
    ASSERT_TRUE(pipe) << pipe.error().message;
    ASSERT_TRUE((*pipe)->write("hello"));
    EXPECT_EQ(read_exactly(**pipe, 5), "HELLO");
    EXPECT_EQ((*pipe)->read_some({.timeout = Duration{1}})->end, ReadEnd::TimedOut);
    server.opened.wait();
    server.streams[0].write("bye");
    server.streams[0].close();
    EXPECT_EQ(read_exactly(**pipe, 3), "bye");
    EXPECT_EQ((*pipe)->read_some({})->end, ReadEnd::Eof);
    server.closed.wait();
}

TEST(RawUpgrade, AReaderAndAWriterThreadShareOnePipe) {
    RawServer server;
    const auto pipe = *server.server.client()->upgrade({.method = "POST"});
    constexpr std::size_t kTotal = 4'000'000;
    std::thread writer([&] {
        for (std::size_t sent = 0; sent < kTotal; sent += 1000) {
            ASSERT_TRUE(pipe->write(std::string(1000, 'a')));
        }
    });
    // A slow echo must not lose bytes: writes beyond the buffer would be refused, so pace is kept
    // by reading; 1 MiB of buffer is more than what is under way.
    const std::string all = read_exactly(*pipe, 500'000);
    EXPECT_EQ(all.find_first_not_of('A'), std::string::npos);
    std::thread reader([&] {
        while ((*pipe).read_some({})->end == ReadEnd::Data) {
        }
    });
    writer.join();
    pipe->shut_down();
    reader.join();
    server.closed.wait();
}

TEST(RawUpgrade, WithoutTheHeaderItIsRefused) {
    RawServer server;
    const auto reply = server.server.client()->send({.method = "POST"});
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 400);
    EXPECT_NE(reply->body.find("Upgrade: muster-tty"), std::string::npos);
    const auto other = server.server.client()->upgrade({.method = "POST"}, "websocket");
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().cause.find("websocket"), std::string::npos);
}

TEST(RawUpgrade, PausedReadingHoldsTheClientBack) {
    RawServer server;
    const auto pipe = *server.server.client()->upgrade({.method = "POST"});
    server.opened.wait();
    ASSERT_TRUE(pipe->write("!"));  // The server pauses when it reads this.
    EXPECT_EQ(read_exactly(*pipe, 1), "!");
    ASSERT_TRUE(pipe->write("b"));
    EXPECT_EQ(pipe->read_some({.timeout = Duration{20}})->end, ReadEnd::TimedOut);
    server.streams[0].pause_reading(false);
    EXPECT_EQ(read_exactly(*pipe, 1), "B");
}

TEST(RawUpgrade, AClientThatLeavesIsNoticedEvenWhilePaused) {
    RawServer server;
    auto pipe = *server.server.client()->upgrade({.method = "POST"});
    pipe.reset();
    server.closed.wait();
    auto paused = *server.server.client()->upgrade({.method = "POST"});
    ASSERT_TRUE(paused->write("!"));
    EXPECT_EQ(read_exactly(*paused, 1), "!");
    paused.reset();
    server.closed.wait(2);
}

}  // namespace
}  // namespace muster::net::testing
