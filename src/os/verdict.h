// How a task ended, from what its supervisor saw and what it had been told before.
#pragma once

#include "model/job.h"
#include "os/task_files.h"

namespace muster::os {

/// What was asked of a task before its end.
struct Told {
    model::Cause stop = model::Cause::None;    // None: nobody stopped it.
    model::Cause notice = model::Cause::None;  // None: no notice was given.
    int notice_signal = 0;
    bool done = false;  // The job said that its work is finished.
    Bytes memory;       // Its limit; 0: it had none.
};

/// Exit 0 after `done` is completion even inside a grace (F19); exit 0, 143 or the notice's signal
/// inside a grace otherwise is the notice's cause.
model::TaskEnd judge(const Exit& exit, const Told& told);

}  // namespace muster::os
