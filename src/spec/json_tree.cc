#include "base/utf8.h"
#include "spec/parse.h"
#include "spec/tree.h"

namespace muster::spec {
namespace {

class JsonReader {
public:
    JsonReader(std::string_view text, std::uint16_t source) : text_(text), source_(source) {}

    Tree read() {
        Value root;
        skip_space();
        if (at_ == text_.size()) return root;
        if (read_value(root, 0)) {
            skip_space();
            if (at_ < text_.size()) fail("only one JSON value is expected; this is after its end");
        }
        if (!error_.message.empty()) return error_;
        return root;
    }

private:
    bool fail(std::string message) { return fail_at(at_, std::move(message)); }
    bool fail_at(std::size_t at, std::string message) {
        error_ = {static_cast<std::uint32_t>(at), std::move(message)};
        return false;
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\r' || text_[at_] == '\t'))
            ++at_;
    }

    bool read_value(Value& out, int depth) {
        out.source = source_;
        out.at = static_cast<std::uint32_t>(at_);
        if (depth > kNestingMax)
            return fail("nested deeper than the limit of " + std::to_string(kNestingMax));
        switch (peek()) {
            case '{': return read_map(out, depth);
            case '[': return read_list(out, depth);
            case '"':
                out.kind = Value::Kind::Scalar;
                out.quoted = true;
                return read_string(out.text);
            default: return read_word(out);
        }
    }

    bool read_map(Value& out, int depth) {
        out.kind = Value::Kind::Map;
        ++at_;
        skip_space();
        if (peek() == '}') return ++at_, true;
        for (;;) {
            if (peek() != '"') return fail("a JSON key must be in double quotes");
            Entry& entry = out.entries.emplace_back();
            entry.source = source_;
            entry.at = static_cast<std::uint32_t>(at_);
            if (!read_string(entry.key)) return false;
            skip_space();
            if (peek() != ':') return fail("a ':' must follow a JSON key");
            ++at_;
            skip_space();
            if (!read_value(entry.value, depth + 1)) return false;
            skip_space();
            if (peek() == '}') return ++at_, true;
            if (peek() != ',') return fail("',' or '}' expected in a JSON object");
            ++at_;
            skip_space();
            if (peek() == '}') return fail("no ',' may stand before the closing '}' in JSON");
        }
    }

    bool read_list(Value& out, int depth) {
        out.kind = Value::Kind::List;
        ++at_;
        skip_space();
        if (peek() == ']') return ++at_, true;
        for (;;) {
            if (!read_value(out.items.emplace_back(), depth + 1)) return false;
            skip_space();
            if (peek() == ']') return ++at_, true;
            if (peek() != ',') return fail("',' or ']' expected in a JSON array");
            ++at_;
            skip_space();
            if (peek() == ']') return fail("no ',' may stand before the closing ']' in JSON");
        }
    }

    bool read_string(std::string& out) {
        const std::size_t start = at_++;
        for (;;) {
            const std::size_t from = at_;
            while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
                   static_cast<unsigned char>(text_[at_]) >= 0x20)
                ++at_;
            out.append(text_.substr(from, at_ - from));
            if (at_ == text_.size()) return fail_at(start, "this JSON string has no closing '\"'");
            if (text_[at_] == '"') return ++at_, true;
            if (text_[at_] != '\\') return fail("write a control character in JSON as \\n or \\u…");
            if (!read_escape(out)) return false;
        }
    }

    bool read_escape(std::string& out) {
        const std::size_t start = at_++;
        const char c = peek();
        ++at_;
        switch (c) {
            case '"':
            case '\\':
            case '/': out.push_back(c); return true;
            case 'b': out.push_back('\b'); return true;
            case 'f': out.push_back('\f'); return true;
            case 'n': out.push_back('\n'); return true;
            case 'r': out.push_back('\r'); return true;
            case 't': out.push_back('\t'); return true;
            case 'u': break;
            default: return fail_at(start, "no such escape in JSON; a backslash is written \\\\");
        }
        char32_t point = 0;
        if (!read_hex(point)) return fail_at(start, "four hexadecimal digits must follow \\u");
        if (point >= 0xd800 && point <= 0xdbff && text_.substr(at_, 2) == "\\u") {
            char32_t low = 0;
            at_ += 2;
            if (!read_hex(low) || low < 0xdc00 || low > 0xdfff)
                return fail_at(start, "half of a surrogate pair is not a character");
            point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        }
        if (point >= 0xd800 && point <= 0xdfff)
            return fail_at(start, "half of a surrogate pair is not a character");
        utf8_append(out, point);
        return true;
    }
    bool read_hex(char32_t& point) {
        if (text_.size() - at_ < 4) return false;
        for (int i = 0; i < 4; ++i) {
            const char c = text_[at_++];
            const char lower = static_cast<char>(c | 0x20);
            if (c >= '0' && c <= '9')
                point = point * 16 + static_cast<char32_t>(c - '0');
            else if (lower >= 'a' && lower <= 'f')
                point = point * 16 + static_cast<char32_t>(lower - 'a' + 10);
            else
                return false;
        }
        return true;
    }
    static void utf8_append(std::string& out, char32_t p) {
        const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
        if (p < 0x80) return put(p);
        if (p < 0x800) return put(0xc0 | p >> 6), put(0x80 | (p & 0x3f));
        if (p < 0x10000)
            put(0xe0 | p >> 12);
        else
            put(0xf0 | p >> 18), put(0x80 | (p >> 12 & 0x3f));
        put(0x80 | (p >> 6 & 0x3f));
        put(0x80 | (p & 0x3f));
    }

    /// A number (kept as it was written), true, false or null.
    bool read_word(Value& out) {
        const std::size_t start = at_;
        while (at_ < text_.size() &&
               std::string_view(" \t\r\n,:{}[]\"").find(text_[at_]) == std::string_view::npos)
            ++at_;
        const std::string_view word = text_.substr(start, at_ - start);
        if (word == "null") return true;
        if (word != "true" && word != "false" && !is_number(word)) {
            if (word.empty()) return fail_at(start, "a JSON value is missing here");
            return fail_at(start, "not a JSON value; text must be in double quotes");
        }
        out.kind = Value::Kind::Scalar;
        out.text = std::string(word);
        return true;
    }
    static bool is_number(std::string_view word) {
        const auto digits = [&] {
            std::size_t n = 0;
            while (n < word.size() && word[n] >= '0' && word[n] <= '9') ++n;
            word.remove_prefix(n);
            return n;
        };
        if (!word.empty() && word.front() == '-') word.remove_prefix(1);
        const bool zero = !word.empty() && word.front() == '0';
        const std::size_t whole = digits();
        if (whole == 0 || (zero && whole > 1)) return false;
        if (!word.empty() && word.front() == '.') {
            word.remove_prefix(1);
            if (digits() == 0) return false;
        }
        if (!word.empty() && (word.front() == 'e' || word.front() == 'E')) {
            word.remove_prefix(1);
            if (!word.empty() && (word.front() == '+' || word.front() == '-'))
                word.remove_prefix(1);
            if (digits() == 0) return false;
        }
        return word.empty();
    }

    std::string_view text_;
    std::uint16_t source_;
    std::size_t at_ = 0;
    SyntaxError error_;
};

}  // namespace

Tree read_json(std::string_view text, std::uint16_t source) {
    return JsonReader(text, source).read();
}

}  // namespace muster::spec
