// Where in a text a byte is, as people count: lines and characters.
#pragma once

#include <cstdint>

#include "spec/normaliser.h"
#include "spec/problem.h"

namespace muster::spec {

/// A Problem with its file or flag, line, column and source line filled in. A flag has no line.
Problem problem_at(const Source& source, std::uint32_t at);

}  // namespace muster::spec
