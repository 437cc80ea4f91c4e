#include "site.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace muster::swarm {
namespace {

using model::Amounts;
using model::QueueSettings;

constexpr const char* kUsers[] = {"alice", "bob", "carol"};

Prng random_of(std::uint64_t seed, std::string_view what, std::uint64_t number = 0) {
    Fnv fnv;
    fnv.add(what);
    fnv.add(seed);
    fnv.add(number);
    return Prng(fnv.hash());
}

core::Caller root() {
    return {"root", true};
}

Amounts devices(Prng& random, std::int64_t low, std::int64_t high) {
    return {{"gpus", random.between(low, high) * 1'000}};
}

}  // namespace

Site make_site(std::uint64_t seed) {
    Prng random = random_of(seed, "site");
    Site site;
    if (!random.chance(500)) return site;
    site.levels = random.chance(500) ? std::vector<std::string>{"leaf"}
                                     : std::vector<std::string>{"zone", "leaf"};
    site.leaves = {"vision", "speech"};
    if (random.chance(600)) {
        site.parents = {"research"};
        site.leaves.insert(site.leaves.end(), {"research/nlp", "research/rl"});
    }
    return site;
}

std::string add_site_asks(const Site& site, std::uint64_t seed, int number, model::JobSpec& spec) {
    if (site.empty()) return kUsers[0];
    Prng random = random_of(seed, "asks", static_cast<std::uint64_t>(number));
    if (random.chance(900)) spec.queue = site.leaves[random.below(site.leaves.size())];
    model::Role& first = spec.roles.front();
    const bool gang = spec.roles.size() == 1 && first.nodes > 1 && first.nodes <= 4;
    if (gang && random.chance(250)) {
        spec.topology.required = site.levels[random.below(site.levels.size())];
    } else if (gang && first.nodes % 2 == 0 && random.chance(200)) {
        spec.topology.slice = 2;
        spec.topology.slice_required = "leaf";
    } else if (gang && random.chance(200)) {
        spec.topology.spares = 1;
    } else if (gang && random.chance(400)) {
        first.nodes_max = first.nodes + random.between(1, 3);
    }
    if (!gang && spec.roles.size() == 1 && random.chance(250)) {
        first.devices = {{.kind = "", .count = 1, .vendor = ""}};
        first.devices.front().fraction = random.between(1, 9) * 100;
        spec.share_unenforced = true;
    }
    return kUsers[random.below(std::size(kUsers))];
}

void Operators::begin(Duration span) {
    if (site_.empty()) return;
    world_.tally.hit("config.site");
    model::Topology topology;
    topology.levels = site_.levels;
    ask(core::SetTopology{root(), std::move(topology)}, "site.topology");
    apply_queues(true);
    put_rules();
    for (std::int64_t at = random_.between(3'000, 15'000); at < span.ms;
         at += random_.between(3'000, 20'000))
        world_.queue.after({at}, [this] { change(); });
}

void Operators::change() {
    if (finished_) return;
    switch (random_.below(6)) {
        case 0: return apply_queues(true);
        case 1: return put_rules();
        case 2:
            if (reservations_ == 0) return;
            return ask(core::DropReservation{root(), "r" + std::to_string(
                                                               random_.between(1, reservations_))},
                       "site.reservation-dropped");
        case 3:
        case 4: return reserve();
        default: {
            const std::string& name = site_.leaves[random_.below(site_.leaves.size())];
            ask(core::ApplyQueues{root(), {wish(name, true)}, false}, "site.queue-set");
        }
    }
}

core::QueueWish Operators::wish(const std::string& name, bool bounded) {
    QueueSettings settings;
    const bool parent = std::ranges::find(site_.parents, name) != site_.parents.end();
    settings.guarantee = parent ? devices(random_, 16, 20) : devices(random_, 2, 8);
    settings.weight = random_.between(1, 300);
    settings.policy = static_cast<model::QueuePolicy>(random_.below(5));
    settings.min_runtime = {random_.chance(500) ? 0 : random_.between(0, 5'000)};
    if (random_.chance(200)) settings.aging = {random_.between(500, 5'000)};
    if (!bounded) return {name, std::move(settings), false};
    // Preemptible no more: its jobs start within the guarantee alone.
    settings.preemptible = random_.chance(850);
    if (random_.chance(250)) settings.limit = devices(random_, parent ? 20 : 8, 30);
    if (random_.chance(250)) settings.borrow_limit = devices(random_, 0, 16);
    if (random_.chance(200)) settings.lend_limit = devices(random_, 0, 6);
    if (random_.chance(150)) settings.user_limit = devices(random_, 4, 16);
    if (random_.chance(150)) settings.max_jobs = random_.between(2, 8);
    if (random_.chance(150)) settings.user_max_jobs = random_.between(1, 4);
    if (random_.chance(100)) settings.max_pending = random_.between(5, 30);
    return {name, std::move(settings), false};
}

void Operators::apply_queues(bool bounded) {
    core::ApplyQueues event{root(), {}, true};
    for (const std::string& name : site_.parents) event.queues.push_back(wish(name, bounded));
    for (const std::string& name : site_.leaves) event.queues.push_back(wish(name, bounded));
    ask(std::move(event), "site.queues-applied");
}

void Operators::put_rules() {
    model::SchedulingRules rules;
    rules.half_life = {random_.between(60, 600) * 1'000};
    rules.bookings_max = random_.between(0, 8);
    rules.conservative = random_.chance(200);
    rules.reclaim_per_minute = random_.chance(300) ? random_.between(4, 32) : 512;
    rules.preemptions_max = random_.between(1, 5);
    rules.resize_min_interval = {random_.between(500, 20'000)};
    rules.defragment = random_.chance(700);
    rules.kind_weights = {{"a100", 600}, {"h100", 1'000}};
    if (random_.chance(500)) rules.kind_speeds = {{"a100", 500}, {"h100", 1'000}};
    ask(core::SetRules{root(), std::move(rules)}, "site.rules-set");
}

void Operators::reserve() {
    const Time now = world_.controller.clock().read(world_.queue.now());
    core::PutReservation event{.caller = root(), .reservation = {}, .nodes = {}, .kind = ""};
    model::Reservation& reservation = event.reservation;
    // An earlier one of the name is changed.
    reservations_ = std::min(reservations_ + 1, 4);
    reservation.name = "r" + std::to_string(random_.between(1, reservations_));
    reservation.maintenance = random_.chance(300);
    if (!reservation.maintenance && random_.chance(700))
        reservation.users = {kUsers[random_.below(std::size(kUsers))]};
    if (!reservation.maintenance && reservation.users.empty() && random_.chance(500))
        reservation.queues = {site_.leaves.front()};
    reservation.first.start = now + Duration{random_.between(0, 15'000)};
    reservation.first.end = reservation.first.start + Duration{random_.between(2'000, 20'000)};
    if (random_.chance(500)) {
        event.count = random_.between(1, 4);
    } else {
        for (int i = 0; i < 2; ++i) {
            const auto host = static_cast<simulator::HostIndex>(1 + random_.below(world_.hosts()));
            event.nodes.push_back(world_.host(host).name());
        }
    }
    ask(std::move(event), "site.reserved");
}

void Operators::ask(core::Event event, const char* what) {
    world_.clients.ask(std::move(event), [this, what](const Result<core::Answer>& answer) {
        world_.tally.hit(answer ? what : "site.refused");
    });
}

void Operators::finish() {
    finished_ = true;
    if (site_.empty()) return;
    apply_queues(false);
    for (int i = 1; i <= reservations_; ++i)
        ask(core::DropReservation{root(), "r" + std::to_string(i)}, "site.reservation-dropped");
}

void Operators::look_again() {
    if (site_.empty() || !world_.controller.alive()) return;
    bool bounded = false;
    world_.controller.state().tables.queues.for_each([&](std::uint64_t, const core::Queue& queue) {
        const QueueSettings& of = queue.settings;
        bounded = bounded || !of.limit.empty() || !of.borrow_limit.empty() ||
                  !of.lend_limit.empty() || !of.user_limit.empty() || of.max_jobs >= 0 ||
                  of.user_max_jobs >= 0 || !of.preemptible;
    });
    if (bounded) apply_queues(false);
}

}  // namespace muster::swarm
