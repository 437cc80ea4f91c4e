#include "rest/find_job.h"

#include "rest/ids.h"

namespace muster::rest {
namespace {

constexpr std::size_t kElementPage = 1000;

bool waits(const core::ArrayBook& book, std::int64_t element) {
    for (const core::ElementRange& range : book.waiting) {
        if (range.first <= element && element < range.last) return true;
    }
    for (const std::int64_t held : book.held) {
        if (held == element) return true;
    }
    return false;
}

Result<FoundJob> in_history(ports::History& history, const JobPath& path, const std::string& id) {
    if (path.element < 0) {
        MUSTER_LET(found, history.find(path.job));
        if (!found) return no_such_job(id);
        return FoundJob{.ended = std::move(found)};
    }
    ports::HistoryFilter filter{.array_job = static_cast<std::int64_t>(path.job.value),
                                .limit = kElementPage};
    for (;;) {
        MUSTER_LET(page, history.list(filter));
        for (ports::EndedJob& job : page) {
            if (job.array_element == path.element) return FoundJob{.ended = std::move(job)};
        }
        if (page.size() < kElementPage) return no_such_job(id);
        filter.before = page.back().job.value;
    }
}

}  // namespace

Error no_such_job(const std::string& id) {
    return numbered(errors::kJobNotFound, "job " + id + ": there is no such job");
}

void find_job(const CallPtr& call, ViewPtr view, std::function<void(Result<FoundJob>)> then) {
    const std::string& id = call->args[0];
    const auto path = parse_job_path(id);
    if (!path) return then(path.error());
    if (const auto live = core::find_job(*view, id)) {
        return then(FoundJob{.live = &view->jobs.at(live->value)});
    }
    if (path->element >= 0) {
        const core::Job* array = view->jobs.find(path->job.value);
        if (array != nullptr) {
            const core::JobExtra& extra = core::extra_of(*array);
            if (!extra.array) {
                return then(numbered(errors::kElementNotFound,
                                     "job " + std::to_string(path->job.value) + " is no array"));
            }
            if (waits(*extra.array, path->element)) {
                return then(FoundJob{.live = array, .waiting_element = path->element});
            }
        }
    }
    call->api->reads.post([call, path = *path, view = std::move(view), then = std::move(then)] {
        then(in_history(call->api->backend.history(), path, call->args[0]));
    });
}

void with_job(const CallPtr& call, std::function<void(const ViewPtr&, FoundJob)> then) {
    with_view(call, [then = std::move(then)](const CallPtr& ready, const ViewPtr& view) {
        find_job(ready, view, [ready, view, then](Result<FoundJob> found) {
            if (!found) return ready->fail(std::move(found).error());
            then(view, *std::move(found));
        });
    });
}

}  // namespace muster::rest
