// The HTTP/1.1 server, free of any library's types: Unix socket with peer credentials, TCP with
// TLS, event streams and raw upgrades behind one small facade.
//
// It promises bounds (header, body, buffers, connections, time), an answer from any thread, and
// that a slow or vanished client costs only its own connection. Answers go out in request order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"

namespace muster::net {

/// Who is at the other end, as the kernel or TLS says: never what a request claims.
struct Peer {
    bool local = false;     // Came over the Unix socket; uid, gid and pid are the kernel's word.
    std::uint32_t uid = 0;  // Of local peers only.
    std::uint32_t gid = 0;
    std::int32_t pid = 0;
    std::string address;           // "10.0.0.7:51234", "[::1]:51234" or "unix".
    std::string certificate_name;  // CN of a client certificate that our CA vouches for; "" = none.
};

struct Header {
    std::string name;  // Lower case in requests.
    std::string value;
    friend bool operator==(const Header&, const Header&) = default;
};

struct HttpRequest {
    std::string method;  // "GET", upper case as sent.
    std::string target;  // As sent: "/v1/jobs?limit=10".
    std::string path;    // Percent-decoded, without the query: "/v1/jobs". Always starts with '/'.
    std::vector<std::pair<std::string, std::string>> query;  // Decoded, in order, repeats kept.
    std::vector<Header> headers;                             // In order, names in lower case.
    std::string body;
    Peer peer;

    /// The first header of that (lower case) name, or "".
    std::string_view header(std::string_view name) const;
    /// The first value of that query parameter; nullptr when absent ("?watch" gives "").
    const std::string* query_value(std::string_view name) const;
};

struct HttpResponse {
    int status = 200;
    std::string content_type = "application/json";
    std::vector<Header> headers = {};  // Not Content-Type, Content-Length, Connection, Date.
    std::string body = {};             // Moved to the socket, never copied when large.
    /// When set it is sent instead of `body`: one published view serves many readers uncopied.
    std::shared_ptr<const std::string> shared_body = {};
};

/// What became of a write to a stream.
enum class Write : std::uint8_t {
    Accepted,
    Full,    // Not taken: the consumer is slow and the buffer is at its bound. See on_drain.
    Closed,  // Not taken: the client has gone or the stream was closed.
};

struct StreamOptions {
    int status = 200;
    std::string content_type = "text/event-stream";
    std::vector<Header> headers = {};
    std::size_t buffer_max = 1 << 20;  // Bytes not yet taken by the kernel.
    /// Written after `heartbeat_every` without another write, so that proxies keep the stream and
    /// dead clients are noticed. "" = none.
    std::string heartbeat = ": \n\n";
    Duration heartbeat_every = seconds(15);
    /// What a slow consumer reads in place of the writes that were refused, once it has caught up
    /// by half: called on the I/O thread with their count. None = nothing is inserted.
    std::function<std::string(std::uint64_t dropped)> drop_notice = {};
};

/// An answer that goes on: server-sent events, or chunks of text. A copyable handle; the stream
/// lives until close(), the client leaves, or the server stops. All members from any thread.
class HttpStream {
public:
    Write write(std::string chunk) const;
    /// The same chunk may be written to thousands of streams without a copy.
    Write write(std::shared_ptr<const std::string> chunk) const;
    /// What was accepted before is still sent.
    void close() const;
    /// Bytes accepted and not yet taken by the kernel.
    std::size_t buffered() const;
    /// Called once, on the I/O thread (at once, on this thread, when it is closed already).
    void on_closed(std::function<void()> callback) const;
    /// Called on the I/O thread each time the buffer falls below half after a Full.
    void on_drain(std::function<void()> callback) const;

