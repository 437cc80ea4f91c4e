// Laws over random clusters: a plan is feasible, the order of input does not matter, and the
// incremental index equals one made anew.
#include <map>
#include <set>

#include "base/prng.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

std::string random_line(Prng& random, std::uint64_t id) {
    std::string line = "job " + std::to_string(id);
    line += " nodes=" + std::to_string(random.between(1, 3));
    if (random.chance(700))
        line += " gpus=" + std::to_string(random.between(1, 8));
    else
        line += " cpus=" + std::to_string(random.between(1, 40));
    if (random.chance(300))
        line += " kind=" + std::string(random.chance(500) ? "h100" : "h100,a100");
    if (random.chance(300)) line += " mem=" + std::to_string(random.between(1, 200));
    if (random.chance(400)) line += " time=" + std::to_string(random.between(2000, 90'000));
    if (random.chance(200)) line += " avoid=" + std::to_string(random.between(1, 8));
    if (random.chance(100)) line += " exclusive";
    line += " prio=" + std::to_string(random.between(1, 4));
    return line;
}

/// Carries a plan out as core would, and checks that every share fits by ids.
struct Model {
    Cluster& cluster;
    std::map<NodeId, std::shared_ptr<const model::NodeFacts>> facts;
    std::map<NodeId, MilliCpu> cpus;
    std::map<NodeId, Bytes> memory;
    std::map<NodeId, std::set<std::string>> owned;
    std::map<JobId, JobStarted> running;

    void start(const Start& start, const Shape& shape, Time now) {
        JobStarted job{start.job, shape.id, start.slots,
                       shape.time.ms > 0 ? now + shape.time : kNever};
        std::set<NodeId> nodes;
        for (Slot& slot : job.slots) {
            EXPECT_TRUE(nodes.insert(slot.node).second) << "a gang twice on one node";
            const GroupAsk& group = shape.groups[slot.group];
            const model::NodeFacts& node = *facts.at(slot.node);
            const std::int64_t wanted =
                group.devices.empty() ? 0 : group.devices[slot.alternative].count;
            for (const model::Device& device : node.devices) {
                if (static_cast<std::int64_t>(slot.devices.size()) == wanted) break;
                const std::string& kind = group.devices[slot.alternative].kind;
                if (kind != "gpu" && kind != device.kind) continue;
                if (owned[slot.node].insert(device.id).second) slot.devices.push_back(device.id);
            }
            EXPECT_EQ(static_cast<std::int64_t>(slot.devices.size()), wanted);
            slot.cpus = group.cpus.value > 0 ? group.cpus
                        : wanted > 0         ? MilliCpu{8000 * wanted}
                                             : MilliCpu{1000};
            if (shape.exclusive && group.cpus.value == 0) slot.cpus = node.cpus;
            slot.memory = group.memory;
            cpus[slot.node] += slot.cpus;
            memory[slot.node] += slot.memory;
            EXPECT_LE(cpus[slot.node].value, node.cpus.value);
            EXPECT_LE(memory[slot.node].value, node.memory.value);
        }
        running[job.id] = job;
        cluster.put(JobUnqueued{job.id});
        cluster.put(std::move(job));
    }
    void end(JobId id) {
        for (const Slot& slot : running.at(id).slots) {
            for (const std::string& device : slot.devices) owned[slot.node].erase(device);
            cpus[slot.node] -= slot.cpus;
            memory[slot.node] -= slot.memory;
        }
        running.erase(id);
        cluster.put(JobReleased{id});
    }
};

TEST(Properties, plans_are_feasible_and_the_index_equals_one_made_anew) {
    int starts = 0;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        Prng random(seed);
        Cluster cluster;
        for (int id = 1; id <= 8; ++id)
            cluster.add("node " + std::to_string(id) +
                        " gpus=8 kind=" + (id % 2 ? "h100" : "a100"));
        Model model{cluster, {}, {}, {}, {}, {}};
        for (const Change& change : cluster.changes)
            if (const auto* node = std::get_if<NodeChanged>(&change))
                model.facts[node->id] = node->facts;
        std::uint64_t next = 1;
        Time now{1000};
        for (int round = 0; round < 30; ++round, now = now + Duration{1000}) {
            for (std::int64_t n = random.between(0, 4); n > 0; --n)
                cluster.add(random_line(random, next++));
            while (!model.running.empty() && random.chance(400)) {
                auto at = model.running.begin();
                std::advance(at, static_cast<std::ptrdiff_t>(random.below(model.running.size())));
                model.end(at->first);
            }
            std::map<ShapeId, Shape> shapes;
            std::map<JobId, ShapeId> of;
            for (const Change& change : cluster.changes) {
                if (const auto* shape = std::get_if<ShapeAdded>(&change))
                    shapes[shape->shape.id] = shape->shape;
                if (const auto* job = std::get_if<JobQueued>(&change)) of[job->id] = job->shape;
            }
            PlanIndex again;
            for (const Change& change : cluster.changes) again.apply(change);
            ASSERT_EQ(again.digest(), cluster.index.digest()) << "seed " << seed;
            const Plan plan = cluster.index.plan(now, {.tries_max = 1'000'000});
            const Plan anew = again.plan(now, {.tries_max = 1'000'000});
            if (plan.bookings) cluster.put(BookingsChanged{*plan.bookings});
            ASSERT_EQ(plan.starts.size(), anew.starts.size()) << "F6, seed " << seed;
            for (std::size_t i = 0; i < plan.starts.size(); ++i) {
                ASSERT_EQ(plan.starts[i].job, anew.starts[i].job) << "F6, seed " << seed;
                ASSERT_EQ(plan.starts[i].slots, anew.starts[i].slots) << "F6, seed " << seed;
                model.start(plan.starts[i], shapes.at(of.at(plan.starts[i].job)), now);
                ++starts;
            }
            if (HasFailure()) FAIL() << "seed " << seed;
        }
    }
    EXPECT_GT(starts, 500);
}

TEST(Properties, the_order_of_input_does_not_matter) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Prng random(seed);
        std::vector<std::string> nodes, jobs;
        for (int id = 1; id <= 6; ++id)
            nodes.push_back("node " + std::to_string(id) + " gpus=" + std::to_string(id));
        for (std::uint64_t id = 1; id <= 12; ++id) jobs.push_back(random_line(random, id));
        const auto shuffle = [&](std::vector<std::string>& lines) {
            for (std::size_t i = lines.size(); i > 1; --i)
                std::swap(lines[i - 1], lines[random.below(i)]);
        };
        const auto build = [&] {
            Cluster cluster;
            for (const std::string& line : nodes) cluster.add(line);
            for (const std::string& line : jobs) cluster.add(line);
            return cluster.show();
        };
        const std::string first = build();
        shuffle(nodes), shuffle(jobs);
        EXPECT_EQ(build(), first) << "seed " << seed;
    }
}

}  // namespace
}  // namespace muster::scheduler
