// GET /v1/jobs: live jobs from the view, merged with ended ones from the
// history, newest first.
#include <algorithm>

#include "base/units.h"
#include "rest/body.h"
#include "rest/ids.h"
#include "rest/job_filter.h"
#include "rest/job_json.h"

namespace muster::rest {
namespace {

constexpr std::int64_t kLimitMax = 100'000;
constexpr std::int64_t kLimitUsual = 100;
/// Above it a list is made on the reads thread: an I/O thread has others to
/// serve.
constexpr std::size_t kManyJobs = 2'000;
constexpr std::size_t kHistoryPage = 500;
constexpr int kHistoryPagesMax = 200;

struct ListAsk {
    JobFilter filter;
    std::vector<JobField> fields;
    bool rows = false;
    std::size_t limit = kLimitUsual;
    std::uint64_t before = 0;  // Ids below it; 0: from the newest.
};

Result<ListAsk> parse_ask(const Call& call) {
    ListAsk ask;
    MUSTER_LET(filter, parse_job_filter(call));
    ask.filter = std::move(filter);
    MUSTER_LET(fields, parse_job_fields(call.query("fields"), usual_job_fields()));
    ask.fields = std::move(fields);
    MUSTER_LET(limit, integer_parameter(call, "limit", 1, kLimitMax, kLimitUsual));
    ask.limit = static_cast<std::size_t>(limit);
    const std::string layout = call.query("layout");
    if (!layout.empty() && layout != "rows" && layout != "objects") {
        return bad_parameter("layout", layout, "objects or rows").error;
    }
    ask.rows = layout == "rows";
    const std::string cursor = call.query("cursor");
    if (!cursor.empty()) {
        const auto before = parse_integer(cursor, 1, static_cast<std::int64_t>(kJobIdMax) + 1);
        if (!before) {
            return numbered(errors::kBadCursor,
                            "cursor \"" + cursor.substr(0, 64) + "\" is not valid");
        }
        ask.before = static_cast<std::uint64_t>(*before);
    }
    return ask;
}

struct Past {
    std::vector<ports::EndedJob> jobs;  // Newest first.
    std::uint64_t looked_to = 0;  // Not below this id: so few match that a page costs too much.
};
/// Ended jobs below `before`, enough for the page.
Result<Past> from_history(Api& api, const ListAsk& ask) {
    Past past;
    std::vector<ports::EndedJob>& out = past.jobs;
    const JobFilter& filter = ask.filter;
    ports::HistoryFilter query{.since_ms = filter.since.ms,
                               .array_job = static_cast<std::int64_t>(filter.array),
                               .before = ask.before,
                               .limit = std::min(kHistoryPage, ask.limit + 1)};
    if (filter.users.size() == 1) query.user = filter.users.front();
    if (filter.queues.size() == 1) query.queue = filter.queues.front();
    if (filter.name.find('*') == std::string::npos) query.name = filter.name;
    for (int page = 0; out.size() <= ask.limit; ++page) {
        if (page == kHistoryPagesMax) {
            past.looked_to = query.before;
            break;
        }
        MUSTER_LET(found, api.backend.history().list(query));
        const bool last = found.size() < query.limit;
        if (!found.empty()) query.before = found.back().job.value;
        for (ports::EndedJob& job : found) {
            if (matches(filter, job)) out.push_back(std::move(job));
        }
        if (last) break;
        query.limit = kHistoryPage;
    }
    return past;
}

/// The fields of a history record, as it was rendered when the job ended.
void write_ended(JsonWriter& json, const ports::EndedJob& job, const ListAsk& ask,
                 const Call& call) {
    std::string masked;
    std::string_view text = job.json;
    const bool wants_spec = std::ranges::find(ask.fields, JobField::Spec) != ask.fields.end();
    if (wants_spec && !call.may_see(job.user)) text = masked = mask_json(job.json);
    std::vector<std::pair<std::string_view, std::string_view>> members;
    for_each_member(text, [&](std::string_view name, std::string_view value) {
        members.emplace_back(name, value);
    });
    if (ask.rows)
        json.begin_array();
    else
        json.begin_object();
    for (const JobField field : ask.fields) {
        const auto at = std::ranges::find(members, name_of(field),
                                          [](const auto& member) { return member.first; });
        if (!ask.rows) json.key(name_of(field));
        if (at != members.end())
            json.raw(at->second);
        else
            json.null();
    }
    if (ask.rows)
        json.end_array();
    else
        json.end_object();
}

class Page {
public:
    Page(const Call& call, const core::View& view, const ListAsk& ask)
        : call_(call),
          view_(view),
          ask_(ask),
          renderer_(view, &call.api->facts, call.now,
                    {.user = call.who.caller.user, .sees_all = call.who.caller.admin}) {}

