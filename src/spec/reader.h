// What every document is read with: values checked one by one, and problems collected with their
// places, in the order of the document. Internal to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "spec/problem.h"
#include "spec/tree.h"

namespace muster::spec {

/// What a Value's offset is in.
struct Source {
    std::string name;  // The file's, or a flag's with its dashes.
    bool is_flag = false;
    std::string_view text;
};

/// The parts of a Problem that only the reader of the value knows.
struct Detail {
    std::string value = {};
    std::string limit = {};
    std::string suggestion = {};
    int number =
        0;  // Of base/error_codes.h; 0: out of range if there is a limit, else a bad value.
};

class Reader {
public:
    /// `sources[0]` is the document.
    explicit Reader(std::span<const Source> sources) : sources_(sources) {}
    /// The problems in the order of the document.
    Problems problems() &&;
    bool failed() const { return !found_.empty(); }

    /// Adds a problem at `value`, under the name of the field being read.
    void fail(const Value& value, std::string message, Detail detail = {});
    void fail(const Value& value, const Error& error) { fail(value, error.message, Detail{}); }
    /// The same, as a problem of that number.
    void fail(const Value& value, int number, std::string message);

    /// The text of a single value; NUL is refused.
    std::optional<std::string_view> scalar(const Value& value);
    /// A text of 1..max bytes without control characters, other than line breaks if `lines`.
    std::optional<std::string> text(const Value& value, std::size_t max, bool lines = false);
    std::optional<std::int64_t> integer(const Value& value, std::int64_t low, std::int64_t high);
    std::optional<Duration> duration(const Value& value, Duration low, Duration high);
    std::optional<Bytes> bytes(const Value& value, std::int64_t max);
    std::optional<bool> flag(const Value& value);
    /// At a key: "unknown key", with the nearest of `known`.
    void fail_unknown(const Entry& entry, std::span<const std::string> known);
    /// The entries of a map of free keys; repeated keys are problems. Empty if it is no map.
    std::span<const Entry> entries(const Value& map, std::string_view form);
    /// The items of a list, or the value itself as its only item. A Null has none and is a problem.
    std::span<const Value> items(const Value& value);

    /// While it lives, problems are named after this key or index below the current one.
    class Within {
    public:
        Within(Reader& owner, std::string_view key) : owner_(owner) {
            owner_.path_.push_back({key, 0});
        }
        Within(Reader& owner, std::size_t index) : owner_(owner) {
            owner_.path_.push_back({{}, index + 1});
        }
        Within(const Within&) = delete;
        Within& operator=(const Within&) = delete;
        ~Within() { owner_.path_.pop_back(); }

    private:
        Reader& owner_;
    };

protected:
    /// As many problems as are told; then one more is counted.
    bool full();
    void fail_at(std::uint16_t source, std::uint32_t at, std::string message, Detail detail);
    void fail_repeated(std::span<const Entry> entries);
    void fail_whole(int number, std::string message);

private:
    struct Segment {
        std::string_view key;
        std::size_t index = 0;  // 1-based; 0: a key.
    };
    struct Found {
        std::uint16_t source;
        std::uint32_t at;
        Problem problem;
    };
    std::string dotted(std::size_t from) const;
    std::string pointer() const;

    std::span<const Source> sources_;
    std::vector<Segment> path_;
    std::vector<Found> found_;
    std::size_t more_ = 0;  // Problems past kProblemsMax.
};

/// At most 60 bytes of it, cut between characters.
std::string shorten(std::string_view text);

}  // namespace muster::spec
