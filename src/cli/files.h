// Small files read and written whole.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::cli {

/// NotFound when it cannot be opened; TooLarge beyond `max` bytes.
Result<std::string> read_file(const std::string& path, std::size_t max = 1 << 20);
/// Atomically, by rename; folders above it are made with mode 0700.
Status write_file(const std::string& path, std::string_view bytes, unsigned mode);
std::string octal(unsigned mode);

}  // namespace muster::cli
