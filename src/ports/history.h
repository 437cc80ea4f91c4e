// The seam to the record of ended jobs. Appending the same job twice is harmless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"

namespace muster::ports {

struct EndedJob {
    JobId job;
    std::string name, user, queue, state, cause;
    std::int64_t submitted_ms = 0, started_ms = 0, ended_ms = 0;
    std::int64_t wait_ms = 0, run_ms = 0, lost_ms = 0, device_ms = 0;
    std::int64_t nodes = 0, devices = 0, attempts = 0;
    int exit_code = -1;
    std::int64_t array_job = 0, array_element = 0;
    std::string json;  // The whole job as GET /v1/jobs/{id} shows it.
};
struct HistoryFilter {
    std::string user, queue, state, name;  // "" = any.
    std::int64_t since_ms = 0;             // Ended at or after.
    std::int64_t array_job = 0;
    std::uint64_t before = 0;  // Ids below this one; 0: from the newest.
    std::size_t limit = 100;
};

class History {
public:
    virtual ~History() = default;
    virtual Status append(const std::vector<EndedJob>& jobs) = 0;  // Durable when it returns.
    virtual Result<std::optional<EndedJob>> find(JobId job) = 0;
    virtual Result<std::vector<EndedJob>> list(
        const HistoryFilter& filter) = 0;  // Newest id first.
    virtual JobId newest() = 0;            // The greatest id ever appended; 0: none.
};

}  // namespace muster::ports
