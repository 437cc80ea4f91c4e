// Single calls of the agent link: joining, renewing, and asking a peer.
#include <condition_variable>
#include <mutex>

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include "net/agent_link.h"
#include "net/client_link.h"
#include "net/link_codec.h"
#include "net/link_grpc.h"
#include "net/listener.h"

namespace muster::net {
namespace {

/// Everything a call needs until its answer, in one place.
struct Call {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<grpc::GenericStub> stub;
    grpc::ClientContext context;
    grpc::ByteBuffer out;
    grpc::ByteBuffer in;
};

void call(const std::string& address, const LinkTls& tls, std::string_view server_name,
          const char* method, std::string bytes, Duration timeout,
          std::function<void(Result<std::string>)> callback) {
    start_grpc();
    const auto under_way = std::make_shared<Call>();
    under_way->channel = make_channel(address, tls, server_name, timeout);
    under_way->stub = std::make_unique<grpc::GenericStub>(under_way->channel);
    under_way->context.set_deadline(std::chrono::system_clock::now() +
                                    std::chrono::milliseconds(timeout.ms));
    under_way->out = to_buffer(std::move(bytes));
    under_way->stub->UnaryCall(
        &under_way->context, method, grpc::StubOptions(), &under_way->out, &under_way->in,
        [under_way, callback = std::move(callback)](const grpc::Status& status) {
            if (status.ok()) return callback(from_buffer(under_way->in));
            callback(error_of(status));
        });
}

/// The same, waited for.
Result<std::string> call_and_wait(const std::string& address, const LinkTls& tls,
                                  const char* method, std::string bytes, Duration timeout) {
    struct Waiting {
        std::mutex mutex;
        std::condition_variable done;
        std::optional<Result<std::string>> result;
    };
    const auto waiting = std::make_shared<Waiting>();
    call(address, tls, kControllerTlsName, method, std::move(bytes), timeout,
         [waiting](Result<std::string> result) {
             const std::lock_guard lock(waiting->mutex);
             waiting->result = std::move(result);
             waiting->done.notify_all();
         });
    std::unique_lock lock(waiting->mutex);
    waiting->done.wait(lock, [&] { return waiting->result.has_value(); });
    return *std::move(waiting->result);
}

/// What was signed must be for our name, by that CA, and for our key's request.
Status check_answer(const JoinAnswer& answer, std::string_view name, std::string_view ca_sha256) {
    MUSTER_LET(facts, certificate_facts(answer.certificate_pem));
    MUSTER_LET(ca, certificate_facts(answer.ca_pem));
    if (ca.sha256 != ca_sha256) {
        return Error{.code = Code::Denied,
                     .message = "the controller answered with a certificate of another CA"};
    }
    if (facts.name != name) {
        return Error{.code = Code::Conflict,
                     .message = "the controller gave a certificate for \"" + facts.name +
                                "\" instead of \"" + std::string(name) + "\""};
    }
    return Ok{};
}

}  // namespace

Result<JoinAnswer> join_cluster(const JoinToken& token, std::string_view node_name,
                                std::string_view request_pem, Duration timeout) {
    MUSTER_LET(where, split_host_port(token.address));
    const Endpoint endpoint{.host = where.host,
                            .port = where.port,
                            .ca_sha256 = token.ca_sha256,
                            .server_name = std::string(kControllerTlsName)};
    SslContextPtr context;
    MUSTER_LET(link, ClientLink::connect(endpoint, context, {.timeout = timeout}, "h2"));
    const std::string ca_pem = peer_certificate_pem(link->wire().ssl(), token.ca_sha256);
    link.reset();
    const LinkTls tls{.certificate_pem = {}, .key_pem = {}, .ca_pem = ca_pem};
    JoinAsk ask;
    ask.token_id = token.id;
    ask.token_secret = token.secret;
    ask.node_name = std::string(node_name);
    ask.request_pem = std::string(request_pem);
    MUSTER_LET(bytes, call_and_wait(token.address, tls, kJoinMethod, encode_join(ask), timeout));
    MUSTER_LET(answer, decode_join_answer(bytes));
    MUSTER_TRY(check_answer(answer, node_name, token.ca_sha256));
    return answer;
}

Result<JoinAnswer> renew_certificate(std::string_view address, const LinkTls& tls,
                                     std::string_view request_pem, Duration timeout) {
    MUSTER_LET(own, certificate_facts(tls.certificate_pem));
    MUSTER_LET(ca, certificate_facts(tls.ca_pem));
    MUSTER_LET(bytes, call_and_wait(std::string(address), tls, kRenewMethod,
                                    encode_renewal(request_pem), timeout));
    MUSTER_LET(answer, decode_join_answer(bytes));
    MUSTER_TRY(check_answer(answer, own.name, ca.sha256));
    return answer;
}

void ask_peer(const protocol::PeerAddress& peer, const LinkTls& tls, Duration timeout,
              std::function<void(Result<protocol::PeerWord>)> callback) {
    if (peer.port < 1 || peer.port > 65535) {
        return callback(Error{.code = Code::Invalid,
                              .message = "peer " + peer.name + " has no port to be asked at"});
    }
    const std::string address = join_host_port(peer.address, static_cast<std::uint16_t>(peer.port));
    call(address, tls, agent_tls_name(peer.name), kAskMethod, encode_peer_ask({}), timeout,
         [callback = std::move(callback)](Result<std::string> bytes) {
             if (!bytes) return callback(std::move(bytes).error());
             callback(decode_peer_word(*bytes));
         });
}

}  // namespace muster::net
