// What stands behind HttpStream, RawStream and Responder: the meeting points between any thread
// and the connection on its I/O thread. Internal to net.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "net/http.h"
#include "net/io_loop.h"

namespace muster::net {

class HttpConnection;

/// A piece of output: own text, or a text shared by many.
struct Chunk {
    std::string own = {};
    std::shared_ptr<const std::string> shared = {};
    std::string_view view() const { return shared ? std::string_view(*shared) : own; }
};

/// Counted by all connections of a server.
struct HttpCounters {
    std::atomic<std::uint64_t> open{0};
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> streams{0};
    std::atomic<std::uint64_t> dropped{0};
};

struct HttpStream::State : std::enable_shared_from_this<HttpStream::State> {
    State(std::shared_ptr<IoLoop> its_loop, std::weak_ptr<HttpConnection> its_connection,
          std::shared_ptr<HttpCounters> its_counters, std::size_t its_max)
        : loop(std::move(its_loop)),
          connection(std::move(its_connection)),
          counters(std::move(its_counters)),
          buffer_max(its_max) {}

    Write write(Chunk chunk);
    void close();
    std::size_t buffered();
    void set_on_closed(std::function<void()> callback);
    void set_on_drain(std::function<void()> callback);

    // For the connection, on its thread:
    /// Moves what is pending behind `out`; small chunks are joined, in frames when `chunked`.
    void take(std::deque<Chunk>& out, bool chunked);
    /// So many bytes, frames included, went to the kernel.
    void sent(std::size_t bytes);
    /// True when close() was called and nothing is pending.
    bool finished();
    /// The connection has ended; tells whoever asked.
    void end();

    const std::shared_ptr<IoLoop> loop;
    const std::weak_ptr<HttpConnection> connection;
    const std::shared_ptr<HttpCounters> counters;
    const std::size_t buffer_max;
    std::function<std::string(std::uint64_t)> drop_notice;  // Set before it is shared.
    std::function<void(std::string_view)> on_data;          // The same; raw streams only.

private:
    void wake();

    std::mutex mutex_;
    std::deque<Chunk> pending_;
    std::size_t pending_bytes_ = 0;
    std::size_t taken_bytes_ = 0;  // With the connection, not yet sent.
    std::uint64_t dropped_ = 0;    // Since the last notice.
    bool was_full_ = false;
    bool wake_posted_ = false;
    bool closing_ = false;
    bool ended_ = false;
    std::function<void()> on_closed_;
    std::function<void()> on_drain_;
};

struct Responder::Exchange : std::enable_shared_from_this<Responder::Exchange> {
    ~Exchange();

    std::shared_ptr<IoLoop> loop;
    std::weak_ptr<HttpConnection> connection;
    std::shared_ptr<HttpCounters> counters;
    std::string upgrade_protocol;
    std::atomic<bool> answered{false};
    std::atomic<bool> gone{false};
};

}  // namespace muster::net
