// Parses one HTTP/1.1 request after another out of a growing buffer, within bounds. Beast's parser
// behind a face without Beast. Internal to net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"

namespace muster::net {

/// A request that is answered by its status and no handler: 400, 413, 431, 501, 505.
struct Refusal {
    int status = 400;
    std::string detail = {};
};

class HttpParser {
public:
    HttpParser(std::size_t header_max, std::size_t body_max);
    ~HttpParser();

    enum class State : std::uint8_t { Head, Body, Done, Refused };

    /// Takes what it can from the front of `bytes` and returns how many: the caller presents the
    /// rest again, with more behind it. Stops at the end of a request.
    std::size_t feed(std::string_view bytes);
    State state() const { return state_; }
    const Refusal& refusal() const { return refusal_; }

    /// From the end of the head on:
    bool keep_alive() const;
    bool http11() const;
    bool wants_continue() const;           // "Expect: 100-continue" with a body still to come.
    std::string upgrade_protocol() const;  // Of "Connection: upgrade"; "" = none.

    /// When Done: the request, once; `peer` is left to the caller. Ready for the next after it.
    HttpRequest take();
    /// Drops all memory of the parser between requests.
    void rest();

private:
    struct Machine;
    void refuse(int status, std::string detail);
    void check_head();

    std::size_t header_max_;
    std::size_t body_max_;
    State state_ = State::Head;
    Refusal refusal_;
    std::unique_ptr<Machine> machine_;
};

}  // namespace muster::net
