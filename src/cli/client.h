// The controller as verbs see it: where it is, who we are, calls that outlast its restart, and
// event streams that go on where they were.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/config.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "net/http_client.h"

namespace muster::cli {

/// A query string, percent-encoded: "?a=1&b=2", or "".
class Query {
public:
    Query& add(std::string_view name, std::string_view value);
    const std::string& text() const { return text_; }

private:
    std::string text_;
};

/// "v1/jobs/12/why" style targets from parts that a user typed.
std::string target(std::string_view prefix, std::string_view part, std::string_view suffix = "");

class Client {
public:
    /// Finds the endpoint and the token; connects at the first call. Lines for people while it
    /// waits go to `notes`.
    static Result<std::unique_ptr<Client>> make(const World& world, const Config& config,
                                                Output& notes);

    /// Any 2xx or 304 answer; every other becomes an Error. GET, and whatever carries an
    /// Idempotency-Key, is repeated while the controller is away or asks for patience.
    Result<net::HttpReply> call(net::HttpCall call);
    Result<JsonDocument> get(const std::string& target);
    /// With a fresh Idempotency-Key.
    Result<JsonDocument> post(const std::string& target, std::string body);
    /// For one stream: a connection of its own.
    std::unique_ptr<net::HttpClient> connection(int interrupt_fd = -1) const;

    /// For connecting and for one answer.
    void set_timeout(Duration timeout);
    /// How long a repeatable call may keep trying.
    void set_patience(Duration reads, Duration writes);
    const std::string& where() const { return where_; }
    const net::Endpoint& endpoint() const { return options_.endpoint; }
    const World& world() const { return world_; }
    Output& notes() { return notes_; }
    int interrupt_fd() const { return options_.interrupt_fd; }
    /// From then on an interrupt ends waits.
    void set_interrupt(int fd);

private:
    Client(const World& world, Output& notes) : world_(world), notes_(notes) {}
    const World& world_;
    Output& notes_;
    net::HttpClientOptions options_;
    std::unique_ptr<net::HttpClient> http_;
    std::string where_;
    Duration read_patience_ = seconds(3);
    Duration write_patience_ = seconds(30);
};

/// Of an answer with status 400 or more; problem+json is taken apart.
Error error_of_reply(int status, std::string_view content_type, const std::string& body);
/// True for an Error that says the controller is not there (now).
bool is_away(const Error& error);
std::string fresh_key();
/// Waits on `interrupt_fd` (if any); true when it became readable.
/// 128 + the signal that made `interrupt_fd` readable; 130 when it cannot be told.
int interrupt_code(int interrupt_fd);
bool interrupted_within(int interrupt_fd, Duration time);

/// A text/event-stream that reconnects with Last-Event-ID until it is told to stop.
class EventStream {
public:
    struct Options {
        std::string target;
        bool reconnect = true;     // False: the server's end is the end.
        std::string ends_at = {};  // The name of the event that is the last.
        int interrupt_fd = -1;     // Instead of the client's.
    };
    EventStream(const Client& client, Options options);

    enum class Got { Event, TimedOut, Interrupted, Ended, Restarted, Away, Back };
    struct Next {
        Got got = Got::TimedOut;
        net::ServerEvent event = {};
    };
    /// Waits at most `time`. Restarted: what was seen before no longer counts (HTTP 410). Away and
    /// Back come once each when the controller goes and returns. Errors are final.
    Result<Next> next(Duration time);
    /// What the next connection asks for, where the place to go on is part of it.
    void set_target(std::string target) { options_.target = std::move(target); }

private:
    Result<Next> connect();
    const Client& client_;
    Options options_;
    std::unique_ptr<net::HttpBodyReader> body_;
    net::EventParser parser_;
    std::string last_id_;
    bool away_ = false;
    bool ended_ = false;
    std::int64_t retry_ms_ = 0;  // On the steady clock.
    std::int64_t heard_ms_ = 0;
    std::int64_t backoff_ms_ = 100;
    int interrupt_fd_;
};

}  // namespace muster::cli
