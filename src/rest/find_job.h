// A job by the id of a path: live, a waiting element of a live array, or from
// the history.
#pragma once

#include <functional>
#include <optional>

#include "ports/history.h"
#include "rest/api.h"

namespace muster::rest {

struct FoundJob {
    const core::Job* live = nullptr;    // In the view; else `ended` is set.
    std::int64_t waiting_element = -1;  // >= 0: `live` is its array.
    std::optional<ports::EndedJob> ended;
};
Error no_such_job(const std::string& id);

/// Looks for call->args[0]. `then` runs at once if it is in the view, which it
/// may point into, or on the reads thread after a look into the history.
void find_job(const CallPtr& call, ViewPtr view, std::function<void(Result<FoundJob>)> then);
/// What every read of a single job begins with: find_job in a view that shows what the caller
/// wrote. Answers itself when there is no such job.
void with_job(const CallPtr& call, std::function<void(const ViewPtr&, FoundJob)> then);

}  // namespace muster::rest
