// The one way a recoverable failure travels: as a value, with a code the API can map.
//
// Same spelling as the C++23 std::expected subset we use, so that it can be swapped for it
// once every tool we build with has it.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace muster {

/// What kind of refusal. One table (net/status.h) maps it to HTTP, one (cli) to exit codes.
enum class Code {
    Invalid,          // The request itself is wrong. HTTP 400/422.
    Unauthenticated,  // Nobody known. 401.
    Denied,           // Known, but not allowed. 403.
    NotFound,         // 404.
    Conflict,         // Against the present state. 409.
    Precondition,     // If-Match or the like failed. 412.
    Gone,             // Compacted away; start over. 410.
    TooLarge,         // 413.
    Exhausted,        // A quota or rate limit. 429.
    Unavailable,      // Try again later. 503.
    NoSpace,          // The controller's disk is at its watermark. 507.
    Corrupt,          // What was read back is not what was written. 500.
    Internal,         // 500.
};

/// For a person: `message` names the object, the value and the limit; `fix` what to do.
/// `number` is the stable code of docs and `muster explain` (0: none); base/error_codes.h lists
/// them.
struct Error {
    Code code = Code::Internal;
    std::string message;
    std::string cause = {};
    std::string fix = {};
    int number = 0;

    friend bool operator==(const Error&, const Error&) = default;
};

/// A `T`, or the reason there is none. [[nodiscard]]: dropping one is a compile warning.
template <class T>
class [[nodiscard]] Result {
public:
    // Implicit, so that `return value;` and `return Error{...};` both read as what they mean.
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

    explicit operator bool() const { return state_.index() == 0; }
    const T& operator*() const& { return std::get<0>(state_); }
    T& operator*() & { return std::get<0>(state_); }
    T&& operator*() && { return std::get<0>(std::move(state_)); }
    const T* operator->() const { return &std::get<0>(state_); }
    T* operator->() { return &std::get<0>(state_); }
    const Error& error() const& { return std::get<1>(state_); }
    Error&& error() && { return std::get<1>(std::move(state_)); }

private:
    std::variant<T, Error> state_;
};

struct Ok {
    friend bool operator==(const Ok&, const Ok&) = default;
};
using Status = Result<Ok>;

}  // namespace muster

/// Leaves the enclosing function with the Error of a Status that failed.
#define MUSTER_TRY(status)                                           \
    do {                                                             \
        auto muster_status = (status);                               \
        if (!muster_status) return std::move(muster_status).error(); \
    } while (false)

/// Declares `name` as the value of a Result, or leaves with its Error.
#define MUSTER_LET(name, result)                                 \
    auto name##_result = (result);                               \
    if (!name##_result) return std::move(name##_result).error(); \
    auto name = *std::move(name##_result)
