#include "cli/client.h"

#include <algorithm>
#include <chrono>

#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/files.h"
#include "net/status.h"

namespace muster::cli {
namespace {

constexpr std::int64_t kSilenceMaxMs = 120'000;

std::int64_t steady_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

Error no_controller(const std::vector<std::string>& tried) {
    return numbered(errors::kUnreachable, "no controller here",
                    "there is no socket at " + join(tried, ", nor at "),
                    "start one with `muster up`, or use one elsewhere: `muster login URL`");
}

Result<net::Endpoint> endpoint_of(const World& world, const Config& config) {
    const Setting& server = config.setting("server");
    if (server.value.empty()) {
        const std::vector<std::string> tried = default_endpoints(world);
        for (const std::string& path : tried) {
            struct stat info {};
            if (::stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode))
                return net::Endpoint{.unix_path = path};
        }
        return no_controller(tried);
    }
    auto endpoint = net::parse_endpoint(server.value);
    if (!endpoint)
        return numbered(errors::kBadConfig,
                        "server '" + server.value + "' (" + server.origin + ") is not an address",
                        endpoint.error().message, "write https://HOST:PORT or unix:PATH");
    endpoint->ca_sha256 = lower(config.get("ca_sha256"));
    if (std::string path = config.get("ca"); !path.empty()) {
        if (path.starts_with("~/")) path = world.home() + path.substr(1);
        MUSTER_LET(pem, read_file(path));
        endpoint->ca_pem = std::move(pem);
    }
    return endpoint;
}

}  // namespace

Query& Query::add(std::string_view name, std::string_view value) {
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=';
    text_ += net::percent_encode(value);
    return *this;
}

std::string target(std::string_view prefix, std::string_view part, std::string_view suffix) {
    return std::string(prefix) + net::percent_encode(part) + std::string(suffix);
}

std::string fresh_key() {
    unsigned char bytes[16];
    std::size_t got = 0;
    while (got < sizeof bytes) {
        const ssize_t n = ::getrandom(bytes + got, sizeof bytes - got, 0);
        if (n > 0) got += static_cast<std::size_t>(n);
    }
    static constexpr char kHex[] = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : bytes) {
        text += kHex[byte >> 4];
        text += kHex[byte & 15];
    }
    return text;
}

int interrupt_code(int interrupt_fd) {
    signalfd_siginfo info{};
    const bool known = interrupt_fd >= 0 && ::read(interrupt_fd, &info, sizeof info) == sizeof info;
    return 128 + (known ? static_cast<int>(info.ssi_signo) : SIGINT);
}

bool interrupted_within(int interrupt_fd, Duration time) {
    pollfd wait{interrupt_fd, POLLIN, 0};
    const int wait_ms = static_cast<int>(std::clamp<std::int64_t>(time.ms, 0, 3'600'000));
    return ::poll(&wait, interrupt_fd >= 0 ? 1 : 0, wait_ms) > 0;
}

bool is_away(const Error& error) {
    return error.code == Code::Unavailable;
}

Error error_of_reply(int status, std::string_view content_type, const std::string& body) {
    Error error{.code = net::code_of_http(status), .message = ""};
    if (content_type.find("json") == std::string_view::npos) {
        error.message =
            "the server answered " + std::to_string(status) + " " + net::http_reason(status);
        error.cause = body.substr(0, 200);
        error.number = errors::kBadAnswer;
        return error;
    }
    const auto document = JsonDocument::parse(body);
    if (!document) {
        error.message = "the server's error " + std::to_string(status) + " is not JSON";
        error.number = errors::kBadAnswer;
        return error;
    }
    const Json problem = document->root();
    error.message = problem["detail"].text();
    if (error.message.empty()) error.message = problem["title"].text();
    error.cause = problem["cause"].text();
    error.fix = problem["fix"].text();
    error.number = parse_error_number(problem["code"].text());
    for (Json each = problem["errors"].first(); each.exists(); each = each.next()) {
        const std::string pointer = each["pointer"].text();
        error.cause += (error.cause.empty() ? "" : "\n") + (pointer.empty() ? "" : pointer + ": ") +
                       each["detail"].text();
    }

    if (error.number == errors::kInternal && problem["request_id"].is_string())
        error.cause +=
            (error.cause.empty() ? "request " : "; request ") + problem["request_id"].text();
    return error;
}

