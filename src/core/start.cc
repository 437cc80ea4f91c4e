// Committing a plan: every item is checked against the state as it is now, devices are bound by
// id, and one record holds it all. What no longer holds is planned again (F2).
#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "core/stepper.h"
#include "scheduler/place.h"

namespace muster::core {
namespace {

using model::JobState;

/// What this start has taken of a node already, beside the books.
struct Taken {
    MilliCpu cpus;
    Bytes memory, disk;
    std::vector<std::string> devices;
};

/// Devices of one kind that are healthy, free and acceptable.
std::vector<const model::Device*> free_devices(const model::NodeFacts& facts, const NodeUse& use,
                                               const Taken& taken, const model::DeviceAsk& ask,
                                               const std::string& kind) {
    std::vector<const model::Device*> out;
    for (const model::Device& device : facts.devices) {
        if (!device.healthy || device.kind != kind || !scheduler::matches(ask, device)) continue;
        if (use.device_owner.contains(device.id)) continue;
        if (std::ranges::find(taken.devices, device.id) != taken.devices.end()) continue;
        out.push_back(&device);
    }
    return out;
}

/// The smallest group of equal `key` that holds `count`; ties to the lowest id. Empty if none does.
template <class Key>
std::vector<const model::Device*> island(const std::vector<const model::Device*>& free,
                                         std::size_t count, Key key) {
    std::map<decltype(key(*free.front())), std::vector<const model::Device*>> groups;
    for (const model::Device* device : free) groups[key(*device)].push_back(device);
    const std::vector<const model::Device*>* best = nullptr;
    for (const auto& [name, group] : groups) {
        if (group.size() < count || name == decltype(key(*free.front())){}) continue;
        const auto rank = [](const auto& g) { return std::pair(g.size(), g.front()->id); };
        if (best == nullptr || rank(group) < rank(*best)) best = &group;
    }
    return best == nullptr ? std::vector<const model::Device*>{} : *best;
}

/// Whole devices of one link group if one holds them, else of one NUMA node, else the lowest ids.
std::vector<std::string> bind(const std::vector<const model::Device*>& free, std::size_t count) {
    std::vector<std::string> ids;
    if (count == 0 || free.size() < count) return ids;
    auto chosen = island(free, count, [](const model::Device& d) { return d.link_group; });
    if (chosen.empty())
        chosen = island(free, count, [](const model::Device& d) { return d.numa + 1; });
    if (chosen.empty()) chosen = free;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(chosen[i]->id);
    return ids;
}

class Binder {
public:
    Binder(const State& state, const scheduler::Shape& shape, bool exclusive)
        : state_(state), shape_(shape), exclusive_(exclusive) {}

