#include "os/verdict.h"

#include <cstring>

#include <signal.h>

#include "base/units.h"

namespace muster::os {
namespace {

using model::Cause;

/// Its message only says that it took long to end.
bool slow(const Exit& exit) {
    return exit.message.starts_with("was slow");
}

std::string say_end(const Exit& exit) {
    if (!exit.message.empty() && !slow(exit)) return exit.message;
    const char* what = exit.setup_failed ? "setup " : "";
    if (exit.signal != 0) {
        const char* name = ::sigabbrev_np(exit.signal);
        return std::string(what) + "ended by signal " + std::to_string(exit.signal) +
               (name != nullptr ? " (SIG" + std::string(name) + ")" : "");
    }
    return std::string(what) + "exited with " + std::to_string(exit.exit_code);
}

Cause cause_of(const Exit& exit, const Told& told) {
    const bool well = exit.exit_code == 0 && exit.signal == 0;
    if (exit.launch_failed) return Cause::Launch;
    const bool finished = well && told.done;
    if (exit.fenced && told.stop == Cause::None) return Cause::Fenced;
    if (exit.stopped && told.stop != Cause::None)
        return finished && told.stop == Cause::Preempted ? Cause::Success : told.stop;
    if (told.notice != Cause::None) {
        if (finished) return Cause::Success;
        const bool obeyed = well || exit.killed || exit.exit_code == 128 + SIGTERM ||
                            exit.signal == SIGTERM || exit.signal == told.notice_signal ||
                            exit.exit_code == 128 + told.notice_signal;
        if (obeyed) return told.notice;
    }
    if (well) return Cause::Success;
    return exit.oom ? Cause::Oom : Cause::UserError;
}

}  // namespace

model::TaskEnd judge(const Exit& exit, const Told& told) {
    model::TaskEnd end;
    end.cause = cause_of(exit, told);
    end.exit_code = exit.exit_code;
    end.signal = exit.signal;
    end.local_rank = exit.local_rank;
    end.peak_memory = Bytes{exit.peak_memory};
    end.cpu_ms = exit.cpu_ms;
    if (end.cause == Cause::Oom) {
        end.message = "killed: used " + format_bytes(end.peak_memory) + " of its limit of " +
                      format_bytes(told.memory);
        if (told.memory.value == 0)
            end.message =
                "killed: the node was out of memory when it used " + format_bytes(end.peak_memory);
    } else if (exit.fenced && end.cause == Cause::Fenced) {
        end.message = "stopped itself: its agent was away for longer than the lease";
    } else if (end.cause == Cause::Launch) {
        end.message = exit.message;
    } else if (end.cause != Cause::Success) {
        end.message = say_end(exit);
        if (exit.killed) end.message += ", killed after its grace";
    }
    if (slow(exit)) end.message += (end.message.empty() ? "" : "; ") + exit.message;
    return end;
}

}  // namespace muster::os
