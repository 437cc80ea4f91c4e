#include "simulator/study/engine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace muster::simulator::study {
namespace {

/// Times in a study begin here, so that none is 0, which core takes for "never".
constexpr std::int64_t kBegin = 86'400'000;
/// Leases last ten years, and a year is left for what is under way at the end.
constexpr Duration kLongest{kDurationMax.ms / 10 * 9};
/// With nothing running and nothing to come, what waits so long waits for ever.
constexpr Duration kStuck{std::int64_t{400} * 24 * 3600 * 1000};
constexpr std::uint64_t kReportEvery = 4096;

core::Caller root() {
    return {"root", true, {}};
}
Error invalid(std::string message, std::string fix = {}) {
    return {.code = Code::Invalid, .message = std::move(message), .fix = std::move(fix)};
}
std::int64_t narrow(Ledger::Wide value) {
    constexpr Ledger::Wide kMax = std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(std::min(value, kMax));
}
std::int64_t largest_free(const std::vector<Host>& hosts) {
    std::int64_t most = 0;
    for (const Host& host : hosts)
        if (host.up)
            most = std::max(
                most, static_cast<std::int64_t>(host.facts.devices.size()) * 1000 - host.held);
    return most / 1000;
}

}  // namespace

model::NodeFacts make_node(const std::string& name, const std::string& kind, std::int64_t devices,
                           MilliCpu cpus, Bytes memory, const std::string& leaf,
                           Bytes device_memory) {
    model::NodeFacts facts;
    facts.name = name;
    facts.addresses = {name};
    facts.cpus = cpus;
    facts.memory = memory;
    facts.disk = {kDiskBytesMax / 1024};
    facts.limits_enforced = true;
    if (!leaf.empty()) facts.labels = {{"leaf", leaf}};
    for (std::int64_t i = 0; i < devices; ++i) {
        model::Device device;
        std::string number = std::to_string(i);
        number.insert(0, number.size() < 4 ? 4 - number.size() : 0, '0');
        device.id = name + "-" + number;
        device.kind = kind;
        device.memory = device_memory;
        device.numa = i * 2 < devices ? 0 : 1;
        device.share_enforced = true;
        facts.devices.push_back(std::move(device));
    }
    return facts;
}

Engine::Engine(const Cluster& cluster, JobSource& jobs, const Options& options, Sink& sink)
    : cluster_(cluster),
      source_(jobs),
      options_(options),
      sink_(sink),
      failures_(options.failures),
      rates_(options.rates != nullptr ? *options.rates : uniform_) {}

Result<Summary> run(const Cluster& cluster, JobSource& jobs, const Options& options, Sink& sink) {
    return Engine(cluster, jobs, options, sink).run();
}

Result<Summary> Engine::run() {
    MUSTER_TRY(check_inputs());
    MUSTER_TRY(pull());
    MUSTER_TRY(set_up());
    MUSTER_TRY(loop());
    sum_up();
    return summary_;
}

// ---- before the first job ---------------------------------------------------------------------

