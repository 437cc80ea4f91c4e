// How a request is answered, apart from sockets: net's Responder behind it in
// the server, a recorder in tests.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http.h"

namespace muster::rest {

/// net::HttpStream's contract.
class Stream {
public:
    virtual ~Stream() = default;
    virtual net::Write write(std::shared_ptr<const std::string> chunk) = 0;
    virtual void close() = 0;
    virtual void on_closed(std::function<void()> callback) = 0;
    virtual void on_drain(std::function<void()> callback) = 0;

    net::Write write(std::string chunk) {
        return write(std::make_shared<const std::string>(std::move(chunk)));
    }
};

/// net::RawStream's contract.
class Tunnel {
public:
    virtual ~Tunnel() = default;
    virtual net::Write write(std::string bytes) = 0;
    virtual void close() = 0;
    virtual void pause_reading(bool paused) = 0;
};

/// net::Responder's contract: one answer, once, from any thread.
class Reply {
public:
    virtual ~Reply() = default;
    virtual void answer(net::HttpResponse response) = 0;
    virtual std::shared_ptr<Stream> stream(net::StreamOptions options) = 0;  // Null: it is gone.
    virtual Result<std::shared_ptr<Tunnel>> upgrade(net::RawOptions options) = 0;
    virtual bool gone() const = 0;
};

std::shared_ptr<Reply> make_reply(net::Responder responder);

}  // namespace muster::rest
