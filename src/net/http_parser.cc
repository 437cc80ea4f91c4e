// The only file that knows Boost. (<utility> first: Boost 1.74's asio needs it in C++20.)
#include "net/http_parser.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/http_message.h"

namespace muster::net {
namespace {

namespace http = boost::beast::http;

std::string_view view(boost::beast::string_view text) {
    return {text.data(), text.size()};
}

}  // namespace

struct HttpParser::Machine {
    http::request_parser<http::string_body> parser;
};

HttpParser::HttpParser(std::size_t header_max, std::size_t body_max)
    : header_max_(header_max), body_max_(body_max) {}
HttpParser::~HttpParser() = default;

void HttpParser::refuse(int status, std::string detail) {
    state_ = State::Refused;
    refusal_ = Refusal{status, std::move(detail)};
}

std::size_t HttpParser::feed(std::string_view bytes) {
    if (state_ == State::Done || state_ == State::Refused || bytes.empty()) return 0;
    if (!machine_) {
        machine_ = std::make_unique<Machine>();
        machine_->parser.header_limit(static_cast<std::uint32_t>(header_max_));
        machine_->parser.body_limit(body_max_);
        machine_->parser.eager(false);
    }
    auto& parser = machine_->parser;
    std::size_t used = 0;
    while (used < bytes.size()) {
        boost::beast::error_code error;
        used += parser.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), error);
        if (error == http::error::need_more) {
            if (!parser.is_header_done() && bytes.size() - used > header_max_) {
                refuse(431, "the request's header is longer than " + std::to_string(header_max_) +
                                " bytes");
            }
            return used;
        }
        if (error == http::error::header_limit) {
            refuse(431,
                   "the request's header is longer than " + std::to_string(header_max_) + " bytes");
            return used;
        }
        if (error == http::error::body_limit) {
            refuse(413,
                   "the request's body is longer than " + std::to_string(body_max_) + " bytes");
            return used;
        }
        if (error == http::error::bad_version) {
            refuse(505, "HTTP/1.1 and HTTP/1.0 are spoken here");
            return used;
        }
        if (error) {
            refuse(400, "the request is not valid HTTP: " + error.message());
            return used;
        }
        if (parser.is_header_done() && state_ == State::Head) {
            state_ = State::Body;
            check_head();
            if (state_ == State::Refused) return used;
        }
        if (parser.is_done()) {
            state_ = State::Done;
            return used;
        }
    }
    return used;
}

void HttpParser::check_head() {
    const auto& message = machine_->parser.get();
    if (message.target().size() > 8192) {
        return refuse(414, "the request's target is longer than 8192 bytes");
    }
    const auto encoding = message.find(http::field::transfer_encoding);
    if (encoding != message.end() && !machine_->parser.chunked()) {
        return refuse(501, "Transfer-Encoding is understood when it is chunked");
    }
    const auto length = machine_->parser.content_length();
    if (length && *length > body_max_) {
        return refuse(413, "the request's body is " + std::to_string(*length) + " bytes; at most " +
                               std::to_string(body_max_) + " are taken");
    }
    if (message.version() >= 11 && message.count(http::field::host) != 1) {
        return refuse(400, "an HTTP/1.1 request has exactly one Host header");
    }
}

bool HttpParser::keep_alive() const {
    return machine_->parser.get().keep_alive();
}

bool HttpParser::http11() const {
    return machine_->parser.get().version() >= 11;
}

bool HttpParser::wants_continue() const {
    return state_ == State::Body && http11() &&
           boost::beast::iequals(machine_->parser.get()[http::field::expect], "100-continue");
}

std::string HttpParser::upgrade_protocol() const {
    const auto& message = machine_->parser.get();
    if (!http::token_list{message[http::field::connection]}.exists("upgrade")) return "";
    return std::string(view(message[http::field::upgrade]));
}

HttpRequest HttpParser::take() {
    auto message = machine_->parser.release();
    machine_.reset();
    state_ = State::Head;
    HttpRequest request;
    request.method = view(message.method_string());
    request.target = view(message.target());
    for (const auto& field : message) {
        std::string name(view(field.name_string()));
        for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        request.headers.push_back({std::move(name), std::string(view(field.value()))});
    }
    request.body = std::move(message.body());
    return request;
}

void HttpParser::rest() {
    machine_.reset();
    state_ = State::Head;
}

}  // namespace muster::net
