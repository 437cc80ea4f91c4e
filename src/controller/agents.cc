#include "controller/agents.h"

#include <deque>
#include <map>
#include <mutex>

namespace muster::controller {
namespace {

constexpr std::size_t kTailBytes = 64 * 1024;          // Of one task.
constexpr std::size_t kTailsBytes = 64 * 1024 * 1024;  // Of all.

struct Stream {
    std::uint64_t session = 0;
    bool tunnel = false;
    rest::Backend::Chunk out;
};

// The newest end of every task's log; the longest untouched go first when the bound is reached.
class Tails {
public:
    void add(const protocol::LogTail& tail) {
        auto& kept = tails_[tail.key];
        const auto end = kept.offset + static_cast<std::int64_t>(kept.bytes.size());
        bytes_ -= kept.bytes.size();
        if (kept.bytes.empty() || tail.offset > end) {
            kept = tail;
        } else if (tail.offset + static_cast<std::int64_t>(tail.bytes.size()) > end) {
            const auto skip =
                static_cast<std::size_t>(std::max<std::int64_t>(0, end - tail.offset));
            kept.bytes.append(tail.bytes, skip);
        }
        if (kept.bytes.size() > kTailBytes) {
            const std::size_t cut = kept.bytes.size() - kTailBytes;
            kept.bytes.erase(0, cut);
            kept.offset += static_cast<std::int64_t>(cut);
        }
        kept.key = tail.key;
        bytes_ += kept.bytes.size();
        order_.push_back(tail.key);
        shrink();
    }
    protocol::LogTail get(const protocol::TaskKey& key) const {
        const auto at = tails_.find(key);
        return at == tails_.end() ? protocol::LogTail{key, 0, {}} : at->second;
    }

private:
    void shrink() {
        // `order_` may name a task many times; only its last mention counts.
        while (bytes_ > kTailsBytes && !order_.empty()) {
            const auto at = tails_.find(order_.front());
            order_.pop_front();
            if (at == tails_.end() || tails_.size() == 1) continue;
            bytes_ -= at->second.bytes.size();
            tails_.erase(at);
        }
        while (order_.size() > 8 * tails_.size() + 64) order_.pop_front();
    }
    std::map<protocol::TaskKey, protocol::LogTail> tails_;
    std::deque<protocol::TaskKey> order_;
    std::size_t bytes_ = 0;
};

}  // namespace

struct Agents::Impl {
    AgentsHooks hooks;
    std::unique_ptr<net::AgentLinkServer> server;
    mutable std::mutex mutex;
    std::map<std::uint64_t, std::string> greeted;  // Sessions, and the names on their certificates.
    std::map<std::uint64_t, bool> said_hello;
    std::map<std::uint64_t, std::shared_ptr<Stream>> streams;
    std::uint64_t next_request = 1;
    Tails tails;

    void opened(std::uint64_t session, std::string name) {
        const std::lock_guard lock(mutex);
        greeted[session] = std::move(name);
    }

    void received(std::uint64_t session, std::vector<protocol::AgentMessage> messages) {
        for (protocol::AgentMessage& message : messages) receive(session, std::move(message));
    }

    void receive(std::uint64_t session, protocol::AgentMessage message) {
        if (const auto* chunk = std::get_if<protocol::LogChunk>(&message)) {
            return pass_on(session, chunk->request, chunk->end, message);
        }
        if (const auto* output = std::get_if<protocol::TunnelOutput>(&message)) {
            return pass_on(session, output->request, output->end, message);
        }
        if (const auto* tail = std::get_if<protocol::LogTail>(&message)) {
            const std::lock_guard lock(mutex);
            return tails.add(*tail);
        }
        if (auto* hello = std::get_if<protocol::Hello>(&message))
            return greet(session, std::move(*hello));
        hooks.post(core::FromAgent{session, std::move(message)});
    }

    void greet(std::uint64_t session, protocol::Hello hello) {
        core::LinkOpened opened_link{session, {}, {}, std::move(hello)};
        {
            const std::lock_guard lock(mutex);
            if (std::exchange(said_hello[session], true)) return;
            opened_link.name = opened_link.certificate = greeted[session];
        }
        hooks.post(std::move(opened_link));
    }

    void pass_on(std::uint64_t session, std::uint64_t request, bool end,
                 const protocol::AgentMessage& message) {
        std::shared_ptr<Stream> stream;
        {
            const std::lock_guard lock(mutex);
            const auto at = streams.find(request);
            if (at == streams.end() || at->second->session != session) return;
            stream = at->second;
            if (end) streams.erase(at);
        }
        stream->out(message);
    }

