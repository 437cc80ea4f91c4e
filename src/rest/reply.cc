#include "rest/reply.h"

namespace muster::rest {
namespace {

class NetStream final : public Stream {
public:
    explicit NetStream(net::HttpStream stream) : stream_(std::move(stream)) {}
    net::Write write(std::shared_ptr<const std::string> chunk) override {
        return stream_.write(std::move(chunk));
    }
    void close() override { stream_.close(); }
    void on_closed(std::function<void()> callback) override {
        stream_.on_closed(std::move(callback));
    }
    void on_drain(std::function<void()> callback) override {
        stream_.on_drain(std::move(callback));
    }

private:
    net::HttpStream stream_;
};

class NetTunnel final : public Tunnel {
public:
    explicit NetTunnel(net::RawStream stream) : stream_(std::move(stream)) {}
    net::Write write(std::string bytes) override { return stream_.write(std::move(bytes)); }
    void close() override { stream_.close(); }
    void pause_reading(bool paused) override { stream_.pause_reading(paused); }

private:
    net::RawStream stream_;
};

class NetReply final : public Reply {
public:
    explicit NetReply(net::Responder responder) : responder_(std::move(responder)) {}
    void answer(net::HttpResponse response) override { responder_.answer(std::move(response)); }
    std::shared_ptr<Stream> stream(net::StreamOptions options) override {
        auto stream = responder_.stream(std::move(options));
        if (!stream) return nullptr;
        return std::make_shared<NetStream>(*std::move(stream));
    }
    Result<std::shared_ptr<Tunnel>> upgrade(net::RawOptions options) override {
        MUSTER_LET(stream, responder_.upgrade(std::move(options)));
        return std::shared_ptr<Tunnel>(std::make_shared<NetTunnel>(std::move(stream)));
    }
    bool gone() const override { return responder_.gone(); }

private:
    net::Responder responder_;
};

}  // namespace

std::shared_ptr<Reply> make_reply(net::Responder responder) {
    return std::make_shared<NetReply>(std::move(responder));
}

}  // namespace muster::rest
