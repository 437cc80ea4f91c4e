// Text of HTTP messages: targets in, heads of answers out. Internal to net.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http.h"

namespace muster::net {

/// Fills path and query from `request.target`; false when the target is malformed.
bool split_target(HttpRequest& request);
/// %XX and, in queries, '+'. False on a broken escape or a NUL.
bool percent_decode(std::string_view text, bool plus_is_space, std::string& out);
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// "Tue, 01 Dec 2026 08:00:00 GMT" of a wall-clock second.
std::string http_date(std::int64_t unix_seconds);

struct AnswerHead {
    int status = 200;
    std::string_view content_type = {};
    const std::vector<Header>* headers = nullptr;
    std::string_view date = {};
    /// Bytes of the body; -1 = chunked; -2 = until the end of the connection; -3 = none (101).
    std::int64_t length = 0;
    bool keep_alive = true;
    std::string_view upgrade = {};
};
/// Ends with the empty line. CR, LF and NUL in header values become spaces.
std::string answer_head(const AnswerHead& head);

/// "1a2b\r\n" of a chunk's size.
std::string chunk_head(std::size_t size);

}  // namespace muster::net
