// The small blocking HTTP client of the command line: Unix socket or pinned TLS, keep-alive,
// answers read whole or line by line, upgrade to raw bytes. OpenSSL is untouched on a Unix socket.
//
// Every failure is an Error whose message names the endpoint, with cause and fix for a person.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "net/http.h"

namespace muster::net {

/// Where a controller is, and whom to believe.
struct Endpoint {
    std::string unix_path = {};  // When set, host and TLS fields are unused.
    std::string host = {};       // Name, IPv4, or IPv6 without brackets.
    std::uint16_t port = 0;
    bool tls = true;          // False only for http:// to loopback.
    std::string ca_pem = {};  // The server's chain must end in one of these ...
    std::string ca_sha256 =
        {};  // ... or hold a CA certificate with this SHA-256 (of its DER, hex).
    std::string server_name = {};      // Checked against the certificate; "" = host.
    std::string certificate_pem = {};  // Our own, if the server wants one.
    std::string key_pem = {};
};

/// "https://host:port", "http://127.0.0.1:port", "unix:/run/muster.sock", "host:port" (TLS).
Result<Endpoint> parse_endpoint(std::string_view text);
/// The same form back, for messages.
std::string format_endpoint(const Endpoint& endpoint);

struct HttpCall {
    std::string method = "GET";
    std::string target = "/";  // Already percent-encoded; see percent_encode.
    std::vector<Header> headers = {};
    std::string body = {};
    std::string content_type = {};  // Sent when there is a body; "" = application/json.
};

/// For one path segment or query value: everything but unreserved characters is escaped.
std::string percent_encode(std::string_view text);

struct HttpReply {
    int status = 0;
    std::vector<Header> headers = {};  // Names in lower case.
    std::string body = {};

    std::string_view header(std::string_view name) const;
};

/// How long to wait, and what cuts the wait short.
struct Wait {
    Duration timeout = seconds(30);  // kDurationMax = for ever.
    int interrupt_fd = -1;           // Readable (a signalfd, a pipe) = give up with Interrupted.
};

enum class ReadEnd : std::uint8_t { Data, Eof, TimedOut, Interrupted };

struct ReadResult {
    ReadEnd end = ReadEnd::Data;
    std::string data = {};  // A line without its newline, or bytes; "" unless Data.
};

/// An answer still being received. Moveable, not shared between threads.
class HttpBodyReader {
public:
    virtual ~HttpBodyReader() = default;
    virtual int status() const = 0;
    virtual const std::vector<Header>& headers() const = 0;
    virtual std::string_view header(std::string_view name) const = 0;
    /// The next line, without "\n" or "\r\n"; the last one may lack it. Lines end at 16 MiB.
    virtual Result<ReadResult> read_line(Wait wait) = 0;
    /// Whatever has arrived, at least one byte when Data.
    virtual Result<ReadResult> read_some(Wait wait) = 0;
    /// The rest, at most `max` bytes (TooLarge beyond).
    virtual Result<std::string> read_all(Wait wait, std::size_t max = std::size_t{1} << 30) = 0;
};

/// One server-sent event.
struct ServerEvent {
    std::string id = {};
    std::string name = {};  // "" = "message".
    std::string data = {};
    friend bool operator==(const ServerEvent&, const ServerEvent&) = default;
};
struct EventRead {
    ReadEnd end = ReadEnd::Data;
    ServerEvent event = {};  // Valid when Data. Comments (heartbeats) are skipped.
};
/// The next event of a text/event-stream. Time-outs lose nothing: call again with the same
/// `partial`.
struct EventParser {
    Result<EventRead> read(HttpBodyReader& body, Wait wait);
    ServerEvent partial = {};
    bool has_field = false;
};

/// A connection after 101: bytes both ways. One thread may read while another writes.
class RawPipe {
public:
    virtual ~RawPipe() = default;
    virtual Result<ReadResult> read_some(Wait wait) = 0;
    virtual Status write(std::string_view bytes) = 0;  // All of it, or an error.
    virtual void shut_down() = 0;                      // Wakes a reader in another thread.
    /// To poll beside a terminal. Check has_buffered() first: TLS may hold bytes the fd no longer
    /// has.
    virtual int fd() const = 0;
    virtual bool has_buffered() const = 0;
};

struct HttpClientOptions {
    Endpoint endpoint;
    Duration connect_timeout = seconds(5);
    Duration answer_timeout = seconds(30);  // Until the head of an answer, and for whole bodies.
    std::vector<Header> headers = {};       // With every call: Authorization, User-Agent.
    int interrupt_fd = -1;
};

class HttpClient {
public:
    /// Connects lazily, at the first call.
    static std::unique_ptr<HttpClient> make(HttpClientOptions options);
    virtual ~HttpClient() = default;
    /// The whole answer; any HTTP status is a success here. A kept-alive connection that the server
    /// closed meanwhile is replaced once, if nothing of an answer had arrived.
    virtual Result<HttpReply> send(const HttpCall& call) = 0;
    /// The head, then the body as it comes. The connection is the reader's from then on.
    virtual Result<std::unique_ptr<HttpBodyReader>> open(const HttpCall& call) = 0;
    /// A raw pipe, or the error that the server answered instead (its status in the message).
    virtual Result<std::unique_ptr<RawPipe>> upgrade(const HttpCall& call,
                                                     std::string_view protocol = "muster-tty") = 0;
};

}  // namespace muster::net
