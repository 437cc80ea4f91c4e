// The part of kubectl's JSONPath templates that people use in scripts:
// {.items[*].name} {.items[0].id} {range .items[*]}{.id}{"\t"}{.state}{"\n"}{end}
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/json.h"

namespace muster::cli {

/// `value` through the template; several results of one path are joined by spaces. A template
/// without braces is one path. Invalid for a template that cannot be read.
Result<std::string> json_path(std::string_view text, const Json& value);

}  // namespace muster::cli
