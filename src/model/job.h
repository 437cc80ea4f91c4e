// The words for where a job is, and why it ended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/id.h"
#include "base/quantity.h"

namespace muster::model {

enum class JobState : std::uint8_t {
    Pending,   // Waits: its reason says for what.
    Starting,  // Has an allocation; images, setup, barrier.
    Running,   // All ranks were released.
    Stopping,  // Told to end; its devices are not free yet.
    Fencing,   // A node of it is silent; nothing is replaced before the fence.
    Succeeded,
    Failed,
    Cancelled,
};
constexpr bool ended(JobState state) {
    return state >= JobState::Succeeded;
}
/// Holds devices.
constexpr bool active(JobState state) {
    return state >= JobState::Starting && state <= JobState::Fencing;
}

/// Why an attempt (or a task of it) ended. Kept apart so that nobody pays for another's fault.
enum class Cause : std::uint8_t {
    None,
    Success,
    UserError,  // Non-zero exit or a signal of its own.
    Oom,        // Killed by its memory limit.
    TimeLimit,
    Deadline,
    LogRule,  // A log rule said fail.
    Image,    // Pull or unpack failed.
    Launch,   // The node could not start it: the node's fault.
    NodeLost,
    DeviceFault,
    Preempted,
    Requeued,  // By its owner or an admin.
    Cancelled,
    Fenced,    // The agent stopped it itself: cut off from everyone.
    Peer,      // Another task of the gang ended first; not this one's fault.
    Vanished,  // The agent no longer has it (reboot, lost state).
    Resized,   // Stopped to go on with more or fewer nodes.
};
std::string_view to_text(JobState state);  // "pending", "running", …
std::string_view to_text(Cause cause);     // "user-error", "node-lost", …
/// True for causes that use up the user's own restarts.
constexpr bool users_fault(Cause cause) {
    return cause == Cause::UserError || cause == Cause::Oom || cause == Cause::LogRule;
}

/// How one task ended, as its supervisor saw it.
struct TaskEnd {
    Cause cause = Cause::None;
    int exit_code = -1;  // -1: ended by a signal or never started.
    int signal = 0;
    int local_rank = 0;  // Of the process that ended first with an error.
    Bytes peak_memory;
    std::int64_t cpu_ms = 0;
    std::string message;     // For people, one line: "image registry/x: not found".
    bool permanent = false;  // It would end so again: the registry knows no such image.
    friend bool operator==(const TaskEnd&, const TaskEnd&) = default;
};

}  // namespace muster::model
