// What lists need of a spec, decoded once a spec and not once a job.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/state.h"
#include "model/job_spec.h"

namespace muster::rest {

struct JobFacts {
    std::vector<std::pair<std::string, std::string>> labels;
    std::string labels_json = "{}";
    std::string gpus_per_node;  // "h100:8|a100:8"; roles apart with ",".
    std::int64_t nodes = 1;
    std::int64_t gpus = 0;        // Of one start, by the first alternatives.
    std::int64_t milli_cpus = 0;  // Of all nodes; 0: the default share.
    std::int64_t memory = 0;      // 0: none asked for.
    Duration time;
    Time deadline;
    bool is_array = false;
    std::int64_t array_first = 0, array_step = 1, array_count = 0, array_parallel = 0;
};
JobFacts facts_of(const model::JobSpec& spec);
/// "h100:8", "80GiB", "8", joined as above.
std::string gpus_text(const model::JobSpec& spec);
/// "4 nodes x 8 h100 per node".
std::string wants_text(const model::JobSpec& spec);

/// Bounded; thread-safe. A spec never changes under its id.
class JobFactsCache {
public:
    std::shared_ptr<const JobFacts> get(const core::View& view, SpecId spec);

private:
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::shared_ptr<const JobFacts>> known_;
};

}  // namespace muster::rest
