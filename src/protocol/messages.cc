#include "protocol/messages.h"

namespace muster::protocol {

std::string_view to_text(TaskState state) {
    switch (state) {
        case TaskState::Accepted: return "accepted";
        case TaskState::Pulling: return "pulling";
        case TaskState::Preparing: return "preparing";
        case TaskState::Ready: return "ready";
        case TaskState::Running: return "running";
        case TaskState::Stopping: return "stopping";
        case TaskState::Ended: return "ended";
    }
    return "unknown";
}

}  // namespace muster::protocol
