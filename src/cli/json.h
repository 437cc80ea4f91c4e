// JSON read forward into a flat tape: no tree of allocations, strings stay where they are in the
// text, and every value still knows its bytes, so that it can be passed on unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::cli {

/// A value of a JsonDocument, valid as long as that. Cheap to copy. What is not there is Missing,
/// and everything may be asked of it: chains of lookups need no checks.
class Json {
public:
    enum class Kind : std::uint8_t { Missing, Null, Bool, Number, String, Array, Object };

    Json() = default;
    Kind kind() const;
    bool exists() const { return kind() != Kind::Missing; }
    /// Missing, null, "", [] or {}.
    bool empty() const;
    bool is_object() const { return kind() == Kind::Object; }
    bool is_array() const { return kind() == Kind::Array; }
    bool is_string() const { return kind() == Kind::String; }
    bool is_number() const { return kind() == Kind::Number; }

    Json operator[](std::string_view key) const;
    /// "a.b.c"; a part that is a number indexes an array.
    Json path(std::string_view dotted) const;
    Json at(std::size_t index) const;
    std::size_t size() const;

    /// Its JSON text, as received. "" when Missing.
    std::string_view raw() const;
    /// A string decoded; a number or a truth as written; "" for null and Missing; else raw().
    std::string text() const;
    /// As text(), without a copy unless the string has escapes (then it lives in `room`).
    std::string_view view(std::string& room) const;
    std::int64_t integer(std::int64_t fallback = 0) const;
    double number(double fallback = 0) const;
    bool truth(bool fallback = false) const;

    std::vector<Json> items() const;  // Of an array; else empty.
    std::vector<std::pair<std::string, Json>> members() const;

    /// The first element, or Missing; then next() from one to the next.
    Json first() const;
    Json next() const;

    struct Node {
        std::uint32_t begin, end;  // Of the text.
        std::uint32_t after;       // Tape index behind this value and what is in it.
        Kind kind;
        bool escaped;
    };
    struct Tape {
        std::string text;
        std::vector<Node> nodes;
    };
    Json(const Tape* tape, std::uint32_t index, std::uint32_t stop)
        : tape_(tape), index_(index), stop_(stop) {}

private:
    const Node& node() const { return tape_->nodes[index_]; }
    const Tape* tape_ = nullptr;
    std::uint32_t index_ = 0;
    std::uint32_t stop_ = 0;  // Where the enclosing array ends.
};

class JsonDocument {
public:
    /// Refuses what is not exactly one JSON value, deeper than 200, or over 1 GiB.
    static Result<JsonDocument> parse(std::string text);
    Json root() const;

private:
    std::unique_ptr<Json::Tape> tape_;
};

/// JSON as block YAML; strings are quoted where YAML would read something else.
std::string to_yaml(const Json& value);
/// Indented by two, for people.
std::string to_pretty_json(const Json& value);

}  // namespace muster::cli
