#include "base/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace muster {
namespace {

void append_escaped(std::string& out, std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    out.push_back('"');
    while (!text.empty()) {
        std::size_t plain = 0;
        while (plain < text.size()) {
            const auto c = static_cast<unsigned char>(text[plain]);
            if (c < 0x20 || c == '"' || c == '\\' || c >= 0x7f) break;
            ++plain;
        }
        out.append(text.substr(0, plain));
        text.remove_prefix(plain);
        if (text.empty()) break;
        const auto c = static_cast<unsigned char>(text.front());
        std::size_t used = 1;
        if (c >= 0x80) {
            used = utf8_length(text);
            if (used == 0)
                out.append("\xef\xbf\xbd"), used = 1;
            else
                out.append(text.substr(0, used));
        } else if (c == '"' || c == '\\') {
            out.push_back('\\'), out.push_back(static_cast<char>(c));
        } else if (c == '\n') {
            out.append("\\n");
        } else if (c == '\t') {
            out.append("\\t");
        } else {
            out.append("\\u00"), out.push_back(kHex[c >> 4]), out.push_back(kHex[c & 15]);
        }
        text.remove_prefix(used);
    }
    out.push_back('"');
}

template <class T>
void append_number(std::string& out, T number) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.append(digits, end);
}

}  // namespace

void JsonWriter::separate() {
    if (comma_) out_.push_back(',');
    comma_ = true;
}
JsonWriter& JsonWriter::open(char bracket) {
    separate();
    out_.push_back(bracket);
    comma_ = false;
    return *this;
}
JsonWriter& JsonWriter::close(char bracket) {
    out_.push_back(bracket);
    comma_ = true;
    return *this;
}
JsonWriter& JsonWriter::key(std::string_view name) {
    separate();
    append_escaped(out_, name);
    out_.push_back(':');
    comma_ = false;
    return *this;
}
JsonWriter& JsonWriter::value(std::string_view text) {
    separate();
    append_escaped(out_, text);
    return *this;
}
JsonWriter& JsonWriter::value(std::int64_t number) {
    separate();
    append_number(out_, number);
    return *this;
}
JsonWriter& JsonWriter::value(std::uint64_t number) {
    separate();
    append_number(out_, number);
    return *this;
}
JsonWriter& JsonWriter::value(double number) {
    if (!std::isfinite(number)) return null();
    separate();
    append_number(out_, number);
    return *this;
}
JsonWriter& JsonWriter::value(bool flag) {
    return raw(flag ? "true" : "false");
}
JsonWriter& JsonWriter::null() {
    return raw("null");
}
JsonWriter& JsonWriter::raw(std::string_view json) {
    separate();
    out_.append(json);
    return *this;
}

std::string json_quote(std::string_view text) {
    std::string out;
    append_escaped(out, text);
    return out;
}

}  // namespace muster