Result<std::unique_ptr<Client>> Client::make(const World& world, const Config& config,
                                             Output& notes) {
    std::unique_ptr<Client> client(new Client(world, notes));
    MUSTER_LET(endpoint, endpoint_of(world, config));
    client->where_ = net::format_endpoint(endpoint);
    client->options_.endpoint = std::move(endpoint);
    client->options_.headers.push_back({"User-Agent", "muster/" MUSTER_VERSION});
    MUSTER_LET(token, find_token(world, config));
    if (!token.token.empty())
        client->options_.headers.push_back({"Authorization", "Bearer " + token.token});
    MUSTER_LET(timeout, parse_duration(config.get("timeout")));
    client->options_.answer_timeout = timeout;
    client->http_ = net::HttpClient::make(client->options_);
    return client;
}

void Client::set_patience(Duration reads, Duration writes) {
    read_patience_ = reads;
    write_patience_ = writes;
}

void Client::set_timeout(Duration timeout) {
    options_.connect_timeout = timeout;
    options_.answer_timeout = timeout;
    http_ = net::HttpClient::make(options_);
}

void Client::set_interrupt(int fd) {
    options_.interrupt_fd = fd;
    http_ = net::HttpClient::make(options_);
}

std::unique_ptr<net::HttpClient> Client::connection(int interrupt_fd) const {
    net::HttpClientOptions options = options_;
    if (interrupt_fd >= 0) options.interrupt_fd = interrupt_fd;
    return net::HttpClient::make(std::move(options));
}

Result<net::HttpReply> Client::call(net::HttpCall call) {
    const bool keyed =
        std::any_of(call.headers.begin(), call.headers.end(),
                    [](const auto& header) { return header.name == "Idempotency-Key"; });
    const bool repeatable = keyed || call.method == "GET";
    const std::int64_t until =
        steady_ms() + (call.method == "GET" ? read_patience_ : write_patience_).ms;
    std::int64_t pause = 50;
    bool told = false;
    for (;;) {
        auto reply = http_->send(call);
        if (reply && reply->status < 400) return reply;
        Error error =
            reply ? error_of_reply(reply->status, reply->header("content-type"), reply->body)
                  : reply.error();
        if (!reply && error.number == 0 && is_away(error)) error.number = errors::kUnreachable;
        const bool try_again =
            !reply ? is_away(error)
                   : reply->status == 503 || error.number == errors::kRateLimit ||
                         (reply->status == 409 && keyed && !reply->header("retry-after").empty());
        if (!try_again || !repeatable) return error;
        if (reply && !reply->header("retry-after").empty()) {
            const auto asked = parse_integer(reply->header("retry-after"), 0, 3600);
            if (asked) pause = std::max<std::int64_t>(pause, *asked * 1000);
        }
        if (steady_ms() + pause > until) return error;
        if (!told && pause >= 400) {
            notes_.write("muster: " + error.message + "; trying again\n");
            notes_.flush();
            told = true;
        }
        if (interrupted_within(options_.interrupt_fd, {pause})) return error;
        pause = std::min<std::int64_t>(pause * 2, 2000);
    }
}

Result<JsonDocument> Client::get(const std::string& where) {
    MUSTER_LET(reply, call({.method = "GET", .target = where}));
    return JsonDocument::parse(std::move(reply.body));
}

