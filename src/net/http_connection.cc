#include "net/http_connection.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <sys/epoll.h>

#include "net/http_message.h"
#include "net/status.h"

namespace muster::net {
namespace {

constexpr int kStepsAtOnce = 64;
constexpr std::size_t kReadAhead = 64 * 1024;  // Pipelined bytes held while a request is handled.
constexpr std::size_t kPartsMax = 16;
constexpr Duration kDrainTime{2'000};

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<IoLoop> loop,
                               std::shared_ptr<const HttpShared> shared, Wire wire, Peer peer,
                               std::function<void(HttpConnection*)> on_ended)
    : loop_(std::move(loop)),
      shared_(std::move(shared)),
      on_ended_(std::move(on_ended)),
      wire_(std::move(wire)),
      peer_(std::move(peer)),
      parser_(shared_->options.header_max, shared_->options.body_max) {}

void HttpConnection::start() {
    constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    if (!loop_->watch(wire_.fd(), kEvents, this)) return close();
    set_deadline(shared_->options.handshake_timeout);
    advance();
}

void HttpConnection::on_ready(std::uint32_t epoll_events) {
    if (phase_ == Phase::Closed) return;
    if ((epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) mark_gone();
    const bool dead = (epoll_events & (EPOLLHUP | EPOLLERR)) != 0;
    const bool reads = phase_ != Phase::Handling && !(phase_ == Phase::Raw && paused_);
    if (dead && (!reads || phase_ == Phase::Draining)) return close();
    advance();
}

void HttpConnection::advance() {
    again_ = true;
    if (advancing_) return;
    advancing_ = true;
    const auto self = shared_from_this();
    int budget = kStepsAtOnce;
    while (again_ && phase_ != Phase::Closed && budget > 0) {
        again_ = false;
        while (budget > 0 && phase_ != Phase::Closed && step()) --budget;
    }
    advancing_ = false;
    if (budget == 0 && phase_ != Phase::Closed) {
        loop_->post([self] { self->advance(); });  // The others' turn first.
    }
}

bool HttpConnection::step() {
    if (phase_ == Phase::Handshake) return step_handshake();
    if (stream_) stream_->take(out_, chunked_);
    if (!flush()) return phase_ == Phase::Raw && step_raw();
    switch (phase_) {
        case Phase::Reading: return step_reading();
        case Phase::Streaming: return step_streaming();
        case Phase::Raw: return step_raw();
        case Phase::Finishing:
            wire_.finish();
            if (!lingers_) {
                close();
                return false;
            }
            phase_ = Phase::Draining;
            set_deadline(std::min(kDrainTime, shared_->options.header_timeout));
            return true;
        case Phase::Draining: return step_draining();
        default: return false;
    }
}

bool HttpConnection::step_handshake() {
    const Io io = wire_.handshake();
    if (io == Io::WantRead || io == Io::WantWrite) return false;
    if (io != Io::Done) {
        shared_->counters->refused.fetch_add(1, std::memory_order_relaxed);
        close();
        return false;
    }
    if (wire_.secure()) peer_.certificate_name = verified_peer_name(wire_.ssl());
    phase_ = Phase::Reading;
    set_deadline(shared_->options.header_timeout);
    return true;
}

Io HttpConnection::read_more() {
    const IoCount got = wire_.read(loop_->scratch().data(), loop_->scratch().size());
    in_.append(loop_->scratch().data(), got.bytes);
    if (got.io == Io::Closed) peer_finished_ = true;
    return got.io;
}

bool HttpConnection::step_reading() {
    if (in_.empty()) {
        const Io io = read_more();
        if (io == Io::Closed || io == Io::Failed) {
            close();
            return false;
        }
        if (io != Io::Done) {
            if (!in_request_) std::string().swap(in_);  // An idle client costs no buffer.
            return false;
        }
    }
    if (!in_request_) {
        in_request_ = true;
        set_deadline(shared_->options.header_timeout);
    }
    const HttpParser::State before = parser_.state();
    in_.erase(0, parser_.feed(in_));
    if (parser_.state() == HttpParser::State::Refused) {
        refuse(parser_.refusal());
        return true;
    }
    if (parser_.state() == HttpParser::State::Done) {
        dispatch();
        return true;
    }
    if (before == HttpParser::State::Head && parser_.state() == HttpParser::State::Body) {
        set_deadline(shared_->options.body_timeout);
        if (parser_.wants_continue() && !continued_) {
            continued_ = true;
            queue("HTTP/1.1 100 Continue\r\n\r\n");
            return true;
        }
    }
    const Io io = read_more();
    if (io == Io::Closed || io == Io::Failed) close();
    return io == Io::Done;
}

void HttpConnection::dispatch() {
    http11_ = parser_.http11();
    keep_alive_ = http11_ && parser_.keep_alive() && !shutting_down_;
    const auto exchange = std::make_shared<Responder::Exchange>();
    exchange->loop = loop_;
    exchange->connection = weak_from_this();
    exchange->counters = shared_->counters;
    exchange->upgrade_protocol = parser_.upgrade_protocol();
    exchange_ = exchange;
    HttpRequest request = parser_.take();
    request.peer = peer_;
    is_head_ = request.method == "HEAD";
    in_request_ = false;
    continued_ = false;
    deadline_ms_ = 0;
    phase_ = Phase::Handling;
    shared_->counters->requests.fetch_add(1, std::memory_order_relaxed);
    if (!split_target(request)) {
        exchange->answered.store(true);
        return refuse(Refusal{400, "the request's target is malformed"});
    }
    const Responder responder(exchange);
    try {
        shared_->handler(std::move(request), responder);
    } catch (const std::exception& error) {
        responder.fail(Error{.message = "the handler failed", .cause = error.what()});
    }
}

std::string_view HttpConnection::date() {
    thread_local std::time_t of = 0;
    thread_local std::string text;
    const std::time_t now = std::time(nullptr);
    if (now != of) {
        of = now;
        text = http_date(now);
    }
    return text;
}

void HttpConnection::mark_gone() {
    if (const auto exchange = exchange_.lock()) exchange->gone.store(true);
}

void HttpConnection::queue(std::string text) {
    out_.push_back(Chunk{.own = std::move(text)});
}

void HttpConnection::queue_answer_head(const HttpResponse& response, std::int64_t length) {
    queue(answer_head({.status = response.status,
                       .content_type = response.content_type,
                       .headers = &response.headers,
                       .date = date(),
                       .length = length,
                       .keep_alive = keep_alive_}));
}

void HttpConnection::answer(HttpResponse response) {
    if (phase_ != Phase::Handling) return;
    if (shutting_down_) keep_alive_ = false;
    const std::size_t size =
        response.shared_body ? response.shared_body->size() : response.body.size();
    const bool bodiless = response.status == 204 || response.status == 304;
    if (bodiless) response.content_type.clear();
    queue_answer_head(response, bodiless ? -3 : static_cast<std::int64_t>(size));
    if (!is_head_ && !bodiless && size > 0) {
        Chunk body{.own = std::move(response.body), .shared = std::move(response.shared_body)};
        if (size <= 4096) {
            out_.back().own.append(body.view());  // One packet, one TLS record.
        } else {
            out_.push_back(std::move(body));
        }
    }
    after_answer();
}

void HttpConnection::after_answer() {
    exchange_.reset();
    phase_ = keep_alive_ ? Phase::Reading : Phase::Finishing;
    if (keep_alive_) set_deadline(shared_->options.idle_timeout);
    advance();
}

void HttpConnection::refuse(const Refusal& refusal) {
    keep_alive_ = false;
    lingers_ = true;
    phase_ = Phase::Handling;
    is_head_ = false;
    const Error error{.code = code_of_http(refusal.status), .message = refusal.detail};
    answer(HttpResponse{.status = refusal.status,
                        .content_type = "application/problem+json",
                        .body = problem_json(error, refusal.status)});
}

bool HttpConnection::begin_stream(std::shared_ptr<HttpStream::State> stream,
                                  const StreamOptions& options) {
    if (phase_ != Phase::Handling) return false;
    exchange_.reset();
    chunked_ = http11_;
    if (!chunked_ || shutting_down_) keep_alive_ = false;
    HttpResponse head{
        .status = options.status, .content_type = options.content_type, .headers = options.headers};
    head.headers.push_back({"Cache-Control", "no-store"});
    queue_answer_head(head, chunked_ ? -1 : -2);
    own_bytes_ = queued_bytes();
    phase_ = Phase::Streaming;
    stream_ = std::move(stream);
    heartbeat_ = options.heartbeat;
    heartbeat_every_ = options.heartbeat_every;
    if (!heartbeat_.empty()) heartbeat_at_ms_ = loop_->now_ms() + heartbeat_every_.ms;
    if (is_head_ || shutting_down_) stream_->close();
    advance();
    return true;
}

bool HttpConnection::begin_raw(std::shared_ptr<HttpStream::State> stream,
                               std::string_view protocol) {
    if (phase_ != Phase::Handling || shutting_down_) return false;
    exchange_.reset();
    keep_alive_ = false;
    chunked_ = false;
    queue(answer_head({.status = 101, .date = date(), .length = -3, .upgrade = protocol}));
    own_bytes_ = queued_bytes();
    phase_ = Phase::Raw;
    stream_ = std::move(stream);
    advance();
    return true;
}

void HttpConnection::on_stream_output() {
    if (!heartbeat_.empty()) heartbeat_at_ms_ = loop_->now_ms() + heartbeat_every_.ms;
    advance();
}

void HttpConnection::pause_reading(bool paused) {
    paused_ = paused;
    if (!paused) advance();
}

bool HttpConnection::step_streaming() {
    if (stream_->finished()) {
        if (chunked_) queue("0\r\n\r\n");
        std::exchange(stream_, nullptr)->end();
        heartbeat_.clear();
        heartbeat_at_ms_ = 0;
        phase_ = keep_alive_ ? Phase::Reading : Phase::Finishing;
        set_deadline(shared_->options.idle_timeout);
        return true;
    }
    // Nothing is expected from the client but its end.
    const Io io = read_more();
    if (io == Io::Closed || io == Io::Failed || in_.size() > kReadAhead) close();
    return io == Io::Done;
}

bool HttpConnection::step_raw() {
    if (out_.empty() && stream_->finished()) {
        std::exchange(stream_, nullptr)->end();
        phase_ = Phase::Finishing;
        return true;
    }
    if (paused_) return false;
    if (!in_.empty()) {
        const std::string first = std::exchange(in_, {});
        if (stream_->on_data) stream_->on_data(first);
        return true;
    }
    const auto buffer = loop_->scratch();
    const IoCount got = wire_.read(buffer.data(), buffer.size());
    if (got.io == Io::Closed || got.io == Io::Failed) close();
    if (got.io != Io::Done) return false;
    if (stream_->on_data) stream_->on_data({buffer.data(), got.bytes});
    return true;
}

bool HttpConnection::step_draining() {
    if (peer_finished_) {
        close();
        return false;
    }
    const Io io = read_more();
    in_.clear();
    if (io == Io::Closed || io == Io::Failed) close();
    return io == Io::Done;
}

bool HttpConnection::flush() {
    while (!out_.empty()) {
        std::array<iovec, kPartsMax> parts;
        std::size_t count = 0;
        for (const Chunk& chunk : out_) {
            if (count == kPartsMax) break;
            const std::string_view left = chunk.view().substr(count == 0 ? out_offset_ : 0);
            parts[count++] = {const_cast<char*>(left.data()), left.size()};
        }
        const IoCount sent = wire_.write(std::span(parts.data(), count));
        if (sent.io == Io::WantRead || sent.io == Io::WantWrite) {
            if (write_deadline_ms_ == 0) {
                write_deadline_ms_ = loop_->now_ms() + shared_->options.write_timeout.ms;
            }
            return false;
        }
        if (sent.io != Io::Done) {
            close();
            return false;
        }
        write_deadline_ms_ = 0;
        note_sent(sent.bytes);
    }
    return true;
}

void HttpConnection::note_sent(std::size_t bytes) {
    out_offset_ += bytes;
    while (!out_.empty() && out_offset_ >= out_.front().view().size()) {
        out_offset_ -= out_.front().view().size();
        out_.pop_front();
    }
    if (!stream_) return;
    const std::size_t own = std::min(bytes, own_bytes_);
    own_bytes_ -= own;
    if (bytes > own) {
        stream_->sent(bytes - own);
        again_ = true;  // A notice may be pending now.
    }
}

std::size_t HttpConnection::queued_bytes() const {
    std::size_t bytes = 0;
    for (const Chunk& chunk : out_) bytes += chunk.view().size();
    return bytes - out_offset_;
}

void HttpConnection::on_tick() {
    const std::int64_t now = loop_->now_ms();
    if (write_deadline_ms_ != 0 && now > write_deadline_ms_) return close();
    if (heartbeat_at_ms_ != 0 && now >= heartbeat_at_ms_) {
        heartbeat_at_ms_ = now + heartbeat_every_.ms;
        if (stream_->buffered() == 0) stream_->write(Chunk{.own = heartbeat_});
    }
    if (deadline_ms_ == 0 || now <= deadline_ms_) return;
    deadline_ms_ = 0;
    if (phase_ == Phase::Handshake || phase_ == Phase::Draining) return close();
    if (phase_ != Phase::Reading) return;
    if (in_request_) return refuse(Refusal{408, "the request did not arrive in time"});
    phase_ = Phase::Finishing;
    advance();
}

void HttpConnection::begin_shutdown() {
    shutting_down_ = true;
    keep_alive_ = false;
    if (phase_ == Phase::Handshake) return close();
    if (stream_) stream_->close();
    if (phase_ != Phase::Reading || in_request_) return;
    phase_ = Phase::Finishing;
    advance();
}

void HttpConnection::close() {
    if (phase_ == Phase::Closed) return;
    phase_ = Phase::Closed;
    const auto self = shared_from_this();
    mark_gone();
    exchange_.reset();
    loop_->forget(wire_.fd());
    wire_.close();
    out_.clear();
    in_.clear();
    if (stream_) std::exchange(stream_, nullptr)->end();
    loop_->bury(self);
    on_ended_(this);
}

}  // namespace muster::net
