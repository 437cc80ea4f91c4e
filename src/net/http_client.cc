#include "net/http_client.h"

#include <algorithm>
#include <utility>

#include "net/client_link.h"
#include "net/http_answer.h"
#include "net/http_message.h"
#include "net/status.h"

namespace muster::net {
namespace {

constexpr std::size_t kLineMax = 16 << 20;

Error broke_off(const std::string& name) {
    return Error{.code = Code::Unavailable,
                 .message = "the answer from " + name + " broke off",
                 .cause = "the connection ended in the middle",
                 .fix = "try again; if it repeats, see the controller's log"};
}
Error ended_without(const ClientLink& link, ReadEnd end, Duration waited) {
    Error error{.code = Code::Unavailable, .message = "no answer from " + link.name()};
    if (end == ReadEnd::Interrupted) {
        error.message = "interrupted while talking to " + link.name();
    } else if (end == ReadEnd::TimedOut) {
        error.cause = "it did not answer within " + std::to_string(waited.ms) + " ms";
        error.fix = "check whether the controller is overloaded or stopped";
    } else {
        error.cause = "the controller closed the connection";
        error.fix = "try again; if it repeats, see the controller's log";
    }
    return error;
}

class BodyReader final : public HttpBodyReader {
public:
    BodyReader(std::unique_ptr<ClientLink> link, AnswerHeadRead head, BodyDecoder decoder,
               std::string raw)
        : link_(std::move(link)), head_(std::move(head)), decoder_(decoder), raw_(std::move(raw)) {}

    int status() const override { return head_.status; }
    const std::vector<Header>& headers() const override { return head_.headers; }
    std::string_view header(std::string_view name) const override { return head_.header(name); }

    Result<ReadResult> read_line(Wait wait) override {
        const Deadline deadline(wait.timeout);
        std::size_t searched = 0;
        for (;;) {
            const std::size_t end = body_.find('\n', taken_ + searched);
            if (end != std::string::npos) return take_line(end);
            searched = body_.size() - taken_;
            if (searched > kLineMax) {
                return Error{.code = Code::TooLarge,
                             .message = "a line of the answer is longer than 16 MiB"};
            }
            MUSTER_LET(end_of_read, more(deadline, wait.interrupt_fd));
            if (end_of_read == ReadEnd::Data) continue;
            if (end_of_read == ReadEnd::Eof && taken_ < body_.size())
                return take_line(body_.size());
            return ReadResult{.end = end_of_read};
        }
    }

    Result<ReadResult> read_some(Wait wait) override {
        const Deadline deadline(wait.timeout);
        if (taken_ == body_.size()) {
            MUSTER_LET(end, more(deadline, wait.interrupt_fd));
            if (end != ReadEnd::Data) return ReadResult{.end = end};
        }
        std::string all = body_.substr(taken_);
        body_.clear();
        taken_ = 0;
        return ReadResult{ReadEnd::Data, std::move(all)};
    }

    Result<std::string> read_all(Wait wait, std::size_t max) override {
        const Deadline deadline(wait.timeout);
        body_.erase(0, std::exchange(taken_, 0));
        for (;;) {
            MUSTER_LET(end, more(deadline, wait.interrupt_fd));
            if (body_.size() > max) {
                return Error{.code = Code::TooLarge,
                             .message = "the answer from " + link_->name() + " is longer than " +
                                        std::to_string(max) + " bytes"};
            }
            if (end == ReadEnd::Eof) return std::move(body_);
            if (end != ReadEnd::Data) return ended_without(*link_, end, wait.timeout);
        }
    }

