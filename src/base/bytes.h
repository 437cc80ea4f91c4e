// The binary form of records and messages kept on disk: varints and length-prefixed text.
// A Reader never reads past its end and never trusts a length; a bad input leaves ok() false.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

class Writer {
public:
    /// LEB128: small numbers are short.
    void number(std::uint64_t value) {
        while (value >= 0x80) {
            out_.push_back(static_cast<char>(value | 0x80));
            value >>= 7;
        }
        out_.push_back(static_cast<char>(value));
    }
    /// Zigzag, so that small negatives are short too.
    void signed_number(std::int64_t value) {
        number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
    }
    void flag(bool value) { out_.push_back(value ? 1 : 0); }
    void text(std::string_view value) {
        number(value.size());
        out_.append(value);
    }
    const std::string& bytes() const& { return out_; }
    std::string bytes() && { return std::move(out_); }

private:
    std::string out_;
};

class Reader {
public:
    explicit Reader(std::string_view bytes) : left_(bytes) {}

    std::uint64_t number() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (left_.empty()) break;
            const auto byte = static_cast<unsigned char>(left_.front());
            left_.remove_prefix(1);
            value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
        ok_ = false;
        return 0;
    }
    std::int64_t signed_number() {
        const std::uint64_t value = number();
        return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
    }
    bool flag() { return number() != 0; }
    std::string_view text() {
        const std::uint64_t size = number();
        if (!ok_ || size > left_.size()) {
            ok_ = false;
            return {};
        }
        const std::string_view value = left_.substr(0, size);
        left_.remove_prefix(size);
        return value;
    }
    /// A count of things of at least one byte each: never more than there are bytes left.
    std::size_t count() {
        const std::uint64_t n = number();
        if (!ok_ || n > left_.size()) {
            ok_ = false;
            return 0;
        }
        return static_cast<std::size_t>(n);
    }
    bool ok() const { return ok_; }
    bool at_end() const { return left_.empty(); }

private:
    std::string_view left_;
    bool ok_ = true;
};

}  // namespace muster
