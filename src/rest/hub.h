// Tells watchers what changed from one published view to the next: computed
// once for all of them, and only while there is somebody to tell.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/state.h"
#include "rest/backend.h"
#include "rest/worker.h"

namespace muster::rest {

/// What differs between two views, by id, ascending. A wait's drifting counts,
/// and heartbeats, are no change.
struct Round {
    std::shared_ptr<const core::View> before, after;
    std::vector<std::uint64_t> jobs;
    std::vector<std::uint64_t> nodes;
};
Round compare(std::shared_ptr<const core::View> before, std::shared_ptr<const core::View> after);

/// All members on the worker's thread only.
class Hub {
public:
    Hub(Backend& backend, std::shared_ptr<Worker> worker);
    ~Hub();

    using Listener = std::function<void(const Round&)>;
    struct Joined {
        std::shared_ptr<void> handle;            // Drop it, on any thread, to hear no more.
        std::shared_ptr<const core::View> view;  // Every later change will be told.
    };
    Joined listen(Listener listener);

    struct Missed {
        std::vector<std::uint64_t> jobs, nodes;  // Ascending.
    };
    /// What changed after `revision` up to the view of a listen() now; empty: not
    /// known any more.
    std::optional<Missed> since(std::uint64_t term, std::uint64_t revision) const;

private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace muster::rest
