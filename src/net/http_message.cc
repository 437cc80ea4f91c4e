#include "net/http_message.h"

#include <charconv>
#include <ctime>

#include "net/status.h"

namespace muster::net {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

void append_number(std::string& out, std::uint64_t number, int base = 10) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
    out.append(digits, end);
}

void append_clean(std::string& out, std::string_view value) {
    for (const char c : value) out.push_back(c == '\r' || c == '\n' || c == '\0' ? ' ' : c);
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
    for (const Header& h : headers) {
        if (h.name == name) return h.value;
    }
    return {};
}

const std::string* HttpRequest::query_value(std::string_view name) const {
    for (const auto& [key, value] : query) {
        if (key == name) return &value;
    }
    return nullptr;
}

bool percent_decode(std::string_view text, bool plus_is_space, std::string& out) {
    out.reserve(out.size() + text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            if (i + 2 >= text.size()) return false;
            const int high = hex_digit(text[i + 1]);
            const int low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0) return false;
            c = static_cast<char>(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if (c == '\0') return false;
        out.push_back(c);
    }
    return true;
}

bool split_target(HttpRequest& request) {
    std::string_view target = request.target;
    if (target.empty() || target.front() != '/') return false;
    target = target.substr(0, target.find('#'));
    const std::size_t mark = target.find('?');
    if (!percent_decode(target.substr(0, mark), false, request.path)) return false;
    if (mark == std::string_view::npos) return true;
    std::string_view left = target.substr(mark + 1);
    while (!left.empty()) {
        const std::string_view pair = left.substr(0, left.find('&'));
        left.remove_prefix(std::min(left.size(), pair.size() + 1));
        if (pair.empty()) continue;
        const std::size_t equals = pair.find('=');
        auto& entry = request.query.emplace_back();
        if (!percent_decode(pair.substr(0, equals), true, entry.first)) return false;
        if (equals == std::string_view::npos) continue;
        if (!percent_decode(pair.substr(equals + 1), true, entry.second)) return false;
    }
    return true;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
        if (lower(a[i]) != lower(b[i])) return false;
    }
    return true;
}

std::string http_date(std::int64_t unix_seconds) {
    const std::time_t at = unix_seconds;
    std::tm parts{};
    gmtime_r(&at, &parts);
    // Not strftime: names must not follow the locale.
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    char text[64];
    const int size = std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                                   kDays[parts.tm_wday], parts.tm_mday, kMonths[parts.tm_mon],
                                   parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
    return std::string(text, static_cast<std::size_t>(size));
}

std::string answer_head(const AnswerHead& head) {
    std::string out;
    out.reserve(256);
    out.append("HTTP/1.1 ");
    append_number(out, static_cast<std::uint64_t>(head.status));
    out.push_back(' ');
    out.append(http_reason(head.status));
    out.append("\r\nDate: ").append(head.date);
    if (!head.content_type.empty()) {
        out.append("\r\nContent-Type: ");
        append_clean(out, head.content_type);
    }
    if (head.length >= 0) {
        out.append("\r\nContent-Length: ");
        append_number(out, static_cast<std::uint64_t>(head.length));
    } else if (head.length == -1) {
        out.append("\r\nTransfer-Encoding: chunked");
    }
    if (!head.upgrade.empty()) {
        out.append("\r\nConnection: Upgrade\r\nUpgrade: ");
        append_clean(out, head.upgrade);
    } else if (!head.keep_alive) {
        out.append("\r\nConnection: close");
    }
    if (head.headers != nullptr) {
        for (const Header& header : *head.headers) {
            out.append("\r\n");
            append_clean(out, header.name);
            out.append(": ");
            append_clean(out, header.value);
        }
    }
    out.append("\r\n\r\n");
    return out;
}

std::string chunk_head(std::size_t size) {
    std::string out;
    append_number(out, size, 16);
    out.append("\r\n");
    return out;
}

}  // namespace muster::net
