#include "model/job.h"

namespace muster::model {

std::string_view to_text(JobState state) {
    switch (state) {
        case JobState::Pending: return "pending";
        case JobState::Starting: return "starting";
        case JobState::Running: return "running";
        case JobState::Stopping: return "stopping";
        case JobState::Fencing: return "fencing";
        case JobState::Succeeded: return "succeeded";
        case JobState::Failed: return "failed";
        case JobState::Cancelled: return "cancelled";
    }
    return "unknown";
}

std::string_view to_text(Cause cause) {
    switch (cause) {
        case Cause::None: return "none";
        case Cause::Success: return "success";
        case Cause::UserError: return "user-error";
        case Cause::Oom: return "oom";
        case Cause::TimeLimit: return "time-limit";
        case Cause::Deadline: return "deadline";
        case Cause::LogRule: return "log-rule";
        case Cause::Image: return "image";
        case Cause::Launch: return "launch";
        case Cause::NodeLost: return "node-lost";
        case Cause::DeviceFault: return "device-fault";
        case Cause::Preempted: return "preempted";
        case Cause::Requeued: return "requeued";
        case Cause::Cancelled: return "cancelled";
        case Cause::Fenced: return "fenced";
        case Cause::Peer: return "peer";
        case Cause::Vanished: return "vanished";
        case Cause::Resized: return "resized";
    }
    return "unknown";
}

}  // namespace muster::model
