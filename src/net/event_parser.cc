// Server-sent events out of lines.
#include "net/http_client.h"

namespace muster::net {

Result<EventRead> EventParser::read(HttpBodyReader& body, Wait wait) {
    for (;;) {
        MUSTER_LET(line, body.read_line(wait));
        if (line.end != ReadEnd::Data) return EventRead{.end = line.end};
        std::string_view text = line.data;
        if (text.empty()) {
            if (!std::exchange(has_field, false)) continue;  // A comment's end, or stray newlines.
            if (partial.data.ends_with('\n')) partial.data.pop_back();
            ServerEvent event = std::exchange(partial, {});
            partial.id = event.id;  // An id holds until the next one.
            return EventRead{.event = std::move(event)};
        }
        if (text.front() == ':') continue;
        const std::size_t colon = text.find(':');
        const std::string_view field = text.substr(0, colon);
        std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
        if (field == "data") {
            partial.data.append(value).push_back('\n');
            has_field = true;
        } else if (field == "event") {
            partial.name = value;
            has_field = true;
        } else if (field == "id") {
            partial.id = value;
            has_field = true;
        }
    }
}

}  // namespace muster::net