    void closed(std::uint64_t session) {
        bool known = false;
        std::vector<std::pair<std::uint64_t, std::shared_ptr<Stream>>> cut;
        {
            const std::lock_guard lock(mutex);
            known = said_hello.erase(session) != 0;
            greeted.erase(session);
            std::erase_if(streams, [&](const auto& entry) {
                if (entry.second->session != session) return false;
                cut.push_back(entry);
                return true;
            });
        }
        if (known) hooks.post(core::LinkClosed{session});
        for (const auto& [request, stream] : cut) {
            constexpr auto kWhy = "the link to the node was lost";
            if (stream->tunnel)
                stream->out(protocol::TunnelOutput{
                    .request = request, .end = true, .exit_code = 125, .error = kWhy});
            else
                stream->out(protocol::LogChunk{.request = request, .end = true, .error = kWhy});
        }
    }
};

namespace {

class OpenStream final : public rest::AgentStream {
public:
    OpenStream(std::shared_ptr<Agents::Impl> impl, std::uint64_t session, std::uint64_t request)
        : impl_(std::move(impl)), session_(session), request_(request) {}
    ~OpenStream() override {
        bool open = false;
        {
            const std::lock_guard lock(impl_->mutex);
            open = impl_->streams.erase(request_) != 0;
        }
        if (open) impl_->server->send({session_}, protocol::CancelRequest{request_});
    }
    void input(const protocol::TunnelInput& input) override {
        protocol::TunnelInput named = input;
        named.request = request_;
        impl_->server->send({session_}, std::move(named));
    }

private:
    std::shared_ptr<Agents::Impl> impl_;
    std::uint64_t session_, request_;
};

}  // namespace

Agents::Agents(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Agents::~Agents() {
    impl_->server->stop();
}

Result<std::unique_ptr<Agents>> Agents::start(net::AgentLinkServerOptions options,
                                              AgentsHooks hooks) {
    auto impl = std::make_shared<Impl>();
    impl->hooks = std::move(hooks);
    Impl* raw = impl.get();
    net::AgentLinkCallbacks callbacks;
    callbacks.on_open = [raw](net::SessionId session, std::string name, const std::string&) {
        raw->opened(session.value, std::move(name));
    };
    callbacks.on_messages = [raw](net::SessionId session,
                                  std::vector<protocol::AgentMessage> messages) {
        raw->received(session.value, std::move(messages));
    };
    callbacks.on_close = [raw](net::SessionId session, const std::string&) {
        raw->closed(session.value);
    };
    callbacks.on_join = [raw](net::JoinAsk ask, net::JoinReply reply) {
        raw->hooks.join(std::move(ask), std::move(reply));
    };
    MUSTER_LET(server, net::AgentLinkServer::start(std::move(options), std::move(callbacks)));
    impl->server = std::move(server);
    return std::unique_ptr<Agents>(new Agents(std::move(impl)));
}

std::uint16_t Agents::port() const {
    return impl_->server->port();
}

void Agents::send(std::vector<core::Send> messages) {
    std::map<std::uint64_t, std::vector<protocol::ControllerMessage>> by_session;
    for (core::Send& message : messages)
        by_session[message.session].push_back(std::move(message.message));
    for (auto& [session, list] : by_session) impl_->server->send({session}, std::move(list));
}
void Agents::close(std::uint64_t session, const std::string& reason) {
    impl_->server->close({session}, reason);
}

std::unique_ptr<rest::AgentStream> Agents::open(std::uint64_t session,
                                                protocol::ControllerMessage ask,
                                                rest::Backend::Chunk out) {
    auto stream = std::make_shared<Stream>();
    stream->session = session;
    stream->out = std::move(out);
    std::uint64_t request = 0;
    {
        const std::lock_guard lock(impl_->mutex);
        request = impl_->next_request++;
        if (auto* log = std::get_if<protocol::ReadLog>(&ask)) log->request = request;
        if (auto* tunnel = std::get_if<protocol::OpenTunnel>(&ask))
            tunnel->request = request, stream->tunnel = true;
        impl_->streams[request] = stream;
    }
    auto handle = std::make_unique<OpenStream>(impl_, session, request);
    if (!impl_->server->send({session}, std::move(ask))) impl_->closed(session);
    return handle;
}

protocol::LogTail Agents::tail(const protocol::TaskKey& key) const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->tails.get(key);
}

}  // namespace muster::controller
