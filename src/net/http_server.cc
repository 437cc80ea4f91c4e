// The server of net/http.h: listeners, one loop a thread, and the connections of each loop.
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <thread>
#include <unordered_map>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/http_connection.h"
#include "net/listener.h"

namespace muster::net {
namespace {

constexpr unsigned kUserTimeoutMs = 30'000;
constexpr int kAcceptsAtOnce = 64;

/// Writes to a socket whose client has gone must be an error, not a signal: OpenSSL uses write().
void block_sigpipe() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

/// One I/O thread with its connections; everything but `loop` belongs to that thread.
struct Worker {
    std::shared_ptr<IoLoop> loop;
    std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections;
    bool shutting_down = false;
    std::thread thread;
};

class Server final : public HttpServer {
public:
    Server(HttpServerOptions options, HttpHandler handler)
        : shared_(std::make_shared<HttpShared>()) {
        shared_->options = std::move(options);
        shared_->handler = std::move(handler);
    }
    ~Server() override { stop(Duration{0}); }

    Status begin();
    std::uint16_t port() const override { return port_; }
    Status set_tls(const ServerTls& tls) override;
    HttpServerStats stats() const override;
    void stop(Duration grace) override;

private:
    /// Accepts for one listening socket, on the first worker's loop.
    struct Acceptor final : IoLoop::Watcher {
        Acceptor(Server* its_server, UniqueFd its_fd, bool its_unix)
            : server(its_server), fd(std::move(its_fd)), is_unix(its_unix) {}
        void on_ready(std::uint32_t) override { server->accept_from(*this); }
        Server* server;
        UniqueFd fd;
        bool is_unix;
    };

    Duration tick() const;
    Status open_listeners();
    void run(Worker& worker);
    void accept_from(Acceptor& acceptor);
    void take_out_of_descriptors(int listener);
    void admit(UniqueFd fd, bool is_unix);
    void adopt(Worker& worker, UniqueFd fd, bool is_unix, const SslContextPtr& context);

