#include "cli/jsonpath.h"

#include <charconv>
#include <vector>

#include "base/text.h"

namespace muster::cli {
namespace {

Error bad(std::string_view text, const std::string& what) {
    return {Code::Invalid, "jsonpath '" + std::string(text) + "': " + what, "",
            "write it like {.items[*].name} or {range .items[*]}{.id}{\"\\n\"}{end}"};
}

using Values = std::vector<Json>;

/// One step in brackets: [*], [3], [-1], ['name'].
Result<Values> bracket(std::string_view whole, std::string_view inside, const Values& from) {
    Values out;
    if (inside.size() >= 2 && (inside.front() == '\'' || inside.front() == '"')) {
        for (const Json& value : from) out.push_back(value[inside.substr(1, inside.size() - 2)]);
        return out;
    }
    if (inside == "*") {
        for (const Json& value : from) {
            for (const Json& item : value.items()) out.push_back(item);
            for (auto& [key, member] : value.members()) out.push_back(member);
        }
        return out;
    }
    std::int64_t index = 0;
    const auto read = std::from_chars(inside.data(), inside.data() + inside.size(), index);
    if (inside.empty() || read.ptr != inside.data() + inside.size())
        return bad(whole, "[" + std::string(inside) + "] is neither a number, * nor a quoted name");
    for (const Json& value : from) {
        if (index < 0) index += static_cast<std::int64_t>(value.size());
        if (index >= 0) out.push_back(value.at(static_cast<std::size_t>(index)));
    }
    return out;
}

Result<Values> select(std::string_view whole, std::string_view path, const Json& from) {
    Values values{from};
    if (path.starts_with('$')) path.remove_prefix(1);
    while (!path.empty()) {
        if (path.front() == '[') {
            const std::size_t close = path.find(']');
            if (close == std::string_view::npos) return bad(whole, "a ']' is missing");
            MUSTER_LET(next, bracket(whole, path.substr(1, close - 1), values));
            values = std::move(next);
            path.remove_prefix(close + 1);
            continue;
        }
        if (path.front() == '.') path.remove_prefix(1);
        const std::size_t end = std::min(path.find_first_of(".["), path.size());
        const std::string_view name = path.substr(0, end);
        path.remove_prefix(end);
        if (name.empty()) continue;
        Values next;
        for (const Json& value : values) {
            if (name == "*") {
                for (auto& [key, member] : value.members()) next.push_back(member);
            } else {
                next.push_back(value[name]);
            }
        }
        values = std::move(next);
    }
    std::erase_if(values, [](const Json& value) { return !value.exists(); });
    return values;
}

std::string literal(std::string_view inside) {
    std::string out;
    for (std::size_t i = 0; i < inside.size(); ++i) {
        if (inside[i] != '\\' || i + 1 == inside.size()) {
            out += inside[i];
            continue;
        }
        const char c = inside[++i];
        out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    return out;
}

class Template {
public:
    explicit Template(std::string_view text) : text_(text) {}

    /// Renders from at_ to the matching {end} or the end of the text.
    Result<std::string> render(const Json& value, bool in_range) {
        std::string out;
        while (at_ < text_.size()) {
            if (text_[at_] != '{') {
                out += text_[at_++];
                continue;
            }
            const std::size_t close = end_of_action();
            if (close == std::string_view::npos) return bad(text_, "a '}' is missing");
            const std::string_view action = trim(text_.substr(at_ + 1, close - at_ - 1));
            at_ = close + 1;
            if (action == "end") {
                if (!in_range) return bad(text_, "{end} without {range}");
                return out;
            }
            MUSTER_LET(part, act(action, value));
            out += part;
        }
        if (in_range) return bad(text_, "{range} without {end}");
        return out;
    }

private:
    std::size_t end_of_action() const {
        bool quoted = false;
        for (std::size_t i = at_; i < text_.size(); ++i) {
            if (text_[i] == '\\' && quoted) {
                ++i;
            } else if (text_[i] == '"') {
                quoted = !quoted;
            } else if (text_[i] == '}' && !quoted) {
                return i;
            }
        }
        return std::string_view::npos;
    }
    Result<std::string> act(std::string_view action, const Json& value) {
        if (action.size() >= 2 && action.front() == '"') {
            return literal(action.substr(1, action.size() - 2));
        }
        if (action.starts_with("range ")) {
            MUSTER_LET(items, select(text_, trim(action.substr(6)), value));
            const std::size_t body = at_;
            std::string out;
            if (items.empty()) MUSTER_TRY(skip());
            for (const Json& item : items) {
                at_ = body;
                MUSTER_LET(part, render(item, true));
                out += part;
            }
            return out;
        }
        MUSTER_LET(found, select(text_, action, value));
        std::string out;
        for (const Json& item : found) {
            if (!out.empty()) out += ' ';
            out += item.text();
        }
        return out;
    }
    Status skip() {
        auto ignored = render(Json{}, true);
        if (!ignored) return std::move(ignored).error();
        return Ok{};
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

Result<std::string> json_path(std::string_view text, const Json& value) {
    const std::string braced = text.find('{') == std::string_view::npos
                                   ? "{" + std::string(text) + "}"
                                   : std::string(text);
    return Template(braced).render(value, false);
}

}  // namespace muster::cli
