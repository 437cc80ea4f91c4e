// The normal form of a job as text, for --dry-run, `status` and the API.
// parse(render(spec)) == spec for every valid spec.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "model/job_spec.h"

namespace muster::spec {

/// Only what differs from a default is written; one field a line.
std::string to_yaml(const model::JobSpec& spec);
/// The same fields as one JSON object.
std::string to_json(const model::JobSpec& spec);
/// Writes that object as the next value of `out`.
void write_json(JsonWriter& out, const model::JobSpec& spec);

}  // namespace muster::spec
