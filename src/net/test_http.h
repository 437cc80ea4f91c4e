// For tests of this room: servers on fresh sockets, and raw clients that misbehave on purpose.
#pragma once

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "net/http.h"
#include "net/http_client.h"
#include "net/pki.h"
#include "net/unique_fd.h"

namespace muster::net::testing {

class TempFolder {
public:
    TempFolder() {
        char text[] = "/tmp/muster-net-XXXXXX";
        path_ = ::mkdtemp(text);
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// A flag or a count that another thread waits for.
class Signal {
public:
    void raise() {
        const std::lock_guard lock(mutex_);
        ++count_;
        changed_.notify_all();
    }
    void wait(int count = 1) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return count_ >= count; });
    }
    int count() {
        const std::lock_guard lock(mutex_);
        return count_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;
};

inline Time test_now() {
    return Time{std::int64_t{std::time(nullptr)} * 1000};
}
constexpr Duration kDay{24 * 3600 * 1000};

/// A server on a fresh Unix socket (or TCP, when asked), with a handler; fails the test if it
/// cannot.
struct TestServer {
    explicit TestServer(HttpHandler handler, HttpServerOptions options = {}, bool tcp = false) {
        if (tcp) {
            options.tcp_address = "127.0.0.1:0";
        } else {
            options.unix_path = folder.file("s");
        }
        auto started = HttpServer::start(options, std::move(handler));
        if (!started) {
            ADD_FAILURE() << started.error().message << ": " << started.error().cause;
            std::abort();
        }
        server = *std::move(started);
        endpoint.unix_path = options.unix_path;
        endpoint.tls = options.tls.has_value();
        endpoint.host = "127.0.0.1";
        endpoint.port = server->port();
    }
    std::unique_ptr<HttpClient> client() { return HttpClient::make({.endpoint = endpoint}); }

    TempFolder folder;
    std::unique_ptr<HttpServer> server;
    Endpoint endpoint;
};

/// A plain socket on which a test says what no proper client would.
class RawClient {
public:
    explicit RawClient(const Endpoint& to) {
        if (!to.unix_path.empty()) {
            fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            std::memcpy(address.sun_path, to.unix_path.data(), to.unix_path.size());
            EXPECT_EQ(0,
                      ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
        } else {
            fd_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_port = htons(to.port);
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            EXPECT_EQ(0,
                      ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
        }
    }
    /// False when the server has closed.
    bool send(std::string_view text) {
        while (!text.empty()) {
            const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    /// Until `mark` has been seen or the server closes.
    std::string read_until(std::string_view mark) {
        std::string text;
        while (text.find(mark) == std::string::npos) {
            char bytes[4096];
            const ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, 0);
            if (got <= 0) break;
            text.append(bytes, static_cast<std::size_t>(got));
        }
        return text;
    }
    /// Everything until the server closes.
    std::string read_to_end() { return read_until(std::string_view("\0never\0", 7)); }
    void finish() { ::shutdown(fd_.get(), SHUT_WR); }
    void close() { fd_.reset(); }
    int fd() const { return fd_.get(); }

private:
    UniqueFd fd_;
};

inline const KeyedCertificate& test_ca() {
    static const KeyedCertificate kCa =
        *make_ca("muster test CA", test_now() - kDay, Time{test_now().ms + 30 * kDay.ms});
    return kCa;
}
inline KeyedCertificate test_certificate(const std::string& name, CertificateUse use,
                                         std::vector<std::string> hosts = {},
                                         Time not_after = Time{test_now().ms + 10 * kDay.ms}) {
    return *issue_certificate(test_ca(), {.name = name,
                                          .hosts = std::move(hosts),
                                          .use = use,
                                          .not_before = not_after - Duration{11 * kDay.ms},
                                          .not_after = not_after});
}

}  // namespace muster::net::testing
