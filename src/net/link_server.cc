// The serving ends of the agent link: sessions of agents, joining, and agents' words to peers.
// Bytes go through gRPC's generic callback service; link_codec makes values of them.
#include <condition_variable>
#include <mutex>
#include <unordered_map>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "net/agent_link.h"
#include "net/link_codec.h"
#include "net/link_grpc.h"
#include "net/listener.h"
#include "net/outbox.h"

namespace muster::net {
namespace {

using Bytes = std::string;
using Answer = std::function<void(Result<Bytes>)>;

/// Counts what is under way, so that a stop can wait for its end.
class Live {
public:
    void add() {
        const std::lock_guard lock(mutex_);
        ++count_;
    }
    void remove() {
        const std::lock_guard lock(mutex_);
        if (--count_ == 0) ended_.notify_all();
    }
    void wait_for_none() {
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [this] { return count_ == 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable ended_;
    std::size_t count_ = 0;
};

/// One call of one message and one answer, which may come later and from any thread.
class Unary final : public grpc::ServerGenericBidiReactor {
public:
    using Handler = std::function<void(Bytes, Answer)>;

    static Unary* serve(std::shared_ptr<Live> live, Handler handler) {
        auto call = std::make_shared<Unary>(std::move(live), std::move(handler));
        call->self_ = call;
        call->StartRead(&call->in_);
        return call.get();
    }
    Unary(std::shared_ptr<Live> live, Handler handler)
        : live_(std::move(live)), handler_(std::move(handler)) {
        live_->add();
    }

    void OnReadDone(bool ok) override {
        if (!ok) return reply(Error{.code = Code::Invalid, .message = "the call has no message"});
        handler_(from_buffer(in_), [weak = std::weak_ptr<Unary>(self_)](Result<Bytes> result) {
            if (const auto alive = weak.lock()) alive->reply(std::move(result));
        });
    }
    void OnCancel() override {
        reply(Error{.code = Code::Unavailable, .message = "the call was given up"});
    }
    void OnDone() override {
        const auto live = live_;
        std::exchange(self_, nullptr).reset();
        live->remove();
    }

private:
    void reply(Result<Bytes> result) {
        if (finished_.exchange(true)) return;
        if (!result) return Finish(status_of(result.error()));
        out_ = to_buffer(*std::move(result));
        StartWriteAndFinish(&out_, grpc::WriteOptions(), grpc::Status::OK);
    }

    const std::shared_ptr<Live> live_;
    const Handler handler_;
    std::shared_ptr<Unary> self_;
    grpc::ByteBuffer in_;
    grpc::ByteBuffer out_;
    std::atomic<bool> finished_{false};
};

/// A call that is refused at once.
grpc::ServerGenericBidiReactor* refuse(const Error& error) {
    class Refused final : public grpc::ServerGenericBidiReactor {
    public:
        explicit Refused(const grpc::Status& status) { Finish(status); }
        void OnDone() override { delete this; }
    };
    return new Refused(status_of(error));
}

Error not_an_agent() {
    return Error{.code = Code::Unauthenticated,
                 .message = "no agent's certificate was shown",
                 .cause = "only agents that have joined may call this",
                 .fix = "join with the line that `muster token create` prints"};
}

/// Listens, and serves by a generic service until it is destroyed.
class Listening {
public:
    Status start(const std::string& address, const LinkTls& tls, bool must,
                 grpc::CallbackGenericService* service) {
        start_grpc();
        MUSTER_TRY(verify_key({tls.certificate_pem, tls.key_pem}));
        {
            // gRPC says only that it failed: this says why.
            MUSTER_LET(probe, listen_tcp(address));
        }
        grpc::ServerBuilder builder;
        configure(builder);
        int port = 0;
        builder.AddListeningPort(address, server_credentials(tls, must), &port);
        builder.RegisterCallbackGenericService(service);
        server_ = builder.BuildAndStart();
        if (!server_ || port == 0) {
            return Error{.code = Code::Unavailable,
                         .message = "the agent link cannot listen on " + address,
                         .fix = "check certificate, key and CA, and that the port is free"};
        }
        port_ = static_cast<std::uint16_t>(port);
        return Ok{};
    }
    std::uint16_t port() const { return port_; }
    void shut_down() {
        if (server_) server_->Shutdown(std::chrono::system_clock::now());
    }

private:
    std::unique_ptr<grpc::Server> server_;
    std::uint16_t port_ = 0;
};

class Session;

/// All sessions, and what they report to.
struct Hub {
    AgentLinkServerOptions options;
    AgentLinkCallbacks callbacks;
    std::shared_ptr<Live> live = std::make_shared<Live>();  // Calls and sessions.
    mutable std::mutex mutex;
    std::unordered_map<std::uint64_t, std::shared_ptr<Session>> sessions;
    std::uint64_t next_session = 1;
    bool stopping = false;
    std::atomic<std::uint64_t> messages_in{0};
    std::atomic<std::uint64_t> messages_out{0};
    std::atomic<std::uint64_t> writes{0};
    std::atomic<std::uint64_t> overflows{0};
    std::atomic<std::uint64_t> malformed{0};
};

class Session final : public grpc::ServerGenericBidiReactor {
public:
    Session(std::shared_ptr<Hub> hub, SessionId id, grpc::GenericCallbackServerContext* context)
        : hub_(std::move(hub)), id_(id), context_(context) {}

    void begin(std::string name, std::string peer) {
        hub_->callbacks.on_open(id_, std::move(name), std::move(peer));
        context_->AddInitialMetadata(kAcceptedKey, "1");
        StartSendInitialMetadata();
        StartRead(&in_);
    }

    bool send(Bytes bytes, std::size_t count) {
        const std::lock_guard lock(mutex_);
        if (ending_) return false;
        if (outbox_.bytes() + bytes.size() > hub_->options.queue_bytes_max) {
            hub_->overflows.fetch_add(1, std::memory_order_relaxed);
            end_locked(Error{.code = Code::Exhausted,
                             .message = "the agent does not take its messages: " +
                                        std::to_string(outbox_.bytes()) + " bytes are waiting"});
            return false;
        }
        outbox_.push(std::move(bytes));
        hub_->messages_out.fetch_add(count, std::memory_order_relaxed);
        if (!writing_) write_locked();
        return true;
    }

    void end(const Error& error) {
        const std::lock_guard lock(mutex_);
        end_locked(error);
    }

    void OnReadDone(bool ok) override {
        if (!ok) {
            return end(Error{.code = Code::Unavailable, .message = "the agent has gone"});
        }
        auto messages = decode_agent_batch(from_buffer(in_));
        in_.Clear();
        if (!messages) {
            hub_->malformed.fetch_add(1, std::memory_order_relaxed);
            return end(messages.error());
        }
        hub_->messages_in.fetch_add(messages->size(), std::memory_order_relaxed);
        if (!messages->empty()) hub_->callbacks.on_messages(id_, *std::move(messages));
        StartRead(&in_);
    }
    void OnWriteDone(bool ok) override {
        const std::lock_guard lock(mutex_);
        writing_ = false;
        if (ending_) return finish_locked();
        if (!ok)
            return end_locked(Error{.code = Code::Unavailable, .message = "the agent has gone"});
        if (!outbox_.empty()) write_locked();
    }
    void OnCancel() override {
        end(Error{.code = Code::Unavailable, .message = "the link was cut"});
    }
    void OnDone() override {
        hub_->callbacks.on_close(id_, reason_.message);
        const auto hub = hub_;
        {
            const std::lock_guard lock(hub->mutex);
            hub->sessions.erase(id_.value);  // May delete this.
        }
        hub->live->remove();
    }

private:
    // gRPC never calls back from inside Start...: it is safe under the lock.
    void write_locked() {
        writing_ = true;
        out_ = to_buffer(outbox_.take());
        hub_->writes.fetch_add(1, std::memory_order_relaxed);
        StartWrite(&out_);
    }
    void end_locked(const Error& error) {
        if (ending_) return;
        ending_ = true;
        reason_ = error;
        if (writing_) {
            context_->TryCancel();  // A write to an agent that does not read ends only so.
        } else {
            finish_locked();
        }
    }
    void finish_locked() {
        if (std::exchange(finished_, true)) return;
        Finish(status_of(reason_));
    }

    const std::shared_ptr<Hub> hub_;
    const SessionId id_;
    grpc::GenericCallbackServerContext* const context_;
    grpc::ByteBuffer in_;
    grpc::ByteBuffer out_;
    std::mutex mutex_;
    Outbox outbox_;
    Error reason_;
    bool writing_ = false;
    bool ending_ = false;
    bool finished_ = false;
};

class AgentService final : public grpc::CallbackGenericService {
public:
    explicit AgentService(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
        std::string name = agent_name(*context->auth_context());
        std::string peer = plain_address(context->peer());
        if (context->method() == kConnectMethod) return connect(context, name, peer);
        if (context->method() == kJoinMethod) {
            return Unary::serve(hub_->live, [hub = hub_, peer](const Bytes& bytes, Answer answer) {
                auto ask = decode_join(bytes);
                if (!ask) return answer(std::move(ask).error());
                ask->peer_address = peer;
                join(*hub, *std::move(ask), std::move(answer));
            });
        }
        if (context->method() == kRenewMethod && !name.empty()) {
            return Unary::serve(hub_->live,
                                [hub = hub_, peer, name](const Bytes& bytes, Answer answer) {
                                    auto request = decode_renewal(bytes);
                                    if (!request) return answer(std::move(request).error());
                                    JoinAsk ask;
                                    ask.node_name = name;
                                    ask.request_pem = *std::move(request);
                                    ask.peer_address = peer;
                                    ask.renewal = true;
                                    join(*hub, std::move(ask), std::move(answer));
                                });
        }
        if (context->method() == kRenewMethod) return refuse(not_an_agent());
        return refuse(Error{.code = Code::NotFound, .message = "no such call"});
    }

private:
    static void join(const Hub& hub, JoinAsk ask, Answer answer) {
        hub.callbacks.on_join(std::move(ask),
                              [answer = std::move(answer)](const Result<JoinAnswer>& result) {
                                  if (!result) return answer(result.error());
                                  answer(encode_join_answer(*result));
                              });
    }

    grpc::ServerGenericBidiReactor* connect(grpc::GenericCallbackServerContext* context,
                                            const std::string& name, const std::string& peer) {
        if (name.empty()) return refuse(not_an_agent());
        std::shared_ptr<Session> session;
        {
            const std::lock_guard lock(hub_->mutex);
            if (hub_->stopping) {
                return refuse(Error{.code = Code::Unavailable, .message = "it is stopping"});
            }
            if (hub_->sessions.size() >= hub_->options.sessions_max) {
                return refuse(Error{.code = Code::Exhausted,
                                    .message = "there are " +
                                               std::to_string(hub_->options.sessions_max) +
                                               " agents already, which is the limit"});
            }
            const SessionId id{hub_->next_session++};
            session = std::make_shared<Session>(hub_, id, context);
            hub_->sessions.emplace(id.value, session);
            hub_->live->add();
        }
        session->begin(name, peer);
        return session.get();
    }

    const std::shared_ptr<Hub> hub_;
};

class Server final : public AgentLinkServer {
public:
    Server(AgentLinkServerOptions options, AgentLinkCallbacks callbacks) {
        hub_->options = std::move(options);
        hub_->callbacks = std::move(callbacks);
    }
    ~Server() override { stop(); }

    Status begin() {
        return listening_.start(hub_->options.address, hub_->options.tls, false, &service_);
    }
    std::uint16_t port() const override { return listening_.port(); }

    bool send(SessionId id, protocol::ControllerMessage message) override {
        const auto session = find(id);
        if (!session) return false;
        Bytes bytes;
        encoder_.encode(message, bytes);
        return bytes.size() <= kLinkMessageMax && session->send(std::move(bytes), 1);
    }
    bool send(SessionId id, std::vector<protocol::ControllerMessage> messages) override {
        const auto session = find(id);
        if (!session) return false;
        Bytes bytes;
        std::size_t count = 0;
        for (const protocol::ControllerMessage& message : messages) {
            encoder_.encode(message, bytes);
            ++count;
            if (bytes.size() < kWriteSize) continue;
            if (bytes.size() > kLinkMessageMax + kWriteSize) return false;
            if (!session->send(std::exchange(bytes, {}), std::exchange(count, 0))) return false;
        }
        return bytes.empty() || session->send(std::move(bytes), count);
    }
    void close(SessionId id, std::string_view reason) override {
        if (const auto session = find(id)) {
            session->end(Error{.code = Code::Conflict, .message = std::string(reason)});
        }
    }
    AgentLinkStats stats() const override {
        const std::lock_guard lock(hub_->mutex);
        return {.sessions_open = hub_->sessions.size(),
                .messages_in = hub_->messages_in.load(),
                .messages_out = hub_->messages_out.load(),
                .writes = hub_->writes.load(),
                .overflows = hub_->overflows.load(),
                .malformed = hub_->malformed.load()};
    }
    void stop() override {
        {
            const std::lock_guard lock(hub_->mutex);
            if (std::exchange(hub_->stopping, true)) return;
        }
        listening_.shut_down();
        hub_->live->wait_for_none();
    }

private:
    static constexpr std::size_t kWriteSize = 256 * 1024;

    std::shared_ptr<Session> find(SessionId id) const {
        const std::lock_guard lock(hub_->mutex);
        const auto it = hub_->sessions.find(id.value);
        return it == hub_->sessions.end() ? nullptr : it->second;
    }

    const std::shared_ptr<Hub> hub_ = std::make_shared<Hub>();
    OrderEncoder encoder_;
    AgentService service_{hub_};
    Listening listening_;  // Ends before the service does.
};

class Peers final : public PeerServer, public grpc::CallbackGenericService {
public:
    using Handler = std::function<Result<protocol::PeerWord>(const protocol::PeerAsk&)>;

    explicit Peers(Handler answer) : answer_(std::move(answer)) {}
    ~Peers() override {
        listening_.shut_down();
        live_->wait_for_none();
    }
    Status begin(const std::string& address, const LinkTls& tls) {
        return listening_.start(address, tls, true, this);
    }
    std::uint16_t port() const override { return listening_.port(); }

    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
        std::string name = agent_name(*context->auth_context());
        if (name.empty()) return refuse(not_an_agent());
        if (context->method() != kAskMethod) {
            return refuse(Error{.code = Code::NotFound, .message = "no such call"});
        }
        return Unary::serve(
            live_, [this, name = std::move(name)](const Bytes& bytes, const Answer& answer) {
                auto ask = decode_peer_ask(bytes);
                if (!ask) return answer(std::move(ask).error());
                ask->asker = name;
                auto word = answer_(*ask);
                if (!word) return answer(std::move(word).error());
                answer(encode_peer_word(*word));
            });
    }

private:
    const Handler answer_;
    const std::shared_ptr<Live> live_ = std::make_shared<Live>();
    Listening listening_;
};

}  // namespace

Result<std::unique_ptr<AgentLinkServer>> AgentLinkServer::start(AgentLinkServerOptions options,
                                                                AgentLinkCallbacks callbacks) {
    auto server = std::make_unique<Server>(std::move(options), std::move(callbacks));
    MUSTER_TRY(server->begin());
    return std::unique_ptr<AgentLinkServer>(std::move(server));
}

Result<std::unique_ptr<PeerServer>> PeerServer::start(
    std::string address, LinkTls tls,
    std::function<Result<protocol::PeerWord>(const protocol::PeerAsk&)> answer) {
    auto server = std::make_unique<Peers>(std::move(answer));
    MUSTER_TRY(server->begin(address, tls));
    return std::unique_ptr<PeerServer>(std::move(server));
}

}  // namespace muster::net
