// Where in a text a byte is, as people count: lines and characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/problem.h"
#include "spec/reader.h"

namespace muster::spec {

/// Why these bytes are not a text that `what` ("a job") could be written in: too many, binary, not
/// UTF-8.
std::optional<Problem> check_text(const Source& source, std::size_t max, std::string_view what);

/// A Problem with its file or flag, line, column and source line filled in. A flag has no line.
Problem problem_at(const Source& source, std::uint32_t at);
/// The same, of a kind (base/error_codes.h) and with what is wrong.
Problem problem_in(const Source& source, std::size_t at, int number, std::string message);

}  // namespace muster::spec
