// A job as it was typed: file, flags and command, in its normal form.
#pragma once

#include <string>
#include <variant>

#include "cli/app.h"
#include "model/job_spec.h"
#include "spec/problem.h"

namespace muster::cli {

/// The job of `file` ("" for none), the flags and the words after --; or the exit code, when all
/// that is wrong has been told.
std::variant<model::JobSpec, int> read_job(App& app, const Invocation& invocation,
                                           const std::string& file);
/// Every problem with its line and a caret, then what is not valid, and its code.
int fail_with_problems(App& app, const spec::Problems& problems, const std::string& what,
                       int number, const std::string& fix);

}  // namespace muster::cli
