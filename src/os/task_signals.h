// Words of the task protocol and of job files that both ends must read alike.
#pragma once

#include <string>
#include <string_view>

namespace muster::os {

/// "USR1", "SIGUSR1" or "10"; SIGUSR1 for what is none.
int signal_number(std::string_view name);
/// A value of the task protocol: bytes 0x00-0x20, % and 0x7F as %XX.
std::string escape_value(std::string_view text);

}  // namespace muster::os
