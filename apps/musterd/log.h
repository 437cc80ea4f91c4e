// The daemons' log: one line an event, to standard error.
#pragma once

#include <string>

namespace muster::apps {

void log_line(const std::string& line);
void log_error(const std::string& line);

}  // namespace muster::apps