    std::string write(Past history) {
        begin();
        const std::vector<ports::EndedJob>& ended = history.jobs;
        const JobMatcher matcher(ask_.filter, view_, call_.api->facts);
        auto past = ended.begin();
        const std::uint64_t from = ask_.before == 0 ? kJobIdMax : ask_.before - 1;
        view_.jobs.visit_back_from(from, [&](std::uint64_t id, const core::Job& job) {
            while (past != ended.end() && past->job.value > id && !full()) put(*past++);
            if (past != ended.end() && past->job.value == id) ++past;  // The view's is newer.
            if (full() || id < history.looked_to) return false;
            if (matcher.matches(job)) put(job);
            return true;
        });
        while (past != ended.end() && !full()) put(*past++);
        if (!full() && history.looked_to != 0) more_ = true, last_ = history.looked_to;
        return end();
    }
    std::uint64_t next() const { return more_ ? last_ : 0; }

private:
    // One more than the page is looked for, so that the last page has no cursor.
    bool full() const { return more_; }
    bool take(std::uint64_t id) {
        if (count_ == ask_.limit) {
            more_ = true;
            return false;
        }
        ++count_;
        last_ = id;
        return true;
    }
    void put(const core::Job& job) {
        if (!take(job.id.value)) return;
        if (ask_.rows)
            renderer_.row(json_, job, ask_.fields);
        else
            renderer_.object(json_, job, ask_.fields);
    }
    void put(const ports::EndedJob& job) {
        if (take(job.job.value)) write_ended(json_, job, ask_, call_);
    }
    void begin() {
        json_.begin_object();
        if (ask_.rows) {
            json_.key("fields").begin_array();
            for (const JobField field : ask_.fields) json_.value(name_of(field));
            json_.end_array().key("rows");
        } else {
            json_.key("items");
        }
        json_.begin_array();
    }
    std::string end() {
        json_.end_array().key("next_cursor");
        if (more_)
            json_.value(std::to_string(last_));
        else
            json_.null();
        json_.field("revision", revision_text(view_)).end_object();
        return std::move(json_).text();
    }

    const Call& call_;
    const core::View& view_;
    const ListAsk& ask_;
    JobRenderer renderer_;
    JsonWriter json_;
    std::size_t count_ = 0;
    std::uint64_t last_ = 0;
    bool more_ = false;
};

std::string next_link(const Call& call, std::uint64_t cursor) {
    std::string target = call.request.target;
    const std::size_t at = target.find("cursor=");
    if (at != std::string::npos) {
        const std::size_t end = target.find('&', at);
        target.erase(at, end == std::string::npos ? std::string::npos : end + 1 - at);
        while (!target.empty() && (target.back() == '&' || target.back() == '?')) target.pop_back();
    }
    target += target.find('?') == std::string::npos ? "?" : "&";
    return "<" + target + "cursor=" + std::to_string(cursor) + ">; rel=\"next\"";
}

void answer_list(const CallPtr& call, const core::View& view, const ListAsk& ask) {
    Past ended;
    if (ask.filter.ended) {
        auto found = from_history(*call->api, ask);
        if (!found) return call->fail(found.error());
        ended = *std::move(found);
    }
    Page page(*call, view, ask);
    std::string body = page.write(std::move(ended));
    std::vector<net::Header> headers = {{"ETag", "\"" + revision_text(view) + "\""}};
    if (page.next() != 0) headers.push_back({"Link", next_link(*call, page.next())});
    call->json(std::move(body), std::move(headers));
}

}  // namespace

void list_jobs(const CallPtr& call) {
    if (call->query_flag("watch")) return watch_jobs(call);
    auto parsed = parse_ask(*call);
    if (!parsed) return call->fail(parsed.error());
    auto ask = std::make_shared<ListAsk>(*std::move(parsed));
    with_view(call, [ask](const CallPtr& ready, const ViewPtr& view) {
        if (answered_unchanged(*ready, "\"" + revision_text(*view) + "\"")) return;
        if (!ask->filter.ended && view->jobs.size() < kManyJobs) {
            return answer_list(ready, *view, *ask);
        }
        ready->api->reads.post([ready, view, ask] { answer_list(ready, *view, *ask); });
    });
}

}  // namespace muster::rest
