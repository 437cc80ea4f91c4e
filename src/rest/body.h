// A request's JSON object read member by member: every wrong, missing or
// unknown member is told, all at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "rest/problem.h"

namespace muster::rest {

enum class BodyNeed { Required, Optional };

class Body {
public:
    /// Media type and syntax are looked at here; what they say comes out of
    /// finish().
    Body(const net::HttpRequest& request, BodyNeed need);
    ~Body();
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

    // Empty: absent or wrong. Each name may be asked for once.
    std::optional<std::string> text(std::string_view name, std::size_t bytes_max);
    std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
    std::optional<bool> flag(std::string_view name);
    std::optional<std::vector<std::string>> texts(std::string_view name, std::size_t count_max);

    /// Adds a problem of one member, for what only the caller can judge.
    void refuse(std::string_view name, std::string detail);
    /// Empty: the body is as it should be.
    std::optional<Problem> finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The value of a member of a JSON object as its text, or "" when there is
/// none. `object` must be valid JSON that we wrote ourselves; nothing is
/// copied.
std::string_view member_of(std::string_view object, std::string_view name);
/// Calls visit(name, value text) for each member, in order.
template <class Visit>
void for_each_member(std::string_view object, Visit&& visit);

/// A history record's JSON for someone who may not see values: those of
/// spec.env and of roles' env, and files of secrets, become "***".
std::string mask_json(const std::string& job);

/// Where the JSON value that starts at `at` ends.
std::size_t end_of_value(std::string_view text, std::size_t at);
/// Skips white space, commas and colons.
std::size_t skip_between(std::string_view text, std::size_t at);

template <class Visit>
void for_each_member(std::string_view object, Visit&& visit) {
    std::size_t at = object.find('{');
    if (at == std::string_view::npos) return;
    at = skip_between(object, at + 1);
    while (at < object.size() && object[at] == '"') {
        const std::size_t name_end = end_of_value(object, at);
        const std::string_view name = object.substr(at + 1, name_end - at - 2);
        const std::size_t value = skip_between(object, name_end);
        const std::size_t value_end = end_of_value(object, value);
        visit(name, object.substr(value, value_end - value));
        at = skip_between(object, value_end);
    }
}

}  // namespace muster::rest
