// The names of a job's fields in the API, in the order they are shown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::rest {

enum class JobField : std::uint8_t {
    Id,
    Number,
    Name,
    User,
    Queue,
    State,
    Cause,
    Reason,
    Code,
    Kind,
    Priority,
    Held,
    HoldOwner,
    Labels,
    Nodes,
    Gpus,
    GpusPerNode,
    Cpus,
    Memory,
    Submitted,
    Since,
    Eligible,
    Started,
    Ended,
    ExpectedStart,
    Deadline,
    TimeLimit,
    Wait,
    Run,
    Lost,
    Attempt,
    Restarts,
    Faults,
    StepsRepeated,
    NodeNames,
    Progress,
    Checkpoint,
    ExitCode,
    Signal,
    Message,
    PeakMemory,
    Array,
    Depends,
    Avoid,
    Master,
    Archived,
    // Whole jobs only, unless asked for.
    Spec,
    Allocation,
    Ranks,
    AttemptsTotal,
    Attempts,
};

std::string_view name_of(JobField field);  // "gpus_per_node".
std::span<const JobField> all_job_fields();
std::span<const JobField> usual_job_fields();  // Of lists.
/// "id,name,state"; "" gives `fallback`. Invalid with the nearest name.
Result<std::vector<JobField>> parse_job_fields(std::string_view text,
                                               std::span<const JobField> fallback);

}  // namespace muster::rest
