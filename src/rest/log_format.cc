#include "rest/log_format.h"

#include "base/json_writer.h"
#include "base/utf8.h"

namespace muster::rest {
namespace {

constexpr std::size_t kLineHeldMax = 64 * 1024;

/// Bytes at the end that may be the start of a character.
std::size_t open_character(std::string_view text) {
    for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if (byte < 0x80) return 0;
        if (byte < 0xc0) continue;  // Inside one: look further back.
        const std::size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
        return whole > back ? back : 0;
    }
    return 0;
}

}  // namespace

std::string LogFormat::id() const {
    std::string out = std::to_string(attempt_) + "/";
    const char* separator = "";
    for (const auto& [rank, state] : ranks_) {
        out += separator + std::to_string(rank) + ":" + std::to_string(state.next);
        separator = ",";
    }
    return out;
}

std::string LogFormat::attempt(std::uint32_t number, bool announce) {
    attempt_ = number;
    ranks_.clear();
    if (kind_ == Kind::Text || !announce) return {};
    return "event: attempt\ndata: {\"attempt\":" + std::to_string(number) + "}\n\n";
}

std::string LogFormat::as_event(std::uint32_t rank, std::int64_t offset, std::string_view bytes) {
    JsonWriter json;
    json.begin_object().field("rank", rank).field("offset", offset).field("text", bytes);
    json.end_object();
    return "id: " + id() + "\nevent: log\ndata: " + json.text() + "\n\n";
}

std::string LogFormat::piece(std::uint32_t rank, std::int64_t offset, std::string_view bytes) {
    Rank& state = ranks_[rank];
    if (kind_ == Kind::Text && !prefixed_) {
        state.next = offset + static_cast<std::int64_t>(bytes.size());
        return std::string(bytes);
    }
    const std::int64_t start = offset - static_cast<std::int64_t>(state.held.size());
    std::string text = std::move(state.held);
    text.append(bytes);
    state.held.clear();
    if (kind_ == Kind::Events) {
        const std::size_t open = open_character(text);
        state.held = text.substr(text.size() - open);
        text.resize(text.size() - open);
        state.next = start + static_cast<std::int64_t>(text.size());
        return text.empty() ? std::string() : as_event(rank, start, text);
    }
    state.next = offset + static_cast<std::int64_t>(bytes.size());
    std::string out;
    const std::string prefix = "[" + std::to_string(rank) + "] ";
    std::string_view left = text;
    for (std::size_t end; (end = left.find('\n')) != std::string_view::npos;) {
        out.append(prefix).append(left.substr(0, end + 1));
        left.remove_prefix(end + 1);
    }
    if (left.size() > kLineHeldMax)
        out.append(prefix).append(left).push_back('\n');
    else
        state.held = left;
    return out;
}

std::string LogFormat::rest(std::uint32_t rank) {
    const auto at = ranks_.find(rank);
    if (at == ranks_.end() || at->second.held.empty()) return {};
    const std::string held = std::move(at->second.held);
    at->second.held.clear();
    if (kind_ == Kind::Text) return "[" + std::to_string(rank) + "] " + held + "\n";
    const std::int64_t offset = at->second.next;
    at->second.next += static_cast<std::int64_t>(held.size());
    return as_event(rank, offset, held);
}

std::string LogFormat::note(std::uint32_t rank, std::string_view message) const {
    if (kind_ == Kind::Text) return {};
    JsonWriter json;
    json.begin_object().field("rank", rank).field("message", message).end_object();
    return "event: note\ndata: " + json.text() + "\n\n";
}

std::string LogFormat::end(std::string_view state, int exit_code) const {
    if (kind_ == Kind::Text) return {};
    JsonWriter json;
    json.begin_object().field("state", state).key("exit_code");
    if (exit_code < 0)
        json.null();
    else
        json.value(exit_code);
    json.end_object();
    return "event: end\ndata: " + json.text() + "\n\n";
}

std::size_t start_of_last_lines(std::string_view text, std::size_t lines) {
    if (lines == 0) return text.size();
    std::size_t at = text.size();
    if (at > 0 && text[at - 1] == '\n') --at;  // The end of the last line.
    for (std::size_t seen = 0; at > 0; --at) {
        if (text[at - 1] == '\n' && ++seen == lines) return at;
    }
    return 0;
}

}  // namespace muster::rest
