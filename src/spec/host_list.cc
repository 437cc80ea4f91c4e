#include "spec/host_list.h"

#include <algorithm>

#include "base/text.h"

namespace muster::spec {
namespace {

Error bad(std::string_view text, const std::string& why) {
    return Error{Code::Invalid, std::string(text.substr(0, 60)) + ": " + why};
}

bool is_host_text(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.' || c == '_';
    });
}

/// "001-064,100" as words.
Result<std::vector<std::string>> expand_ranges(std::string_view text, std::size_t most) {
    constexpr std::size_t kDigitsMax = 9;
    std::vector<std::string> words;
    for (const std::string_view part : split(text, ',')) {
        const std::size_t dash = part.find('-');
        const std::string_view from = part.substr(0, dash);
        const std::string_view to = dash == part.npos ? from : part.substr(dash + 1);
        for (const std::string_view end : {from, to})
            if (end.empty() || end.size() > kDigitsMax ||
                end.find_first_not_of("0123456789") != end.npos)
                return bad(text, "in brackets stand numbers and ranges, as in n[001-064,100]");
        const std::int64_t low = std::stoll(std::string(from)), high = std::stoll(std::string(to));
        if (low > high || (from.size() > to.size()))
            return bad(part, "the range falls; write the smaller number first");
        if (static_cast<std::size_t>(high - low) >= most)
            return bad(text, "more than the limit of " + std::to_string(most) + " hosts");
        for (std::int64_t n = low; n <= high; ++n) {
            std::string word = std::to_string(n);
            if (word.size() < from.size()) word.insert(0, from.size() - word.size(), '0');
            words.push_back(std::move(word));
        }
        if (words.size() > most)
            return bad(text, "more than the limit of " + std::to_string(most) + " hosts");
    }
    return words;
}

/// One name with its brackets.
Result<std::vector<std::string>> expand_name(std::string_view name, std::size_t most) {
    std::vector<std::string> names = {""};
    std::string_view rest = name;
    while (!rest.empty()) {
        const std::size_t open = std::min(rest.find('['), rest.size());
        const std::string_view plain = rest.substr(0, open);
        if (!is_host_text(plain))
            return bad(name, "not a host's name; letters, digits, . _ - and ranges in brackets");
        for (std::string& each : names) each += plain;
        if (open == rest.size()) break;
        const std::size_t close = rest.find(']', open);
        if (close == rest.npos) return bad(name, "a bracket is not closed");
        MUSTER_LET(words, expand_ranges(rest.substr(open + 1, close - open - 1), most));
        if (names.size() * words.size() > most)
            return bad(name, "more than the limit of " + std::to_string(most) + " hosts");
        std::vector<std::string> longer;
        for (const std::string& each : names)
            for (const std::string& word : words) longer.push_back(each + word);
        names = std::move(longer);
        rest = rest.substr(close + 1);
    }
    return names;
}

}  // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view text, std::size_t most) {
    std::vector<std::string> hosts;
    std::size_t start = 0;
    bool inside = false;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size()) {
            if (text[i] == '[') inside = true;
            if (text[i] == ']') inside = false;
            if (text[i] != ',' || inside) continue;
        }
        const std::string_view name = trim(text.substr(start, i - start));
        if (name.empty()) return bad(text, "a host's name is missing");
        MUSTER_LET(names, expand_name(name, most));
        if (hosts.size() + names.size() > most)
            return bad(text, "more than the limit of " + std::to_string(most) + " hosts");
        hosts.insert(hosts.end(), std::make_move_iterator(names.begin()),
                     std::make_move_iterator(names.end()));
        start = i + 1;
    }
    return hosts;
}

}  // namespace muster::spec
