// Pieces of logs as they travel: plain text, with rank prefixes where there are
// several, or server-sent events. Characters are never cut apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::rest {

class LogFormat {
public:
    enum class Kind : std::uint8_t { Text, Events };
    explicit LogFormat(Kind kind) : kind_(kind) {}

    Kind kind() const { return kind_; }
    /// Several ranks: text lines get a prefix from now on.
    void set_prefixed(bool prefixed) { prefixed_ = prefixed; }
    /// A new attempt: places begin anew. "" in text.
    std::string attempt(std::uint32_t number, bool announce);
    std::string piece(std::uint32_t rank, std::int64_t offset, std::string_view bytes);
    /// What was held back of a rank that has ended.
    std::string rest(std::uint32_t rank);
    std::string note(std::uint32_t rank,
                     std::string_view message) const;              // "" in text.
    std::string end(std::string_view state, int exit_code) const;  // "" in text.

private:
    struct Rank {
        std::int64_t next = 0;  // What has been sent.
        std::string held;       // The start of a character (events) or of a line (prefixed text).
    };
    std::string as_event(std::uint32_t rank, std::int64_t offset, std::string_view bytes);
    std::string id() const;

    const Kind kind_;
    bool prefixed_ = false;
    std::uint32_t attempt_ = 0;
    std::map<std::uint32_t, Rank> ranks_;
};

/// Where the last `lines` lines of `text` begin. A last line without its end
/// counts.
std::size_t start_of_last_lines(std::string_view text, std::size_t lines);

}  // namespace muster::rest