    std::optional<std::vector<Placed>> bind_all(const std::vector<scheduler::Slot>& slots) {
        std::size_t at = 0;
        for (std::uint32_t group = 0; group < shape_.groups.size(); ++group) {
            const auto nodes = static_cast<std::size_t>(shape_.groups[group].nodes);
            if (slots.size() - at < nodes) return std::nullopt;
            if (!bind_group(std::span(slots).subspan(at, nodes), group)) return std::nullopt;
            at += nodes;
        }
        if (at != slots.size()) return std::nullopt;
        return std::move(placed_);
    }

private:
    bool bind_group(std::span<const scheduler::Slot> slots, std::uint32_t group) {
        const scheduler::GroupAsk& ask = shape_.groups[group];
        const std::uint32_t alternative = slots.front().alternative;
        if (alternative >= scheduler::alternatives_of(ask)) return false;
        std::vector<NodeId> nodes;
        for (const scheduler::Slot& slot : slots) {
            if (slot.group != group || slot.alternative != alternative) return false;
            if (!usable(state_, slot.node)) return false;
            nodes.push_back(slot.node);
        }
        std::ranges::sort(nodes);
        if (std::ranges::adjacent_find(nodes) != nodes.end()) return false;
        const model::DeviceAsk& devices = scheduler::ask_of(ask, alternative);
        std::vector<std::string> kinds = {""};
        if (devices.count > 0) kinds = scheduler::kinds_of(devices, facts(slots.front().node));
        for (const std::string& kind : kinds)
            if (bind_kind(slots, ask, devices, kind)) return true;
        return false;
    }
    bool bind_kind(std::span<const scheduler::Slot> slots, const scheduler::GroupAsk& ask,
                   const model::DeviceAsk& devices, const std::string& kind) {
        const std::size_t mark = placed_.size();
        const auto taken = taken_;
        for (const scheduler::Slot& slot : slots) {
            auto placed = bind_slot(slot, ask, devices, kind);
            if (!placed) {
                placed_.resize(mark);
                taken_ = taken;
                return false;
            }
            placed_.push_back(*std::move(placed));
        }
        return true;
    }
    std::optional<Placed> bind_slot(const scheduler::Slot& slot, const scheduler::GroupAsk& ask,
                                    const model::DeviceAsk& devices, const std::string& kind) {
        const model::NodeFacts& node = facts(slot.node);
        const NodeUse& use = state_.tables.node_use.at(slot.node.value);
        if (!scheduler::satisfies(shape_.constraint, node) || use.exclusive) return std::nullopt;
        const bool first = !taken_.contains(slot.node);
        if (exclusive_ && (!use.jobs.empty() || !first)) return std::nullopt;
        Taken& taken = taken_[slot.node];
        Placed placed;
        placed.node = slot.node;
        placed.group = slot.group;
        placed.alternative = slot.alternative;
        placed.cpus = scheduler::node_cpus(ask, slot.alternative, node, exclusive_);
        placed.memory = ask.memory;
        placed.disk = ask.disk;
        if (node.cpus < use.cpus + taken.cpus + placed.cpus ||
            node.memory < use.memory + taken.memory + placed.memory ||
            node.disk < use.disk + taken.disk + placed.disk)
            return std::nullopt;
        const auto count = static_cast<std::size_t>(devices.count);
        if (count > 0) {
            placed.devices = bind(free_devices(node, use, taken, devices, kind), count);
            if (placed.devices.size() != count) return std::nullopt;
        }
        taken.cpus += placed.cpus, taken.memory += placed.memory, taken.disk += placed.disk;
        taken.devices.insert(taken.devices.end(), placed.devices.begin(), placed.devices.end());
        return placed;
    }
    const model::NodeFacts& facts(NodeId node) const {
        return *state_.tables.nodes.at(node.value).facts;
    }

    const State& state_;
    const scheduler::Shape& shape_;
    bool exclusive_;
    std::map<NodeId, Taken> taken_;
    std::vector<Placed> placed_;
};

/// Ranks on a node: one a device; without devices mpirun starts one a whole CPU.
std::uint32_t slots_of(const Placed& placed, model::Launch launch) {
    const bool by_cpus = placed.devices.empty() && launch == model::Launch::Mpi;
    const std::int64_t slots =
        by_cpus ? placed.cpus.value / 1000 : static_cast<std::int64_t>(placed.devices.size());
    return static_cast<std::uint32_t>(std::max<std::int64_t>(1, slots));
}

}  // namespace

Status Stepper::operator()(const PlanProposed& event) {
    for (const scheduler::Start& item : event.plan.starts) {
        if (start(item)) continue;
        // The planner thinks that it started: tell it again what waits.
        const Job* waiting = tables_.jobs.find(item.job.value);
        if (waiting == nullptr) continue;
        feed_again(*waiting);
    }
    for (const scheduler::ShapeWait& wait : event.plan.shape_waits)
        if (tables_.shapes.contains(wait.shape.value)) record(ShapeWaitPut{wait.shape, wait.why});
    for (const scheduler::Wait& wait : event.plan.waits) {
        const Job* waiting = tables_.jobs.find(wait.job.value);
        if (waiting != nullptr && queued(*waiting)) record(WaitPut{wait.job, wait.why});
    }
    return Ok{};
}

bool Stepper::start(const scheduler::Start& item) {
    const Job* found = tables_.jobs.find(item.job.value);
    if (found == nullptr || !queued(*found) || at_ < found->eligible) return false;
    const JobExtra& before = extra_of(*found);
    if (before.deadline.ms != 0 && before.deadline <= at_) return false;
    const auto spec = cached_spec(state_, found->spec);
    if (before.array && startable(*found, spec->array) == 0) return false;
    if (before.array && tables_.meta.next_job > kJobIdMax) return false;
    const scheduler::Shape& shape = tables_.shapes.at(found->shape.value);
    auto placed = Binder(state_, shape, spec->exclusive).bind_all(item.slots);
    if (!placed) return false;

    Job job = *found;
    JobExtra extra = before;
    if (extra.array) {
        const Time deadline = extra.deadline;
        job = element_of(*found);
        extra = {};
        extra.deadline = deadline;
    }
    extra.allocation = Allocation{job.epoch, at_, *std::move(placed)};
    extra.queued_at = job.since;
    extra.running_at = extra.fault_at = {};
    extra.resumed_step = extra.checkpoint_step;
    extra.message.clear();
    extra.exit_code = -1;
    extra.decided_rank = 0;
    extra.decided_node.clear();
    if (extra.first_started.ms == 0) extra.first_started = at_;
    job.state = JobState::Starting;
    job.cause = model::Cause::None;
    job.since = at_;
    const JobId id = job.id;
    const std::size_t ranks = extra.allocation->slots.size();
    put_job(std::move(job), std::move(extra));
    JobLive live;
    live.tasks.resize(ranks);
    live.progress.resize(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        live.tasks[rank].key = live.progress[rank].key = {id, this->job(id).epoch, rank};
        live.progress[rank].step = -1;
    }
    live.best_step = extra_of(this->job(id)).checkpoint_step;
    record(JobLivePut{id, std::move(live)});
    const auto gang = gang_of(this->job(id), *spec);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) send_start(this->job(id), rank, gang);
    tell_job("job.started", this->job(id), {},
             node_name(state_, extra_of(this->job(id)).allocation->slots.front().node));
    return true;
}

