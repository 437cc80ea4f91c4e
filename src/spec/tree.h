// A document as written: text, lists and maps with the place of each. Numbers stay text (1e-4 is
// not rounded, `on` is not true, 012 is not ten), and nothing has a meaning yet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace muster::spec {

struct Entry;

struct Value {
    enum class Kind : std::uint8_t { Null, Scalar, List, Map };
    Kind kind = Kind::Null;
    bool quoted = false;       // Scalar: written as a string, in quotes or as a block.
    std::uint16_t source = 0;  // Which text `at` is in: 0 the document, else a flag.
    std::uint32_t at = 0;      // Byte offset.
    std::string text;
    std::vector<Value> items;
    std::vector<Entry> entries;  // In the order written; keys may repeat.
};
struct Entry {
    std::string key;
    std::uint16_t source = 0;
    std::uint32_t at = 0;  // Of the key.
    Value value;
};

struct SyntaxError {
    std::uint32_t at = 0;
    std::string message;
};
using Tree = std::variant<Value, SyntaxError>;

/// One document of at most kJobFileMax bytes of well-formed UTF-8 without NUL. An empty one is a
/// Null value. Refused: deeper than kNestingMax, a second document, aliases that multiply, tags.
Tree read_yaml(std::string_view text, std::uint16_t source);
/// Strict JSON (RFC 8259), with the same limits.
Tree read_json(std::string_view text, std::uint16_t source);

inline Value scalar_value(std::string text, std::uint16_t source, std::uint32_t at = 0) {
    Value value;
    value.kind = Value::Kind::Scalar;
    value.source = source;
    value.at = at;
    value.text = std::move(text);
    return value;
}

}  // namespace muster::spec
