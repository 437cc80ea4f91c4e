// A what-if over the index: starts and ends that are tried and taken back, nothing copied.
#pragma once

#include <vector>

#include "scheduler/index.h"

namespace muster::scheduler {

/// Changes the index's books itself and puts everything back when it goes. One at a time.
class Draft {
public:
    explicit Draft(PlanIndex::State& state) : state_(state) {}
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;
    ~Draft() { undo_to(0); }

    void take(NodeEntry& node, Take take);
    void give(NodeEntry& node, Take take) { change(node, std::move(take), -1); }
    /// `jobs`: of how many it is; 0: of one that is counted already.
    void use(QueueEntry* queue, UserBook& user, Demand demand, int jobs);
    /// The job's capacity comes back, unless this draft gave it back already.
    void release(StartedJob& job);
    bool released(const StartedJob& job) const { return job.drafted != 0; }
    /// The promise to a waiting job no longer counts.
    void unclaim(const QueuedJob& job);

    std::size_t mark() const { return log_.size(); }
    void undo_to(std::size_t mark);

private:
    struct Done {
        NodeEntry* node = nullptr;
        Take take;
        QueueEntry* queue = nullptr;
        UserBook* user = nullptr;
        Demand demand;
        StartedJob* released = nullptr;
        int sign = 1, jobs = 1;
    };
    void change(NodeEntry& node, Take take, int sign);

    PlanIndex::State& state_;
    std::vector<Done> log_;
};

}  // namespace muster::scheduler