/// The parent gives away its first waiting element, which becomes a job of its own.
Job Stepper::element_of(const Job& parent) {
    Job element = parent;
    const JobId parent_id = parent.id;
    element.array_job = static_cast<std::uint32_t>(parent_id.value);
    element.extra = nullptr;
    element.epoch = element.restarts = element.faults = 0;
    Meta meta = tables_.meta;
    element.id = {meta.next_job++};
    put_meta(meta);
    edit_job(parent_id, [&](Job&, JobExtra& extra) {
        ArrayBook& book = *extra.array;
        ElementRange& range = book.waiting.front();
        element.array_element = static_cast<std::uint32_t>(range.first++);
        if (range.first == range.last) book.waiting.erase(book.waiting.begin());
        ++book.live;
        if (extra.first_started.ms == 0) extra.first_started = at_;
    });
    return element;
}

std::shared_ptr<const protocol::Gang> Stepper::gang_of(const Job& job,
                                                       const model::JobSpec& spec) const {
    auto gang = std::make_shared<protocol::Gang>();
    for (const Placed& placed : extra_of(job).allocation->slots) {
        const model::NodeFacts& facts = *tables_.nodes.at(placed.node.value).facts;
        gang->push_back({facts.name, facts.addresses.empty() ? "" : facts.addresses.front(),
                         placed.group, slots_of(placed, spec.launch)});
    }
    return gang;
}

void Stepper::send_start(const Job& job, std::uint32_t rank,
                         std::shared_ptr<const protocol::Gang> gang) {
    const JobExtra& extra = extra_of(job);
    const Placed& placed = extra.allocation->slots[rank];
    const NodeLive* node = tables_.node_live.find(placed.node.value);
    if (node == nullptr || node->session == 0) return;
    const auto spec = cached_spec(state_, job.spec);
    protocol::StartTask order;
    order.term = term();
    order.key = {job.id, job.epoch, rank};
    order.user = tables_.users.at(job.user).name;
    order.job_name = *tables_.specs.at(job.spec.value).name;
    order.queue = tables_.queues.at(job.queue).name;
    order.spec = tables_.specs.at(job.spec.value).bytes;
    order.gang = gang ? std::move(gang) : gang_of(job, *spec);
    order.role = placed.group;
    for (std::uint32_t before = 0; before < rank; ++before)
        order.role_index += extra.allocation->slots[before].group == placed.group ? 1 : 0;
    order.array_job = job.array_job;
    order.array_element = job.array_element;
    order.devices = placed.devices;
    order.cpus = placed.cpus;
    order.memory = placed.memory;
    order.restart_count = job.restarts + job.faults;
    order.latest_checkpoint = extra.checkpoint;
    order.checkpoint_step = extra.checkpoint_step;
    order.deadline = extra.deadline;
    order.barrier = is_gang(job);
    send(placed.node, std::move(order));
}

void Stepper::send_go(const Job& job, std::uint32_t rank) {
    const JobLive& live = tables_.live.at(job.id.value);
    protocol::Go go{term(), {job.id, job.epoch, rank}, live.master_address, live.master_port};
    if (cached_spec(state_, job.spec)->launch == model::Launch::Mpi)
        for (const protocol::TaskStatus& task : live.tasks) go.launch.push_back(task.launch);
    send(extra_of(job).allocation->slots[rank].node, std::move(go));
}

bool is_gang(const Job& job) {
    const JobExtra& extra = extra_of(job);
    return extra.allocation && extra.allocation->slots.size() > 1;
}

}  // namespace muster::core
