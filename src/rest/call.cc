// What every handler uses: answers, revisions, parameters.
#include <charconv>

#include "base/text.h"
#include "base/units.h"
#include "rest/api.h"

namespace muster::rest {
namespace {

constexpr Duration kRevisionWait = seconds(10);

struct RevisionAsk {
    std::uint64_t term = 0;
    std::uint64_t revision = 0;
};

std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<RevisionAsk> parse_revision(std::string_view text) {
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const auto term = number_in(text.substr(0, dash));
    const auto revision = number_in(text.substr(dash + 1));
    if (!term || !revision) return std::nullopt;
    return RevisionAsk{*term, *revision};
}

}  // namespace

void Call::answer(net::HttpResponse response) const {
    response.headers.push_back({"X-Request-Id", request_id});
    const std::size_t bytes =
        response.shared_body ? response.shared_body->size() : response.body.size();
    if (known) api->limiter.charge(who.caller.user, bytes);
    reply->answer(std::move(response));
}

void Call::json(std::string body, std::vector<net::Header> headers, int status) const {
    answer({.status = status, .headers = std::move(headers), .body = std::move(body)});
}

void Call::fail(Problem problem) const {
    answer(to_response(problem, request_id, request.path));
}

std::vector<net::Header> Call::stream_headers() const {
    return {
        {"X-Request-Id", request_id}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
}

std::string Call::query(std::string_view name) const {
    const std::string* value = request.query_value(name);
    return value != nullptr ? *value : std::string();
}

bool Call::query_flag(std::string_view name) const {
    const std::string* value = request.query_value(name);
    if (value == nullptr) return false;
    return value->empty() || *value == "1" || *value == "true" || *value == "yes";
}

std::string revision_text(std::uint64_t term, std::uint64_t revision) {
    return std::to_string(term) + "-" + std::to_string(revision);
}

void with_view(const CallPtr& call, std::function<void(const CallPtr&, const ViewPtr&)> then) {
    std::string ask = call->query("at_least");
    if (ask.empty()) ask = call->request.header("muster-revision");
    Api& api = *call->api;
    ViewPtr view = api.backend.view();
    if (ask.empty()) {
        const std::uint64_t own = call->known ? api.own_writes.of(call->who.caller.user) : 0;
        if (own <= view->revision) return then(call, view);
        ask = revision_text(view->meta.term, own);
    }
    const auto wanted = parse_revision(ask);
    if (!wanted) {
        return call->fail(bad_parameter("at_least", ask, "a Muster-Revision as it was returned"));
    }
    // What an earlier leader acknowledged is in every view of a later one.
    if (wanted->term != view->meta.term || wanted->revision <= view->revision) {
        return then(call, view);
    }
    struct Once {
        std::atomic<bool> done{false};
        std::uint64_t timer = 0;
    };
    auto once = std::make_shared<Once>();
    once->timer = api.watches->after(kRevisionWait, [call, once, ask] {
        if (once->done.exchange(true)) return;
        call->fail(numbered(errors::kNotReady, "revision " + ask + " is not published yet"));
    });
    api.backend.when_published(wanted->revision, [call, once, then = std::move(then)] {
        // The controller's thread: only pass it on.
        call->api->reads.post([call, once, then] {
            if (once->done.exchange(true)) return;
            call->api->watches->cancel(once->timer);
            then(call, call->api->backend.view());
        });
    });
}

bool answered_unchanged(const Call& call, const std::string& etag) {
    const std::string_view given = call.request.header("if-none-match");
    if (given.empty()) return false;
    for (std::string_view tag : split(given, ',')) {
        tag = trim(tag);
        if (tag.substr(0, 2) == "W/") tag.remove_prefix(2);
        if (tag != etag && tag != "*") continue;
        call.answer({.status = 304, .headers = {{"ETag", etag}}});
        return true;
    }
    return false;
}

Result<std::int64_t> integer_parameter(const Call& call, std::string_view name, std::int64_t low,
                                       std::int64_t high, std::int64_t fallback) {
    const std::string* text = call.request.query_value(name);
    if (text == nullptr) return fallback;
    auto value = parse_integer(*text, low, high);
    if (value) return value;
    return bad_parameter(
               name, *text,
               "a whole number from " + std::to_string(low) + " to " + std::to_string(high))
        .error;
}

Result<Time> since_parameter(const Call& call, std::string_view name) {
    const std::string text = call.query(name);
    if (text.empty()) return Time{};
    if (const auto ago = parse_duration(text)) return call.now - *ago;
    auto time = parse_time(text, call.now);
    if (time) return time;
    return bad_parameter(name, text,
                         "a time such as 2026-12-01T08:00:00Z, or a duration such as 2h")
        .error;
}

std::vector<std::string> list_parameter(const Call& call, std::string_view name) {
    std::vector<std::string> out;
    for (const auto& [key, value] : call.request.query) {
        if (key != name) continue;
        for (const std::string_view part : split(value, ',')) {
            if (!trim(part).empty()) out.emplace_back(trim(part));
        }
    }
    return out;
}

}  // namespace muster::rest
