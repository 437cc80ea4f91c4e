// GET /v1/jobs?watch=1.
#include "rest/ids.h"
#include "rest/job_filter.h"
#include "rest/job_json.h"
#include "rest/watch.h"

namespace muster::rest {
namespace {

class WatchedJobs final : public Subject {
public:
    WatchedJobs(const CallPtr& call, JobFilter filter, std::vector<JobField> fields)
        : call_(*call), filter_(std::move(filter)), fields_(std::move(fields)) {}

    const std::vector<std::uint64_t>& changed(const Round& round) const override {
        return round.jobs;
    }
    std::vector<std::uint64_t> missed(const Hub::Missed& missed) const override {
        return missed.jobs;
    }
    std::uint64_t below(const core::View& view, std::uint64_t id) override {
        const JobMatcher matcher(filter_, view, call_.api->facts);
        std::uint64_t found = 0;
        view.jobs.visit_back_from(id - 1, [&](std::uint64_t each, const core::Job& job) {
            if (matcher.matches(job)) found = each;
            return found == 0;
        });
        return found;
    }
    bool shown(const core::View& view, std::uint64_t id) override {
        const core::Job* job = view.jobs.find(id);
        return job != nullptr && JobMatcher(filter_, view, call_.api->facts).matches(*job);
    }
    void write(JsonWriter& json, const core::View& view, std::uint64_t id) override {
        JobRenderer renderer(view, &call_.api->facts, call_.api->options.now(),
                             {.user = call_.who.caller.user, .sees_all = call_.who.caller.admin});
        renderer.object(json, view.jobs.at(id), fields_);
    }
    void write_key(JsonWriter& json, const core::View& view, std::uint64_t id) override {
        json.begin_object().field("id", job_name(view, JobId{id})).field("number", id).end_object();
    }

private:
    const Call& call_;  // The watch keeps it.
    const JobFilter filter_;
    const std::vector<JobField> fields_;
};

}  // namespace

void watch_jobs(const CallPtr& call) {
    auto filter = parse_job_filter(*call);
    if (!filter) return call->fail(filter.error());
    if (filter->ended && !filter->live) {
        return call->fail(bad_parameter("state", call->query("state"),
                                        "a state of live jobs: ended ones do not change"));
    }
    auto fields = parse_job_fields(call->query("fields"), usual_job_fields());
    if (!fields) return call->fail(fields.error());
    start_watch(call, std::make_shared<WatchedJobs>(call, *std::move(filter), *std::move(fields)));
}

}  // namespace muster::rest
