// JSON values written for people: as block YAML, and as indented JSON.
#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/json.h"

namespace muster::cli {
namespace {

/// True when YAML would read `text` as something else than this string.
bool needs_quotes(std::string_view text) {
    if (text.empty() || text.front() == ' ' || text.back() == ' ') return true;
    static constexpr std::array<std::string_view, 14> kWords = {
        "true", "false", "null", "yes",  "no",   "on",    "off",
        "y",    "n",     "~",    ".nan", ".inf", "-.inf", "nan"};
    if (std::find(kWords.begin(), kWords.end(), lower(text)) != kWords.end()) return true;
    if (text.find_first_not_of("0123456789+-.eExXoOabcdefABCDEF_:") == std::string_view::npos &&
        text.find_first_of("0123456789") != std::string_view::npos)
        return true;
    if (std::string_view("-?:,[]{}#&*!|>'\"%@`").find(text.front()) != std::string_view::npos)
        return true;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c < 0x20 || c == 0x7f) return true;
        if (c == ':' && (i + 1 == text.size() || text[i + 1] == ' ')) return true;
        if (c == '#' && i > 0 && text[i - 1] == ' ') return true;
    }
    return false;
}

bool is_block(std::string_view text) {
    if (text.find('\n') == std::string_view::npos || text.front() == ' ' || text.front() == '\n')
        return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t';
    });
}

void yaml_scalar(std::string& out, const Json& value, std::size_t indent) {
    if (!value.is_string()) {
        out += value.raw();
        return;
    }
    const std::string text = value.text();
    if (!is_block(text)) {
        out += needs_quotes(text) ? json_quote(text) : text;
        return;
    }
    const bool ends = text.back() == '\n';
    const bool keeps = ends && text.size() > 1 && text[text.size() - 2] == '\n';
    out += keeps ? "|+" : ends ? "|" : "|-";
    for (const std::string_view line :
         split(ends ? std::string_view(text).substr(0, text.size() - 1) : std::string_view(text),
               '\n')) {
        out += '\n';
        if (!line.empty()) out.append(indent + 2, ' ').append(line);
    }
}

void yaml_value(std::string& out, const Json& value, std::size_t indent, bool in_list) {
    const bool object = value.is_object();
    if ((!object && !value.is_array()) || value.empty()) {
        yaml_scalar(out, value, indent);
        out += '\n';
        return;
    }
    bool first = true;
    const auto lead = [&] {
        if (!(first && in_list)) out.append(indent, ' ');
        first = false;
    };
    if (object) {
        for (const auto& [key, member] : value.members()) {
            lead();
            out += needs_quotes(key) ? json_quote(key) : key;
            out += ':';
            const bool nested = (member.is_object() || member.is_array()) && !member.empty();
            out += nested ? "\n" : " ";
            yaml_value(out, member, nested ? indent + 2 : indent, false);
        }
        return;
    }
    for (Json item = value.first(); item.exists(); item = item.next()) {
        lead();
        out += "- ";
        yaml_value(out, item, indent + 2, true);
    }
}

void pretty(std::string& out, const Json& value, std::size_t indent) {
    if ((!value.is_object() && !value.is_array()) || value.empty()) {
        out += value.raw();
        return;
    }
    const bool object = value.is_object();
    out += object ? '{' : '[';
    bool first = true;
    const auto lead = [&] {
        if (!first) out += ',';
        first = false;
        out += '\n';
        out.append(indent + 2, ' ');
    };
    if (object) {
        for (const auto& [key, member] : value.members()) {
            lead();
            out += json_quote(key) + ": ";
            pretty(out, member, indent + 2);
        }
    } else {
        for (Json item = value.first(); item.exists(); item = item.next()) {
            lead();
            pretty(out, item, indent + 2);
        }
    }
    out += '\n';
    out.append(indent, ' ');
    out += object ? '}' : ']';
}

}  // namespace

std::string to_yaml(const Json& value) {
    std::string out;
    yaml_value(out, value, 0, false);
    return out;
}

std::string to_pretty_json(const Json& value) {
    std::string out;
    pretty(out, value, 0);
    out += '\n';
    return out;
}

}  // namespace muster::cli
