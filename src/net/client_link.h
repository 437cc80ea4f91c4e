// A connected client socket with waiting: time-outs and an interrupting descriptor over a Wire.
// Internal to net.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "net/http_client.h"
#include "net/wire.h"

namespace muster::net {

/// A moment of the monotonic clock.
class Deadline {
public:
    explicit Deadline(Duration wait);
    /// For poll: -1 = for ever.
    int left_ms() const;

private:
    std::int64_t at_ms_ = -1;
};

/// One thread may read while another writes.
class ClientLink {
public:
    /// Connects and, with TLS, shakes hands and verifies. `context` is made here when it is null.
    static Result<std::unique_ptr<ClientLink>> connect(const Endpoint& endpoint,
                                                       SslContextPtr& context, Wait wait,
                                                       std::string_view alpn = "http/1.1");

    ReadResult read(std::string& into, const Deadline& deadline, int interrupt_fd);
    /// True when something can be read at once, which for an idle link means that it has ended.
    bool readable_now() const;
    Status write_all(std::string_view bytes, const Deadline& deadline, int interrupt_fd);

    /// Ends both directions; a reader in another thread wakes up.
    void shut_down();

    const std::string& name() const { return name_; }
    Wire& wire() { return wire_; }

private:
    Status dial(const Endpoint& endpoint, const Deadline& deadline, int interrupt_fd);
    Status shake_hands(const Endpoint& endpoint, const Deadline& deadline, int interrupt_fd);
    /// Data when ready, else TimedOut or Interrupted.
    ReadEnd wait_for(Io io, const Deadline& deadline, int interrupt_fd) const;

    std::string name_;
    std::mutex mutex_;  // OpenSSL's sessions are not for two threads at once.
    Wire wire_;
    std::unique_ptr<char[]> scratch_;
};

}  // namespace muster::net
