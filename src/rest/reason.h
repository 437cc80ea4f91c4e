// Why a job waits, or how it ended, as code, number, text and fix: the same
// words in lists, in `why` and in dry runs.
#pragma once

#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "core/state.h"
#include "model/job.h"
#include "scheduler/plan.h"

namespace muster::rest {

std::string_view code_of(scheduler::Blocked::Reason reason);  // "not-enough-free".
int number_of_reason(scheduler::Blocked::Reason reason);      // errors::kNotEnoughFree.
int number_of_cause(model::Cause cause);                      // errors::kEndOom; 0: none.

/// What the job's own record tells, and no plan: held, a dependency, its time, its array's bound.
bool of_record(scheduler::Blocked::Reason reason);

/// One line with the numbers.
std::string text_of(const scheduler::Blocked& why);
/// One line for any job, "" when there is nothing to say.
std::string reason_line(const core::View& view, const core::Job& job, Time now);
/// The E-number that goes with it; 0: none.
int reason_number(const core::View& view, const core::Job& job, Time now);

/// The Reason of the API, of what asks for `shape` (null: unknown). `job` may be null (a dry run).
void write_reason(JsonWriter& json, const core::View& view, const core::Job* job,
                  const scheduler::Shape* shape, const scheduler::Blocked& why);
/// The Reason of a job that does not wait.
void write_active_reason(JsonWriter& json, const core::View& view, const core::Job& job);

}  // namespace muster::rest
