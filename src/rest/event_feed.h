// The event log for those who watch: read once from the backend, sent to
// thousands uncopied. Who falls behind catches up from the log, or is told that
// it is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ports/store.h"
#include "rest/backend.h"
#include "rest/reply.h"
#include "rest/worker.h"

namespace muster::rest {

struct EventFilter {
    std::vector<std::string> types;  // "job.started", "job.*"; empty: all.
    std::uint64_t job = 0;           // 0: any. Its elements' events too, if it is an array.
    std::int64_t element = -1;       // >= 0: of the array `job`.
    std::string node;                // "" = any.

    bool accepts(std::string_view json) const;
};

/// "id: 7\nevent: job.started\ndata: {...}\n\n".
std::string to_sse(const ports::LoggedEvent& event);

/// All members on the worker's thread only.
class EventFeed {
public:
    EventFeed(Backend& backend, std::shared_ptr<Worker> worker);
    ~EventFeed();
    /// Sends every accepted event with a sequence > `after` until the client
    /// leaves.
    void watch(std::uint64_t after, EventFilter filter, std::shared_ptr<Stream> stream);

private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace muster::rest
