#include "net/link_grpc.h"

#include <ctime>
#include <mutex>

#include <grpc/grpc_security_constants.h>
#include <grpc/support/log.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>

#include "base/bytes.h"
#include "net/client_link.h"
#include "net/http_message.h"
#include "net/listener.h"
#include "net/status.h"

namespace muster::net {
namespace {

// A ping after 2 s of silence, given up after 3 more: a cut link is noticed in about 5 s.
constexpr int kPingEveryMs = 2'000;
constexpr int kPingTimeoutMs = 3'000;
constexpr Duration kProbeTime{2'000};

void no_log(gpr_log_func_args*) {}

}  // namespace

grpc::ByteBuffer to_buffer(std::string bytes) {
    auto* held = new std::string(std::move(bytes));
    const grpc::Slice slice(
        held->data(), held->size(), [](void* text) { delete static_cast<std::string*>(text); },
        held);
    return grpc::ByteBuffer(&slice, 1);
}

std::string from_buffer(const grpc::ByteBuffer& buffer) {
    std::vector<grpc::Slice> slices;
    std::string bytes;
    if (!buffer.Dump(&slices).ok()) return bytes;
    bytes.reserve(buffer.Length());
    for (const grpc::Slice& slice : slices) {
        bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return bytes;
}

grpc::Status status_of(const Error& error) {
    Writer details;
    details.text(error.cause);
    details.text(error.fix);
    details.signed_number(error.number);
    details.number(static_cast<std::uint64_t>(error.code));
    return grpc::Status(static_cast<grpc::StatusCode>(grpc_status(error.code)), error.message,
                        std::move(details).bytes());
}

Error error_of(const grpc::Status& status) {
    Error error{.code = code_of_grpc(status.error_code()), .message = status.error_message()};
    const std::string packed = status.error_details();
    Reader details(packed);
    const std::string cause(details.text());
    const std::string fix(details.text());
    const std::int64_t number = details.signed_number();
    const std::uint64_t code = details.number();
    if (packed.empty() || !details.ok() || code > static_cast<std::uint64_t>(Code::Internal)) {
        return error;
    }
    error.code = static_cast<Code>(code);
    error.cause = cause;
    error.fix = fix;
    error.number = static_cast<int>(number);
    return error;
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const LinkTls& tls, bool must) {
    grpc::SslServerCredentialsOptions options(
        must ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
             : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = tls.ca_pem;
    // The CA goes along, so that who knows only its hash can check the chain.
    options.pem_key_cert_pairs.push_back({tls.key_pem, tls.certificate_pem + tls.ca_pem});
    return grpc::SslServerCredentials(options);
}

void configure(grpc::ServerBuilder& builder) {
    builder.SetMaxReceiveMessageSize(2 * static_cast<int>(kLinkMessageMax));
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               kPingEveryMs / 2);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const LinkTls& tls,
                                            std::string_view server_name,
                                            Duration connect_timeout) {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = tls.ca_pem;
    ssl.pem_private_key = tls.key_pem;
    ssl.pem_cert_chain = tls.certificate_pem;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(std::string(server_name));
    arguments.SetMaxReceiveMessageSize(2 * static_cast<int>(kLinkMessageMax));
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect_timeout.ms));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    return grpc::CreateCustomChannel(address, grpc::SslCredentials(ssl), arguments);
}

std::string agent_name(const grpc::AuthContext& context) {
    if (!context.IsPeerAuthenticated()) return "";
    const auto names = context.FindPropertyValues("x509_common_name");
    if (names.size() != 1) return "";
    const std::string name(names[0].data(), names[0].size());
    // A certificate for something else (a user, the controller) makes no agent.
    const std::string wanted = agent_tls_name(name);
    for (const grpc::string_ref& host :
         context.FindPropertyValues("x509_subject_alternative_name")) {
        if (std::string_view(host.data(), host.size()) == wanted) return name;
    }
    return "";
}

std::string plain_address(std::string_view grpc_peer) {
    const std::size_t colon = grpc_peer.find(':');
    if (colon == std::string_view::npos) return std::string(grpc_peer);
    std::string decoded;
    if (!percent_decode(grpc_peer.substr(colon + 1), false, decoded)) return std::string(grpc_peer);
    return decoded;
}

void start_grpc() {
    static std::once_flag once;
    std::call_once(once, [] {
        gpr_set_log_function(no_log);
        // Never deleted, see the header. The call itself fails: nobody listens there.
        struct Pin {
            grpc::GenericStub stub{
                grpc::CreateChannel("unix:/dev/null", grpc::InsecureChannelCredentials())};
            grpc::ClientContext context;
            grpc::ByteBuffer out = to_buffer("");
            grpc::ByteBuffer in;
        };
        static Pin* const pin = new Pin;
        pin->stub.UnaryCall(&pin->context, "/pin", grpc::StubOptions(), &pin->out, &pin->in,
                            [](const grpc::Status&) {});
    });
}

Error explain_dial(const std::string& address, const LinkTls& tls, std::string_view server_name,
                   Error fallback) {
    const auto where = split_host_port(address);
    if (!where) return where.error();
    const Endpoint endpoint{.host = where->host,
                            .port = where->port,
                            .ca_pem = tls.ca_pem,
                            .server_name = std::string(server_name),
                            .certificate_pem = tls.certificate_pem,
                            .key_pem = tls.key_pem};
    SslContextPtr context;
    auto link = ClientLink::connect(endpoint, context, {.timeout = kProbeTime}, "h2");
    if (!link) return std::move(link).error();
    // With TLS 1.3 a server judges our certificate after our half of the handshake, and gRPC's
    // closes without a word if it does not like it.
    std::string first;
    const ReadResult got = (*link)->read(first, Deadline(kProbeTime), -1);
    if (got.end != ReadEnd::Eof) return fallback;
    const Time now{std::int64_t{std::time(nullptr)} * 1000};
    const Status verdict = verify_certificate(tls.certificate_pem, tls.ca_pem, now);
    if (verdict) return fallback;
    return Error{.code = Code::Denied,
                 .message = "the controller at " + address + " refused our certificate",
                 .cause = verdict.error().message + ": " + verdict.error().cause,
                 .fix = "join again with the line that `muster token create` prints"};
}

}  // namespace muster::net
