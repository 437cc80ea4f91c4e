#include "cli/json.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/text.h"

namespace muster::cli {
namespace {

constexpr int kDepthMax = 200;

class TapeReader {
public:
    explicit TapeReader(Json::Tape& tape) : tape_(tape), text_(tape.text) {}

    bool read() {
        tape_.nodes.reserve(text_.size() / 12 + 16);
        if (!value(0)) return false;
        space();
        if (at_ != text_.size()) return fail("more text after the value");
        return true;
    }
    std::string problem() const { return problem_; }
    std::size_t at() const { return at_; }

private:
    bool fail(const char* what) {
        if (problem_.empty()) problem_ = what;
        return false;
    }
    void space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\t' || text_[at_] == '\r'))
            ++at_;
    }
    std::size_t open(Json::Kind kind) {
        tape_.nodes.push_back({static_cast<std::uint32_t>(at_), 0, 0, kind, false});
        return tape_.nodes.size() - 1;
    }
    void close(std::size_t index) {
        tape_.nodes[index].end = static_cast<std::uint32_t>(at_);
        tape_.nodes[index].after = static_cast<std::uint32_t>(tape_.nodes.size());
    }
    bool literal(std::string_view word, Json::Kind kind) {
        if (text_.substr(at_, word.size()) != word) return fail("an unknown word");
        const std::size_t node = open(kind);
        at_ += word.size();
        close(node);
        return true;
    }
    bool string() {
        const std::size_t node = open(Json::Kind::String);
        ++at_;
        for (;;) {
            while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
                   static_cast<unsigned char>(text_[at_]) >= 0x20)
                ++at_;
            if (at_ >= text_.size()) return fail("a string without end");
            if (text_[at_] == '"') break;
            if (text_[at_] != '\\') return fail("a control character in a string");
            tape_.nodes[node].escaped = true;
            at_ += 2;
        }
        ++at_;
        close(node);
        return true;
    }
    bool number() {
        const std::size_t node = open(Json::Kind::Number);
        const std::size_t begin = at_;
        while (at_ < text_.size() && std::strchr("+-.0123456789eE", text_[at_]) != nullptr &&
               text_[at_] != '\0')
            ++at_;
        if (at_ == begin) return fail("not a value");
        close(node);
        return true;
    }
    bool container(int depth, bool object) {
        if (depth > kDepthMax) return fail("nested deeper than 200");
        const std::size_t node = open(object ? Json::Kind::Object : Json::Kind::Array);
        const char end = object ? '}' : ']';
        ++at_;
        space();
        if (at_ < text_.size() && text_[at_] == end) {
            ++at_;
            close(node);
            return true;
        }
        for (;;) {
            space();
            if (object) {
                if (at_ >= text_.size() || text_[at_] != '"') return fail("a key is missing");
                if (!string()) return false;
                space();
                if (at_ >= text_.size() || text_[at_] != ':') return fail("a ':' is missing");
                ++at_;
            }
            if (!value(depth + 1)) return false;
            space();
            if (at_ >= text_.size()) return fail("ends too early");
            const char c = text_[at_++];
            if (c == end) break;
            if (c != ',') return fail("a ',' is missing");
        }
        close(node);
        return true;
    }
    bool value(int depth) {
        space();
        if (at_ >= text_.size()) return fail("ends too early");
        switch (text_[at_]) {
            case '{': return container(depth, true);
            case '[': return container(depth, false);
            case '"': return string();
            case 't': return literal("true", Json::Kind::Bool);
            case 'f': return literal("false", Json::Kind::Bool);
            case 'n': return literal("null", Json::Kind::Null);
            default: return number();
        }
    }

    Json::Tape& tape_;
    std::string_view text_;
    std::size_t at_ = 0;
    std::string problem_;
};

void append_utf8(std::string& out, char32_t point) {
    const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
    if (point < 0x80) return put(point);
    if (point < 0x800) {
        put(0xc0 | (point >> 6));
    } else if (point < 0x10000) {
        put(0xe0 | (point >> 12));
        put(0x80 | ((point >> 6) & 0x3f));
    } else {
        put(0xf0 | (point >> 18));
        put(0x80 | ((point >> 12) & 0x3f));
        put(0x80 | ((point >> 6) & 0x3f));
    }
    put(0x80 | (point & 0x3f));
}

/// The code unit of "XXXX" at `at`, or U+FFFD.
char32_t hex4(std::string_view text, std::size_t at) {
    unsigned unit = 0xfffd;
    if (at + 4 <= text.size()) std::from_chars(text.data() + at, text.data() + at + 4, unit, 16);
    return unit;
}

std::string unescape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 >= text.size()) {
            out += text[i];
            continue;
        }
        const char c = text[++i];
        switch (c) {
            case 'n': out += '\n'; break;
            case 't': out += '\t'; break;
            case 'r': out += '\r'; break;
            case 'b': out += '\b'; break;
            case 'f': out += '\f'; break;
            case 'u': {
                char32_t point = hex4(text, i + 1);
                i += 4;
                const bool high = point >= 0xd800 && point < 0xdc00;
                if (high && text.substr(std::min(i + 1, text.size()), 2) == "\\u") {
                    const char32_t low = hex4(text, i + 3);
                    if (low >= 0xdc00 && low < 0xe000) {
                        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
                        i += 6;
                    }
                }
                if (point >= 0xd800 && point < 0xe000) point = 0xfffd;
                append_utf8(out, point);
                break;
            }
            default: out += c;
        }
    }
    return out;
}

}  // namespace

