// Which jobs a list or a watch shows, from its query parameters.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/state.h"
#include "ports/history.h"
#include "rest/api.h"

namespace muster::rest {

struct JobFilter {
    std::uint32_t states = 0xff;             // Bit i: JobState i.
    bool held = false;                       // Pending ones that are held, too.
    bool ended = false;                      // Asks the history too.
    bool live = true;                        // Some state that is not an end is wanted.
    std::vector<std::string> users, queues;  // Empty: any.
    std::string name;                        // With `*` for any run; "" = any.
    std::vector<std::pair<std::string, std::string>> labels;  // Value "*": any.
    std::uint64_t array = 0;
    std::string node;
    std::unordered_set<std::string> ids;  // Empty: any.
    Time since;

    bool accepts_state(model::JobState state) const {
        return (states >> static_cast<unsigned>(state) & 1) != 0;
    }
};
Result<JobFilter> parse_job_filter(const Call& call);

/// The filter against one view: names are resolved to ids once.
class JobMatcher {
public:
    JobMatcher(const JobFilter& filter, const core::View& view, JobFactsCache& facts);
    bool matches(const core::Job& job) const;

private:
    const JobFilter& filter_;
    const core::View& view_;
    JobFactsCache& facts_;
    std::unordered_set<std::uint32_t> users_, queues_;
    NodeId node_;
    bool none_ = false;  // A name that nobody has was asked for.
};
bool matches(const JobFilter& filter, const ports::EndedJob& job);
/// `*` stands for any run of characters.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace muster::rest
