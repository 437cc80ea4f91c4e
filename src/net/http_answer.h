// The client's half of HTTP/1.1: the head of an answer, and its body by length, in chunks or until
// the end. Internal to net.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_client.h"

namespace muster::net {

struct AnswerHeadRead {
    int status = 0;
    std::vector<Header> headers = {};  // Names in lower case.
    bool http11 = true;

    std::string_view header(std::string_view name) const;
    bool keep_alive() const;
};

/// Takes a whole head off the front of `buffer`; nullopt when more bytes are needed. Interim
/// answers (100) are skipped.
Result<std::optional<AnswerHeadRead>> take_head(std::string& buffer);

/// Turns raw bytes into the body's, whatever its framing.
class BodyDecoder {
public:
    BodyDecoder() = default;
    /// Of an answer to `method`.
    static Result<BodyDecoder> of(const AnswerHeadRead& head, std::string_view method);

    /// Moves what it can from `raw` to `body`; what belongs to the next answer stays in `raw`.
    Status feed(std::string& raw, std::string& body);
    bool done() const { return stage_ == Stage::Done; }
    /// The connection ended: fine only when that is how the body ends.
    bool done_at_eof() const { return stage_ == Stage::Done || stage_ == Stage::UntilEof; }

private:
    enum class Stage : std::uint8_t {
        Length,
        ChunkSize,
        ChunkData,
        ChunkEnd,
        Trailer,
        UntilEof,
        Done
    };
    Stage stage_ = Stage::Done;
    std::uint64_t left_ = 0;  // Of the body, or of the chunk.
};

}  // namespace muster::net
