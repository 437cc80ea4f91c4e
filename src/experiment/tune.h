// `muster tune`: which settings would have served the site's own history better, by simulation.
#pragma once

#include "cli/app.h"

namespace muster::experiment {

/// The exit code. Changes nothing anywhere but the file that it is told to write.
int tune(cli::App& app, const cli::Invocation& invocation);

}  // namespace muster::experiment
