#include "rest/hub.h"

#include <algorithm>
#include <atomic>

namespace muster::rest {
namespace {

using core::Job;
using core::JobLive;
using core::Node;
using core::NodeLive;
using core::NodeUse;
using scheduler::Blocked;

constexpr Duration kBetweenRounds{20};
constexpr std::size_t kRememberedIds = 200'000;

bool same(const Job& a, const Job& b) {
    return a.state == b.state && a.cause == b.cause && a.priority == b.priority &&
           a.held == b.held && a.queue == b.queue && a.epoch == b.epoch &&
           a.restarts == b.restarts && a.faults == b.faults && a.since == b.since &&
           a.eligible == b.eligible && a.extra == b.extra && a.spec == b.spec;
}
bool same(const JobLive& a, const JobLive& b) {
    return a.tasks == b.tasks && a.progress == b.progress && a.best_step == b.best_step &&
           a.master_address == b.master_address && a.master_port == b.master_port;
}
bool same(const Blocked& a, const Blocked& b) {
    return a.reason == b.reason && a.nodes_wanted == b.nodes_wanted && a.behind == b.behind;
}
bool same(const Node& a, const Node& b) {
    return a.facts == b.facts && a.holds == b.holds && a.forgotten == b.forgotten;
}
bool same(const NodeLive& a, const NodeLive& b) {
    return a.health == b.health && a.session == b.session && a.since == b.since &&
           a.fenced == b.fenced;
}
bool same(const NodeUse& a, const NodeUse& b) {
    return a.jobs == b.jobs && a.cpus == b.cpus && a.memory == b.memory &&
           a.devices == b.devices && a.exclusive == b.exclusive;
}

template <class T>
void collect(const CowTree<T>& after, const CowTree<T>& before, std::vector<std::uint64_t>& out) {
    after.visit_changed(
        before, [](const T& a, const T& b) { return same(a, b); },
        [&](std::uint64_t key, const T*, const T*) { out.push_back(key); });
}

void sort_unique(std::vector<std::uint64_t>& ids) {
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

Round compare(std::shared_ptr<const core::View> before, std::shared_ptr<const core::View> after) {
    Round round{.before = std::move(before), .after = std::move(after), .jobs = {}, .nodes = {}};
    const core::View& old = *round.before;
    const core::View& now = *round.after;
    collect(now.jobs, old.jobs, round.jobs);
    collect(now.live, old.live, round.jobs);
    collect(now.waits, old.waits, round.jobs);
    std::vector<std::uint64_t> shapes;
    collect(now.shape_waits, old.shape_waits, shapes);
    if (!shapes.empty()) {
        now.jobs.for_each([&](std::uint64_t id, const Job& job) {
            if (job.state == model::JobState::Pending &&
                std::ranges::binary_search(shapes, job.shape.value)) {
                round.jobs.push_back(id);
            }
        });
    }
    collect(now.nodes, old.nodes, round.nodes);
    collect(now.node_live, old.node_live, round.nodes);
    collect(now.node_use, old.node_use, round.nodes);
    sort_unique(round.jobs);
    sort_unique(round.nodes);
    return round;
}

struct Hub::Shared : std::enable_shared_from_this<Hub::Shared> {
    Shared(Backend& the_backend, std::shared_ptr<Worker> the_worker)
        : backend(the_backend), worker(std::move(the_worker)) {}

    struct Remembered {
        std::uint64_t revision;  // Of the view after the round.
        std::vector<std::uint64_t> jobs, nodes;
    };
    Backend& backend;
    const std::shared_ptr<Worker> worker;
    std::atomic<bool> closed{false};
    bool armed = false;
    std::shared_ptr<const core::View> current;
    std::vector<std::weak_ptr<Listener>> listeners;
    std::deque<Remembered> past;
    std::uint64_t floor = 0;  // The revision that `past` begins after.
    std::size_t remembered_ids = 0;

    void arm() {
        if (armed || closed || !current) return;
        armed = true;
        backend.when_published(current->revision + 1, [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (self == nullptr) return;
            self->worker->post([weak] {
                if (const auto alive = weak.lock()) alive->turn();
            });
        });
    }
    void turn() {
        if (closed) return;
        const auto next = backend.view();
        if (next->revision > current->revision || next->meta.term != current->meta.term) {
            tell(compare(current, next));
            current = next;
        }
        std::erase_if(listeners, [](const auto& listener) { return listener.expired(); });
        if (listeners.empty()) {
            armed = false;
            current.reset();  // Do not keep old views alive for nobody.
            forget();
            return;
        }
        worker->after(kBetweenRounds, [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (self == nullptr) return;
            self->armed = false;
            self->arm();
        });
    }
    void tell(const Round& round) {
        if (!round.jobs.empty() || !round.nodes.empty()) {
            past.push_back({round.after->revision, round.jobs, round.nodes});
            remembered_ids += round.jobs.size() + round.nodes.size();
        }
        while (remembered_ids > kRememberedIds || past.size() > 4096) {
            floor = past.front().revision;
            remembered_ids -= past.front().jobs.size() + past.front().nodes.size();
            past.pop_front();
        }
        const auto present = listeners;  // A listener may add another.
        for (const auto& weak : present) {
            if (const auto listener = weak.lock()) (*listener)(round);
        }
    }
    void forget() {
        past.clear();
        remembered_ids = 0;
    }
};

Hub::Hub(Backend& backend, std::shared_ptr<Worker> worker)
    : shared_(std::make_shared<Shared>(backend, std::move(worker))) {}
Hub::~Hub() {
    shared_->closed = true;
}

Hub::Joined Hub::listen(Listener listener) {
    Shared& shared = *shared_;
    if (!shared.current) {
        shared.current = shared.backend.view();
        shared.floor = shared.current->revision;
        shared.forget();
    }
    auto handle = std::make_shared<Listener>(std::move(listener));
    shared.listeners.push_back(handle);
    shared.arm();
    return {.handle = handle, .view = shared.current};
}

std::optional<Hub::Missed> Hub::since(std::uint64_t term, std::uint64_t revision) const {
    const Shared& shared = *shared_;
    const auto current = shared.current ? shared.current : shared.backend.view();
    if (term != current->meta.term || revision > current->revision) return std::nullopt;
    if (revision < (shared.current ? shared.floor : current->revision)) return std::nullopt;
    Missed missed;
    for (const Shared::Remembered& round : shared.past) {
        if (round.revision <= revision) continue;
        missed.jobs.insert(missed.jobs.end(), round.jobs.begin(), round.jobs.end());
        missed.nodes.insert(missed.nodes.end(), round.nodes.begin(), round.nodes.end());
    }
    sort_unique(missed.jobs);
    sort_unique(missed.nodes);
    return missed;
}

}  // namespace muster::rest
