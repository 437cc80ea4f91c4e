// What jobs do with what they hold: work, save, restore, and lose what was not saved.
#include <algorithm>

#include "core/checkpoint_interval.h"
#include "simulator/study/engine.h"

namespace muster::simulator::study {
namespace {

using models::kMillion;
using Wide = Ledger::Wide;

constexpr std::int64_t kEndless = std::int64_t{1} << 60;

std::int64_t div_up(std::int64_t a, std::int64_t b) {
    return a / b + (a % b > 0 ? 1 : 0);
}
/// Milliseconds of `width` thousandths of devices, in device-milliseconds.
std::int64_t device_ms(std::int64_t ms, std::int64_t width) {
    return static_cast<std::int64_t>(Wide{ms} * width / 1000);
}
bool of_a_node(model::Cause cause) {
    return cause == model::Cause::NodeLost || cause == model::Cause::Vanished ||
           cause == model::Cause::DeviceFault || cause == model::Cause::Launch ||
           cause == model::Cause::Fenced;
}

}  // namespace

LiveJob* Engine::find(JobId id) {
    const auto at = jobs_.find(id.value);
    return at == jobs_.end() ? nullptr : at->second.get();
}

// ---- what it holds ----------------------------------------------------------------------------

void Engine::hold(JobId id) {
    LiveJob* job = find(id);
    if (job == nullptr || job->holds) return;
    ledger_.advance(now_);
    job->holds = true;
    job->held_since = now_;
    ++job->attempts;
    ++active_;
    active_at_ = now_;
    if (!job->first_start) job->first_start = now_;
    job->running = {.id = id, .profile = job->model.profile, .nodes = {}};
    job->running.nodes_asked = job->nodes_asked;
    job->parts.clear();
    job->width = job->devices = job->busy_mw = job->idle_mw = job->busy_ms = 0;
    job->limit_ppm = kMillion;
    const core::JobExtra& extra = core::extra_of(state_.tables.jobs.at(id.value));
    for (const core::Placed& placed : extra.allocation->slots) {
        Host& host = hosts_[host_of_node_[placed.node.value]];
        const auto whole = static_cast<std::int64_t>(placed.devices.size());
        const std::int64_t share = placed.share > 0 ? placed.share : 1000;
        const std::int64_t taken = placed.share > 0 ? placed.share : whole * 1000;
        job->devices += taken;
        job->parts.emplace_back(host_of_node_[placed.node.value], taken);
        host.held += taken;
        digest_.add(placed.node.value << 20 | static_cast<std::uint64_t>(taken));
        models::PlacedNode node;
        node.node = host_of_node_[placed.node.value];
        node.devices = whole;
        node.share = share;
        if (whole > 0) {
            const auto at = std::ranges::lower_bound(host.facts.devices, placed.devices.front(), {},
                                                     &model::Device::id);
            node.kind = at->kind;
            const models::KindPower power = options_.power.of(node.kind);
            job->busy_mw += power.busy_mw * taken / 1000;
            job->idle_mw += power.idle_mw * taken / 1000;
            if (!placed.spare) job->limit_ppm = std::min(job->limit_ppm, power.speed_ppm);
        }
        if (!placed.spare) job->running.nodes.push_back(node);
    }
    job->width = job->devices > 0
                     ? job->devices
                     : static_cast<std::int64_t>(extra.allocation->slots.size()) * 1000;
    ledger_.held += job->devices;
}

void Engine::let_go(JobId id) {
    LiveJob* job = find(id);
    if (job == nullptr || !job->holds) return;
    halt(*job);
    ledger_.advance(now_);
    const core::Job& record = state_.tables.jobs.at(id.value);
    const std::int64_t length = (now_ - job->held_since).ms;
    job->holds = false;
    job->held_ms += length;
    job->held += device_ms(length, job->width);
    job->lost += device_ms(job->unsaved_ms, job->width);
    const Wide energy =
        Wide{job->busy_ms} * job->busy_mw + Wide{length - job->busy_ms} * job->idle_mw;
    job->energy_mj += static_cast<std::int64_t>(energy / 1000);
    job->unsaved_ms = 0;
    ledger_.held -= job->devices;
    for (const auto& [host, taken] : job->parts) hosts_[host].held -= taken;
    --active_;
    active_at_ = now_;
    if (job->finished) return;
    if (record.cause == model::Cause::Preempted || record.cause == model::Cause::Resized) {
        ++job->preemptions;
        ++summary_.preemptions;
    } else if (of_a_node(record.cause)) {
        ++job->failures;
        ++summary_.interruptions;
    }
    sink_.interrupted(id, told(now_), record.cause);
}

// ---- work -------------------------------------------------------------------------------------

/// As a real controller would: the rate that is expected, and what was seen here so far.
Duration Engine::interval_of(const LiveJob& job) const {
    if (!job.model.checkpoint_auto) return job.model.checkpoint_every;
    const models::FailureRules& rules = failures_.rules();
    const bool fails =
        rules.law == models::FailureLaw::Exponential || rules.law == models::FailureLaw::Weibull;
    const core::FailureCount fleet{fails ? rules.rate / 100 : 0, 10'000};
    const core::FailureCount seen{
        summary_.node_failures,
        static_cast<std::int64_t>(ledger_.nodes_up_sum / std::int64_t{86'400'000})};
    const auto nodes = static_cast<std::int64_t>(job.running.nodes.size());
    return core::checkpoint_interval(core::mean_time_to_failure(nodes, fleet, seen),
                                     job.model.checkpoint_stall);
}

/// All its tasks run.
void Engine::begin(LiveJob& job) {
    job.interval = interval_of(job);
    if (job.attempts > 1 && job.model.restart_cost.ms > 0)
        return enter(job, Phase::Restoring, job.model.restart_cost);
    work(job);
}

void Engine::work(LiveJob& job) {
    enter(job, Phase::Working);
    if (!job.in_rates) {
        job.in_rates = true;
        rates_changed(rates_.began(job.running));
    }
    rerate(job);
}

void Engine::rates_changed(const std::vector<JobId>& jobs) {
    for (const JobId id : jobs) {
        LiveJob* job = find(id);
        if (job == nullptr || job->phase != Phase::Working) continue;
        advance(*job);
        rerate(*job);
    }
}

void Engine::rerate(LiveJob& job) {
    const models::Rate rate = rates_.rate(job.running, job.done / kUnits, job.model.work_ms);
    job.ppm = std::max<std::int64_t>(rate.ppm, 0);
    if (job.limit_ppm != kMillion)
        job.ppm = static_cast<std::int64_t>(Wide{job.ppm} * job.limit_ppm / kMillion);
    job.rate_until = rate.until >= kEndless / kUnits ? kEndless : rate.until * kUnits;
    arm_job(job);
}

/// Up to now, at the rate that it has.
void Engine::advance(LiveJob& job) {
    if (job.phase != Phase::Working) return;
    const std::int64_t ms = (now_ - job.since).ms;
    job.since = now_;
    job.done = std::min(job.done + ms * job.ppm, job.work_units());
    job.unsaved_ms += ms;
    job.busy_ms += ms;
}

void Engine::enter(LiveJob& job, Phase phase, Duration length) {
    ledger_.advance(now_);
    const std::int64_t extra_mw = job.busy_mw - job.idle_mw;
    if (job.phase == Phase::Working) ledger_.useful -= job.devices, ledger_.draw_mw -= extra_mw;
    if (phase == Phase::Working) ledger_.useful += job.devices, ledger_.draw_mw += extra_mw;
    job.phase = phase;
    job.since = now_;
    job.until = now_ + length;
    ++job.serial;
    if (phase != Phase::Idle && phase != Phase::Working)
        calendar_.put(job.until, Happening::JobDue, 0, job.id.value, job.serial);
}

/// When its work is done, its rate changes or a checkpoint is due, whatever is first.
void Engine::arm_job(LiveJob& job) {
    ++job.serial;
    std::int64_t wait = kEndless;
    if (job.done >= job.work_units()) wait = 0;
    if (job.ppm > 0) {
        wait = std::min(wait, div_up(job.work_units() - job.done, job.ppm));
        if (job.rate_until > job.done && job.rate_until < job.work_units())
            wait = std::min(wait, div_up(job.rate_until - job.done, job.ppm));
    }
    if (job.interval.ms > 0)
        wait = std::min(wait, std::max<std::int64_t>(0, job.interval.ms - job.unsaved_ms));
    if (now_.ms + wait < horizon_.ms)
        calendar_.put(now_ + Duration{wait}, Happening::JobDue, 0, job.id.value, job.serial);
}

void Engine::job_due(LiveJob& job) {
    switch (job.phase) {
        case Phase::Idle: return;
        case Phase::Restoring: return work(job);
        case Phase::Saving: saved(job); return work(job);
        case Phase::Leaving: saved(job); return leave(job);
        case Phase::Working: break;
    }
    advance(job);
    if (job.done >= job.work_units()) return finish(job);
    if (job.interval.ms > 0 && job.unsaved_ms >= job.interval.ms) {
        if (job.model.checkpoint_stall.ms > 0)
            return enter(job, Phase::Saving, job.model.checkpoint_stall);
        saved(job);
    }
    rerate(job);
}

/// What it has done since the newest checkpoint will not be lost any more.
void Engine::count_useful(LiveJob& job) {
    job.useful += device_ms(job.unsaved_ms, job.width);
    busy_energy_ += Wide{job.unsaved_ms} * job.busy_mw;
    job.unsaved_ms = 0;
}

void Engine::saved(LiveJob& job) {
    count_useful(job);
    if (job.tasks.empty() || !hosts_[job.tasks.front().host].up) return;
    const std::int64_t step = job.done / kUnits;
    tell(job.tasks.front().host,
         protocol::CheckpointDone{{job.id, job.epoch, 0}, step, "/checkpoints/newest"});
}

/// It is told to save and leave.
void Engine::notice(LiveJob& job, model::Cause cause) {
    if (job.notice != model::Cause::None || !job.model.saves_on_notice) return;
    job.notice = cause;
    advance(job);
    if (job.phase == Phase::Working || job.phase == Phase::Saving) {
        enter(job, Phase::Leaving, job.model.checkpoint_stall);
        out_of_rates(job);
        if (job.model.checkpoint_stall.ms > 0) return;
        saved(job);
    }
    leave(job);
}

void Engine::leave(LiveJob& job) {
    const model::Cause cause = job.notice;
    for (std::uint32_t rank = 0; rank < job.tasks.size(); ++rank) stop_task(job, rank, cause);
}

void Engine::finish(LiveJob& job) {
    job.finished = true;
    count_useful(job);
    halt(job);
    const model::Cause cause = job.model.end;
    const int code = cause == model::Cause::Success ? 0 : 1;
    for (std::uint32_t rank = 0; rank < job.tasks.size(); ++rank)
        end_task(job, rank, {.cause = cause, .exit_code = code});
}

/// No progress from now on in this attempt.
void Engine::halt(LiveJob& job) {
    if (job.phase == Phase::Idle) return;
    advance(job);
    enter(job, Phase::Idle);
    out_of_rates(job);
}

void Engine::out_of_rates(LiveJob& job) {
    if (!std::exchange(job.in_rates, false)) return;
    rates_changed(rates_.ended(job.running));
}

}  // namespace muster::simulator::study