    /// The connection, for the next call; null when it cannot be used again.
    std::unique_ptr<ClientLink> release_link() {
        if (!decoder_.done() || !head_.keep_alive() || !raw_.empty()) return nullptr;
        return std::move(link_);
    }

private:
    /// At least one byte more in body_ when Data.
    Result<ReadEnd> more(const Deadline& deadline, int interrupt_fd) {
        const std::size_t before = body_.size();
        for (;;) {
            MUSTER_TRY(decoder_.feed(raw_, body_));
            if (body_.size() > before) return ReadEnd::Data;
            if (decoder_.done() || eof_) return ReadEnd::Eof;
            const ReadResult got = link_->read(raw_, deadline, interrupt_fd);
            if (got.end == ReadEnd::Eof) {
                if (!decoder_.done_at_eof()) return broke_off(link_->name());
                eof_ = true;
            } else if (got.end != ReadEnd::Data) {
                return got.end;
            }
        }
    }

    ReadResult take_line(std::size_t end) {
        std::size_t length = end - taken_;
        if (length > 0 && body_[end - 1] == '\r') --length;
        ReadResult line{ReadEnd::Data, body_.substr(taken_, length)};
        taken_ = std::min(end + 1, body_.size());
        if (taken_ == body_.size() || taken_ > 64 * 1024) body_.erase(0, std::exchange(taken_, 0));
        return line;
    }

    std::unique_ptr<ClientLink> link_;
    AnswerHeadRead head_;
    BodyDecoder decoder_;
    std::string raw_;   // Off the wire.
    std::string body_;  // Decoded; taken_ bytes of it are spent.
    std::size_t taken_ = 0;
    bool eof_ = false;
};

class Pipe final : public RawPipe {
public:
    Pipe(std::unique_ptr<ClientLink> link, std::string first)
        : link_(std::move(link)), first_(std::move(first)) {}

    Result<ReadResult> read_some(Wait wait) override {
        ReadResult result{ReadEnd::Data, std::exchange(first_, {})};
        if (!result.data.empty()) return result;
        const Deadline deadline(wait.timeout);
        result.end = link_->read(result.data, deadline, wait.interrupt_fd).end;
        return result;
    }
    Status write(std::string_view bytes) override {
        return link_->write_all(bytes, Deadline(kDurationMax), -1);
    }
    void shut_down() override { link_->shut_down(); }
    int fd() const override { return link_->wire().fd(); }
    bool has_buffered() const override { return !first_.empty() || link_->wire().has_buffered(); }

private:
    std::unique_ptr<ClientLink> link_;
    std::string first_;
};

class Client final : public HttpClient {
public:
    explicit Client(HttpClientOptions options) : options_(std::move(options)) {}

    Result<HttpReply> send(const HttpCall& call) override {
        MUSTER_LET(answer, exchange(call, ""));
        MUSTER_LET(body, answer->read_all(wait(), std::size_t{1} << 30));
        HttpReply reply{answer->status(), answer->headers(), std::move(body)};
        idle_ = answer->release_link();
        return reply;
    }

    Result<std::unique_ptr<HttpBodyReader>> open(const HttpCall& call) override {
        MUSTER_LET(answer, exchange(call, ""));
        return std::unique_ptr<HttpBodyReader>(std::move(answer));
    }

    Result<std::unique_ptr<RawPipe>> upgrade(const HttpCall& call,
                                             std::string_view protocol) override {
        MUSTER_LET(started, start(call, protocol));
        auto& [link, head, raw] = started;
        if (head.status == 101) {
            return std::unique_ptr<RawPipe>(
                std::make_unique<Pipe>(std::move(link), std::move(raw)));
        }
        const int status = head.status;
        MUSTER_LET(decoder, BodyDecoder::of(head, call.method));
        BodyReader reader(std::move(link), std::move(head), decoder, std::move(raw));
        MUSTER_LET(body, reader.read_all(wait(), 1 << 20));
        return Error{.code = code_of_http(status),
                     .message = "the controller refused the connection with status " +
                                std::to_string(status),
                     .cause = std::move(body)};
    }

private:
    struct Started {
        std::unique_ptr<ClientLink> link;
        AnswerHeadRead head;
        std::string raw;  // What came behind the head.
    };

    Wait wait() const { return {options_.answer_timeout, options_.interrupt_fd}; }

