// A job as JSON, field by field, straight from the view's tables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "base/json_writer.h"
#include "core/state.h"
#include "core/step.h"
#include "rest/job_facts.h"
#include "rest/job_fields.h"

namespace muster::rest {

/// Lives for one answer and one view. `facts` may be null: then every spec is
/// decoded when needed.
class JobRenderer {
public:
    struct Viewer {
        std::string user;
        bool sees_all = false;  // Administrators, and what goes to history.
        bool archives = false;  // Renders for the history.
    };
    JobRenderer(const core::View& view, JobFactsCache* facts, Time now, Viewer viewer);

    void object(JsonWriter& json, const core::Job& job, std::span<const JobField> fields);
    /// The values alone, as an array.
    void row(JsonWriter& json, const core::Job& job, std::span<const JobField> fields);
    /// An element of an array that has not started and so has no record of its
    /// own.
    void waiting_element(JsonWriter& json, const core::Job& array, std::int64_t element,
                         std::span<const JobField> fields);

private:
    void value(JsonWriter& json, const core::Job& job, JobField field);
    bool value_of_record(JsonWriter& json, const core::Job& job, JobField field);
    bool value_of_facts(JsonWriter& json, const core::Job& job, JobField field);
    bool value_of_times(JsonWriter& json, const core::Job& job, JobField field);
    void value_of_extra(JsonWriter& json, const core::Job& job, JobField field);
    const JobFacts& facts(const core::Job& job);
    std::int64_t gpus(const core::Job& job);
    void node_names(JsonWriter& json, const core::Job& job);
    void progress(JsonWriter& json, const core::Job& job);
    void checkpoint(JsonWriter& json, const core::Job& job);
    void array(JsonWriter& json, const core::Job& job);
    void spec(JsonWriter& json, const core::Job& job);
    std::string_view quoted_user(std::uint32_t user);
    std::string_view quoted_queue(std::uint32_t queue);

    const core::View& view_;
    JobFactsCache* cache_;
    Time now_;
    Viewer viewer_;
    SpecId facts_spec_;  // Of facts_: jobs in a row often share a spec.
    std::shared_ptr<const JobFacts> facts_;
    std::unordered_map<std::uint32_t, std::string> users_, queues_;
};

/// Values of env and files of secrets become "***".
model::JobSpec masked(model::JobSpec spec);
Time started_at(const core::Job& job);  // First start; 0: never.
Time ended_at(const core::Job& job);    // 0: not yet.

// The larger parts, in job_parts.cc.
void write_progress(JsonWriter& json, const protocol::Progress& progress);
void write_allocation(JsonWriter& json, const core::View& view, const core::Job& job,
                      const std::vector<model::Role>& roles);
void write_ranks(JsonWriter& json, const core::View& view, const core::Job& job,
                 const std::vector<model::Role>& roles);
void write_attempts(JsonWriter& json, const core::View& view, const core::Job& job);
/// `text`, or null when it is "".
void write_text(JsonWriter& json, std::string_view text);

}  // namespace muster::rest