Result<JsonDocument> JsonDocument::parse(std::string text) {
    if (text.size() > (std::size_t{1} << 30))
        return Error{Code::TooLarge, "the JSON text is larger than 1 GiB"};
    JsonDocument document;
    document.tape_ = std::make_unique<Json::Tape>();
    document.tape_->text = std::move(text);
    TapeReader reader(*document.tape_);
    if (!reader.read())
        return Error{Code::Invalid,
                     "not JSON: " + reader.problem() + " at byte " + std::to_string(reader.at())};
    return document;
}

Json JsonDocument::root() const {
    return {tape_.get(), 0, 1};
}

Json::Kind Json::kind() const {
    return tape_ == nullptr ? Kind::Missing : node().kind;
}

bool Json::empty() const {
    switch (kind()) {
        case Kind::Missing:
        case Kind::Null: return true;
        case Kind::String: return node().end - node().begin == 2;
        case Kind::Array:
        case Kind::Object: return node().after == index_ + 1;
        default: return false;
    }
}

Json Json::first() const {
    if (kind() != Kind::Array || node().after == index_ + 1) return {};
    return {tape_, index_ + 1, node().after};
}

Json Json::next() const {
    if (tape_ == nullptr || node().after >= stop_) return {};
    return {tape_, node().after, stop_};
}

Json Json::operator[](std::string_view key) const {
    if (kind() != Kind::Object) return {};
    const std::uint32_t end = node().after;
    for (std::uint32_t i = index_ + 1; i < end;) {
        const Node& name = tape_->nodes[i];
        const std::string_view text(tape_->text.data() + name.begin + 1, name.end - name.begin - 2);
        if (name.escaped ? unescape(text) == key : text == key) return {tape_, i + 1, 0};
        i = tape_->nodes[i + 1].after;
    }
    return {};
}

Json Json::at(std::size_t index) const {
    Json item = first();
    while (index-- > 0 && item.exists()) item = item.next();
    return item;
}

Json Json::path(std::string_view dotted) const {
    Json value = *this;
    while (!dotted.empty() && value.exists()) {
        const std::size_t dot = std::min(dotted.find('.'), dotted.size());
        const std::string_view part = dotted.substr(0, dot);
        dotted.remove_prefix(std::min(dot + 1, dotted.size()));
        if (value.is_array()) {
            std::size_t index = 0;
            const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
            value = read.ptr == part.data() + part.size() ? value.at(index) : Json{};
        } else {
            value = value[part];
        }
    }
    return value;
}

std::size_t Json::size() const {
    std::size_t count = 0;
    if (kind() == Kind::Object) {
        for (std::uint32_t i = index_ + 1; i < node().after; i = tape_->nodes[i + 1].after) ++count;
    }
    for (Json item = first(); item.exists(); item = item.next()) ++count;
    return count;
}

std::string_view Json::raw() const {
    if (tape_ == nullptr) return {};
    return {tape_->text.data() + node().begin, node().end - node().begin};
}

std::string_view Json::view(std::string& room) const {
    switch (kind()) {
        case Kind::Missing:
        case Kind::Null: return {};
        case Kind::String: {
            const std::string_view inside = raw().substr(1, raw().size() - 2);
            if (!node().escaped) return inside;
            return room = unescape(inside);
        }
        default: return raw();
    }
}

std::string Json::text() const {
    std::string room;
    const std::string_view seen = view(room);
    return seen.data() == room.data() ? std::move(room) : std::string(seen);
}

std::int64_t Json::integer(std::int64_t fallback) const {
    if (kind() != Kind::Number && kind() != Kind::String) return fallback;
    std::string room;
    const std::string_view digits = view(room);
    std::int64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (read.ec != std::errc{}) return fallback;
    if (read.ptr != digits.data() + digits.size())
        return static_cast<std::int64_t>(number(static_cast<double>(fallback)));
    return value;
}

double Json::number(double fallback) const {
    if (kind() != Kind::Number) return fallback;
    const std::string_view digits = raw();
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc{} ? value : fallback;
}

bool Json::truth(bool fallback) const {
    return kind() == Kind::Bool ? raw() == "true" : fallback;
}

std::vector<Json> Json::items() const {
    std::vector<Json> out;
    for (Json item = first(); item.exists(); item = item.next()) out.push_back(item);
    return out;
}

std::vector<std::pair<std::string, Json>> Json::members() const {
    std::vector<std::pair<std::string, Json>> out;
    if (kind() != Kind::Object) return out;
    for (std::uint32_t i = index_ + 1; i < node().after; i = tape_->nodes[i + 1].after)
        out.emplace_back(Json(tape_, i, 0).text(), Json(tape_, i + 1, 0));
    return out;
}

}  // namespace muster::cli
