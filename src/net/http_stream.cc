#include "net/http_stream.h"

#include "net/http_connection.h"
#include "net/http_message.h"
#include "net/status.h"

namespace muster::net {
namespace {

constexpr std::size_t kJoinMax = 16 * 1024;  // One TLS record; copying less than that is cheap.

}  // namespace

Write HttpStream::State::write(Chunk chunk) {
    const std::size_t size = chunk.view().size();
    if (size == 0) return Write::Accepted;
    {
        const std::lock_guard lock(mutex_);
        if (ended_ || closing_) return Write::Closed;
        const std::size_t held = pending_bytes_ + taken_bytes_;
        // A chunk larger than the buffer still passes when it has the buffer to itself.
        if (held > 0 && held + size > buffer_max) {
            was_full_ = true;
            ++dropped_;
            counters->dropped.fetch_add(1, std::memory_order_relaxed);
            return Write::Full;
        }
        pending_bytes_ += size;
        pending_.push_back(std::move(chunk));
        if (wake_posted_) return Write::Accepted;
        wake_posted_ = true;
    }
    wake();
    return Write::Accepted;
}

void HttpStream::State::wake() {
    loop->post([self = shared_from_this()] {
        if (const auto alive = self->connection.lock()) alive->on_stream_output();
    });
}

void HttpStream::State::close() {
    {
        const std::lock_guard lock(mutex_);
        if (ended_ || closing_) return;
        closing_ = true;
        if (wake_posted_) return;
        wake_posted_ = true;
    }
    wake();
}

std::size_t HttpStream::State::buffered() {
    const std::lock_guard lock(mutex_);
    return pending_bytes_ + taken_bytes_;
}

void HttpStream::State::set_on_closed(std::function<void()> callback) {
    {
        const std::lock_guard lock(mutex_);
        if (!ended_) {
            on_closed_ = std::move(callback);
            return;
        }
    }
    callback();
}

void HttpStream::State::set_on_drain(std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    on_drain_ = std::move(callback);
}

void HttpStream::State::take(std::deque<Chunk>& out, bool chunked) {
    const std::lock_guard lock(mutex_);
    wake_posted_ = false;
    while (!pending_.empty()) {
        Chunk next = std::move(pending_.front());
        pending_.pop_front();
        pending_bytes_ -= next.view().size();
        if (next.view().size() < kJoinMax) {
            std::string joined(next.view());
            while (!pending_.empty() &&
                   joined.size() + pending_.front().view().size() <= kJoinMax) {
                joined.append(pending_.front().view());
                pending_bytes_ -= pending_.front().view().size();
                pending_.pop_front();
            }
            if (chunked) joined = chunk_head(joined.size()) + joined + "\r\n";
            taken_bytes_ += joined.size();
            out.push_back(Chunk{.own = std::move(joined)});
            continue;
        }
        taken_bytes_ += next.view().size();
        if (!chunked) {
            out.push_back(std::move(next));
            continue;
        }
        out.push_back(Chunk{.own = chunk_head(next.view().size())});
        taken_bytes_ += out.back().own.size() + 2;
        out.push_back(std::move(next));
        out.push_back(Chunk{.own = "\r\n"});
    }
}

void HttpStream::State::sent(std::size_t bytes) {
    std::function<void()> drained;
    std::uint64_t dropped = 0;
    {
        const std::lock_guard lock(mutex_);
        taken_bytes_ -= std::min(bytes, taken_bytes_);
        if (!was_full_ || pending_bytes_ + taken_bytes_ > buffer_max / 2) return;
        was_full_ = false;
        drained = on_drain_;
        std::swap(dropped, dropped_);
    }
    if (drop_notice && dropped > 0) {
        std::string notice = drop_notice(dropped);
        const std::lock_guard lock(mutex_);
        // In the place of what was refused: before all that was accepted later.
        if (!ended_ && !notice.empty()) {
            pending_bytes_ += notice.size();
            pending_.push_front(Chunk{.own = std::move(notice)});
        }
    }
    if (drained) drained();
}

bool HttpStream::State::finished() {
    const std::lock_guard lock(mutex_);
    return closing_ && pending_.empty();
}

void HttpStream::State::end() {
    std::function<void()> tell;
    {
        const std::lock_guard lock(mutex_);
        if (ended_) return;
        ended_ = true;
        pending_.clear();
        pending_bytes_ = taken_bytes_ = 0;
        tell.swap(on_closed_);
        on_drain_ = nullptr;
    }
    // Whatever the callbacks hold is let go of, so that owner and stream do not keep each other.
    on_data = nullptr;
    counters->streams.fetch_sub(1, std::memory_order_relaxed);
    if (tell) tell();
}

Write HttpStream::write(std::string chunk) const {
    return state_->write(Chunk{.own = std::move(chunk)});
}
Write HttpStream::write(std::shared_ptr<const std::string> chunk) const {
    return state_->write(Chunk{.shared = std::move(chunk)});
}
void HttpStream::close() const {
    state_->close();
}
std::size_t HttpStream::buffered() const {
    return state_->buffered();
}
void HttpStream::on_closed(std::function<void()> callback) const {
    state_->set_on_closed(std::move(callback));
}
void HttpStream::on_drain(std::function<void()> callback) const {
    state_->set_on_drain(std::move(callback));
}

Write RawStream::write(std::string bytes) const {
    return state_->write(Chunk{.own = std::move(bytes)});
}
void RawStream::close() const {
    state_->close();
}
std::size_t RawStream::buffered() const {
    return state_->buffered();
}
void RawStream::pause_reading(bool paused) const {
    const auto apply = [state = state_, paused] {
        if (const auto alive = state->connection.lock()) alive->pause_reading(paused);
    };
    if (state_->loop->on_thread()) return apply();  // So that on_data's pause holds at once.
    state_->loop->post(apply);
}

Responder::Exchange::~Exchange() {
    if (answered.load()) return;
    loop->post([target = connection] {
        const auto alive = target.lock();
        if (!alive) return;
        alive->answer(HttpResponse{
            .status = 500,
            .content_type = "application/problem+json",
            .body = problem_json(Error{.message = "the request was dropped without an answer"})});
    });
}

bool Responder::answer(HttpResponse response) const {
    if (exchange_->answered.exchange(true)) return false;
    if (exchange_->loop->on_thread()) {
        if (const auto alive = exchange_->connection.lock()) alive->answer(std::move(response));
        return !exchange_->gone.load();
    }
    // Shared, because a posted job must be copyable; the body itself is moved along.
    auto held = std::make_shared<HttpResponse>(std::move(response));
    exchange_->loop->post([target = exchange_->connection, held] {
        if (const auto alive = target.lock()) alive->answer(std::move(*held));
    });
    return !exchange_->gone.load();
}

bool Responder::fail(const Error& error) const {
    return answer(HttpResponse{.status = http_status(error.code),
                               .content_type = "application/problem+json",
                               .body = problem_json(error)});
}

std::optional<HttpStream> Responder::stream(StreamOptions options) const {
    if (exchange_->answered.exchange(true)) return std::nullopt;
    auto state = std::make_shared<HttpStream::State>(exchange_->loop, exchange_->connection,
                                                     exchange_->counters, options.buffer_max);
    state->drop_notice = options.drop_notice;
    exchange_->counters->streams.fetch_add(1, std::memory_order_relaxed);
    const bool posted = exchange_->loop->post([state, options = std::move(options)] {
        const auto alive = state->connection.lock();
        if (!alive || !alive->begin_stream(state, options)) state->end();
    });
    if (!posted) state->end();
    return HttpStream(std::move(state));
}

Result<RawStream> Responder::upgrade(RawOptions options) const {
    if (!equal_ignoring_case(exchange_->upgrade_protocol, options.protocol)) {
        return Error{.code = Code::Invalid,
                     .message = "this request needs an upgrade to " + options.protocol,
                     .cause = exchange_->upgrade_protocol.empty()
                                  ? "it has no Upgrade header"
                                  : "it asks for " + exchange_->upgrade_protocol,
                     .fix = "send Connection: Upgrade and Upgrade: " + options.protocol};
    }
    if (exchange_->answered.exchange(true)) {
        return Error{.code = Code::Conflict, .message = "the request was answered before"};
    }
    auto state = std::make_shared<HttpStream::State>(exchange_->loop, exchange_->connection,
                                                     exchange_->counters, options.buffer_max);
    state->on_data = std::move(options.on_data);
    state->set_on_closed(std::move(options.on_closed));
    state->set_on_drain(std::move(options.on_drain));
    exchange_->counters->streams.fetch_add(1, std::memory_order_relaxed);
    const bool posted = exchange_->loop->post([state, protocol = options.protocol] {
        const auto alive = state->connection.lock();
        if (!alive || !alive->begin_raw(state, protocol)) state->end();
    });
    if (!posted) state->end();
    return RawStream(std::move(state));
}

bool Responder::gone() const {
    return exchange_->gone.load();
}

}  // namespace muster::net
