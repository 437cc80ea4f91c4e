// One regular expression of a job's log rules, tried on lines.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace muster::os {

class LineRule {
public:
    /// ECMAScript; one that cannot be read matches nothing (the spec room refuses it before).
    explicit LineRule(const std::string& expression);
    /// Of a longer line the first 4096 bytes are looked at.
    bool matches(std::string_view line) const;

private:
    struct Compiled;
    std::shared_ptr<const Compiled> compiled_;
};

}  // namespace muster::os
