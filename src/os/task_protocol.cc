#include "os/task_protocol.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/units.h"
#include "base/utf8.h"

namespace muster::os {
namespace {

constexpr std::int64_t kStepMax = std::int64_t{1} << 53;
constexpr std::size_t kMetricsMax = 16;
constexpr std::size_t kNameMax = 32;

Error wrong(std::string message) {
    return {.code = Code::Invalid, .message = std::move(message)};
}

bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool digit(char c) {
    return c >= '0' && c <= '9';
}

bool good_verb(std::string_view word) {
    return !word.empty() && word.size() <= kNameMax &&
           std::all_of(word.begin(), word.end(),
                       [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

bool good_key(std::string_view word) {
    if (word.empty() || word.size() > kNameMax || !(letter(word.front()) || word.front() == '_'))
        return false;
    return std::all_of(word.begin(), word.end(),
                       [](char c) { return letter(c) || digit(c) || c == '_'; });
}

int hex(char c) {
    if (digit(c)) return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

Result<std::string> decode_value(std::string_view raw) {
    std::string value;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        const auto byte = static_cast<unsigned char>(raw[i]);
        if (byte <= 0x20 || byte == 0x7f) return wrong("a value holds a byte that must be escaped");
        if (raw[i] != '%') {
            value.push_back(raw[i]);
            continue;
        }
        if (i + 2 >= raw.size()) return wrong("a value ends within an escape");
        const int a = hex(raw[i + 1]), b = hex(raw[i + 2]);
        if (a < 0 || b < 0) return wrong("a value holds a bad escape");
        value.push_back(static_cast<char>(a * 16 + b));
        i += 2;
    }
    if (value.find('\0') != std::string::npos) return wrong("a value holds a NUL");
    if (!utf8_valid(value)) return wrong("a value is not valid UTF-8");
    return value;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

const std::string* find(const Pairs& pairs, std::string_view key) {
    for (const auto& [name, value] : pairs)
        if (name == key) return &value;
    return nullptr;
}

/// "digits without sign"; `absent` when the key is not there and need not be.
Result<std::int64_t> integer(const Pairs& pairs, std::string_view key, std::int64_t max,
                             std::int64_t absent) {
    const std::string* text = find(pairs, key);
    if (text == nullptr) {
        if (absent < -1) return wrong(std::string(key) + " is missing");
        return absent;
    }
    if (text->empty() || !std::all_of(text->begin(), text->end(), digit))
        return wrong(std::string(key) + " is not a whole number");
    const auto value = parse_integer(*text, 0, max);
    if (!value) return wrong(std::string(key) + " is above " + std::to_string(max));
    return *value;
}

constexpr std::int64_t kRequired = -2;

bool metric_value(const std::string& text, double& value) {
    if (text.empty() || letter(text.front())) return false;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end && std::isfinite(value);
}

Result<TaskLine> read_progress(const Pairs& pairs) {
    ProgressLine line;
    MUSTER_LET(step, integer(pairs, "step", kStepMax - 1, kRequired));
    MUSTER_LET(total, integer(pairs, "total", kStepMax - 1, 0));
    MUSTER_LET(rank, integer(pairs, "rank", 65'535, -1));
    line.step = step;
    line.total = total;
    line.rank = static_cast<int>(rank);
    for (const auto& [key, text] : pairs) {
        double value = 0;
        if (key == "step" || key == "total" || key == "rank" || !metric_value(text, value))
            continue;
        if (line.metrics.size() < kMetricsMax) line.metrics.emplace_back(key, value);
    }
    return TaskLine(std::move(line));
}

Result<TaskLine> read_checkpoint(const Pairs& pairs) {
    MUSTER_LET(step, integer(pairs, "step", kStepMax - 1, kRequired));
    MUSTER_LET(rank, integer(pairs, "rank", 65'535, -1));
    (void)rank;
    const std::string* path = find(pairs, "path");
    if (path == nullptr) return wrong("path is missing");
    if (path->empty() || path->front() != '/') return wrong("path is not absolute");
    return TaskLine(CheckpointLine{.step = step, .path = *path});
}

}  // namespace

Result<TaskLine> parse_task_line(std::string_view line) {
    std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view verb = line.substr(0, end);
    if (!good_verb(verb)) return wrong("a line begins with a verb of a-z and '-'");
    const bool known =
        verb == "progress" || verb == "checkpoint" || verb == "saved" || verb == "done";
    if (!known) return wrong("unknown verb " + std::string(verb));
    Pairs pairs;
    std::set<std::string, std::less<>> seen;
    while (end < line.size()) {
        const std::size_t start = end + 1;
        end = std::min(line.find(' ', start), line.size());
        const std::string_view word = line.substr(start, end - start);
        const std::size_t equal = word.find('=');
        if (equal == std::string_view::npos || !good_key(word.substr(0, equal)))
            return wrong("not key=value: '" + std::string(word.substr(0, 40)) + "'");
        std::string key(word.substr(0, equal));
        MUSTER_LET(value, decode_value(word.substr(equal + 1)));
        if (!seen.insert(key).second) return wrong("key " + key + " is given twice");
        pairs.emplace_back(std::move(key), std::move(value));
    }
    if (verb == "progress") return read_progress(pairs);
    if (verb == "checkpoint") return read_checkpoint(pairs);
    if (verb == "done") return TaskLine(DoneLine{});
    MUSTER_LET(step, integer(pairs, "step", kStepMax - 1, kRequired));
    return TaskLine(SavedLine{.step = step});
}

bool TokenBucket::take(std::int64_t now_ms) {
    const std::int64_t passed = std::clamp<std::int64_t>(now_ms - at_ms_, 0, 1'000'000);
    at_ms_ = now_ms;
    milli_ = std::min(milli_ + passed * per_second_, burst_ * 1000);
    if (milli_ < 1000) return false;
    milli_ -= 1000;
    return true;
}

std::int64_t TokenBucket::wait_ms() const {
    return milli_ >= 1000 ? 0 : (1000 - milli_ + per_second_ - 1) / per_second_;
}

}  // namespace muster::os
