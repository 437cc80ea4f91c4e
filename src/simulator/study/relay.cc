// What goes between core, planner and agents, and when a plan is made.
#include <algorithm>

#include "simulator/study/engine.h"

namespace muster::simulator::study {
namespace {

/// A plan that wants to be called again so soon is not done yet.
constexpr Duration kBurst{50};

}  // namespace

void Engine::drain() {
    while (!under_way_.empty()) {
        Delivery delivery = std::move(under_way_.front());
        under_way_.pop_front();
        if (auto* up = std::get_if<ToCore>(&delivery)) {
            (void)feed_core(std::move(up->event));  // A refused word of an agent changes nothing.
            continue;
        }
        ToHost& down = std::get<ToHost>(delivery);
        const Host& host = hosts_[down.host];
        if (!host.up || (down.session != 0 && down.session != host.session)) continue;
        feed_host(down.host, std::move(down.event));
    }
}

Result<core::Answer> Engine::feed_core(core::Event event) {
    const core::Input input{now_, std::move(event)};
    ++summary_.events, ++summary_.core_inputs;
    digest_.add(static_cast<std::uint64_t>(now_.ms) << 5 | input.event.index());
    Result<core::Step> made = core::step(state_, input);
    if (!made) {
        arm_core();
        return std::move(made).error();
    }
    if (options_.check_books) core::check(state_);
    for (const scheduler::Change& change : made->planning) {
        follow(change);
        index_.apply(change);
    }
    plan_wanted_ = plan_wanted_ || !made->planning.empty();
    for (core::Command& command : made->commands) {
        if (auto* send = std::get_if<core::Send>(&command))
            under_way_.push_back(ToHost{host_of_session_[send->session], send->session,
                                        node::FromController{std::move(send->message)}});
        else if (const auto* over = std::get_if<core::Archive>(&command))
            archive(over->job);
        else
            close_session(std::get<core::CloseLink>(command).session);
    }
    arm_core();
    return std::move(made->answer);
}

/// Devices change hands when the planner is told so.
void Engine::follow(const scheduler::Change& change) {
    if (const auto* started = std::get_if<scheduler::JobStarted>(&change))
        hold(started->id);
    else if (const auto* released = std::get_if<scheduler::JobReleased>(&change))
        let_go(released->id);
    else if (std::holds_alternative<scheduler::PlanRefused>(change))
        refused_ = true;
}

void Engine::feed_host(std::uint32_t number, node::Event event) {
    ++summary_.events, ++summary_.node_inputs;
    node::Step made = node::step(hosts_[number].state, {now_, std::move(event)});
    for (node::Command& command : made.commands) carry_out(number, command);
    arm_host(number);
}

void Engine::carry_out(std::uint32_t number, node::Command& command) {
    const std::uint64_t session = hosts_[number].session;
    if (auto* up = std::get_if<node::SendUp>(&command)) {
        if (auto* hello = std::get_if<protocol::Hello>(&up->message))
            under_way_.push_back(ToCore{
                core::LinkOpened{session, hosts_[number].facts.name, "", std::move(*hello)}});
        else
            under_way_.push_back(ToCore{core::FromAgent{session, std::move(up->message)}});
    } else if (const auto* start = std::get_if<node::StartRun>(&command)) {
        start_task(number, start->order);
    } else if (const auto* release = std::get_if<node::ReleaseRun>(&command)) {
        release_task(release->go.key);
    } else if (const auto* noticed = std::get_if<node::NoticeRun>(&command)) {
        LiveJob* job = find(noticed->notice.key.job);
        if (job != nullptr && job->epoch == noticed->notice.key.epoch)
            notice(*job, noticed->notice.cause);
    } else if (const auto* stop = std::get_if<node::StopRun>(&command)) {
        if (find_task(stop->key) != nullptr)
            stop_task(*find(stop->key.job), stop->key.rank, stop->cause);
    } else if (const auto* clean = std::get_if<node::CleanRun>(&command)) {
        clean_task(number, clean->key);
    } else if (std::holds_alternative<node::DropLink>(command)) {
        close_session(session);
    }
    // Peers are never asked, and leases never kept: they last longer than any study.
}

/// One end hangs up: both learn of it, and the agent dials again.
void Engine::close_session(std::uint64_t session) {
    const std::uint32_t number = host_of_session_[session];
    Host& host = hosts_[number];
    if (!host.up || host.session != session) return;
    host.session = 0;
    under_way_.push_back(ToCore{core::LinkClosed{session}});
    under_way_.push_back(ToHost{number, 0, node::LinkClosed{}});
    if (host.id) open_link(number);  // Else it was refused, and would be again.
}

void Engine::open_link(std::uint32_t number) {
    hosts_[number].session = host_of_session_.size();
    host_of_session_.push_back(number);
    under_way_.push_back(ToHost{number, hosts_[number].session, node::LinkOpened{}});
}

void Engine::arm_core() {
    const Time wake = std::max(core::next_wake(state_), now_);
    if (wake >= core_armed_) return;
    core_armed_ = wake;
    calendar_.put(wake, Happening::CoreTick);
}

void Engine::arm_host(std::uint32_t number) {
    Host& host = hosts_[number];
    const Time wake = std::max(node::next_wake(host.state), now_);
    if (wake >= host.armed) return;
    host.armed = wake;
    if (wake < horizon_) calendar_.put(wake, Happening::HostTick, number);
}

// ---- the planner ------------------------------------------------------------------------------

void Engine::plan_if_due() {
    while (plan_wanted_ && !planning_) {
        const Time due = last_plan_ ? *last_plan_ + options_.plan_every : now_;
        if (now_ < due) {
            if (due >= plan_armed_) return;
            plan_armed_ = due;
            calendar_.put(due, Happening::Plan);
            return;
        }
        plan();
    }
}

void Engine::plan() {
    plan_wanted_ = false;
    last_plan_ = now_;
    scheduler::Plan made = index_.plan(now_);
    ++summary_.events, ++summary_.plans;
    // A search for victims that goes on in the next plan is not put off.
    const bool burst = made.wake <= now_ + kBurst;
    const Time wake = burst ? made.wake : std::max(made.wake, now_ + options_.wake_every);
    if (made.wake != kNever && wake < plan_armed_) {
        plan_armed_ = std::max(wake, now_);
        calendar_.put(plan_armed_, Happening::Plan);
    }
    if (options_.plan_latency.ms == 0) return propose(std::move(made));
    planning_ = true;
    proposal_ = std::move(made);
    calendar_.put(now_ + options_.plan_latency, Happening::Proposal);
}

void Engine::propose(scheduler::Plan plan) {
    const bool complete = plan.complete;
    const bool wanted = std::exchange(plan_wanted_, false);
    (void)feed_core(core::PlanProposed{std::move(plan)});
    // What core made of it the planner knows, unless core refused a part.
    plan_wanted_ = wanted || std::exchange(refused_, false);
    drain();
    if (!complete) plan_wanted_ = true;
}

// ---- the end of a job -------------------------------------------------------------------------

void Engine::archive(JobId id) {
    const core::Job& record = state_.tables.jobs.at(id.value);
    if (const LiveJob* job = find(id)) {
        close_account(*job, record.state, record.cause, record.since);
        jobs_.erase(id.value);
    }
    under_way_.push_back(ToCore{core::Archived{{id}}});
}

void Engine::close_account(const LiveJob& job, model::JobState state, model::Cause cause,
                           std::optional<Time> end) {
    const bool ran = job.first_start.has_value();
    JobOutcome out;
    out.id = job.id;
    out.name = job.name, out.user = job.user, out.queue = job.queue;
    out.submit = told(job.submit);
    if (ran) out.first_start = told(*job.first_start);
    if (end) out.end = told(*end);
    out.state = state;
    out.cause = cause;
    out.work_ms = job.model.work_ms;
    out.nodes = ran ? static_cast<std::int64_t>(job.running.nodes.size()) : job.nodes_asked;
    out.devices = ran ? job.running.devices() : job.devices_asked;
    out.held = job.held, out.useful = job.useful, out.lost = job.lost;
    out.running_ms = job.held_ms;
    out.preemptions = job.preemptions;
    out.failures = job.failures;
    out.attempts = job.attempts;
    out.energy_mj = job.energy_mj;
    digest_.add(job.id.value);
    digest_.add(static_cast<std::uint64_t>(state) << 8 | static_cast<std::uint64_t>(cause));
    digest_.add(static_cast<std::uint64_t>(ran ? job.first_start->ms : -1));
    digest_.add(static_cast<std::uint64_t>(job.held));
    digest_.add(static_cast<std::uint64_t>(job.useful));
    digest_.add(static_cast<std::uint64_t>(job.energy_mj));
    if (job.devices_asked > 0) {
        summary_.held += job.held;
        summary_.useful += job.useful;
        summary_.lost += job.lost;
    }
    if (end) {
        summary_.last_end = std::max(summary_.last_end, *out.end);
        summary_.succeeded += state == model::JobState::Succeeded ? 1 : 0;
        summary_.failed += state == model::JobState::Failed ? 1 : 0;
        summary_.cancelled += state == model::JobState::Cancelled ? 1 : 0;
    }
    sink_.ended(out);
}

}  // namespace muster::simulator::study
