// GET /v1/jobs/{id}/logs.
#include <charconv>

#include "base/text.h"
#include "base/units.h"
#include "rest/find_job.h"
#include "rest/ids.h"
#include "rest/log_session.h"

namespace muster::rest {
namespace {

/// "0:120,1:88".
std::optional<std::map<std::uint32_t, std::int64_t>> parse_places(std::string_view text) {
    std::map<std::uint32_t, std::int64_t> places;
    for (const std::string_view part : split(text, ',')) {
        const std::size_t colon = part.find(':');
        if (colon == std::string_view::npos) return std::nullopt;
        const auto rank = parse_integer(part.substr(0, colon), 0, model::kNodesMax);
        const auto at = parse_integer(part.substr(colon + 1), 0, std::int64_t{1} << 50);
        if (!rank || !at) return std::nullopt;
        places[static_cast<std::uint32_t>(*rank)] = *at;
    }
    return places;
}

std::optional<Problem> parse_place(const std::string& text, LogAsk& ask) {
    if (const auto offset = parse_integer(text, 0, std::int64_t{1} << 50)) {
        ask.from = *offset;
        return std::nullopt;
    }
    const std::size_t slash = text.find('/');
    const auto attempt = parse_integer(text.substr(0, slash), 0, std::int64_t{1} << 31);
    const auto places = slash == std::string::npos
                            ? std::nullopt
                            : parse_places(std::string_view(text).substr(slash + 1));
    if (!attempt || !places) {
        return bad_parameter("from", text, "a byte offset, or ATTEMPT/RANK:OFFSET,...");
    }
    ask.resume_attempt = static_cast<std::uint32_t>(*attempt);
    ask.resume = *places;
    return std::nullopt;
}

std::variant<LogAsk, Problem> parse_ask(const Call& call) {
    LogAsk ask;
    const std::string rank = call.query("rank");
    if (!rank.empty() && rank != "all") {
        const auto number = parse_integer(rank, 0, model::kNodesMax);
        if (!number) return bad_parameter("rank", rank, "a rank, or all");
        ask.rank = static_cast<std::uint32_t>(*number);
    }
    const auto local = integer_parameter(call, "local_rank", 0, 65'535, -1);
    if (!local) return Problem{local.error()};
    ask.local_rank = static_cast<int>(*local);
    const auto attempt = integer_parameter(call, "attempt", 0, std::int64_t{1} << 31, -1);
    if (!attempt) return Problem{attempt.error()};
    if (*attempt >= 0) ask.attempt = static_cast<std::uint32_t>(*attempt);
    const auto tail = integer_parameter(call, "tail", 0, 1'000'000, -1);
    if (!tail) return Problem{tail.error()};
    if (*tail >= 0) ask.tail = static_cast<std::size_t>(*tail);
    const auto since = since_parameter(call, "since");
    if (!since) return Problem{since.error()};
    ask.since = *since;
    if (ask.tail && ask.since.ms != 0) {
        return bad_parameter("tail", call.query("tail"), "either tail or since, not both");
    }
    ask.follow = call.query_flag("follow");
    std::string place(call.request.header("last-event-id"));
    if (place.empty()) place = call.query("from");
    if (!place.empty()) {
        if (auto problem = parse_place(place, ask)) return *std::move(problem);
    }
    return ask;
}

void start(const CallPtr& call, const LogAsk& ask, const ViewPtr& view, FoundJob found) {
    const bool events =
        call->request.header("accept").find("text/event-stream") != std::string_view::npos;
    const std::string owner =
        found.live != nullptr ? user_name(*view, found.live->user) : found.ended->user;
    if (!call->may_see(owner)) {
        return call->fail(numbered(errors::kNotOwner, "job " + call->args[0] + " belongs to " +
                                                          owner + ": its log is not " +
                                                          call->who.caller.user + "'s to read"));
    }
    if (found.waiting_element >= 0) {
        return call->fail(Error{.code = Code::Conflict,
                                .message = "element " + call->args[0] + " has not started yet",
                                .fix = "`muster wait --for started " + call->args[0] + "`",
                                .number = errors::kNotRunning});
    }
    auto sources = found.live != nullptr ? log_sources(*view, *found.live, ask.attempt)
                                         : log_sources(*view, *found.ended, ask.attempt);
    if (!sources) return call->fail(sources.error());
    const JobId job = found.live != nullptr ? found.live->id : found.ended->job;
    auto session = std::make_shared<LogSession>(
        call, job, ask, events ? LogFormat::Kind::Events : LogFormat::Kind::Text);
    call->api->watches->post(
        [session, sources = *std::move(sources), ended = std::move(found.ended)]() mutable {
            session->start(std::move(sources), std::move(ended));
        });
}

}  // namespace

void job_logs(const CallPtr& call) {
    auto parsed = parse_ask(*call);
    if (auto* problem = std::get_if<Problem>(&parsed)) return call->fail(std::move(*problem));
    const LogAsk ask = std::get<LogAsk>(std::move(parsed));
    with_job(call, [call, ask](const ViewPtr& view, FoundJob found) {
        start(call, ask, view, std::move(found));
    });
}

}  // namespace muster::rest
