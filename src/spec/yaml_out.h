// Writes YAML that reads back as what was written. Internal to the room.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::spec {

/// The largest unit that says it exactly.
inline std::string exact_bytes(Bytes bytes) {
    static constexpr const char* kUnits[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    std::int64_t value = bytes.value;
    while (unit + 1 < std::size(kUnits) && value != 0 && value % 1024 == 0) value /= 1024, ++unit;
    return std::to_string(value) + kUnits[unit];
}

/// Block style, but for small maps and lists that hold single values: those stand on one line.
class YamlOut {
public:
    void map(bool inline_style) { open(inline_style || flow_ > 0, '{', '}'); }
    void list() { open(true, '[', ']'); }
    void end() {
        const Frame frame = open_.back();
        open_.pop_back();
        if (frame.close == 0) return;
        out_ += frame.close;
        if (--flow_ == 0) out_ += '\n';
    }
    void key(std::string_view name) {
        if (flow_ > 0)
            separate();
        else
            out_.append(2 * (open_.size() - 1), ' ');
        out_ +=
            (is_plain(name) && lower(name) != "null" ? std::string(name) : json_quote(name)) + ":";
        after_key_ = true;
    }
    void text(const std::string& value) {
        if (flow_ > 0 || !is_block(value)) return write(quoted(value));
        after_key_ = false;
        out_ += " |";
        out_ += value.back() == '\n' ? "" : "-";
        out_ += '\n';
        for (const std::string_view line : split(
                 std::string_view(value).substr(0, value.size() - (value.back() == '\n')), '\n')) {
            if (!line.empty()) out_.append(2 * open_.size(), ' ');
            out_ += line;
            out_ += '\n';
        }
    }
    void plain(const std::string& value, bool) { write(value); }
    std::string take() && { return std::move(out_); }

private:
    struct Frame {
        char close = 0;  // 0: block style.
        bool empty = true;
    };
    void open(bool flow, char bracket, char close) {
        if (!flow) {
            if (after_key_) out_ += '\n';
            after_key_ = false;
            open_.push_back({});
            return;
        }
        before_value();
        out_ += bracket;
        ++flow_;
        open_.push_back({close, true});
    }
    void separate() {
        if (!open_.back().empty) out_ += ", ";
        open_.back().empty = false;
    }
    void before_value() {
        if (after_key_)
            out_ += ' ';
        else if (flow_ > 0)
            separate();
        after_key_ = false;
    }
    void write(const std::string& value) {
        before_value();
        out_ += value;
        if (flow_ == 0) out_ += '\n';
    }

    /// Several lines that a literal block shows as they are.
    static bool is_block(const std::string& value) {
        const std::size_t last = value.find_last_not_of('\n');
        if (value.find('\n') == std::string::npos || last == std::string::npos) return false;
        if (value.size() - last > 2 || value[0] == ' ' || value[0] == '\n') return false;
        return std::all_of(
                   value.begin(), value.end(),
                   [](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\n'; }) &&
               value.find('\x7f') == std::string::npos && utf8_valid(value);
    }
    static bool is_plain(std::string_view text) {
        constexpr std::string_view kSafe =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./ -=+$@%";
        constexpr std::size_t kPlainMax = 4096;
        if (text.empty() || text.size() > kPlainMax || text.back() == ' ') return false;
        const char first = static_cast<char>(text.front() | 0x20);
        return ((first >= 'a' && first <= 'z') || text.front() == '/' || text.front() == '_') &&
               text.find_first_not_of(kSafe) == std::string_view::npos;
    }
    /// As it is where no reader of YAML can take it for anything else; else in JSON's quotes.
    static std::string quoted(std::string_view text) {
        static constexpr std::string_view kWords[] = {"null", "true", "false", "yes",
                                                      "no",   "on",   "off",   "none"};
        const bool word =
            std::find(std::begin(kWords), std::end(kWords), lower(text)) != std::end(kWords);
        return is_plain(text) && !word ? std::string(text) : json_quote(text);
    }

    std::string out_;
    std::vector<Frame> open_;
    int flow_ = 0;
    bool after_key_ = false;
};

}  // namespace muster::spec
