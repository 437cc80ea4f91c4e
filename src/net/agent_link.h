// The link between agents and the controller: agents dial in over mutual TLS, both sides send
// protocol values, and whatever is queued travels in one write. No gRPC type shows here.
//
// It promises order within one session, bounded queues, that a cut link is noticed within seconds,
// and that a name is the certificate's, never the message's. It promises no delivery: a session
// may end at any moment, and the next Hello reconciles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "net/pki.h"
#include "protocol/messages.h"

namespace muster::net {

/// Names in certificates, so that address and DNS do not matter and no agent can pose as the
/// controller or as another agent.
constexpr std::string_view kControllerTlsName = "controller.muster";
std::string agent_tls_name(std::string_view node_name);  // "NAME.node.muster"
/// What to ask of the CA for each end. `hosts`: further names and addresses (the REST server's).
CertificateAsk controller_certificate_ask(std::vector<std::string> hosts, Time now, Duration life);
CertificateAsk agent_certificate_ask(std::string_view node_name, Time now, Duration life);

/// One end's own certificate, and the CA that the other end's must be by.
struct LinkTls {
    std::string certificate_pem;
    std::string key_pem;
    std::string ca_pem;
};

/// One stream of one agent, from its opening to its end. Never used twice in a process.
using SessionId = Id<struct SessionTag>;

/// An agent wants a certificate.
struct JoinAsk {
    std::string token_id;      // Of the join token; "" in a renewal.
    std::string token_secret;  // Compare sha256_hex of it, in constant time.
    std::string node_name;     // What it wants to be called; in a renewal, its certificate's name.
    std::string request_pem;   // For sign_request.
    std::string peer_address;
    bool renewal = false;  // Came over mutual TLS with a valid certificate.
};
struct JoinAnswer {
    std::string certificate_pem;
    std::string ca_pem;
    friend bool operator==(const JoinAnswer&, const JoinAnswer&) = default;
};
/// Answered once, from any thread, within 10 s.
using JoinReply = std::function<void(Result<JoinAnswer>)>;

/// Called on threads of the link; those of one session never overlap and come in order. They must
/// not block: hand over to a loop.
struct AgentLinkCallbacks {
    std::function<void(SessionId, std::string certificate_name, std::string peer_address)> on_open;
    std::function<void(SessionId, std::vector<protocol::AgentMessage>)> on_messages;
    std::function<void(SessionId, std::string reason)> on_close;  // Once for each on_open.
    std::function<void(JoinAsk, JoinReply)> on_join;
};

struct AgentLinkServerOptions {
    std::string address = "0.0.0.0:7071";  // Port 0 allowed.
    LinkTls tls;
    std::size_t queue_bytes_max = 64 << 20;  // Of one session; beyond it the session is closed.
    std::size_t sessions_max = 100'000;
};

struct AgentLinkStats {
    std::uint64_t sessions_open = 0;
    std::uint64_t messages_in = 0;
    std::uint64_t messages_out = 0;
    std::uint64_t writes = 0;     // Each carries one or many messages.
    std::uint64_t overflows = 0;  // Sessions closed because their queue was full.
    std::uint64_t malformed = 0;  // Items that did not decode; their session was closed.
};

class AgentLinkServer {
public:
    static Result<std::unique_ptr<AgentLinkServer>> start(AgentLinkServerOptions options,
                                                          AgentLinkCallbacks callbacks);
    virtual ~AgentLinkServer() = default;  // Stops.
    virtual std::uint16_t port() const = 0;
    /// Never blocks; any thread. False when the session is over (or is closed by this overflow).
    virtual bool send(SessionId session, protocol::ControllerMessage message) = 0;
    virtual bool send(SessionId session, std::vector<protocol::ControllerMessage> messages) = 0;
    /// on_close follows, unless it has already been called.
    virtual void close(SessionId session, std::string_view reason) = 0;
    virtual AgentLinkStats stats() const = 0;
    /// Closes all sessions; no callback comes after it returns. Not from a callback.
    virtual void stop() = 0;
};

struct AgentLinkClientOptions {
    std::string address;  // "host:port"
    LinkTls tls;
    Duration backoff_min{200};  // Doubles, with jitter, up to the maximum.
    Duration backoff_max{5'000};
    Duration connect_timeout{5'000};
    std::size_t queue_bytes_max = 64 << 20;
};

/// As AgentLinkCallbacks. on_open and on_close alternate; after on_close it dials again by itself.
struct AgentLinkClientCallbacks {
    std::function<void()> on_open;
    std::function<void(std::vector<protocol::ControllerMessage>)> on_messages;
    std::function<void(Error)> on_close;  // Of an open link.
    std::function<void(Error)>
        on_failed;  // A try that never opened; Unauthenticated and Denied say
                    // that trying again with this certificate is in vain.
};

class AgentLinkClient {
public:
    /// Starts to dial; fails only when the options are unusable.
    static Result<std::unique_ptr<AgentLinkClient>> start(AgentLinkClientOptions options,
                                                          AgentLinkClientCallbacks callbacks);
    virtual ~AgentLinkClient() = default;  // Stops.
    /// Never blocks; any thread. False while no link is open: the next Hello says it all anyway.
    virtual bool send(protocol::AgentMessage message) = 0;
    virtual bool send(std::vector<protocol::AgentMessage> messages) = 0;
    /// A renewed certificate, or another controller's address: used from the next dial on.
    virtual Status set_target(std::string address, LinkTls tls) = 0;
    /// Of the pause between two tries, and of the one under way.
    virtual void set_backoff_max(Duration most) = 0;
    /// Ends the present link, if any, and dials again at once.
    virtual void redial() = 0;
    /// No callback comes after it returns. Not from a callback.
    virtual void stop() = 0;
};

/// First contact: checks that the CA is the token's, then sends token and request. Blocks.
Result<JoinAnswer> join_cluster(const JoinToken& token, std::string_view node_name,
                                std::string_view request_pem, Duration timeout);
/// A new certificate for the name of the present one. Blocks.
Result<JoinAnswer> renew_certificate(std::string_view address, const LinkTls& tls,
                                     std::string_view request_pem, Duration timeout);

/// Answers other agents' question whether this one has a controller.
class PeerServer {
public:
    /// `answer` runs on threads of the link and must not block; `asker` is the certificate's name.
    /// Its Error: this agent has no word yet; to the peer that is as if it were not reached.
    static Result<std::unique_ptr<PeerServer>> start(
        std::string address, LinkTls tls,
        std::function<Result<protocol::PeerWord>(const protocol::PeerAsk&)> answer);
    virtual ~PeerServer() = default;
    virtual std::uint16_t port() const = 0;
};

/// Asks one peer; the callback comes once, on a thread of the link, within about `timeout`.
void ask_peer(const protocol::PeerAddress& peer, const LinkTls& tls, Duration timeout,
              std::function<void(Result<protocol::PeerWord>)> callback);

}  // namespace muster::net
