// Committing a plan: every item is checked against the state as it is now, devices are bound by
// id, and one record holds it all. What no longer holds is planned again (F2).
#include <algorithm>
#include <optional>

#include "core/bind.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

using model::JobState;

/// Ranks on a node: one a device; without devices mpirun starts one a whole CPU.
std::uint32_t slots_of(const Placed& placed, model::Launch launch) {
    const bool by_cpus = placed.devices.empty() && launch == model::Launch::Mpi;
    const std::int64_t slots =
        by_cpus ? placed.cpus.value / 1000 : static_cast<std::int64_t>(placed.devices.size());
    return static_cast<std::uint32_t>(std::max<std::int64_t>(1, slots));
}

/// Whether an element that starts on these slots uses what its array was promised.
bool uses_claim(const JobExtra& parent, const std::vector<scheduler::Slot>& slots) {
    return parent.claim && std::ranges::equal(parent.claim->slots, slots, {},
                                              &scheduler::Slot::node, &scheduler::Slot::node);
}

}  // namespace

Status Stepper::operator()(const PlanProposed& event) {
    for (const scheduler::Start& item : event.plan.starts) {
        if (start(item)) continue;
        // The planner thinks that it started: tell it again what waits.
        const Job* waiting = tables_.jobs.find(item.job.value);
        if (waiting != nullptr) feed_again(*waiting);
        step_.planning.push_back(scheduler::PlanRefused{item.job});
    }
    make_deals(event.plan);
    if (event.plan.bookings) put_bookings(*event.plan.bookings);
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
    auto placed = Binder(state_).bind(item.job, shape, item.slots);
    if (!placed || !near_enough(tables_, shape, *placed)) return false;
    Allocation allocation{found->epoch, at_, *std::move(placed), {}, 0, kNever};
    weigh(state_, allocation);
    if (!within_limits(*found, allocation, {})) return false;
    const scheduler::Prediction predicted = prediction_of(tables_, *found);
    allocation.expected_end = expected_end(state_, *found, allocation, before.deadline, predicted);
    if (!clear_of_windows(*found, allocation)) return false;

    Job job = *found;
    JobExtra extra = before;
    if (extra.array) {
        const Time deadline = extra.deadline;
        if (uses_claim(before, item.slots))
            edit_job(item.job, [](Job&, JobExtra& parent) { parent.claim.reset(); });
        job = element_of(*found);
        extra = {};
        extra.deadline = deadline;
    }
    allocation.epoch = job.epoch;
    extra.allocation = std::move(allocation);
    extra.claim.reset();  // Used.
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
    const std::size_t ranks = ranks_of(*extra.allocation);
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
        ArrayBook& book = extra.array.edit();
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
        if (placed.spare) continue;
        const model::NodeFacts& facts = *tables_.nodes.at(placed.node.value).facts;
        gang->push_back({facts.name, facts.addresses.empty() ? "" : facts.addresses.front(),
                         placed.group, slots_of(placed, spec.launch),
                         model::path_of(*tables_.topology, facts)});
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
    order.device_share = placed.share;
    order.device_memory = placed.share_memory;
    order.levels = tables_.topology->levels;
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
    return extra.allocation && ranks_of(*extra.allocation) > 1;
}

}  // namespace muster::core
