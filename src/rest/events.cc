// GET /v1/events: the log in pages, or as a stream.
#include <algorithm>

#include "base/units.h"
#include "rest/api.h"
#include "rest/event_feed.h"
#include "rest/ids.h"
#include "rest/time_text.h"

namespace muster::rest {
namespace {

constexpr std::int64_t kLimitMax = 10'000;
constexpr std::size_t kReadAtOnce = 1'000;
constexpr std::uint64_t kLookBackMax = 200'000;

struct EventAsk {
    EventFilter filter;
    std::optional<std::uint64_t> after;
    std::size_t limit = 100;
};

std::variant<EventAsk, Problem> parse_ask(const Call& call) {
    EventAsk ask;
    std::string after(call.request.header("last-event-id"));
    if (after.empty()) after = call.query("after");
    if (!after.empty()) {
        const auto number = parse_integer(after, 0, std::int64_t{1} << 53);
        if (!number) return bad_parameter("after", after, "the sequence of an event");
        ask.after = static_cast<std::uint64_t>(*number);
    }
    const auto limit = integer_parameter(call, "limit", 1, kLimitMax, 100);
    if (!limit) return Problem{limit.error()};
    ask.limit = static_cast<std::size_t>(*limit);
    ask.filter.types = list_parameter(call, "type");
    ask.filter.node = call.query("node");
    if (const std::string job = call.query("job"); !job.empty()) {
        const auto path = parse_job_path(job);
        if (!path) return Problem{path.error()};
        ask.filter.job = path->job.value;
        ask.filter.element = path->element;
    }
    return ask;
}

using Events = std::vector<ports::LoggedEvent>;

/// Accepted events after `after`, at most `limit`.
Result<Events> read_after(Backend& backend, const EventFilter& filter, std::uint64_t after,
                          std::size_t limit) {
    Events out;
    for (;;) {
        MUSTER_LET(page, backend.events_after(after, kReadAtOnce));
        for (ports::LoggedEvent& event : page) {
            after = event.sequence;
            if (filter.accepts(event.json)) out.push_back(std::move(event));
            if (out.size() == limit) return out;
        }
        if (page.size() < kReadAtOnce) return out;
    }
}

/// The newest `limit` accepted ones, oldest first; looks back in growing steps.
Result<Events> read_newest(Backend& backend, const EventFilter& filter, std::size_t limit) {
    const std::uint64_t last = backend.last_event();
    Events best;
    for (std::uint64_t back = std::max<std::uint64_t>(limit, 16);; back *= 4) {
        const std::uint64_t after = last > back ? last - back : 0;
        auto found = read_after(backend, filter, after, back);
        if (!found && found.error().code == Code::Gone && back > 1) {
            // The log is shorter than that: approach its beginning from above.
            for (std::uint64_t step = back; step > 1 && !found;) {
                step = step * 3 / 4;
                found = read_after(backend, filter, last > step ? last - step : 0, back);
            }
            if (!found) return best;
            best = *std::move(found);
            break;
        }
        if (!found) return std::move(found).error();
        best = *std::move(found);
        if (best.size() >= limit || after == 0 || back >= kLookBackMax) break;
    }
    if (best.size() > limit) {
        best.erase(best.begin(), best.end() - static_cast<std::ptrdiff_t>(limit));
    }
    return best;
}

void answer_page(const CallPtr& call, const EventAsk& ask) {
    Backend& backend = call->api->backend;
    const auto events = ask.after ? read_after(backend, ask.filter, *ask.after, ask.limit)
                                  : read_newest(backend, ask.filter, ask.limit);
    if (!events) return call->fail(events.error());
    JsonWriter json;
    json.begin_object().key("items").begin_array();
    for (const ports::LoggedEvent& event : *events) {
        json.begin_object().field("sequence", event.sequence);
        write_time(json, "at", Time{event.at_ms});
        json.key("event").raw(event.json).end_object();
    }
    json.end_array().field("last", backend.last_event()).end_object();
    call->json(std::move(json).text());
}

void answer_stream(const CallPtr& call, const EventAsk& ask) {
    Api& api = *call->api;
    const std::uint64_t after = ask.after.value_or(api.backend.last_event());
    if (const auto first = api.backend.events_after(after, 1); !first) {
        return call->fail(first.error());
    }
    auto stream = call->reply->stream({.headers = call->stream_headers()});
    if (stream != nullptr) api.feed.watch(after, ask.filter, std::move(stream));
}

}  // namespace

void list_events(const CallPtr& call) {
    auto parsed = parse_ask(*call);
    if (auto* problem = std::get_if<Problem>(&parsed)) return call->fail(std::move(*problem));
    auto ask = std::make_shared<EventAsk>(std::get<EventAsk>(std::move(parsed)));
    if (call->query_flag("watch")) {
        call->api->watches->post([call, ask] { answer_stream(call, *ask); });
    } else {
        call->api->reads.post([call, ask] { answer_page(call, *ask); });
    }
}

}  // namespace muster::rest
