// The planner alone: fills, next plans, gangs, reclaim, what nothing fits, answers; swept in nodes
// and queue.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "bench/measure.h"
#include "scheduler/plan.h"

namespace muster::bench {
namespace {

using namespace scheduler;
/// Of this thread: what it computes, whoever else uses the machine.
struct Clock {
    using time_point = double;
    static time_point now() {
        timespec at{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
        return static_cast<double>(at.tv_sec) * 1e3 + static_cast<double>(at.tv_nsec) / 1e6;
    }
};

/// For people who want to know more.
template <class... Values>
void note(const Hooks& hooks, const char* format, Values... values) {
    char line[256];
    std::snprintf(line, sizeof line, format, values...);
    hooks.log(line);
}

double ms_since(Clock::time_point start) {
    return Clock::now() - start;
}

constexpr int kDevices = 8, kLeaf = 32, kQueues = 20, kUsers = 50;

/// A cluster of leaves in spines, with a tree of queues that have guarantees and limits, carried
/// on by the planner's own starts.
struct World {
    PlanIndex index;
    int nodes;
    Time now{1'000'000'000};
    std::map<NodeId, std::shared_ptr<const model::NodeFacts>> facts;
    std::map<NodeId, std::vector<std::uint8_t>> owned;  // By device.
    std::vector<std::pair<Shape, std::string>> shapes;
    std::map<std::string, ShapeId> by_bytes;
    struct Job {
        ShapeId shape;
        UserId user;
        std::int64_t priority = 50;
        std::vector<Slot> slots;
        std::vector<std::pair<NodeId, int>> devices;
    };
    std::map<JobId, Job> jobs;
    std::uint64_t next = 1;

    explicit World(int count) : nodes(count) {
        index.apply(LevelsChanged{{"spine", "leaf"}});
        for (std::uint64_t q = 1; q <= kQueues; ++q) {
            model::Queue queue;
            queue.id = {q};
            queue.name = "team" + std::to_string(q);
            const std::int64_t share = static_cast<std::int64_t>(count) * kDevices * 1000 / kQueues;
            queue.settings.guarantee = {{"gpus", share * 8 / 10}};
            queue.settings.limit = {{"gpus", share * kQueues}};
            queue.settings.min_runtime = {0};
            if (q % 3 == 0) queue.settings.policy = model::QueuePolicy::Fair;
            index.apply(QueueChanged{queue});
        }
        for (int i = 1; i <= count; ++i) {
            auto node = std::make_shared<model::NodeFacts>();
            node->name = "n" + std::to_string(i);
            node->cpus = {128'000};
            node->memory = {std::int64_t{1} << 40};
            node->disk = {std::int64_t{1} << 42};
            for (int d = 0; d < kDevices; ++d) {
                model::Device device;
                device.id = node->name + "-" + std::to_string(d);
                device.kind = i % 4 == 0 ? "a100" : "h100";
                device.numa = d / 4;
                device.memory = {std::int64_t{80} << 30};
                node->devices.push_back(device);
            }
            const NodeId id{static_cast<std::uint64_t>(i)};
            facts[id] = node;
            owned[id].resize(kDevices);
            const int leaf = (i - 1) / kLeaf;
            index.apply(NodeChanged{
                id, node, true, {"s" + std::to_string(leaf / 16), "l" + std::to_string(leaf)}, 0});
        }
    }
    ShapeId shape(Shape shape) {
        const auto bytes = encode(shape);
        const auto known = by_bytes.find(bytes);
        if (known != by_bytes.end()) return known->second;
        shape.id = {by_bytes.size() + 1};
        by_bytes[bytes] = shape.id;
        shapes.emplace_back(shape, bytes);
        index.apply(ShapeAdded{shape});
        return shape.id;
    }
    static Shape ask(std::uint64_t queue, std::int64_t count, std::int64_t gpus,
                     const std::string& kind, Duration time) {
        Shape shape;
        shape.queue = {queue};
        GroupAsk group;
        group.nodes = count;
        if (gpus > 0)
            group.devices.push_back({kind, gpus, {}, ""});
        else
            group.cpus = {4000};
        shape.groups.push_back(group);
        shape.time = time;
        return shape;
    }
    JobId queue(ShapeId shape, std::uint64_t user, std::int64_t priority = 50) {
        const JobId id{next++};
        jobs[id] = {shape, {user}, priority, {}, {}};
        JobQueued ask;
        ask.id = id, ask.shape = shape, ask.user = {user}, ask.priority = priority;
        ask.submitted = now;
        index.apply(ask);
        return id;
    }
    /// As core does: devices by id.
    void start(const Start& start) {
        Job& job = jobs.at(start.job);
        const Shape& shape = shapes[job.shape.value - 1].first;
        JobStarted started;
        started.id = start.job, started.shape = job.shape, started.user = job.user;
        started.priority = job.priority, started.started = now;
        started.expected_end = shape.time.ms > 0 ? now + shape.time : kNever;
        started.slots = start.slots;
        for (Slot& slot : started.slots) {
            const GroupAsk& group = shape.groups[slot.group];
            const model::NodeFacts& node = *facts.at(slot.node);
            std::int64_t wanted = group.devices.empty() ? 0 : group.devices[slot.alternative].count;
            slot.cpus = group.cpus.value > 0 ? group.cpus : MilliCpu{16'000 * wanted};
            auto& taken = owned.at(slot.node);
            for (std::size_t d = 0; d < kDevices && wanted > 0; ++d) {
                if (taken[d] != 0) continue;
                taken[d] = 1;
                --wanted;
                slot.devices.push_back(node.devices[d].id);
                job.devices.emplace_back(slot.node, static_cast<int>(d));
            }
        }
        index.apply(JobUnqueued{start.job});
        index.apply(started);
    }
    void end(JobId id) {
        for (const auto& [node, device] : jobs.at(id).devices)
            owned.at(node)[static_cast<std::size_t>(device)] = 0;
        jobs.erase(id);
        index.apply(JobReleased{id});
    }
    void accept(const Plan& plan) {
        for (const Start& item : plan.starts) start(item);
        if (plan.bookings) index.apply(BookingsChanged{*plan.bookings});
    }
    struct Filled {
        double plan_ms = 0, apply_ms = 0;
        std::size_t jobs = 0, slots = 0, plans = 0;
    };
    Filled fill() {
        Filled out;
        while (true) {
            auto begin = Clock::now();
            const Plan plan = index.plan(now, {.starts_max = 5000, .tries_max = 1'000'000});
            out.plan_ms += ms_since(begin);
            ++out.plans;
            out.jobs += plan.starts.size();
            for (const Start& item : plan.starts) out.slots += item.slots.size();
            begin = Clock::now();
            accept(plan);
            out.apply_ms += ms_since(begin);
            if (plan.complete) return out;
        }
    }
    void mixed(int count, Prng& random, std::int64_t most_nodes = 32) {
        static constexpr std::int64_t kGpus[] = {1, 1, 1, 1, 2, 2, 4, 8};
        for (int i = 0; i < count; ++i) {
            const auto queue_id = 1 + random.below(kQueues);
            Shape shape;
            if (random.chance(100)) {
                const std::int64_t size = std::int64_t{1} << random.between(1, 5);
                shape = ask(queue_id, std::min(size, most_nodes), 8, "gpu",
                            {3600'000 * random.between(1, 4)});
                if (random.chance(500)) shape.topology.preferred = "leaf";
                if (shape.groups[0].nodes <= 16 && random.chance(300))
                    shape.topology.required = "leaf";
            } else {
                shape = ask(queue_id, 1, kGpus[random.below(8)],
                            random.chance(700) ? "gpu" : "h100", {1800'000 * random.between(1, 8)});
            }
            queue(this->shape(shape), 1 + random.below(kUsers));
        }
    }
};

void fill(const Hooks& hooks, int nodes, int jobs, double* per_s) {
    Prng random(1);
    World world(nodes);
    world.mixed(jobs, random);
    const double before = rss_mb();
    const World::Filled filled = world.fill();
    *per_s = static_cast<double>(filled.slots) / filled.plan_ms * 1000;
    note(hooks,
         "fill: %zu jobs, %zu slots in %.1f ms of plan, %.1f ms of apply, %zu plans, rss %.0f MB",
         filled.jobs, filled.slots, filled.plan_ms, filled.apply_ms, filled.plans, before);
    std::map<int, int> reasons;
    int k = 0;
    for (const auto& [id, job] : world.jobs)
        if (job.devices.empty() && ++k % 997 == 0)
            ++reasons[static_cast<int>(world.index.why(id, world.now).reason)];
    for (const auto& [reason, count] : reasons) note(hooks, "reason %d: %d", reason, count);
    note(hooks, "      %.0f jobs/s", static_cast<double>(filled.jobs) / filled.plan_ms * 1000);
}

/// A full cluster and a long queue: one job ends, how long until the next plan. Below 0: the
/// planner does not come to an end.
double next_plan_p99(const Hooks& hooks, int nodes, int jobs, double* median, double* why_p99) {
    Prng random(2);
    World world(nodes);
    world.mixed(nodes * 4, random);
    world.fill();
    world.mixed(jobs, random);
    world.fill();
    std::vector<JobId> running;
    for (const auto& [id, job] : world.jobs)
        if (!job.devices.empty()) running.push_back(id);
    std::vector<double> times;
    for (int i = 0; i < 1000 && !running.empty(); ++i) {
        const std::size_t at = random.below(running.size());
        const JobId ended = running[at];
        running[at] = running.back(), running.pop_back();
        world.now = world.now + Duration{50};
        const auto begin = Clock::now();
        world.end(ended);
        Plan plan = world.index.plan(world.now);
        times.push_back(ms_since(begin));
        world.accept(plan);
        for (int more = 0; !plan.complete; ++more) {
            world.accept(plan = world.index.plan(world.now));
            if (more < 1000) continue;
            note(hooks,
                 "next: a thousand plans after end %d, and none is complete; the last has %zu "
                 "starts, %zu stops, %zu promises, %zu bookings, %zu reasons",
                 i, plan.starts.size(), plan.stops.size(), plan.promises.size(),
                 plan.bookings ? plan.bookings->size() : 0,
                 plan.waits.size() + plan.shape_waits.size());
            return -1;
        }
    }
    *median = percentile(times, 0.5);
    std::vector<double> whys;
    std::vector<JobId> waiting;
    for (const auto& [id, job] : world.jobs)
        if (job.slots.empty() && job.devices.empty()) waiting.push_back(id);
    for (int i = 0; i < 200 && !waiting.empty(); ++i) {
        const JobId id = waiting[random.below(waiting.size())];
        const auto begin = Clock::now();
        world.index.explanation(id, world.now);
        whys.push_back(ms_since(begin));
    }
    *why_p99 = percentile(whys, 0.99);
    note(hooks,
         "next: p50 %.3f p99 %.3f max %.3f ms; why p50 %.3f p99 %.3f ms; %zu waiting; rss %.0f MB",
         *median, percentile(times, 0.99), percentile(times, 1), percentile(whys, 0.5), *why_p99,
         waiting.size(), rss_mb());
    return percentile(times, 0.99);
}

double gang1024(const Hooks& hooks, int nodes) {
    Prng random(3);
    World world(nodes);
    for (int i = 0; i < nodes / 2; ++i)
        world.queue(world.shape(World::ask(1 + random.below(kQueues), 1, 8, "gpu", {3600'000})), 1);
    world.fill();
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
        Shape shape = World::ask(1, 1024, 8, "gpu", {3600'000 + i * 60'000});
        shape.topology.slice = 8;
        shape.topology.slice_required = "leaf";
        const ShapeId id = world.shape(shape);
        const JobId job = world.queue(id, 2, 90);
        const auto begin = Clock::now();
        const Plan plan = world.index.plan(world.now);
        times.push_back(ms_since(begin));
        if (plan.starts.size() != 1 || plan.starts[0].slots.size() != 1024)
            note(hooks, "gang1024: not placed (%zu)", plan.starts.size());
        world.index.apply(JobUnqueued{job});
    }
    return percentile(times, 0.5);
}

/// 10,000 running jobs of borrowers; an owner's gang takes its guarantee back.
double reclaim512(const Hooks& hooks, int nodes) {
    World world(nodes);
    Prng random(4);
    for (int i = 0; i < 10'000; ++i)
        world.queue(world.shape(World::ask(2 + random.below(kQueues - 1), 1, i % 2 ? 8 : 8, "gpu",
                                           {86'400'000})),
                    1 + random.below(kUsers));
    world.fill();
    world.now = world.now + Duration{3'600'000};
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
        const ShapeId id = world.shape(World::ask(1, 64, 8, "gpu", {3600'000 + i * 60'000}));
        const JobId job = world.queue(id, 2, 90);
        const auto begin = Clock::now();
        const Plan plan = world.index.plan(world.now);
        times.push_back(ms_since(begin));
        if (plan.promises.empty())
            note(hooks, "reclaim: nobody stopped (starts %zu)", plan.starts.size());
        world.index.apply(JobUnqueued{job});
    }
    return percentile(times, 0.5);
}

double nothing_fits(const Hooks& hooks, int nodes, int jobs) {
    World world(nodes);
    for (int i = 0; i < nodes; ++i)
        world.queue(world.shape(World::ask(1 + static_cast<std::uint64_t>(i % kQueues), 1, 8, "gpu",
                                           {3600'000})),
                    1);
    world.fill();
    for (int i = 0; i < jobs; ++i) {
        const auto n = static_cast<std::uint64_t>(i % 1000);
        world.queue(
            world.shape(World::ask(1 + n % kQueues, 1 + static_cast<std::int64_t>(n / kQueues % 10),
                                   1 + static_cast<std::int64_t>(n / 200), "gpu",
                                   {3600'000 + static_cast<std::int64_t>(n) * 1000})),
            1);
    }
    const auto begin = Clock::now();
    const Plan plan = world.index.plan(world.now, {.tries_max = 1'000'000});
    const double time = ms_since(begin);
    if (!plan.starts.empty() || !plan.complete)
        note(hooks, "nothing_fits: something fitted (%zu)", plan.starts.size());
    return time;
}

}  // namespace

void measure_planner(const Ask& ask, const Hooks& hooks) {
    const auto say = [&](const char* what, double value, const char* unit, const char* better,
                         double goal) {
        hooks.say({what, value, unit, better, goal});
    };
    if (ask.wants("fill")) {
        double per_s = 0;
        fill(hooks, ask.nodes, ask.jobs, &per_s);
        say("placements_per_s", per_s, "1/s", "higher", 200'000);
    }
    if (ask.wants("nothing_fits"))
        say("nothing_fits_ms", nothing_fits(hooks, ask.nodes, ask.jobs), "ms", "lower", 20);
    // These two ask for so many nodes.
    if (ask.wants("gang1024") && ask.nodes >= 2048)
        say("gang1024_ms", gang1024(hooks, ask.nodes), "ms", "lower", 10);
    if (ask.wants("reclaim512") && ask.nodes >= 128)
        say("reclaim512_ms", reclaim512(hooks, ask.nodes), "ms", "lower", 20);
    double median = 0, why = 0;
    if (ask.wants("next_plan")) {
        const double p99 = next_plan_p99(hooks, ask.nodes, ask.jobs, &median, &why);
        if (p99 >= 0) say("next_plan_p99_ms", p99, "ms", "lower", 2);
        if (p99 >= 0) say("why_p99_ms", why, "ms", "lower", 10);
    }
    if (!ask.sweep || !ask.wants("growth")) return;
    if (median == 0) next_plan_p99(hooks, ask.nodes, ask.jobs, &median, &why);
    double few_nodes = 0, short_queue = 0, ignored = 0;
    next_plan_p99(hooks, ask.nodes / 10, ask.jobs, &few_nodes, &ignored);
    next_plan_p99(hooks, ask.nodes, ask.jobs / 10, &short_queue, &ignored);
    say("growth_nodes_x10", median / few_nodes, "ratio", "lower", 10);
    say("growth_queue_x10", median / short_queue, "ratio", "lower", 10);
}

}  // namespace muster::bench
