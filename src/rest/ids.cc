#include "rest/ids.h"

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::rest {

std::string job_name(const core::Job& job) {
    if (job.array_job == 0) return std::to_string(job.id.value);
    return std::to_string(job.array_job) + "_" + std::to_string(job.array_element);
}

std::string job_name(const core::View& view, JobId job) {
    const core::Job* record = view.jobs.find(job.value);
    return record != nullptr ? job_name(*record) : std::to_string(job.value);
}

std::string user_name(const core::View& view, std::uint32_t user) {
    const core::User* record = view.users.find(user);
    return record != nullptr ? record->name : std::string();
}

std::string queue_name(const core::View& view, std::uint32_t queue) {
    const core::Queue* record = view.queues.find(queue);
    return record != nullptr ? record->name : std::string();
}

Result<QueueId> queue_of(const core::View& view, const std::string& name) {
    QueueId found;
    std::vector<std::string> names;
    view.queues.for_each([&](std::uint64_t id, const core::Queue& queue) {
        if (queue.name == (name.empty() ? "default" : name)) found = {id};
        names.push_back(queue.name);
    });
    if (found) return found;
    const std::string near = nearest(name, names);
    return Error{.code = Code::Invalid,
                 .message = "queue " + name + ": there is no such queue",
                 .cause = "queues are " + join(names, ", "),
                 .fix = near.empty() ? "use one of them" : "did you mean " + near + "?",
                 .number = errors::kQueueUnknown};
}

std::string node_name(const core::View& view, NodeId node) {
    const core::Node* record = view.nodes.find(node.value);
    return record != nullptr && record->facts ? record->facts->name
                                              : "node#" + std::to_string(node.value);
}

Result<JobPath> parse_job_path(const std::string& text) {
    const std::size_t bar = text.find('_');
    const auto job = parse_integer(std::string_view(text).substr(0, bar), 1,
                                   static_cast<std::int64_t>(kJobIdMax));
    Result<std::int64_t> element = std::int64_t{-1};
    if (bar != std::string::npos) {
        element = parse_integer(std::string_view(text).substr(bar + 1), 0, model::kArrayMax);
    }
    if (!job || !element) {
        return numbered(errors::kJobNotFound, "job \"" + text.substr(0, 64) + "\" is no job id", {},
                        "ids are numbers such as 12, or 12_3 for an element of an array");
    }
    return JobPath{.job = JobId{static_cast<std::uint64_t>(*job)}, .element = *element};
}

const core::Node* find_node_named(const core::View& view, std::string_view name) {
    const core::Node* found = nullptr;
    view.nodes.visit_from(0, [&](std::uint64_t, const core::Node& node) {
        if (!node.forgotten && node.facts && node.facts->name == name) found = &node;
        return found == nullptr;
    });
    return found;
}

}  // namespace muster::rest