    std::string head_text(const HttpCall& call, std::string_view protocol) const {
        const Endpoint& to = options_.endpoint;
        std::string text = call.method + " " + call.target + " HTTP/1.1\r\nHost: ";
        text += to.unix_path.empty() ? format_endpoint(to).substr(to.tls ? 8 : 7) : "localhost";
        const bool has_body = !call.body.empty() || call.method == "POST" || call.method == "PUT" ||
                              call.method == "PATCH";
        if (has_body) {
            text += "\r\nContent-Length: " + std::to_string(call.body.size());
            text += "\r\nContent-Type: ";
            text += call.content_type.empty() ? "application/json" : call.content_type;
        }
        if (!protocol.empty()) {
            text += "\r\nConnection: Upgrade\r\nUpgrade: " + std::string(protocol);
        }
        for (const Header& h : options_.headers) text += "\r\n" + h.name + ": " + h.value;
        for (const Header& h : call.headers) text += "\r\n" + h.name + ": " + h.value;
        return text + "\r\n\r\n";
    }

    /// A repeat cannot do harm: the method promises it, or the call carries a key for it.
    static bool repeatable(const HttpCall& call) {
        if (call.method != "POST" && call.method != "PATCH") return true;
        for (const Header& header : call.headers) {
            if (equal_ignoring_case(header.name, "Idempotency-Key")) return true;
        }
        return false;
    }

    Result<Started> start(const HttpCall& call, std::string_view protocol) {
        for (const Header& header : options_.headers) MUSTER_TRY(check_header(header));
        for (const Header& header : call.headers) MUSTER_TRY(check_header(header));
        const std::string text = head_text(call, protocol) + call.body;
        if (idle_ && !idle_->readable_now()) {
            bool untouched = true;
            auto started = start_on(std::move(idle_), text, untouched);
            if (started || !untouched || !repeatable(call)) return started;
        }
        idle_.reset();
        MUSTER_LET(link, ClientLink::connect(options_.endpoint, context_,
                                             {options_.connect_timeout, options_.interrupt_fd}));
        bool untouched = true;
        return start_on(std::move(link), text, untouched);
    }

    static Status check_header(const Header& header) {
        const bool bad = (header.name + header.value).find_first_of("\r\n") != std::string::npos;
        if (!bad && !header.name.empty()) return Ok{};
        return Error{.code = Code::Invalid,
                     .message = "header \"" + header.name + "\" is empty or has a line break"};
    }

    /// `untouched` stays true while the controller has shown no sign of having read the call.
    Result<Started> start_on(std::unique_ptr<ClientLink> link, std::string_view text,
                             bool& untouched) const {
        const Deadline deadline(options_.answer_timeout);
        // A refusal may come, and the connection end, before all is sent: read it in any case.
        const Status sent = link->write_all(text, deadline, options_.interrupt_fd);
        std::string raw;
        for (;;) {
            MUSTER_LET(head, take_head(raw));
            if (head) return Started{std::move(link), *std::move(head), std::move(raw)};
            const ReadResult got = link->read(raw, deadline, options_.interrupt_fd);
            if (got.end == ReadEnd::Data) {
                untouched = false;
                continue;
            }
            if (got.end != ReadEnd::Eof) untouched = false;
            if (!sent) return sent.error();
            return ended_without(*link, got.end, options_.answer_timeout);
        }
    }

    Result<std::unique_ptr<BodyReader>> exchange(const HttpCall& call, std::string_view protocol) {
        MUSTER_LET(started, start(call, protocol));
        MUSTER_LET(decoder, BodyDecoder::of(started.head, call.method));
        return std::make_unique<BodyReader>(std::move(started.link), std::move(started.head),
                                            decoder, std::move(started.raw));
    }

    HttpClientOptions options_;
    SslContextPtr context_;
    std::unique_ptr<ClientLink> idle_;
};

}  // namespace

std::string_view HttpReply::header(std::string_view name) const {
    for (const Header& h : headers) {
        if (h.name == name) return h.value;
    }
    return {};
}

std::unique_ptr<HttpClient> HttpClient::make(HttpClientOptions options) {
    return std::make_unique<Client>(std::move(options));
}

}  // namespace muster::net
