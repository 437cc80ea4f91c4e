// What the planner's index knows, as JSON: why a job waits, what if, how a queue stands.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "core/state.h"
#include "scheduler/plan.h"

namespace muster::rest {

/// The Explanation of the API. `job` is null for one that is not there.
void write_explanation(JsonWriter& json, const core::View& view, const core::Job* job,
                       const scheduler::Shape& shape, const scheduler::Explanation& why);
/// The Forecast of the API.
void write_forecast(JsonWriter& json, const core::View& view, const scheduler::Shape& shape,
                    const scheduler::Forecast& forecast);

/// 512 GPUs of "gpus" in thousandths as 512, bytes of "memory" as they are: as the API counts.
void write_amount(JsonWriter& json, std::string_view resource, std::int64_t value);
void write_amounts(JsonWriter& json, std::string_view name, const model::Amounts& amounts);
/// All queues and rules, as a file that applies.
std::string queues_yaml(const core::View& view);
void write_share(JsonWriter& json, std::string_view name, std::int64_t millionths);

/// "reclaim", "priority".
std::string_view to_text(scheduler::StopReason reason);

}  // namespace muster::rest
