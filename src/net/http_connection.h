// One client: handshake, requests one after another, and what each turned into (an answer, a
// stream, raw bytes). Lives on one I/O thread, which alone calls it. Internal to net.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "net/http_parser.h"
#include "net/http_stream.h"
#include "net/io_loop.h"
#include "net/wire.h"

namespace muster::net {

/// What all connections of one server share.
struct HttpShared {
    HttpServerOptions options;
    HttpHandler handler;
    std::shared_ptr<HttpCounters> counters = std::make_shared<HttpCounters>();
};

class HttpConnection : public IoLoop::Watcher, public std::enable_shared_from_this<HttpConnection> {
public:
    /// `on_ended` is called once, when the socket has been closed.
    HttpConnection(std::shared_ptr<IoLoop> loop, std::shared_ptr<const HttpShared> shared,
                   Wire wire, Peer peer, std::function<void(HttpConnection*)> on_ended);

    void start();
    void on_ready(std::uint32_t epoll_events) override;
    void on_tick();
    /// Idle: ends now. Streams: end after what is pending. Requests: end after their answer.
    void begin_shutdown();
    void close();

    void answer(HttpResponse response);
    bool begin_stream(std::shared_ptr<HttpStream::State> stream, const StreamOptions& options);
    bool begin_raw(std::shared_ptr<HttpStream::State> stream, std::string_view protocol);
    void on_stream_output();
    void pause_reading(bool paused);

private:
    enum class Phase : std::uint8_t {
        Handshake,
        Reading,   // Between requests, or in one.
        Handling,  // With the handler.
        Streaming,
        Raw,
        Finishing,  // Everything is queued; then the connection ends.
        Draining,   // Finished; waits for the client's end, so that no reset eats our last words.
        Closed,
    };

    void advance();  // As far as it goes without waiting.
    bool step();     // One thing; false when it has to wait.
    bool step_handshake();
    bool step_reading();
    bool step_streaming();
    bool step_raw();
    bool step_draining();
    /// False when the output has to wait. Closes on failure.
    bool flush();
    void note_sent(std::size_t bytes);
    std::size_t queued_bytes() const;
    Io read_more();  // Into in_.
    void dispatch();
    void refuse(const Refusal& refusal);
    void queue(std::string text);
    void queue_answer_head(const HttpResponse& response, std::int64_t length);
    void after_answer();
    std::string_view date();
    void mark_gone();
    void set_deadline(Duration wait) { deadline_ms_ = loop_->now_ms() + wait.ms; }

    const std::shared_ptr<IoLoop> loop_;
    const std::shared_ptr<const HttpShared> shared_;
    std::function<void(HttpConnection*)> on_ended_;
    Wire wire_;
    Peer peer_;
    HttpParser parser_;
    Phase phase_ = Phase::Handshake;
    bool advancing_ = false;
    bool again_ = false;
    bool peer_finished_ = false;  // Sent its last byte.
    bool shutting_down_ = false;
    bool in_request_ = false;  // Its first byte has come.
    bool continued_ = false;
    bool keep_alive_ = true;
    bool http11_ = true;
    bool is_head_ = false;
    bool chunked_ = false;
    bool paused_ = false;
    bool lingers_ = false;                // The client may still be sending what we refused.
    std::int64_t deadline_ms_ = 0;        // 0 = none.
    std::int64_t write_deadline_ms_ = 0;  // 0 = nothing is waiting.
    std::int64_t heartbeat_at_ms_ = 0;    // 0 = none.
    Duration heartbeat_every_;
    std::string heartbeat_;
    std::string in_;
    std::deque<Chunk> out_;
    std::size_t out_offset_ = 0;                   // Of the front chunk, sent.
    std::size_t own_bytes_ = 0;                    // At the front of out_, not the stream's.
    std::weak_ptr<Responder::Exchange> exchange_;  // Its owners are the handler's.
    std::shared_ptr<HttpStream::State> stream_;
};

}  // namespace muster::net
