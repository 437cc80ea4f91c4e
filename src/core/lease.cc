// Silence, and what may be concluded from it: suspicion, loss, the fence, the freeze.
#include <algorithm>

#include "base/units.h"
#include "core/stepper.h"

namespace muster::core {

using model::Cause;
using model::JobState;
using model::NodeHealth;
using protocol::TaskState;

namespace {

constexpr std::size_t kPeers = 5;
constexpr Duration kPeersEvery{60'000};
/// What was sent on a link so long ago has come, or the link has broken.
constexpr Duration kPeersArrive{30'000};
constexpr Duration kFenceAgain{5'000};

}  // namespace

/// Named again as soon as they may be others, so that what an agent knows is what the records say,
/// and from time to time.
void Stepper::name_peers(NodeId node, NodeLive& live, protocol::LeaseGrant& grant) {
    PeerSets sets;
    if (const auto& kept = tables_.nodes.at(node.value).peers) sets = *kept;
    if (sets.size() > 1 && live.peers_since.ms != 0 && live.peers_since + kPeersArrive <= at_) {
        sets.erase(sets.begin(), sets.end() - 1);
        keep_peers(node, sets);
    }
    const bool due = live.peers_at.ms == 0 || live.peers_at + kPeersEvery <= at_;
    if (!due && live.peers_change == index_.leaves_changes) return;
    live.peers_change = index_.leaves_changes;
    std::vector<NodeId> peers = peers_of(node);
    const bool same = !sets.empty() && sets.back() == peers;
    if (peers.empty() || (!due && same)) return;
    for (const NodeId id : peers) {
        const model::NodeFacts& facts = *tables_.nodes.at(id.value).facts;
        grant.peers.push_back({facts.name, facts.addresses.front(), facts.peer_port});
    }
    live.peers_at = at_;
    if (!same || live.peers_since.ms == 0) live.peers_since = at_;
    if (same) return;
    // Whether it will get this word nobody knows: until then it may hold an earlier set.
    std::erase(sets, peers);
    sets.push_back(std::move(peers));
    keep_peers(node, std::move(sets));
}

void Stepper::keep_peers(NodeId node, PeerSets sets) {
    Node changed = tables_.nodes.at(node.value);
    changed.peers = std::make_shared<const PeerSets>(std::move(sets));
    record(NodePut{std::move(changed)});
}

/// Not with the next heartbeats: the controller may be gone before those. In a small cluster the
/// others learn of `node` too, which may be the first peer that they have.
void Stepper::name_peers_at_once(NodeId node) {
    constexpr std::size_t kSmall = 4 * kPeers;
    std::vector<NodeId> nodes{node};
    if (tables_.nodes.size() <= kSmall)
        tables_.node_live.for_each([&](std::uint64_t id, const NodeLive& live) {
            if (id != node.value && live.session != 0 && live.peers_change != index_.leaves_changes)
                nodes.push_back({id});
        });
    for (const NodeId id : nodes) {
        protocol::LeaseGrant grant{term(), 0, {}};
        edit_node_live(id, [&](NodeLive& live) { name_peers(id, live, grant); });
        if (!grant.peers.empty()) send(id, std::move(grant));
    }
}

void Stepper::heartbeat(NodeId node, const protocol::Heartbeat& message) {
    NodeLive live = tables_.node_live.at(node.value);
    protocol::LeaseGrant grant{term(), message.sequence, {}};
    name_peers(node, live, grant);
    const bool back = live.health != NodeHealth::Ready;
    if (back) live.since = at_;
    live.health = NodeHealth::Ready;
    live.heard = std::max(live.heard, at_);
    live.fence_again = {};
    record(NodeLivePut{node, std::move(live)});
    send(node, std::move(grant));
    if (!back) return;
    tell_node("node.ready", node);
    thaw_if_over();
}

/// A node each of the next leaves in name order, then another each; without other leaves, the next
/// nodes. It follows from the records of nodes alone, whatever their health.
std::vector<NodeId> Stepper::peers_of(NodeId node) const {
    std::vector<NodeId> peers;
    const std::string own(model::label(*tables_.nodes.at(node.value).facts, "leaf"));
    // From `node` on in a leaf, so that not everybody asks the same one.
    const auto add = [&](const std::set<NodeId>& leaf, std::size_t nth) {
        if (nth >= leaf.size()) return false;
        auto at = leaf.upper_bound(node);
        for (std::size_t i = 0;; ++i, ++at) {
            if (at == leaf.end()) at = leaf.begin();
            if (i == nth) break;
        }
        if (*at != node && !tables_.nodes.at(at->value).facts->addresses.empty())
            peers.push_back(*at);
        return true;
    };
    const auto& leaves = index_.leaves;
    bool more = true;
    for (std::size_t nth = 0; more && nth < kPeers; ++nth) {
        more = false;
        auto leaf = leaves.upper_bound(own);
        for (std::size_t i = 0; i < leaves.size() && peers.size() < kPeers; ++i, ++leaf) {
            if (leaf == leaves.end()) leaf = leaves.begin();
            if (leaf->first != own && add(leaf->second, nth)) more = true;
        }
    }
    if (!peers.empty()) return peers;
    if (const auto mine = leaves.find(own); mine != leaves.end())
        for (std::size_t nth = 0; nth < kPeers; ++nth) (void)add(mine->second, nth);
    return peers;
}

/// An agent runs on without a controller while more than half of its peers confirm an outage. So
/// with half of them heard for long enough it has stopped its gangs; an island of a few nodes that
/// are cut off together runs on, and nothing on it may be replaced.
Time Stepper::vouched_at(NodeId node) const {
    const auto& told = tables_.nodes.at(node.value).peers;
    const PeerSets sets = told ? *told : PeerSets{peers_of(node)};
    Time vouched;
    std::vector<Time> since;
    for (const std::vector<NodeId>& peers : sets) {
        since.clear();
        for (const NodeId peer : peers) {
            const NodeLive* live = tables_.node_live.find(peer.value);
            const bool heard = live != nullptr && live->health == NodeHealth::Ready;
            since.push_back(heard ? live->since : kNever);
        }
        if (since.empty()) continue;  // An agent that knows no peer stops its gangs.
        std::ranges::sort(since);
        const Time half = since[(since.size() - 1) / 2];
        if (half == kNever) return kNever;
        vouched = std::max(vouched, half + protocol::vouched_after(state_.settings.lease));
    }
    return vouched;
}

std::vector<std::pair<JobId, std::uint32_t>> Stepper::tasks_on(NodeId node) const {
    std::vector<std::pair<JobId, std::uint32_t>> tasks;
    JobId last;
    for (const JobId id : tables_.node_use.at(node.value).jobs) {
        if (id == last) continue;
        last = id;
        const std::vector<Placed>& slots = extra_of(job(id)).allocation->slots;
        for (std::uint32_t rank = 0; rank < slots.size(); ++rank)
            if (slots[rank].node == node && !slots[rank].spare) tasks.emplace_back(id, rank);
    }
    return tasks;
}

/// More than a quarter and at least three; below eight nodes, all but one: then it is us (F36).
bool Stepper::too_many_silent() const {
    const auto of = [&](NodeHealth health) {
        return index_.health[static_cast<std::size_t>(health)];
    };
    const std::int64_t silent = of(NodeHealth::Suspect) + of(NodeHealth::Unknown);
    if (of(NodeHealth::Ready) == 0) return silent > 0;
    const std::int64_t nodes = silent + of(NodeHealth::Ready) + of(NodeHealth::Lost);
    if (nodes < 8) return silent >= std::max<std::int64_t>(1, nodes - 1);
    return silent * 4 > nodes && silent >= 3;
}

void Stepper::node_due(NodeId id) {
    Node node = tables_.nodes.at(id.value);
    const auto expired =
        std::erase_if(node.holds, [&](const model::NodeHold& hold) { return hold.until <= at_; });
    if (expired > 0) {
        record(NodePut{std::move(node)});
        tell_node("node.resumed", id, "its hold ran out");
    }
    if (strays_overdue(state_, id) <= at_) {
        // What it said of them may have been late: a new Hello tells how things are.
        tell_node("node.stray-overdue", id, "tasks that nobody wants are not reported ended");
        close_link(tables_.node_live.at(id.value).session, "say again what you have");
        edit_node_live(id, [&](NodeLive& l) { l.session = 0, l.strays_since = {}; });
    }
    const NodeLive& live = tables_.node_live.at(id.value);
    if (live.heard.ms == 0) return;
    const Duration silence = at_ - live.heard;
    const protocol::LeaseRules& rules = state_.settings.lease;
    if (live.health == NodeHealth::Ready && rules.suspect <= silence) {
        edit_node_live(id, [&](NodeLive& l) { l.health = NodeHealth::Suspect, l.since = at_; });
        tell_node("node.suspect", id, "silent for " + std::to_string(silence.ms / 1000) + " s");
    }
    const NodeHealth health = tables_.node_live.at(id.value).health;
    const bool waits = health == NodeHealth::Suspect || health == NodeHealth::Unknown;
    if (waits && !tables_.frozen && rules.lost <= silence) node_lost(id);
    const NodeLive& now = tables_.node_live.at(id.value);
    if (now.health == NodeHealth::Lost && !now.fenced && !tables_.frozen &&
        protocol::gone_after(rules) <= silence && now.fence_again <= at_)
        fence_due(id);
}

void Stepper::fence_due(NodeId id) {
    const Time vouched = vouched_at(id);
    const bool waited = tables_.node_live.at(id.value).fence_again.ms != 0;
    const std::string lost = "node " + node_name(state_, id) + " is lost";
    if (vouched <= at_) {
        edit_node_live(id, [](NodeLive& l) { l.fenced = true, l.fence_again = {}; });
        tell_node("node.fenced", id, "its fence time is over");
        if (waited) say_of_gangs(id, lost);
        return node_fenced(id, false, "silent past its fence time");
    }
    edit_node_live(id, [&](NodeLive& l) { l.fence_again = std::min(vouched, at_ + kFenceAgain); });
    if (waited) return;
    const std::string why =
        "its peers are silent too, or were a moment ago: together they may be running on; if it "
        "is off, confirm that with `muster node fenced " +
        node_name(state_, id) + "`";
    tell_node("node.unconfirmed", id, why);
    say_of_gangs(id, lost + ", and " + why);
}

/// Why the gangs that were lost with the node still wait.
void Stepper::say_of_gangs(NodeId id, const std::string& message) {
    for (const auto& [job_id, rank] : tasks_on(id)) {
        const Job& hurt = job(job_id);
        if (!is_gang(hurt) || hurt.state != JobState::Fencing || hurt.cause != Cause::NodeLost)
            continue;
        if (tables_.live.at(job_id.value).tasks[rank].state == TaskState::Ended) continue;
        if (extra_of(hurt).decided_node != node_name(state_, id)) continue;
        edit_job(job_id, [&](Job&, JobExtra& extra) { extra.message = message; });
        tell_job("job.lost", job(job_id), message, node_name(state_, id));
    }
}

void Stepper::node_lost(NodeId id) {
    // Those that fell silent with it are looked at first: their timers may be due in this very
    // Tick.
    const Duration suspect = state_.settings.lease.suspect;
    std::vector<NodeId> silent;
    for (const Timer& timer : index_.timers) {
        if (at_ < timer.at) break;
        if (timer.kind != TimerKind::Node) continue;
        const NodeLive& live = tables_.node_live.at(timer.id);
        if (live.health == NodeHealth::Ready && live.heard.ms != 0 && live.heard + suspect <= at_)
            silent.push_back({timer.id});
    }
    for (const NodeId other : silent) {
        edit_node_live(other, [&](NodeLive& l) { l.health = NodeHealth::Suspect, l.since = at_; });
        tell_node("node.suspect", other);
    }
    if (too_many_silent()) {
        record(FreezePut{true, at_});
        tell("cluster.frozen",
             "so many nodes fell silent at once that this controller suspects itself: nothing is "
             "evicted until they return or are declared fenced");
        return;
    }
    const std::uint64_t session = tables_.node_live.at(id.value).session;
    close_link(session, "silent: it has to say what it has");
    edit_node_live(id, [&](NodeLive& l) {
        l.health = NodeHealth::Lost;
        l.since = at_;
        l.session = 0;
        l.fence_again = {};
    });
    tell_node("node.lost", id,
              "silent since " + std::to_string(tables_.node_live.at(id.value).heard.ms));
    const Time heard = tables_.node_live.at(id.value).heard;
    const Time fence = heard + protocol::gone_after(state_.settings.lease);
    const std::string name = node_name(state_, id);
    for (const auto& [job_id, rank] : tasks_on(id)) {
        if (tables_.live.at(job_id.value).tasks[rank].state == TaskState::Ended) continue;
        const Job& hurt = job(job_id);
        const bool gang = is_gang(hurt);
        const bool ours = hurt.state <= JobState::Running || model::users_fault(hurt.cause);
        const std::string message = gang ? "node " + name + " is lost" : "node silent";
        const std::uint32_t lost_rank = rank;
        edit_job(job_id, [&](Job& j, JobExtra& extra) {
            j.state = JobState::Fencing;
            j.since = at_;
            if (!ours) return;
            j.cause = Cause::NodeLost;
            extra.message = message;
            extra.decided_rank = lost_rank;
            extra.decided_node = name;
            extra.fault_at = extra.fault_at.ms != 0 ? std::min(extra.fault_at, heard) : heard;
        });
        tell_job("job.lost", job(job_id), message, name);
        if (!gang) continue;  // It may well be running: only its agent or a fence can tell.
        edit_live(job_id, [&](JobLive& l) { l.fence_at = std::max(l.fence_at, fence); });
        if (tables_.live.at(job_id.value).stop_sent.ms == 0 && job(job_id).cause == Cause::NodeLost)
            stop_tasks(job_id);
    }
}

/// The tasks of the node are dead: of every job, or (the fence time alone) of its gangs.
void Stepper::node_fenced(NodeId id, bool every_job, const std::string& how) {
    for (const auto& [job_id, rank] : tasks_on(id)) {
        const Job* found = tables_.jobs.find(job_id.value);
        if (found == nullptr || !model::active(found->state)) continue;
        if (!every_job && !is_gang(*found)) continue;
        protocol::TaskStatus task = tables_.live.at(job_id.value).tasks[rank];
        if (task.state == TaskState::Ended) continue;
        task.state = TaskState::Ended;
        task.end = {};
        task.end.cause = Cause::NodeLost;
        task.end.message = "node " + node_name(state_, id) + ": " + how;
        record(TaskPut{job_id, task});
        task_ended(job_id, rank, task.end);
    }
}

/// Once too few are silent to doubt ourselves, silence is counted anew: who still keeps it may
/// have run on in good faith while nobody could hear him.
void Stepper::thaw_if_over() {
    if (!tables_.frozen || too_many_silent()) return;
    record(FreezePut{false, at_});
    tell("cluster.thawed", "nodes are back");
    std::vector<NodeId> silent;
    tables_.node_live.for_each([&](std::uint64_t id, const NodeLive& live) {
        if (live.heard.ms != 0 && live.health != NodeHealth::Ready && !live.fenced)
            silent.push_back({id});
    });
    for (const NodeId id : silent) edit_node_live(id, [&](NodeLive& live) { live.heard = at_; });
}

/// It runs on past its expected end: twice as long, then.
void Stepper::expect_later(JobId id) {
    const Duration limit = tables_.shapes.at(job(id).shape.value).time;
    edit_job(id, [&](Job& j, JobExtra& extra) {
        Allocation allocation = *extra.allocation;
        Duration length = allocation.expected_end - allocation.at;
        while (allocation.at + length <= at_) length = length + std::max(length, Duration{1'000});
        allocation.expected_end = allocation.at + std::min(length, kDurationMax);
        if (j.state == JobState::Running && limit.ms > 0)
            allocation.expected_end = std::min(allocation.expected_end, extra.running_at + limit);
        if (extra.deadline.ms != 0)
            allocation.expected_end = std::min(allocation.expected_end, extra.deadline);
        extra.allocation = std::move(allocation);
    });
}

void Stepper::job_due(JobId id) {
    const Job& due = job(id);
    const JobExtra& extra = extra_of(due);
    if (due.state <= JobState::Running && extra.deadline.ms != 0 && extra.deadline <= at_)
        return cancel(id, Cause::Deadline, "its deadline came");
    if (due.state == JobState::Pending) {
        edit_job(id, [](Job&, JobExtra& e) { e.claim.reset(); });
        return tell_job("job.updated", job(id), "what it was promised did not come free in time");
    }
    const Duration limit = tables_.shapes.at(due.shape.value).time;
    const bool over =
        due.state == JobState::Running && limit.ms > 0 && extra.running_at + limit <= at_;
    if (due.state <= JobState::Running && !over) return expect_later(id);
    if (due.state == JobState::Running)
        return begin_stop(
            id, Cause::TimeLimit,
            "ran over its limit of " + format_duration(cached_spec(state_, due.spec)->time));
    const JobLive& live = tables_.live.at(id.value);
    if (live.stop_sent.ms == 0) return stop_tasks(id);
    edit_live(id, [](JobLive& l) { l.stuck = true; });
    std::string nodes;
    for (std::uint32_t rank = 0; rank < live.tasks.size(); ++rank) {
        if (tables_.live.at(id.value).tasks[rank].state == TaskState::Ended) continue;
        if (!nodes.empty()) nodes += ", ";
        nodes += node_name(state_, extra_of(job(id)).allocation->slots[rank].node);
        send_stop(job(id), rank);
    }
    tell_job("job.stop-overdue", job(id), "still not stopped on " + nodes, nodes);
}

}  // namespace muster::core
