// The client against servers that are missing, slow, gone or wrong.
#include <atomic>
#include <thread>

#include "net/listener.h"
#include "net/test_http.h"

namespace muster::net::testing {
namespace {

struct EndpointRow {
    const char* text;
    const char* back;  // nullptr = refused.
    const char* cause = "";
};
void PrintTo(const EndpointRow& row, std::ostream* out) {
    *out << row.text;
}
const EndpointRow kEndpoints[] = {
    {"https://ctl:7070", "https://ctl:7070"},
    {"https://ctl:7070/", "https://ctl:7070"},
    {"ctl.example:7070", "https://ctl.example:7070"},
    {"[::1]:7070", "https://[::1]:7070"},
    {"http://127.0.0.1:80", "http://127.0.0.1:80"},
    {"unix:/run/muster.sock", "unix:/run/muster.sock"},
    {"unix:///run/muster.sock", "unix:/run/muster.sock"},
    {"unix:run", nullptr, "absolute"},
    {"http://ctl:80", nullptr, "for this machine only"},
    {"ftp://ctl:80", nullptr, "scheme"},
    {"https://ctl", nullptr, "port is missing"},
    {"https://ctl:0", nullptr, "port 0"},
    {"https://ctl:70000", nullptr, "0 to 65535"},
    {"https://ctl:7070/v1", nullptr, "path"},
    {"::1:80", nullptr, "brackets"},
    {"", nullptr, "port is missing"},
};
class Endpoints : public ::testing::TestWithParam<EndpointRow> {};
TEST_P(Endpoints, AreReadOrRefused) {
    const auto endpoint = parse_endpoint(GetParam().text);
    ASSERT_EQ(static_cast<bool>(endpoint), GetParam().back != nullptr);
    if (endpoint) {
        EXPECT_EQ(format_endpoint(*endpoint), GetParam().back);
    } else {
        EXPECT_NE(endpoint.error().cause.find(GetParam().cause), std::string::npos)
            << endpoint.error().cause;
    }
}
INSTANTIATE_TEST_SUITE_P(Rows, Endpoints, ::testing::ValuesIn(kEndpoints));

TEST(HttpClient, PercentEncodingLeavesOnlyWhatIsSafe) {
    EXPECT_EQ(percent_encode("a-Z_0.~"), "a-Z_0.~");
    EXPECT_EQ(percent_encode("a b/节?&"), "a%20b%2F%E8%8A%82%3F%26");
}

TEST(HttpClient, NoControllerIsAnErrorWithCauseAndFix) {
    const TempFolder folder;
    const auto missing =
        HttpClient::make({.endpoint = {.unix_path = folder.file("none")}})->send({});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::Unavailable);
    EXPECT_NE(missing.error().message.find(folder.file("none")), std::string::npos);
    EXPECT_NE(missing.error().cause.find("no such socket"), std::string::npos);
    EXPECT_NE(missing.error().fix.find("muster up"), std::string::npos);

    std::uint16_t port = 0;
    {
        const auto listener = listen_tcp("127.0.0.1:0");
        port = listener->port;
    }
    const auto refused =
        HttpClient::make({.endpoint = {.host = "127.0.0.1", .port = port, .tls = false}})->send({});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, "nothing listens there");
}

TEST(HttpClient, ASilentServerIsTimedOut) {
    const TempFolder folder;
    const auto listener = listen_unix(folder.file("s"), 0600);
    const auto client = HttpClient::make(
        {.endpoint = {.unix_path = folder.file("s")}, .answer_timeout = Duration{20}});
    const auto reply = client->send({});
    ASSERT_FALSE(reply);
    EXPECT_NE(reply.error().cause.find("within 20 ms"), std::string::npos);
}

TEST(HttpClient, AnInterruptEndsTheWait) {
    const TempFolder folder;
    const auto listener = listen_unix(folder.file("s"), 0600);
    int fds[2];
    ASSERT_EQ(0, ::pipe(fds));
    const UniqueFd reader(fds[0]);
    const UniqueFd writer(fds[1]);
    ASSERT_EQ(1, ::write(writer.get(), "x", 1));
    const auto reply = HttpClient::make({.endpoint = {.unix_path = folder.file("s")},
                                         .answer_timeout = kDurationMax,
                                         .interrupt_fd = reader.get()})
                           ->send({});
    ASSERT_FALSE(reply);
    EXPECT_NE(reply.error().message.find("interrupted"), std::string::npos);
}

/// Accepts and answers each connection with the next of `answers`, then closes it.
class ScriptedServer {
public:
    explicit ScriptedServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
        listener_ = *listen_unix(folder_.file("s"), 0600);
        thread_ = std::thread([this] { serve(); });
    }
    ~ScriptedServer() { thread_.join(); }
    Endpoint endpoint() const { return {.unix_path = folder_.file("s")}; }

private:
    void serve() {
        for (const std::string& answer : answers_) {
            pollfd wait{listener_.get(), POLLIN, 0};
            ::poll(&wait, 1, -1);
            const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
            char bytes[4096];
            if (::recv(client.get(), bytes, sizeof bytes, 0) <= 0) continue;
            (void)::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        }
    }
    TempFolder folder_;
    UniqueFd listener_;
    std::vector<std::string> answers_;
    std::thread thread_;
};

TEST(HttpClient, AnAnswerThatBreaksOffIsAnError) {
    ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
                           "HTTP/1.1 200", "hello\r\n\r\n"});
    const auto client = HttpClient::make({.endpoint = server.endpoint()});
    for (const char* cause : {"ended in the middle", "ended in the middle", "closed the connection",
                              "does not start with HTTP/1"}) {
        const auto reply = client->send({});
        ASSERT_FALSE(reply);
        EXPECT_NE(reply.error().cause.find(cause), std::string::npos) << reply.error().cause;
    }
}

TEST(HttpClient, AConnectionThatTheServerClosedIsReplacedWithoutAFuss) {
    // Both answers leave the connection open by their words, and the server closes it all the same.
    ScriptedServer server({"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none",
                           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo"});
    const auto client = HttpClient::make({.endpoint = server.endpoint()});
    EXPECT_EQ(client->send({})->body, "one");
    const auto again = client->send({.method = "POST", .headers = {{"Idempotency-Key", "k"}}});
    ASSERT_TRUE(again) << again.error().cause;
    EXPECT_EQ(again->body, "two");
}

TEST(HttpClient, ReadsLinesOfAnyLength) {
    std::string body = "first\r\nsecond\n\n" + std::string(300'000, 'x') + "\nlast";
    ScriptedServer server(
        {"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body});
    const auto reader = *HttpClient::make({.endpoint = server.endpoint()})->open({});
    for (const std::string& line : {std::string("first"), std::string("second"), std::string(),
                                    std::string(300'000, 'x'), std::string("last")}) {
        const auto got = reader->read_line({});
        ASSERT_TRUE(got);
        ASSERT_EQ(got->end, ReadEnd::Data);
        ASSERT_EQ(got->data, line);
    }
    EXPECT_EQ(reader->read_line({})->end, ReadEnd::Eof);
}

TEST(HttpClient, HeadersWithLineBreaksAreRefused) {
    const auto reply = HttpClient::make({.endpoint = {.unix_path = "/none"},
                                         .headers = {{"Authorization", "Bearer x\r\nEvil: 1"}}})
                           ->send({});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Code::Invalid);
}

}  // namespace
}  // namespace muster::net::testing
