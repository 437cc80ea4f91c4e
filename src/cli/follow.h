// A job from now to its end: state, output, a live bar, and the timeline. Outlasts restarts of the
// controller; an interrupt leaves the job running.
#pragma once

#include <string>

#include "cli/app.h"

namespace muster::cli {

struct FollowOptions {
    std::string job;
    bool logs = true;      // Output of the tasks on stdout.
    bool progress = true;  // Bar or lines of progress on stderr.
    bool timeline = true;  // At the end, on stderr.
    bool quiet = false;    // Nothing but the exit code.
    bool exists = false;   // It was just submitted: that it is nowhere must be a moment's matter.
};

/// The job's own exit code; 125 when it could not be followed; 130 after an interrupt.
int follow_job(App& app, const FollowOptions& options);

}  // namespace muster::cli