Result<JsonDocument> Client::post(const std::string& where, std::string body) {
    MUSTER_LET(reply, call({.method = "POST",
                            .target = where,
                            .headers = {{"Idempotency-Key", fresh_key()}},
                            .body = std::move(body)}));
    if (reply.body.empty()) reply.body = "{}";
    return JsonDocument::parse(std::move(reply.body));
}

EventStream::EventStream(const Client& client, Options options)
    : client_(client),
      options_(std::move(options)),
      interrupt_fd_(options_.interrupt_fd >= 0 ? options_.interrupt_fd : client.interrupt_fd()) {}

Result<EventStream::Next> EventStream::connect() {
    net::HttpCall call{.target = options_.target, .headers = {{"Accept", "text/event-stream"}}};
    if (!last_id_.empty()) call.headers.push_back({"Last-Event-ID", last_id_});
    auto opened = client_.connection(interrupt_fd_)->open(call);
    if (opened && (*opened)->status() == 200) {
        body_ = *std::move(opened);
        parser_ = {};
        backoff_ms_ = 100;
        heard_ms_ = steady_ms();
        if (!away_) return Next{Got::TimedOut};
        away_ = false;
        return Next{Got::Back};
    }
    const int status = opened ? (*opened)->status() : 503;
    // What it would go on from is compacted away: from the start. Without that it is an answer.
    if (opened && status == 410 && !last_id_.empty()) {
        last_id_.clear();
        return Next{Got::Restarted};
    }
    if (opened && status != 503 && status != 429 && status != 507) {
        auto body = (*opened)->read_all({}, 1 << 20);
        return error_of_reply(status, (*opened)->header("content-type"), body ? *body : "");
    }
    if (!opened && !is_away(opened.error())) return std::move(opened).error();
    if (!options_.reconnect) {
        if (opened) return error_of_reply(status, "", "");
        return std::move(opened).error();
    }
    retry_ms_ = steady_ms() + backoff_ms_;
    backoff_ms_ = std::min<std::int64_t>(backoff_ms_ * 2, 2000);
    if (away_) return Next{Got::TimedOut};
    away_ = true;
    return Next{Got::Away};
}

Result<EventStream::Next> EventStream::next(Duration time) {
    if (ended_) return Next{Got::Ended};
    const std::int64_t until = steady_ms() + time.ms;
    for (;;) {
        if (!body_) {
            const std::int64_t now = steady_ms();
            if (now < retry_ms_) {
                const std::int64_t pause = std::min(retry_ms_, until) - now;
                if (interrupted_within(interrupt_fd_, {std::max<std::int64_t>(pause, 0)}))
                    return Next{Got::Interrupted};
                if (retry_ms_ > until) return Next{Got::TimedOut};
            }
            MUSTER_LET(state, connect());
            if (state.got != Got::TimedOut) return state;
            if (steady_ms() >= until) return state;
            continue;
        }
        const std::int64_t left = std::max<std::int64_t>(until - steady_ms(), 0);
        auto read = parser_.read(*body_, {.timeout = {left}, .interrupt_fd = interrupt_fd_});
        if (read && read->end == net::ReadEnd::Data) {
            heard_ms_ = steady_ms();
            if (!read->event.id.empty()) last_id_ = read->event.id;
            if (!options_.ends_at.empty() && read->event.name == options_.ends_at) ended_ = true;
            return Next{Got::Event, std::move(read->event)};
        }
        if (read && read->end == net::ReadEnd::TimedOut) {
            // Heartbeats are not seen here, and a cut network says nothing: ask again at times.
            if (options_.reconnect && steady_ms() - heard_ms_ > kSilenceMaxMs) body_.reset();
            return Next{Got::TimedOut};
        }
        if (read && read->end == net::ReadEnd::Interrupted) return Next{Got::Interrupted};
        body_.reset();
        if (!options_.reconnect) {
            ended_ = true;
            return Next{Got::Ended};
        }
        retry_ms_ = steady_ms() + backoff_ms_;
    }
}

}  // namespace muster::cli
