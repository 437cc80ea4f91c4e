// Times as the API writes them: RFC 3339 in UTC with milliseconds. 0 and kNever
// are null.
#pragma once

#include <string_view>

#include "base/id.h"
#include "base/json_writer.h"

namespace muster::rest {

/// Formats without allocating: lists write one for every job.
class TimeText {
public:
    explicit TimeText(Time time);
    std::string_view text() const { return {text_, sizeof text_}; }

private:
    char text_[24];  // "2026-12-01T08:25:34.123Z".
};

void write_time(JsonWriter& json, Time time);
void write_time(JsonWriter& json, std::string_view name, Time time);

}  // namespace muster::rest
