// Errors as RFC 9457 problem+json, with our code, cause and fix.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"
#include "spec/problem.h"

namespace muster::rest {

/// One member, field or parameter that is wrong.
struct FieldProblem {
    std::string pointer;  // JSON pointer into the body.
    std::string detail;
    int line = 0, column = 0;  // 0: not of a text.
    std::string value, limit, suggestion, source;
};

struct Problem {
    Error error;
    int status = 0;  // 0: the Code's own.
    std::vector<FieldProblem> fields = {};
    std::vector<std::string> nearest = {};
    std::vector<net::Header> headers = {};
};

/// All that is wrong with a job: 422.
Problem invalid_job(const spec::Problems& problems);
/// The same of what is no job: a queue file, a reservation.
Problem invalid_text(const spec::Problems& problems, int number);
/// 400: the parameter's name, what was given, and what would do.
Problem bad_parameter(std::string_view name, std::string_view value, std::string_view limit);

net::HttpResponse to_response(const Problem& problem, std::string_view request_id,
                              std::string_view instance);

}  // namespace muster::rest
