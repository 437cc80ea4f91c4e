#include "workload.h"

#include <utility>

#include "base/hash.h"

namespace muster::swarm {
namespace {

using model::DeviceAsk;
using model::JobSpec;
using model::Role;
using simulator::TaskScript;

std::uint64_t mix(std::initializer_list<std::uint64_t> values, std::string_view text) {
    Fnv fnv;
    fnv.add(text);
    for (const std::uint64_t value : values) fnv.add(value);
    return fnv.hash();
}

/// The same task of the same seed behaves the same, whenever it runs.
TaskScript script_of(const Behaviour& job, std::uint64_t seed, const protocol::StartTask& order) {
    const auto element = static_cast<std::uint64_t>(order.array_element);
    const std::size_t size = order.gang ? order.gang->size() : 1;
    Prng of_attempt(mix({seed, element, order.key.epoch}, order.job_name));
    Prng of_task(mix({seed, element, order.key.epoch, order.key.rank, 7}, order.job_name));
    TaskScript script;
    script.work = {of_attempt.between(job.work_ms / 2, job.work_ms * 3 / 2)};
    const bool fails = of_attempt.chance(job.fail_per_mille);
    const bool oom = of_attempt.chance(job.oom_per_mille);
    const auto unlucky = static_cast<std::uint32_t>(of_attempt.below(size));
    if ((fails || oom) && order.key.rank == unlucky) {
        script.work = {of_attempt.between(1, script.work.ms)};
        script.end = oom ? model::Cause::Oom : model::Cause::UserError;
        script.exit_code = oom ? 137 : static_cast<int>(of_attempt.between(1, 4));
    } else if (fails || oom) {
        script.work = {3'600'000};  // A collective that waits for the rank that is no more.
    }
    if (job.pulls) script.pull = {of_task.between(20, 2'000)};
    script.image_fails = of_task.chance(job.image_per_mille);
    script.launch_fails = of_task.chance(job.launch_per_mille);
    script.prepare = {of_task.between(5, 300)};
    script.ignores_term = of_task.chance(job.deaf_per_mille);
    if (of_task.chance(job.sticky_per_mille)) script.dies_slowly = {of_task.between(1'001, 40'000)};
    if (job.checkpoints) script.checkpoint_every = {of_task.between(300, 2'000)};
    script.reports_progress = job.reports;
    return script;
}

model::NodeFacts facts_of(std::size_t index, std::int64_t leaves, Prng& random) {
    model::NodeFacts facts;
    const std::string number = std::to_string(index);
    facts.name = "n" + (number.size() < 2 ? "0" + number : number);
    facts.addresses = {"10.0.0." + number};
    facts.peer_port = 7072;
    facts.version = "swarm";
    facts.cpus = {32'000};
    facts.memory = {std::int64_t{256} << 30};
    facts.disk = {std::int64_t{1} << 40};
    facts.labels = {{"leaf", "leaf" + std::to_string(random.between(1, leaves))},
                    {"zone", random.chance(500) ? "east" : "west"}};
    facts.limits_enforced = true;
    struct Kind {
        const char* kind;
        const char* device_class;
        std::int64_t count;
    };
    static constexpr Kind kKinds[] = {{"h100", "gpu", 8},
                                      {"a100", "gpu", 4},
                                      {"ascend910b", "npu", 4},
                                      {"h100", "gpu", 4},
                                      {"", "", 0}};
    const Kind& kind = kKinds[index < 4 ? index % 2 : random.below(std::size(kKinds))];
    for (std::int64_t i = 0; i < kind.count; ++i) {
        model::Device device;
        device.id = facts.name + "-" + kind.kind + "-" + std::to_string(i);
        device.kind = kind.kind;
        device.device_class = kind.device_class;
        device.vendor = std::string(kind.device_class) == "npu" ? "huawei" : "nvidia";
        device.memory = {std::int64_t{80} << 30};
        facts.devices.push_back(std::move(device));
    }
    return facts;
}

Duration sometimes(Prng& random, unsigned per_mille, std::int64_t low_s, std::int64_t high_s) {
    const Duration mean = seconds(random.between(low_s, high_s));
    return random.chance(per_mille) ? mean : Duration{};
}

simulator::FaultRates make_faults(Prng& random, bool outage_only) {
    simulator::FaultRates rates;
    rates.controller_crash = sometimes(random, 600, 8, 60);
    rates.controller_outage = sometimes(random, outage_only ? 900 : 300, 40, 200);
    rates.controller_power = sometimes(random, 300, 40, 200);
    rates.sync_failure = sometimes(random, 300, 20, 90);
    rates.disk_full = sometimes(random, 300, 20, 90);
    rates.slow_disk = sometimes(random, 300, 20, 90);
    rates.clock_jump = sometimes(random, 400, 10, 60);
    rates.outage_max = seconds(random.between(25, outage_only ? 900 : 200));
    if (outage_only) return rates;
    rates.controller_stall = sometimes(random, 300, 20, 90);
    rates.agent_crash = sometimes(random, 500, 5, 100);
    rates.link_reset = sometimes(random, 500, 2, 40);
    rates.node_reboot = sometimes(random, 500, 10, 90);
    rates.node_death = sometimes(random, 300, 30, 120);
    rates.partition_node = sometimes(random, 400, 15, 90);
    rates.partition_leaf = sometimes(random, 300, 30, 120);
    rates.partition_controller = sometimes(random, 400, 15, 90);
    rates.partition_one_way = sometimes(random, 400, 15, 90);
    rates.partition_peers = sometimes(random, 300, 10, 60);
    return rates;
}

/// Where more fell silent, evictions would freeze; where controllers come and go, silence would be
/// counted anew: an island would be no danger.
simulator::FaultRates make_island_faults(Prng& random) {
    simulator::FaultRates rates;
    rates.partition_island = seconds(random.between(40, 80));
    rates.controller_crash = sometimes(random, 300, 60, 200);
    rates.agent_crash = sometimes(random, 300, 10, 100);
    rates.link_reset = sometimes(random, 300, 5, 40);
    rates.clock_jump = sometimes(random, 300, 10, 60);
    rates.partition_peers = sometimes(random, 300, 10, 60);
    return rates;
}

}  // namespace

Plan make_plan(std::uint64_t seed, const std::map<std::string, Behaviour>& behaviours) {
    Prng random(mix({seed}, "plan"));
    Plan plan;
    plan.outage_only = random.chance(200);
    Prng of_islands(mix({seed}, "islands"));  // Its own: the other plans stay as they were.
    plan.islands = !plan.outage_only && of_islands.chance(200);
    plan.faults = make_faults(random, plan.outage_only);
    if (plan.islands) plan.faults = make_island_faults(of_islands);
    Prng of_labels(mix({seed}, "labels"));
    plan.faults.relabel = sometimes(of_labels, 300, 10, 60);
    Prng of_agents(mix({seed}, "agents"));  // Some stay away for longer than their lease.
    if (of_agents.chance(200)) plan.faults.agent_down_max = seconds(60);
    plan.safety = seconds(random.between(60, 150));
    if (plan.islands) plan.safety = seconds(of_islands.between(150, 250));
    plan.jobs = static_cast<int>(random.between(100, 130));
    plan.client_loss_per_mille = random.chance(500) ? 100 : 0;
    simulator::WorldConfig& world = plan.world;
    world.seed = seed;
    const std::int64_t leaves = random.between(3, 6);
    std::int64_t nodes = random.between(10, 14);
    if (plan.islands) nodes = of_islands.between(17, 20);
    for (std::int64_t i = 1; i <= nodes; ++i) {
        world.hosts.push_back({facts_of(static_cast<std::size_t>(i), leaves, random),
                               random.chance(500) ? random.between(-500, 500) : 0});
    }
    world.controller_drift_ppm = random.chance(500) ? random.between(-500, 500) : 0;
    world.network.delay_max = {random.chance(300) ? 200 : 10};
    if (!plan.outage_only && random.chance(400)) world.network.slow_per_mille = 10;
    if (random.chance(500)) world.network.duplicate_per_mille = 20;
    simulator::ControllerRules& rules = world.controller;
    rules.group = {random.between(0, 5)};
    rules.plan_max = {random.chance(300) ? 1'000 : 30};
    rules.archive_max = {random.chance(300) ? 5'000 : 100};
    if (random.chance(200)) rules.slow_commit_per_mille = 20;
    rules.settings.lease.heartbeat = {random.chance(500) ? 1'000 : 2'000};
    if (random.chance(300)) {
        rules.settings.lease.lost = seconds(10);
        rules.settings.lease.fence = seconds(20);
    }
    rules.settings.stop_grace = {random.between(500, 8'000)};
    rules.settings.retry_backoff = {random.between(200, 1'000)};
    world.script_of = [seed, &behaviours](const protocol::StartTask& order) {
        const auto known = behaviours.find(order.job_name);
        return script_of(known == behaviours.end() ? Behaviour{} : known->second, seed, order);
    };
    return plan;
}

// ---- users ------------------------------------------------------------------------------------

void Users::begin(int jobs, Duration span, bool long_gangs) {
    long_gangs_ = long_gangs;
    for (int number = 1; number <= jobs; ++number) {
        world_.queue.after({random_.between(100, span.ms * 3 / 4)},
                           [this, number] { submit(number); });
    }
    for (int i = 0; i < jobs / 3; ++i) {
        world_.queue.after({random_.between(2'000, span.ms)}, [this] { act(); });
    }
}

void Users::add_devices(Role& role) {
    const std::uint64_t kind = random_.below(10);
    const std::int64_t count = random_.between(1, 4);
    if (kind < 3)
        role.devices = {DeviceAsk{.kind = "", .count = count, .vendor = ""}};
    else if (kind < 5)
        role.devices = {DeviceAsk{.kind = "h100", .count = random_.between(1, 8), .vendor = ""}};
    else if (kind < 6)
        role.devices = {DeviceAsk{.kind = "npu", .count = random_.between(1, 2), .vendor = ""}};
    else if (kind < 7) {
        role.devices = {DeviceAsk{.kind = "h100", .count = 4, .vendor = ""},
                        DeviceAsk{.kind = "a100", .count = 4, .vendor = ""}};
    }
    if (random_.chance(300)) role.cpus = {random_.between(1, 16) * 1'000};
    if (random_.chance(300)) role.memory = {random_.between(1, 64) << 30};
}

void Users::add_limits(JobSpec& spec) {
    const Time now = world_.controller.clock().read(world_.queue.now());
    if (random_.chance(120)) spec.time = {random_.between(500, 6'000)};
    if (random_.chance(300)) spec.expected_time = {random_.between(1'000, 6'000)};
    if (random_.chance(60)) spec.begin = now + Duration{random_.between(500, 20'000)};
    if (random_.chance(60)) spec.deadline = now + Duration{random_.between(2'000, 40'000)};
    if (random_.chance(60)) spec.hold = true;
    if (random_.chance(40)) spec.exclusive = true;
    if (random_.chance(60)) {
        spec.constraint.push_back({"zone", model::ConstraintTerm::Op::In, {"east"}});
    }
    if (random_.chance(300)) {
        spec.restart.max = random_.between(1, 3);
        spec.restart.backoff = {random_.between(100, 2'000)};
    }
    if (!known_.empty() && random_.chance(200)) {
        const auto when = static_cast<model::Dependency::When>(random_.below(3));
        spec.depends.push_back({when, known_[random_.below(known_.size())]});
    }
}

JobSpec Users::make_spec(int number) {
    JobSpec spec;
    spec.name = "j" + std::to_string(number);
    spec.priority = random_.between(0, 100);
    Role role;
    role.run = "model";
    add_devices(role);
    Behaviour behaviour;
    behaviour.work_ms =
        random_.chance(100) ? random_.between(20'000, 60'000) : random_.between(200, 6'000);
    const std::uint64_t kind = random_.below(100);
    if (kind < 35) {
        role.nodes = random_.between(2, 4);
        if (role.devices.empty() || random_.chance(500)) {
            role.devices = {DeviceAsk{.kind = "", .count = random_.between(1, 4), .vendor = ""}};
        }
        behaviour.checkpoints = random_.chance(500);
        behaviour.work_ms *= 2;
        if (long_gangs_ && random_.chance(300))
            behaviour.work_ms = random_.between(60'000, 200'000);
    } else if (kind < 43) {
        spec.array.count = random_.between(2, 6);
        spec.array.parallel = random_.chance(500) ? random_.between(1, 3) : 0;
    } else if (kind < 45) {
        role.nodes = 500;  // Never fits.
    }
    role.nodes_max = role.nodes;
    spec.roles.push_back(role);
    if (role.nodes > 1 && role.nodes < 4 && random_.chance(150)) {
        Role leader;
        leader.name = "leader";
        leader.run = "model";
        spec.roles.front().name = "worker";
        spec.roles.insert(spec.roles.begin(), leader);
    }
    add_limits(spec);
    if (random_.chance(150)) behaviour.fail_per_mille = 500;
    if (random_.chance(50)) behaviour.oom_per_mille = 500;
    if (random_.chance(300)) behaviour.pulls = true;
    if (random_.chance(50)) behaviour.image_per_mille = 300;
    if (random_.chance(50)) behaviour.launch_per_mille = 300;
    if (random_.chance(100)) behaviour.deaf_per_mille = 500;
    if (random_.chance(120)) behaviour.sticky_per_mille = 500;
    behaviour.reports = random_.chance(200);
    if (behaviour.checkpoints) spec.checkpoint.dir = "/ckpt";
    behaviours_[spec.name] = behaviour;
    return spec;
}

void Users::submit(int number) {
    if (finished_) return;
    JobSpec spec = make_spec(number);
    const std::string user = add_site_asks(site_, seed_, number, spec);
    const std::string key = "key-" + spec.name;
    const std::uint64_t hash = mix({}, model::encode(spec));
    core::SubmitJob event{.caller = {user, false},
                          .spec = std::move(spec),
                          .idempotency_key = key,
                          .request_hash = hash,
                          .ended = {}};
    world_.clients.ask(std::move(event), [this, key, user](const Result<core::Answer>& answer) {
        if (!answer) {
            world_.tally.hit("client.submit-refused");
            return;
        }
        world_.tally.hit("client.submit-acknowledged");
        referee_.acknowledged(key, answer->job);
        known_.push_back(answer->job);
        owners_[answer->job] = user;
        if (finished_) act_on(answer->job, core::JobAction::Release);
    });
}

void Users::act() {
    if (finished_ || known_.empty()) return;
    const JobId job = known_[random_.below(known_.size())];
    switch (random_.below(8)) {
        case 0:
        case 1: return act_on(job, core::JobAction::Cancel);
        case 2: return act_on(job, core::JobAction::Hold);
        case 3: return act_on(job, core::JobAction::Release);
        case 4:
        case 5: return act_on(job, core::JobAction::Requeue);
        case 6:
            return world_.clients.ask(core::UpdateJob{.caller = caller_of(job),
                                                      .job = job,
                                                      .priority = random_.between(0, 100),
                                                      .queue = ""},
                                      [](const auto&) {});
        default: {
            const auto host = static_cast<HostIndex>(1 + random_.below(world_.hosts()));
            act_on_node(host, core::NodeAction::Drain);
            world_.queue.after({random_.between(1'000, 30'000)},
                               [this, host] { act_on_node(host, core::NodeAction::Resume); });
        }
    }
}

/// Its owner; an administrator for elements of arrays, which no answer named.
core::Caller Users::caller_of(JobId job) const {
    const auto known = owners_.find(job);
    return known != owners_.end() ? core::Caller{known->second, false} : core::Caller{"root", true};
}

void Users::act_on(JobId job, core::JobAction action) {
    static constexpr const char* kNames[] = {"client.cancel", "client.hold", "client.release",
                                             "client.requeue"};
    core::ActOnJob event{
        .caller = caller_of(job), .job = job, .action = action, .reason = ""};
    world_.clients.ask(std::move(event), [this, job, action](const Result<core::Answer>& answer) {
        if (!answer) return;
        world_.tally.hit(kNames[static_cast<std::size_t>(action)]);
        if (action == core::JobAction::Cancel) referee_.cancel_acknowledged(job);
    });
}

void Users::act_on_node(HostIndex host, core::NodeAction action) {
    core::ActOnNode event{.caller = {"root", true},
                          .node = world_.host(host).name(),
                          .action = action,
                          .reason = "swarm"};
    world_.clients.ask(std::move(event), [this, action](const Result<core::Answer>& answer) {
        if (answer && action == core::NodeAction::Drain) world_.tally.hit("client.drain");
    });
}

void Users::finish() {
    finished_ = true;
    for (const JobId job : known_) act_on(job, core::JobAction::Release);
    for (HostIndex host = 1; host <= world_.hosts(); ++host) {
        act_on_node(host, core::NodeAction::Resume);
    }
}

void Users::give_up() {
    if (!world_.controller.settled()) return;
    const core::View& tables = world_.controller.state().tables;
    std::vector<JobId> hopeless;
    std::vector<JobId> held;
    tables.jobs.for_each([&](std::uint64_t, const core::Job& job) {
        if (job.held) held.push_back(job.id);
        if (job.state != model::JobState::Pending || given_up_.contains(job.id)) return;
        const scheduler::Blocked why =
            world_.controller.feasible(tables.shapes.at(job.shape.value));
        if (why.reason == scheduler::Blocked::Reason::NeverFits) hopeless.push_back(job.id);
    });
    for (const JobId job : held) act_on(job, core::JobAction::Release);
    tables.nodes.for_each([&](std::uint64_t, const core::Node& node) {
        if (node.holds.empty()) return;  // Of launch failures: a person looks at the node.
        act_on_node(world_.find(node.facts->name), core::NodeAction::Resume);
    });
    for (const JobId job : hopeless) {
        given_up_.insert(job);
        act_on(job, core::JobAction::Cancel);
    }
}

}  // namespace muster::swarm
