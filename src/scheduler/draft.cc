#include "scheduler/draft.h"

#include <algorithm>

namespace muster::scheduler {

void Draft::change(NodeEntry& node, Take take, int sign) {
    state_.take(node, take, sign);
    Done& done = log_.emplace_back();
    done.node = &node;
    done.take = std::move(take);
    done.sign = sign;
}

void Draft::take(NodeEntry& node, Take take) {
    change(node, std::move(take), +1);
}

void Draft::use(QueueEntry* queue, UserBook& user, Demand demand, int jobs) {
    state_.use(queue, user, demand, +1, jobs);
    Done& done = log_.emplace_back();
    done.queue = queue;
    done.user = &user;
    done.jobs = jobs;
    done.demand = std::move(demand);
}

void Draft::release(StartedJob& job) {
    if (released(job)) return;
    job.drafted = 1;
    log_.emplace_back().released = &job;
    for (std::uint32_t i = 0; i < job.start.slots.size(); ++i) {
        NodeEntry& node = state_.nodes.at(job.start.slots[i].node);
        for (const NodeHold& hold : node.held)
            if (hold.job == &job && hold.slot == i) change(node, hold.take, -1);
    }
    state_.use(job.shape->queue, *job.user_book, job.demand, -1);
    Done& done = log_.emplace_back();
    done.queue = job.shape->queue;
    done.user = job.user_book;
    done.demand = job.demand;
    done.sign = -1;
}

void Draft::unclaim(const QueuedJob& job) {
    std::vector<NodeId> nodes;  // Each once: two groups of a gang may share a node.
    for (const Slot& slot : job.ask.claim->slots) nodes.push_back(slot.node);
    std::ranges::sort(nodes);
    const auto rest = std::ranges::unique(nodes);
    nodes.erase(rest.begin(), rest.end());
    for (const NodeId id : nodes) {
        const auto at = state_.nodes.find(id);
        if (at == state_.nodes.end()) continue;
        for (const NodeClaim& claim : at->second.claims)
            if (claim.job == job.ask.id) change(at->second, effect_of(at->second, claim), -1);
    }
}

void Draft::undo_to(std::size_t mark) {
    while (log_.size() > mark) {
        Done done = std::move(log_.back());
        log_.pop_back();
        if (done.node != nullptr) state_.take(*done.node, done.take, -done.sign);
        if (done.queue != nullptr)
            state_.use(done.queue, *done.user, done.demand, -done.sign, done.jobs);
        if (done.released != nullptr) done.released->drafted = 0;
    }
}

}  // namespace muster::scheduler