    const std::shared_ptr<HttpShared> shared_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::unique_ptr<Acceptor>> acceptors_;
    UniqueFd reserve_;  // Given up for a moment when descriptors run out.
    std::size_t next_worker_ = 0;
    std::uint16_t port_ = 0;
    ino_t unix_inode_ = 0;
    mutable std::mutex mutex_;
    SslContextPtr context_;  // Under mutex_.
    std::condition_variable ended_;
    bool stopped_ = false;
};

Duration Server::tick() const {
    const HttpServerOptions& o = shared_->options;
    const std::int64_t least = std::min({o.handshake_timeout.ms, o.header_timeout.ms,
                                         o.body_timeout.ms, o.idle_timeout.ms, o.write_timeout.ms});
    return Duration{std::clamp<std::int64_t>(least / 4, 10, 1000)};
}

Status Server::set_tls(const ServerTls& tls) {
    MUSTER_LET(context, make_server_context(tls));
    const std::lock_guard lock(mutex_);
    context_ = std::move(context);
    return Ok{};
}

Status Server::open_listeners() {
    const HttpServerOptions& o = shared_->options;
    if (o.tls) MUSTER_TRY(set_tls(*o.tls));
    if (!o.unix_path.empty()) {
        MUSTER_LET(fd, listen_unix(o.unix_path, o.unix_mode));
        struct stat info {};
        if (::stat(o.unix_path.c_str(), &info) == 0) unix_inode_ = info.st_ino;
        acceptors_.push_back(std::make_unique<Acceptor>(this, std::move(fd), true));
    }
    if (!o.tcp_address.empty()) {
        MUSTER_LET(listener, listen_tcp(o.tcp_address));
        if (!o.tls && !listener.loopback) {
            return Error{.code = Code::Invalid,
                         .message = "plain HTTP is not served on " + o.tcp_address,
                         .cause = "tokens would cross the network readable by all",
                         .fix = "configure TLS, or listen on 127.0.0.1"};
        }
        port_ = listener.port;
        acceptors_.push_back(std::make_unique<Acceptor>(this, std::move(listener.fd), false));
    }
    if (acceptors_.empty()) {
        return Error{.code = Code::Invalid,
                     .message = "the HTTP server has nothing to listen on",
                     .fix = "set a Unix socket path or a TCP address"};
    }
    return Ok{};
}

Status Server::begin() {
    MUSTER_TRY(open_listeners());
    reserve_.reset(::dup(acceptors_.front()->fd.get()));
    for (unsigned i = 0; i < std::max(1U, shared_->options.io_threads); ++i) {
        auto worker = std::make_unique<Worker>();
        MUSTER_LET(loop, IoLoop::make(tick()));
        worker->loop = std::move(loop);
        workers_.push_back(std::move(worker));
    }
    for (const auto& acceptor : acceptors_) {
        // Level-triggered: what is left over after kAcceptsAtOnce is announced again.
        MUSTER_TRY(workers_.front()->loop->watch(acceptor->fd.get(), EPOLLIN, acceptor.get()));
    }
    for (const auto& worker : workers_) {
        worker->thread = std::thread([this, raw = worker.get()] { run(*raw); });
    }
    return Ok{};
}

void Server::run(Worker& worker) {
    block_sigpipe();
    worker.loop->run([&worker] {
        // A copy: a tick may end its connection.
        std::vector<std::shared_ptr<HttpConnection>> now;
        now.reserve(worker.connections.size());
        for (const auto& entry : worker.connections) now.push_back(entry.second);
        for (const auto& connection : now) connection->on_tick();
    });
}

void Server::take_out_of_descriptors(int listener) {
    reserve_.reset();
    const UniqueFd refused(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    shared_->counters->refused.fetch_add(1, std::memory_order_relaxed);
    reserve_.reset(::dup(listener));
}

void Server::accept_from(Acceptor& acceptor) {
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
        UniqueFd fd(::accept4(acceptor.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd) {
            admit(std::move(fd), acceptor.is_unix);
        } else if (errno == EMFILE || errno == ENFILE) {
            return take_out_of_descriptors(acceptor.fd.get());
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

void Server::admit(UniqueFd fd, bool is_unix) {
    HttpCounters& counters = *shared_->counters;
    counters.accepted.fetch_add(1, std::memory_order_relaxed);
    SslContextPtr context;
    if (!is_unix) {
        const int on = 1;
        ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        ::setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
                     sizeof kUserTimeoutMs);
        const std::lock_guard lock(mutex_);
        context = context_;
    }
    if (counters.open.load() >= shared_->options.connections_max) {
        counters.refused.fetch_add(1, std::memory_order_relaxed);
        static constexpr std::string_view kBusy =
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
            "Connection: close\r\n\r\n";
        if (!context) (void)::send(fd.get(), kBusy.data(), kBusy.size(), MSG_NOSIGNAL);
        return;
    }
    counters.open.fetch_add(1);
    Worker& worker = *workers_[next_worker_++ % workers_.size()];
    if (worker.loop->on_thread()) return adopt(worker, std::move(fd), is_unix, context);
    auto held = std::make_shared<UniqueFd>(std::move(fd));
    worker.loop->post([this, &worker, held, is_unix, context] {
        adopt(worker, std::move(*held), is_unix, context);
    });
}

void Server::adopt(Worker& worker, UniqueFd fd, bool is_unix, const SslContextPtr& context) {
    const int raw = fd.get();
    SslPtr ssl;
    if (context) {
        auto made = make_server_ssl(context.get(), raw);
        if (made) ssl = *std::move(made);
    }
    if (worker.shutting_down || (context && !ssl)) {
        shared_->counters->open.fetch_sub(1);
        return;
    }
    auto connection = std::make_shared<HttpConnection>(
        worker.loop, shared_, Wire(std::move(fd), std::move(ssl)), peer_of(raw, is_unix),
        [this, &worker](HttpConnection* ended) {
            worker.connections.erase(ended);
            shared_->counters->open.fetch_sub(1);
            const std::lock_guard lock(mutex_);
            ended_.notify_all();
        });
    worker.connections.emplace(connection.get(), connection);
    connection->start();
}

HttpServerStats Server::stats() const {
    const HttpCounters& c = *shared_->counters;
    return {.connections_open = c.open.load(),
            .connections_accepted = c.accepted.load(),
            .connections_refused = c.refused.load(),
            .requests = c.requests.load(),
            .streams_open = c.streams.load(),
            .chunks_dropped = c.dropped.load()};
}

void Server::stop(Duration grace) {
    if (std::exchange(stopped_, true)) return;
    struct stat info {};
    const std::string& path = shared_->options.unix_path;
    // Not a successor's socket.
    if (!path.empty() && ::stat(path.c_str(), &info) == 0 && info.st_ino == unix_inode_) {
        ::unlink(path.c_str());
    }
    if (workers_.empty()) return;
    const auto on_all = [this](auto action) {
        for (const auto& worker : workers_) {
            worker->loop->post([raw = worker.get(), action] {
                std::vector<std::shared_ptr<HttpConnection>> now;
                for (const auto& entry : raw->connections) now.push_back(entry.second);
                for (const auto& connection : now) action(*connection);
            });
        }
    };
    workers_.front()->loop->post([this] {
        for (const auto& acceptor : acceptors_) {
            workers_.front()->loop->forget(acceptor->fd.get());
            acceptor->fd.reset();
        }
        reserve_.reset();
    });
    for (const auto& worker : workers_) {
        worker->loop->post([raw = worker.get()] { raw->shutting_down = true; });
    }
    if (grace.ms > 0) {
        on_all([](HttpConnection& connection) { connection.begin_shutdown(); });
        std::unique_lock lock(mutex_);
        ended_.wait_for(lock, std::chrono::milliseconds(grace.ms),
                        [this] { return shared_->counters->open.load() == 0; });
    }
    on_all([](HttpConnection& connection) { connection.close(); });
    for (const auto& worker : workers_) worker->loop->stop();
    for (const auto& worker : workers_) {
        if (worker->thread.joinable()) worker->thread.join();
    }
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options,
                                                      HttpHandler handler) {
    auto server = std::make_unique<Server>(std::move(options), std::move(handler));
    MUSTER_TRY(server->begin());
    return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace muster::net
