// What server, client and peers of the agent link share of gRPC: buffers, credentials, channels,
// errors. Internal to net; gRPC's own headers stay in the .cc files.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/agent_link.h"

namespace grpc {
class AuthContext;
class ByteBuffer;
class Channel;
class ServerBuilder;
class ServerCredentials;
class Status;
}  // namespace grpc

namespace muster::net {

constexpr std::size_t kLinkMessageMax = 16 << 20;  // Of one value; a batch is at most twice that.

constexpr const char* kAcceptedKey =
    "muster-link";  // In the metadata of a session that was let in.

constexpr const char* kConnectMethod = "/muster.agent.v1.AgentLink/Connect";
constexpr const char* kJoinMethod = "/muster.agent.v1.AgentLink/Join";
constexpr const char* kRenewMethod = "/muster.agent.v1.AgentLink/Renew";
constexpr const char* kAskMethod = "/muster.agent.v1.Peer/Ask";

/// Without copying: the buffer owns the string.
grpc::ByteBuffer to_buffer(std::string bytes);
std::string from_buffer(const grpc::ByteBuffer& buffer);

/// Cause, fix and code travel along.
grpc::Status status_of(const Error& error);
Error error_of(const grpc::Status& status);

/// `must`: no connection without a certificate by the CA; else one that is shown is checked.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const LinkTls& tls, bool must);
/// Keep-alive so that a cut link is noticed in seconds, bounds, and one server a port.
void configure(grpc::ServerBuilder& builder);
std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const LinkTls& tls,
                                            std::string_view server_name, Duration connect_timeout);

/// The node whose agent's certificate was shown; "" when none, or it is no agent's.
std::string agent_name(const grpc::AuthContext& context);
/// "10.0.0.7:51234" of gRPC's "ipv4:10.0.0.7:51234".
std::string plain_address(std::string_view grpc_peer);

/// Before anything else, any number of times. Silences gRPC, which prints what it also returns, and
/// pins its shared callback queue: 1.51 ends that queue with its last channel or server, and aborts
/// when this happens on one of the queue's own threads, where a finished call may let go of its
/// channel.
void start_grpc();

/// Why a dial failed, found out by a handshake of our own; `fallback` when that succeeds.
Error explain_dial(const std::string& address, const LinkTls& tls, std::string_view server_name,
                   Error fallback);

}  // namespace muster::net
