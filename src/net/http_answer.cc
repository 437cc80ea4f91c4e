#include "net/http_answer.h"

#include <algorithm>
#include <charconv>

#include "net/http_message.h"

namespace muster::net {
namespace {

constexpr std::size_t kHeadMax = 64 * 1024;
constexpr std::size_t kChunkLineMax = 1024;

Error malformed(std::string_view what) {
    return Error{.code = Code::Corrupt,
                 .message = "the answer is not valid HTTP",
                 .cause = std::string(what),
                 .fix = "check that a Muster controller listens at that address"};
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

/// True when `token` is in the comma-separated list.
bool lists(std::string_view list, std::string_view token) {
    while (!list.empty()) {
        const std::string_view item = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), item.size() + 1));
        if (equal_ignoring_case(trimmed(item), token)) return true;
    }
    return false;
}

Result<AnswerHeadRead> parse_head(std::string_view text) {
    AnswerHeadRead head;
    const std::string_view first = text.substr(0, text.find("\r\n"));
    text.remove_prefix(first.size() + 2);
    if (!first.starts_with("HTTP/1.") || first.size() < 12 || first[8] != ' ') {
        return malformed("it does not start with HTTP/1");
    }
    head.http11 = first[7] != '0';
    const auto parsed = std::from_chars(first.data() + 9, first.data() + 12, head.status);
    if (parsed.ec != std::errc{} || parsed.ptr != first.data() + 12 || head.status < 100) {
        return malformed("its status is no number");
    }
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find("\r\n"));
        text.remove_prefix(std::min(text.size(), line.size() + 2));
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos || colon == 0) return malformed("a header has no name");
        Header header{std::string(line.substr(0, colon)),
                      std::string(trimmed(line.substr(colon + 1)))};
        for (char& c : header.name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        head.headers.push_back(std::move(header));
    }
    return head;
}

}  // namespace

std::string_view AnswerHeadRead::header(std::string_view name) const {
    for (const Header& h : headers) {
        if (h.name == name) return h.value;
    }
    return {};
}

bool AnswerHeadRead::keep_alive() const {
    return http11 && !lists(header("connection"), "close");
}

Result<std::optional<AnswerHeadRead>> take_head(std::string& buffer) {
    for (;;) {
        const std::size_t end = buffer.find("\r\n\r\n");
        if (end == std::string::npos) {
            if (buffer.size() > kHeadMax) return malformed("its header is longer than 64 KiB");
            return std::optional<AnswerHeadRead>();
        }
        MUSTER_LET(head, parse_head(std::string_view(buffer).substr(0, end + 2)));
        buffer.erase(0, end + 4);
        if (head.status >= 200 || head.status == 101) {
            return std::optional<AnswerHeadRead>(std::move(head));
        }
    }
}

Result<BodyDecoder> BodyDecoder::of(const AnswerHeadRead& head, std::string_view method) {
    BodyDecoder decoder;
    if (method == "HEAD" || head.status == 204 || head.status == 304 || head.status == 101) {
        return decoder;
    }
    if (const std::string_view encoding = head.header("transfer-encoding"); !encoding.empty()) {
        if (!equal_ignoring_case(encoding, "chunked")) {
            return malformed("its Transfer-Encoding is not chunked");
        }
        decoder.stage_ = Stage::ChunkSize;
        return decoder;
    }
    const std::string_view length = head.header("content-length");
    if (length.empty()) {
        decoder.stage_ = Stage::UntilEof;
        return decoder;
    }
    const auto parsed =
        std::from_chars(length.data(), length.data() + length.size(), decoder.left_);
    if (parsed.ec != std::errc{} || parsed.ptr != length.data() + length.size()) {
        return malformed("its Content-Length is no number");
    }
    decoder.stage_ = decoder.left_ == 0 ? Stage::Done : Stage::Length;
    return decoder;
}

Status BodyDecoder::feed(std::string& raw, std::string& body) {
    std::size_t at = 0;
    const auto move_left = [&] {
        const std::size_t size = std::min<std::uint64_t>(left_, raw.size() - at);
        body.append(raw, at, size);
        at += size;
        left_ -= size;
    };
    while (at < raw.size() && stage_ != Stage::Done) {
        if (stage_ == Stage::UntilEof) {
            body.append(raw, at);
            at = raw.size();
        } else if (stage_ == Stage::Length) {
            move_left();
            if (left_ == 0) stage_ = Stage::Done;
        } else if (stage_ == Stage::ChunkData) {
            move_left();
            if (left_ == 0) stage_ = Stage::ChunkEnd;
        } else {
            const std::size_t end = raw.find("\r\n", at);
            if (end == std::string::npos) {
                if (raw.size() - at > kChunkLineMax) return malformed("a chunk has no size");
                break;
            }
            const std::string_view line = std::string_view(raw).substr(at, end - at);
            at = end + 2;
            if (stage_ == Stage::Trailer) {
                if (line.empty()) stage_ = Stage::Done;
            } else if (stage_ == Stage::ChunkEnd) {
                if (!line.empty()) return malformed("a chunk is longer than its size");
                stage_ = Stage::ChunkSize;
            } else {
                const std::string_view digits = line.substr(0, line.find(';'));
                const auto parsed =
                    std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
                if (parsed.ec != std::errc{} || parsed.ptr == digits.data()) {
                    return malformed("a chunk has no size");
                }
                stage_ = left_ == 0 ? Stage::Trailer : Stage::ChunkData;
            }
        }
    }
    raw.erase(0, at);
    return Ok{};
}

}  // namespace muster::net