    struct State;
    explicit HttpStream(std::shared_ptr<State> state) : state_(std::move(state)) {}

private:
    std::shared_ptr<State> state_;
};

/// How a raw upgrade is served. All callbacks come on the I/O thread, on_closed once and last.
struct RawOptions {
    std::string protocol = "muster-tty";  // Must equal the request's Upgrade header.
    std::size_t buffer_max = 1 << 20;
    std::function<void(std::string_view)> on_data = {};
    std::function<void()> on_drain = {};
    std::function<void()> on_closed = {};
};

/// Both directions of an upgraded connection as bytes. A copyable handle, any thread.
class RawStream {
public:
    Write write(std::string bytes) const;
    void close() const;
    std::size_t buffered() const;
    /// While paused, on_data is not called and the client's sends fill up its own buffers.
    void pause_reading(bool paused) const;

    explicit RawStream(std::shared_ptr<HttpStream::State> state) : state_(std::move(state)) {}

private:
    std::shared_ptr<HttpStream::State> state_;
};

/// The right to answer one request, once, now or later, from any thread. A copyable handle: the
/// first answer counts. When the last copy goes away unanswered, the client gets a 500.
class Responder {
public:
    /// False when it was answered before (a bug of the caller's) or the client has gone.
    bool answer(HttpResponse response) const;
    bool fail(const Error& error) const;  // problem+json with the status of net/status.h.
    std::optional<HttpStream> stream(StreamOptions options = {}) const;
    /// Sends 101 and hands the bytes over. Invalid when the request did not ask for `protocol`.
    Result<RawStream> upgrade(RawOptions options) const;
    /// True when the client hung up; the answer would go nowhere.
    bool gone() const;

    struct Exchange;
    explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

private:
    std::shared_ptr<Exchange> exchange_;
};

/// Runs on an I/O thread and must not block. What it throws becomes a 500.
using HttpHandler = std::function<void(HttpRequest, Responder)>;

struct ServerTls {
    std::string certificate_pem;  // Leaf first, then any intermediates.
    std::string key_pem;
    std::string client_ca_pem = {};  // Client certificates must be by it; "" = none asked for.
    bool require_client_certificate = false;
};

struct HttpServerOptions {
    std::string unix_path = {};    // "" = none. A stale socket file is replaced, a live one is not.
    unsigned unix_mode = 0666;     // Anyone may connect: the peer's uid is checked per request.
    std::string tcp_address = {};  // "0.0.0.0:7070", "[::]:0", "127.0.0.1:0"; "" = none.
    std::optional<ServerTls> tls = {};  // Without it only loopback addresses are served.
    unsigned io_threads = 1;
    std::size_t header_max = 16 * 1024;      // Beyond it 431.
    std::size_t body_max = 2 * 1024 * 1024;  // Beyond it 413.
    std::size_t connections_max = 16384;     // Beyond it 503 and closed.
    Duration handshake_timeout = seconds(10);
    Duration header_timeout = seconds(10);  // From its first byte to its last.
    Duration body_timeout = seconds(60);
    Duration idle_timeout = seconds(120);  // Between requests.
    Duration write_timeout = seconds(30);  // Without the client taking a byte.
};

struct HttpServerStats {
    std::uint64_t connections_open = 0;
    std::uint64_t connections_accepted = 0;
    std::uint64_t connections_refused = 0;  // Over connections_max, or a failed handshake.
    std::uint64_t requests = 0;
    std::uint64_t streams_open = 0;
    std::uint64_t chunks_dropped = 0;  // Writes refused as Full.
};

class HttpServer {
public:
    /// Listens before it returns.
    static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options,
                                                     HttpHandler handler);
    virtual ~HttpServer() = default;  // Stops at once.
    /// The TCP port in use; 0 when TCP is off.
    virtual std::uint16_t port() const = 0;
    /// New connections use the new certificate; running ones go on.
    virtual Status set_tls(const ServerTls& tls) = 0;
    virtual HttpServerStats stats() const = 0;
    /// Takes no more connections, ends streams, lets requests in flight be answered for `grace`,
    /// then closes all. Not from an I/O thread. Idempotent.
    virtual void stop(Duration grace) = 0;
};

}  // namespace muster::net
