#include "os/line_rule.h"

#include <regex>

namespace muster::os {
namespace {

constexpr std::size_t kLineMax = 4096;  // <regex> goes as deep as a line is long.

}  // namespace

struct LineRule::Compiled {
    std::regex regex;
};

LineRule::LineRule(const std::string& expression) {
    try {
        compiled_ = std::make_shared<const Compiled>(
            Compiled{std::regex(expression, std::regex::ECMAScript | std::regex::optimize)});
    } catch (const std::regex_error&) {
        compiled_ = nullptr;
    }
}

bool LineRule::matches(std::string_view line) const {
    if (compiled_ == nullptr) return false;
    line = line.substr(0, kLineMax);
    try {
        return std::regex_search(line.begin(), line.end(), compiled_->regex);
    } catch (const std::regex_error&) {  // Too complex for this line.
        return false;
    }
}

}  // namespace muster::os
