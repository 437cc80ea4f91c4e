// Writes JSON text forward, into one growing string. No tree is built: about 1 µs a job.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// Commas are put where they belong; the caller keeps begin/end and key/value in order.
class JsonWriter {
public:
    JsonWriter& begin_object() { return open('{'); }
    JsonWriter& end_object() { return close('}'); }
    JsonWriter& begin_array() { return open('['); }
    JsonWriter& end_array() { return close(']'); }
    JsonWriter& key(std::string_view name);
    JsonWriter& value(std::string_view text);  // Escaped; invalid UTF-8 becomes U+FFFD.
    JsonWriter& value(const char* text) { return value(std::string_view(text)); }
    JsonWriter& value(std::int64_t number);
    JsonWriter& value(std::uint64_t number);
    JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
    JsonWriter& value(unsigned number) { return value(static_cast<std::uint64_t>(number)); }
    JsonWriter& value(double number);  // Not finite: null.
    JsonWriter& value(bool flag);
    JsonWriter& null();
    /// `json` is one complete JSON value already.
    JsonWriter& raw(std::string_view json);
    template <class T>
    JsonWriter& field(std::string_view name, const T& v) {
        key(name);
        return value(v);
    }
    const std::string& text() const& { return out_; }
    std::string text() && { return std::move(out_); }
    std::size_t size() const { return out_.size(); }

private:
    JsonWriter& open(char bracket);
    JsonWriter& close(char bracket);
    void separate();
    std::string out_;
    bool comma_ = false;
};

/// `text` as a JSON string, quotes included.
std::string json_quote(std::string_view text);

}  // namespace muster