Status Engine::check_inputs() const {
    if (cluster_.nodes.empty())
        return invalid("cluster: it has no nodes", "name at least one node");
    std::set<std::string_view> names;
    for (const model::NodeFacts& node : cluster_.nodes)
        if (!names.insert(node.name).second)
            return invalid("node " + node.name + ": is named twice", "give each its own name");
    const models::FailureRules& rules = options_.failures;
    const auto within = [](std::int64_t value, std::int64_t low, std::int64_t high) {
        return value >= low && value <= high;
    };
    if (!within(rules.rate, 0, 1'000'000'000) || !within(rules.leaf_rate, 0, 1'000'000'000))
        return invalid("failures: a rate is from 0 to 1,000,000 in 1,000 node-days");
    if (!within(rules.shape, 100, 10'000))
        return invalid("failures: the shape of a Weibull law is from 0.1 to 10, not " +
                       std::to_string(rules.shape) + " thousandths");
    if (rules.law == models::FailureLaw::Replayed && rules.lifetimes.empty())
        return invalid("failures: there are no lifetimes to replay", "name a file that has some");
    if (!within(rules.lemons, 0, 1000) || !within(rules.lemon_factor, 1, 1'000'000))
        return invalid("failures: lemons are 0 to 1000 of 1,000 nodes, their factor is at least 1");
    for (const auto& [what, length] : {std::pair{"plan_latency", options_.plan_latency},
                                       {"plan_every", options_.plan_every},
                                       {"wake_every", options_.wake_every},
                                       {"launch", options_.launch},
                                       {"stop", options_.stop},
                                       {"sample_every", options_.sample_every},
                                       {"repair", rules.repair},
                                       {"detection", rules.detection}})
        if (length.ms < 0 || length > kDurationMax)
            return invalid(std::string(what) + ": " + std::to_string(length.ms) +
                           " ms is not between 0 and ten years");
    return Ok{};
}

Status Engine::must(core::Event event) {
    Result<core::Answer> answer = feed_core(std::move(event));
    if (!answer) return std::move(answer).error();
    drain();
    return Ok{};
}

Status Engine::set_up() {
    const Time first = next_job_ ? next_job_->submit : Time{};
    offset_ = std::max<std::int64_t>(0, kBegin - first.ms);
    now_ = first + Duration{offset_};
    horizon_ = now_ + kLongest;
    ledger_.since = active_at_ = now_;
    summary_.first_submit = summary_.last_end = first;
    state_.settings = options_.settings;
    state_.settings.lease = {kDurationMax, kDurationMax, kDurationMax, kDurationMax};
    for (const scheduler::Change& change : core::feed_all(state_)) index_.apply(change);
    MUSTER_TRY(must(core::BecomeLeader{1}));
    MUSTER_TRY(must(core::SetTopology{root(), cluster_.topology}));
    if (cluster_.rules) MUSTER_TRY(must(core::SetRules{root(), *cluster_.rules}));
    std::vector<core::QueueWish> wishes;
    for (const model::Queue& queue : cluster_.queues)
        wishes.push_back({.name = queue.name, .settings = queue.settings});
    if (!wishes.empty()) MUSTER_TRY(must(core::ApplyQueues{root(), std::move(wishes), false}));

    hosts_.resize(cluster_.nodes.size());
    host_of_session_.push_back(0);
    std::map<std::string, std::uint32_t> leaf_numbers;
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
        Host& host = hosts_[i];
        host.facts = cluster_.nodes[i];
        // Its failures follow from the seed and its number alone.
        host.random = Prng(options_.seed * 0x9e3779b97f4a7c15 + i);
        host.lemon = failures_.lemon(host.random);
        host.idle_mw = options_.power.node_mw;
        for (const model::Device& device : host.facts.devices)
            host.idle_mw += options_.power.of(device.kind).idle_mw;
        ledger_.total += static_cast<std::int64_t>(host.facts.devices.size()) * 1000;
        const auto [leaf, fresh] =
            leaf_numbers.emplace(model::label(host.facts, "leaf"), leaves_.size());
        if (fresh)
            leaves_.push_back({{}, Prng(~options_.seed * 0x9e3779b97f4a7c15 + leaf->second)});
        host.leaf = leaf->second;
        leaves_[host.leaf].hosts.push_back(i);
        power_on(i);
        const std::optional<NodeId> id = core::find_node(state_, host.facts.name);
        if (!id) return invalid("node " + host.facts.name + ": the controller refused its facts");
        host.id = *id;
        host_of_node_.resize(std::max<std::size_t>(host_of_node_.size(), id->value + 1));
        host_of_node_[id->value] = i;
    }
    for (std::uint32_t leaf = 0; leaf < leaves_.size(); ++leaf) expect_leaf_failure(leaf);
    if (next_job_) calendar_.put(now_, Happening::Arrival);
    if (options_.sample_every.ms > 0) calendar_.put(now_, Happening::Sample);
    return Ok{};
}

// ---- the loop ---------------------------------------------------------------------------------

Status Engine::loop() {
    const Time until = options_.until == kNever ? horizon_ : options_.until + Duration{offset_};
    while (!calendar_.empty()) {
        const bool over = !next_job_ && jobs_.empty();
        const Time at = calendar_.next().at;
        if (over || at > horizon_) break;
        if (at >= until) {
            now_ = std::max(now_, until);
            break;
        }
        if (!next_job_ && active_ == 0 && at > active_at_ + kStuck) break;
        const Entry entry = calendar_.take();
        now_ = entry.at;
        if (entry.what == Happening::Arrival) {
            arrive();
            MUSTER_TRY(pull());
            if (next_job_) calendar_.put(next_job_->submit + Duration{offset_}, Happening::Arrival);
        } else {
            handle(entry);
        }
        drain();
        // One plan answers all that happens at one time.
        if (calendar_.empty() || calendar_.next().at > now_) plan_if_due();
        if (!report_progress()) {
            summary_.complete = false;
            break;
        }
    }
    return Ok{};
}

void Engine::handle(const Entry& entry) {
    switch (entry.what) {
        case Happening::CoreTick:
            if (core_armed_ != entry.at) return;
            core_armed_ = kNever;
            if (core::next_wake(state_) <= now_)
                (void)feed_core(core::Tick{});
            else
                arm_core();
            return;
        case Happening::HostTick:
            if (hosts_[entry.a].armed != entry.at || !hosts_[entry.a].up) return;
            hosts_[entry.a].armed = kNever;
            feed_host(entry.a, node::Tick{});
            return;
        case Happening::TaskReady:
        case Happening::TaskStopped: {
            LiveJob* job = find({entry.b});
            if (job == nullptr || job->epoch != entry.serial || entry.a >= job->tasks.size())
                return;
            if (entry.what == Happening::TaskReady) return task_ready(*job, entry.a);
            return end_task(*job, entry.a, {.cause = job->tasks[entry.a].stop, .exit_code = 143});
        }
        case Happening::JobDue:
            if (LiveJob* job = find({entry.b}); job != nullptr && job->serial == entry.serial)
                job_due(*job);
            return;
        case Happening::Plan:
            if (plan_armed_ != entry.at) return;
            plan_armed_ = kNever;
            plan_wanted_ = true;
            return;
        case Happening::Proposal:
            planning_ = false;
            return propose(*std::exchange(proposal_, std::nullopt));
        case Happening::NodeFails:
            if (hosts_[entry.a].serial == entry.serial)
                node_fails(entry.a, failures_.repair(hosts_[entry.a].random));
            return;
        case Happening::LeafFails: return leaf_fails(entry.a);
        case Happening::NodeMissed:
            if (hosts_[entry.a].serial == entry.serial) node_missed(entry.a);
            return;
        case Happening::NodeBack:
            if (hosts_[entry.a].serial == entry.serial) power_on(entry.a);
            return;
        case Happening::Sample: return sample();
        case Happening::Arrival: return;
    }
}

Status Engine::pull() {
    const Time before = next_job_ ? next_job_->submit : Time{};
    next_job_ = source_.next();
    if (!next_job_) return Ok{};
    const std::string job = "job " + next_job_->name + ": ";
    if (next_job_->submit < before)
        return invalid(job + "is submitted before the one in front of it",
                       "sort the trace by its time of submission");
    if (horizon_.ms != 0 && next_job_->submit + Duration{offset_} >= horizon_)
        return invalid(job + "is submitted more than nine years after the first");
    if (next_job_->model.work_ms < 0 || next_job_->model.work_ms > kDurationMax.ms)
        return invalid(job + "its work of " + std::to_string(next_job_->model.work_ms) +
                       " ms is not between 0 and ten years");
    return Ok{};
}

void Engine::arrive() {
    TraceJob& job = *next_job_;
    auto live = std::make_unique<LiveJob>();
    live->name = job.name;
    live->user = job.user.empty() ? "user" : job.user;
    live->queue = job.spec.queue.empty() ? "default" : job.spec.queue;
    live->submit = now_;
    live->model = job.model;
    live->nodes_asked = job.spec.nodes();
    for (const model::Role& role : job.spec.roles)
        if (!role.devices.empty()) live->devices_asked += role.nodes * role.devices.front().count;
    if (job.spec.name.empty()) job.spec.name = "job";
    model::Checkpoint& checkpoint = job.spec.checkpoint;
    const bool saves =
        job.model.saves_on_notice || job.model.checkpoint_auto || job.model.checkpoint_every.ms > 0;
    if (saves && checkpoint.dir.empty()) checkpoint.dir = "/checkpoints";
    // Long enough for what it has to write.
    checkpoint.grace = std::max(
        checkpoint.grace, job.model.checkpoint_stall + job.model.checkpoint_stall + options_.stop);
    ++summary_.submitted;
    const auto refuse = [&](const std::string& reason) {
        ++summary_.refused;
        sink_.refused({live->name, live->user, live->queue, told(now_), reason});
    };
    if (job.spec.array.count > 0 || !job.spec.depends.empty())
        return refuse("arrays and dependencies are not studied: expand them");
    const Result<core::Answer> answer =
        feed_core(core::SubmitJob{{live->user, false, {}}, std::move(job.spec), "", 0, {}});
    if (!answer) return refuse(answer.error().message);
    live->id = answer->job;
    const std::uint64_t id = live->id.value;
    jobs_.emplace(id, std::move(live));
    summary_.live_max = std::max(summary_.live_max, static_cast<std::int64_t>(jobs_.size()));
}

bool Engine::report_progress() {
    if (!options_.progress || summary_.events < reported_ + kReportEvery) return true;
    reported_ = summary_.events;
    const std::int64_t ended = summary_.succeeded + summary_.failed + summary_.cancelled;
    return options_.progress({told(now_), summary_.events, summary_.submitted, ended,
                              static_cast<std::int64_t>(jobs_.size()) - active_, active_});
}

void Engine::sample() {
    ledger_.advance(now_);
    Sample sample;
    sample.at = told(now_);
    sample.devices_total = ledger_.total / 1000;
    sample.devices_up = ledger_.up / 1000;
    sample.devices_held = ledger_.held / 1000;
    sample.devices_useful = ledger_.useful / 1000;
    sample.running = active_;
    sample.pending = static_cast<std::int64_t>(jobs_.size()) - active_;
    sample.largest_free = largest_free(hosts_);
    sample.nodes_up = ledger_.nodes_up;
    for (const Host& host : hosts_) sample.nodes_empty += host.up && host.tasks.empty() ? 1 : 0;
    sample.draw_mw = narrow(Ledger::Wide{ledger_.draw_mw} * options_.power.pue_thousandths / 1000);
    std::vector<QueueSample> queues;
    state_.tables.queues.for_each([&](std::uint64_t id, const core::Queue& queue) {
        QueueSample& one = queues.emplace_back();
        one.name = queue.name;
        if (const core::QueueUse* use = state_.tables.queue_use.find(id)) {
            one.pending = use->pending;
            one.running = use->active;
            for (const model::Amount& amount : use->running)
                if (amount.resource == "gpus") one.devices = amount.value;
        }
    });
    std::ranges::sort(queues, {}, &QueueSample::name);
    sample.queues = queues;
    sink_.sample(sample);
    if (!calendar_.empty()) calendar_.put(now_ + options_.sample_every, Happening::Sample);
}

// ---- the end ----------------------------------------------------------------------------------

void Engine::sum_up() {
    ledger_.advance(now_);
    std::vector<JobId> left;
    state_.tables.jobs.for_each([&](std::uint64_t id, const core::Job&) { left.push_back({id}); });
    for (const JobId id : left) {
        LiveJob* job = find(id);
        if (job == nullptr) continue;
        const core::Job& record = state_.tables.jobs.at(id.value);
        advance(*job);
        count_useful(*job);  // What it has done and not lost yet.
        if (job->holds) let_go(id);
        ++summary_.unfinished;
        close_account(*job, record.state, record.cause, std::nullopt);
    }
    if (summary_.unfinished > 0 || next_job_) summary_.complete = false;
    summary_.ended = told(now_);
    summary_.devices_total = narrow(ledger_.total_sum / 1000);
    summary_.devices_up = narrow(ledger_.up_sum / 1000);
    summary_.node_days_up_milli = narrow(ledger_.nodes_up_sum / 86'400);
    summary_.energy_mj = narrow(ledger_.draw_sum / 1000 * options_.power.pue_thousandths / 1000);
    summary_.busy_energy_mj = narrow(busy_energy_ / 1000);
    digest_.add(core::digest(state_));
    summary_.digest = digest_.hash();
}

}  // namespace muster::simulator::study
