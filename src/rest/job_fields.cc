#include "rest/job_fields.h"

#include <algorithm>
#include <array>

#include "base/error_codes.h"
#include "base/text.h"

namespace muster::rest {
namespace {

constexpr std::string_view kNames[] = {"id",
                                       "number",
                                       "name",
                                       "user",
                                       "queue",
                                       "state",
                                       "cause",
                                       "reason",
                                       "code",
                                       "kind",
                                       "priority",
                                       "held",
                                       "hold_owner",
                                       "labels",
                                       "nodes",
                                       "gpus",
                                       "gpus_per_node",
                                       "cpus",
                                       "memory_bytes",
                                       "submitted",
                                       "since",
                                       "eligible",
                                       "started",
                                       "ended",
                                       "expected_start",
                                       "deadline",
                                       "time_limit_ms",
                                       "wait_ms",
                                       "run_ms",
                                       "lost_ms",
                                       "attempt",
                                       "restarts",
                                       "faults",
                                       "steps_repeated",
                                       "node_names",
                                       "progress",
                                       "checkpoint",
                                       "exit_code",
                                       "signal",
                                       "message",
                                       "peak_memory_bytes",
                                       "array",
                                       "depends",
                                       "avoid",
                                       "master",
                                       "archived",
                                       "spec",
                                       "allocation",
                                       "ranks",
                                       "attempts_total",
                                       "attempts"};
constexpr std::size_t kCount = std::size(kNames);
static_assert(kCount == static_cast<std::size_t>(JobField::Attempts) + 1);
constexpr std::size_t kUsual = static_cast<std::size_t>(JobField::Spec);

constexpr std::array<JobField, kCount> kAll = [] {
    std::array<JobField, kCount> all{};
    for (std::size_t i = 0; i < kCount; ++i) all[i] = static_cast<JobField>(i);
    return all;
}();

}  // namespace

std::string_view name_of(JobField field) {
    return kNames[static_cast<std::size_t>(field)];
}

std::span<const JobField> all_job_fields() {
    return kAll;
}

std::span<const JobField> usual_job_fields() {
    return std::span(kAll).first(kUsual);
}

Result<std::vector<JobField>> parse_job_fields(std::string_view text,
                                               std::span<const JobField> fallback) {
    if (trim(text).empty()) return std::vector<JobField>(fallback.begin(), fallback.end());
    std::vector<JobField> out;
    for (std::string_view name : split(text, ',')) {
        name = trim(name);
        const auto* at = std::ranges::find(kNames, name);
        if (at == std::end(kNames)) {
            const std::vector<std::string> names(std::begin(kNames), std::end(kNames));
            const std::string near = nearest(name, names);
            return numbered(errors::kBadParameter,
                            "fields: a job has no field \"" + std::string(name.substr(0, 64)) +
                                "\"" + (near.empty() ? "" : "; did you mean " + near + "?"),
                            {}, "the fields are " + join(names, ", "));
        }
        const auto field = static_cast<JobField>(at - std::begin(kNames));
        if (std::ranges::find(out, field) == out.end()) out.push_back(field);
    }
    return out;
}

}  // namespace muster::rest
