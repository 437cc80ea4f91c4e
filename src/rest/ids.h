// Job ids and names of nodes, users and queues as the API spells them.
#pragma once

#include <string>

#include "base/result.h"
#include "core/state.h"

namespace muster::rest {

/// "12", or "12_3" for an element of array 12.
std::string job_name(const core::Job& job);
/// The same by id; a job that is not in the view is its number.
std::string job_name(const core::View& view, JobId job);
std::string user_name(const core::View& view, std::uint32_t user);
std::string queue_name(const core::View& view, std::uint32_t queue);
std::string node_name(const core::View& view, NodeId node);

/// "": the default one. An unknown one is refused as the core would.
Result<QueueId> queue_of(const core::View& view, const std::string& name);

/// What "12" or "12_3" of a path means.
struct JobPath {
    JobId job;                  // Of the record itself, or of the array.
    std::int64_t element = -1;  // >= 0: of the array `job`.
};
Result<JobPath> parse_job_path(const std::string& text);

const core::Node* find_node_named(const core::View& view, std::string_view name);

}  // namespace muster::rest
