// Laws over random clusters with queues, topology, preemption, elastic jobs and reservations:
// plans are feasible and within every limit, nothing that fits waits, a plan from scratch is the
// incremental one, and whoever is preempted is not for ever.
#include <cstdlib>
#include <map>
#include <set>

#include "base/prng.h"
#include "scheduler/index.h"
#include "scheduler/test_cluster.h"

namespace muster::scheduler {
namespace {

/// MUSTER_SEEDS=10000 for more of them, MUSTER_SEEDS=744..744 for just these. `found`: seeds that
/// have shown a fault once.
class Seeds {
public:
    explicit Seeds(std::uint64_t usual, std::vector<std::uint64_t> found = {}) {
        const char* const wanted = std::getenv("MUSTER_SEEDS");
        const std::string text = wanted == nullptr ? std::to_string(usual) : wanted;
        const std::size_t dots = text.find("..");
        const bool range = dots != std::string::npos;
        const std::uint64_t last = std::stoull(range ? text.substr(dots + 2) : text);
        for (std::uint64_t seed = range ? std::stoull(text) : 1; seed <= last; ++seed)
            all_.push_back(seed);
        if (!range) all_.insert(all_.end(), found.begin(), found.end());
    }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }
    /// Enough of them to expect that everything has come up.
    bool many() const { return all_.size() >= 20; }

private:
    std::vector<std::uint64_t> all_;
};
std::string num(std::int64_t n) {
    return std::to_string(n);
}

/// A cluster of three levels, queues with bounds, and jobs of every sort.
class World {
public:
    explicit World(std::uint64_t seed, bool calm = false) : random(seed), calm_(calm) {
        cluster.add("levels zone leaf");
        cluster.add("rules resize=5000 preemptions=3 bookings=" + num(random.between(1, 4)) +
                    " per_minute=" + num(random.chance(500) ? 512 : random.between(2, 16)) +
                    (random.chance(200) ? " conservative" : "") +
                    (random.chance(300) ? " nodefrag" : ""));
        cluster.add("user 1 ann");
        cluster.add("user 2 bob");
        queue_lines();
        count = random.between(4, 9);
        for (std::int64_t id = 1; id <= count; ++id) {
            const std::int64_t leaf = random.between(1, 3);
            cluster.add("node " + num(id) + " gpus=" + num(random.chance(800) ? 8 : 4) +
                        " kind=" + (random.chance(700) ? "h100" : "a100") + " numa=4" +
                        (random.chance(500) ? " link=2" : "") + " path=z" + num(leaf % 2) + "/l" +
                        num(leaf) + (random.chance(100) ? " sick=1" : ""));
        }
        cluster.add("node " + num(count + 1) + " path=z1/l1");
    }
    void queue_lines() {
        static constexpr const char* kPolicies[] = {"priority", "fifo", "fair", "shortest", "las"};
        const auto line = [&](std::int64_t id, const std::string& more) {
            std::string text = "queue " + num(id) + more;
            text += std::string(" policy=") + kPolicies[random.below(calm_ ? 1 : 5)];
            text += " weight=" + num(random.between(1, 300));
            text += " min_runtime=" + num(random.chance(500) ? 0 : 3000);
            if (random.chance(200)) text += " limit=gpus:" + num(random.between(4, 30));
            if (random.chance(100)) text += " max_jobs=" + num(random.between(1, 6));
            if (random.chance(100)) text += " user_limit=gpus:" + num(random.between(2, 16));
            if (random.chance(100)) text += " user_max_jobs=" + num(random.between(1, 4));
            if (random.chance(150)) text += " aging=1000";
            if (random.chance(100)) text += " fixed";
            cluster.add(text);
        };
        line(1, "");
        line(2, " guarantee=gpus:" + num(random.between(4, 16)) +
                    (random.chance(300) ? " borrow=gpus:" + num(random.between(0, 8)) : "") +
                    (random.chance(200) ? " lend=gpus:" + num(random.between(0, 4)) : ""));
        line(3, " parent=2");
        line(4, " parent=2 guarantee=gpus:" + num(random.between(1, 4)));
        line(5, " guarantee=gpus:" + num(random.between(2, 8)));
    }
    std::string job_line(std::uint64_t id) {
        static constexpr int kLeaves[] = {1, 3, 4, 5};
        std::string line = "job " + std::to_string(id);
        const std::int64_t nodes = random.chance(600) ? 1 : random.between(2, 4);
        line += " queue=" + num(kLeaves[random.below(4)]) + " user=" + num(random.between(1, 2));
        line += " nodes=" + num(nodes);
        if (random.chance(150)) line += ".." + num(nodes + random.between(1, 4));
        if (random.chance(120))
            line += random.chance(500) ? " fraction=" + num(random.between(1, 9) * 100)
                                       : " share=" + num(random.between(1, 79));
        else if (random.chance(850))
            line += " gpus=" + num(random.between(1, 8));
        else
            line += " cpus=" + num(random.between(1, 40));
        if (random.chance(200)) line += random.chance(500) ? " kind=h100" : " kind=h100,a100";
        if (random.chance(200)) line += " mem=" + num(random.between(1, 200));
        if (random.chance(500)) line += " time=" + num(random.between(1000, 30'000));
        if (random.chance(300)) line += " p50=" + num(random.between(1000, 30'000));
        if (random.chance(100)) line += " avoid=" + num(random.between(1, 8));
        if (random.chance(50)) line += " exclusive";
        if (random.chance(50)) line += " fixed";
        if (random.chance(60)) line += " required=numa";
        if (nodes > 1 && random.chance(250)) line += " required=" + word({"leaf", "zone"});
        if (nodes % 2 == 0 && random.chance(250)) line += " slice=2/" + word({"leaf", "zone"});
        if (nodes > 1 && random.chance(150)) line += " spares=1";
        if (nodes == 1 && random.chance(60)) line += " role=1x2";
        if (nodes == 1 && random.chance(60)) line += " count=" + num(random.between(2, 5));
        line += " prio=" + num(random.between(1, 4) * 10);
        return line;
    }
    std::string word(std::vector<std::string> of) { return of[random.below(of.size())]; }

    Prng random;
    Cluster cluster;
    std::int64_t count = 0;

private:
    bool calm_;
};

/// What each queue and user has, counted by hand, against its bounds.
void expect_within_limits(const Cluster& cluster) {
    std::map<QueueId, std::int64_t> gpus, jobs;
    std::map<std::pair<QueueId, UserId>, std::int64_t> user_gpus, user_jobs;
    for (const auto& [id, job] : cluster.started) {
        const Shape& shape = cluster.shapes.at(job.shape);
        std::int64_t milli = 0;
        for (const Slot& slot : job.slots) {
            const model::DeviceAsk& ask = ask_of(shape.groups[slot.group], slot.alternative);
            for (const std::string& device : slot.devices)
                for (const model::Device& known : cluster.nodes.at(slot.node).facts->devices)
                    if (known.id == device) milli += part_milli(ask, known.memory);
        }
        user_gpus[{shape.queue, job.user}] += milli, ++user_jobs[{shape.queue, job.user}];
        for (QueueId at = shape.queue; at; at = cluster.queues.at(at).parent)
            gpus[at] += milli, ++jobs[at];
    }
    const auto bound = [](const model::Amounts& amounts) {
        return amounts.empty() ? std::int64_t{1} << 50 : amounts[0].value;
    };
    for (const auto& [id, queue] : cluster.queues) {
        const model::QueueSettings& settings = queue.settings;
        EXPECT_LE(gpus[id], bound(settings.limit)) << "queue " << id.value;
        if (settings.max_jobs >= 0) EXPECT_LE(jobs[id], settings.max_jobs) << "queue " << id.value;
        if (!settings.borrow_limit.empty())
            EXPECT_LE(gpus[id], bound(settings.guarantee) + bound(settings.borrow_limit));
    }
    for (const auto& [key, milli] : user_gpus) {
        const model::QueueSettings& settings = cluster.queues.at(key.first).settings;
        EXPECT_LE(milli, bound(settings.user_limit)) << "queue " << key.first.value;
        if (settings.user_max_jobs >= 0) EXPECT_LE(user_jobs[key], settings.user_max_jobs);
    }
}

/// Levels, slices, spares and node counts of what starts.
void expect_in_place(const Cluster& cluster, const Start& start, const Shape& shape) {
    const auto level = [](const std::string& name) { return name == "zone" ? 0u : 1u; };
    const auto domain = [&](const Slot& slot, std::size_t at) {
        const auto& path = cluster.nodes.at(slot.node).path;
        return join(std::span(path).subspan(0, at + 1), "/");
    };
    std::map<std::uint32_t, std::int64_t> nodes;
    std::int64_t spares = 0;
    std::set<std::string> domains;
    std::map<std::string, std::int64_t> slices;
    const model::TopologyAsk& topology = shape.topology;
    for (const Slot& slot : start.slots) {
        EXPECT_TRUE(cluster.nodes.at(slot.node).usable);
        slot.spare ? ++spares : ++nodes[slot.group];
        if (topology.required == "zone" || topology.required == "leaf")
            domains.insert(num(slot.group) + domain(slot, level(topology.required)));
        if (topology.slice > 0 && !slot.spare)
            ++slices[domain(slot, level(topology.slice_required))];
    }
    EXPECT_EQ(spares, topology.spares);
    EXPECT_LE(domains.size(), shape.groups.size()) << "of job " << start.job.value;
    for (const auto& [name, count] : slices)
        EXPECT_EQ(count % topology.slice, 0) << name << ", job " << start.job.value;
    for (std::uint32_t group = 0; group < shape.groups.size(); ++group) {
        EXPECT_GE(nodes[group], shape.groups[group].nodes);
        EXPECT_LE(nodes[group], std::max(shape.groups[group].nodes, shape.groups[group].nodes_max));
    }
}

/// Victims: preemptible, not spared by the rules, of lower priority in their own queue.
void expect_fair_stops(const Cluster& cluster, const Plan& plan, Time now) {
    for (const Stop& stop : plan.stops) {
        const JobStarted& victim = cluster.started.at(stop.job);
        const Shape& shape = cluster.shapes.at(victim.shape);
        const model::QueueSettings& settings = cluster.queues.at(shape.queue).settings;
        EXPECT_TRUE(shape.preemptible || stop.reason == StopReason::Grow);
        if (stop.reason == StopReason::Grow) continue;
        EXPECT_TRUE(settings.preemptible);
        EXPECT_LT(victim.preemptions, 3) << "of job " << stop.job.value;
        EXPECT_GE(now, victim.started + settings.min_runtime) << "of job " << stop.job.value;
        const JobQueued& wants = cluster.queued.at(stop.beneficiary);
        if (stop.reason == StopReason::Priority)
            EXPECT_LT(victim.priority, wants.priority) << "of job " << stop.job.value;
    }
}

std::vector<std::string> starts_of(const Plan& plan) {
    std::vector<std::string> out;
    Plan only;
    for (const Start& start : plan.starts) {
        only.starts = {start};
        out.push_back(Cluster::text_of(only));
    }
    return out;
}

TEST(Laws, feasible_within_limits_and_the_same_from_scratch) {
    const Seeds seeds(500, {744, 823, 987, 1533, 1658, 4060, 10'000});
    std::size_t starts = 0, stops = 0, resizes = 0;
    for (const std::uint64_t seed : seeds) {
        World world(seed, seed % 2 == 0);
        Cluster& cluster = world.cluster;
        Prng& random = world.random;
        std::uint64_t next = 1;
        Time now{10'000};
        for (int round = 0; round < 25; ++round, now = now + Duration{1000}) {
            for (std::int64_t n = random.between(0, 3); n > 0; --n)
                cluster.add(world.job_line(next++));
            while (!cluster.started.empty() && random.chance(300)) {
                auto at = cluster.started.begin();
                std::advance(at, static_cast<std::ptrdiff_t>(random.below(cluster.started.size())));
                cluster.end(at->first);
            }
            if (random.chance(500)) cluster.freed(now);
            if (random.chance(100))
                cluster.add((random.chance(500) ? "drain " : "undrain ") +
                            num(random.between(1, world.count)));
            if (random.chance(50))
                cluster.add("reserve 1 nodes=1,2 from=" + num(now.ms + random.between(0, 5000)) +
                            " to=" + num(now.ms + 9000) +
                            (random.chance(500) ? " maintenance" : " users=ann"));
            PlanIndex again = cluster.anew();
            ASSERT_EQ(again.digest(), cluster.index.digest()) << "seed " << seed;
            const Plan plan = cluster.index.plan(now);
            const Plan scratch = again.plan(now);
            ASSERT_EQ(starts_of(plan), starts_of(scratch))
                << "F6, seed " << seed << " round " << round;
            for (const Start& start : plan.starts)
                expect_in_place(cluster, start,
                                cluster.shapes.at(cluster.queued.at(start.job).shape));
            expect_fair_stops(cluster, plan, now);
            starts += plan.starts.size();
            for (const Stop& stop : plan.stops)
                ++(stop.reason >= StopReason::Shrink ? resizes : stops);
            cluster.carry(plan, now);
            expect_within_limits(cluster);
            if (testing::Test::HasFailure()) FAIL() << "seed " << seed << " round " << round;
        }
    }
    if (!seeds.many()) return;
    EXPECT_GT(starts, 1000u);
    EXPECT_GT(stops, 100u);
    EXPECT_GT(resizes, 20u);
}

/// Single-node asks for whole devices that wait though a node has them, none of its bounds forbids
/// it, and no booking or window lies on the node.
TEST(Laws, nothing_that_fits_waits) {
    const Seeds seeds(200, {220, 406, 747, 901, 1111, 1376, 2317, 2263});
    std::size_t looked = 0;
    for (const std::uint64_t seed : seeds) {
        World world(seed + 1'000'000, true);
        Cluster& cluster = world.cluster;
        std::uint64_t next = 1;
        Time now{10'000};
        for (int round = 0; round < 12; ++round, now = now + Duration{1000}) {
            for (std::int64_t n = world.random.between(1, 4); n > 0; --n)
                cluster.add(world.job_line(next++));
            while (!cluster.started.empty() && world.random.chance(300))
                cluster.end(cluster.started.begin()->first);
            const Plan first = cluster.step(now);
            // Until nothing moves: windows and promises of one plan are seen by the next.
            for (int i = 0; i < 20; ++i) {
                const Plan plan = cluster.step(now);
                if (plan.starts.empty() && plan.stops.empty() && !plan.bookings) break;
            }
            const Plan more = cluster.step(now);
            EXPECT_TRUE(more.starts.empty()) << "seed " << seed << " round " << round;
            std::set<NodeId> kept;
            for (const Booking& booking : cluster.bookings)
                for (const Slot& slot : booking.slots) kept.insert(slot.node);
            for (const auto& [id, job] : cluster.queued) {
                if (job.claim != nullptr) continue;
                const Blocked why = cluster.index.why(id, now);
                EXPECT_NE(why.reason, Blocked::Reason::NotEvaluated)
                    << "seed " << seed << " job " << id.value;
                if (why.reason != Blocked::Reason::NotEnoughFree) continue;
                ++looked;
                const Shape& shape = cluster.shapes.at(job.shape);
                const GroupAsk& ask = shape.groups[0];
                if (shape.groups.size() > 1 || ask.nodes > 1 || !shape.topology.required.empty() ||
                    shape.exclusive || !job.avoid.empty())
                    continue;
                for (const auto& [node_id, node] : cluster.nodes) {
                    if (kept.contains(node_id) || !node.usable) continue;
                    JobStarted trial{id, shape.id, {{.node = node_id, .devices = {}}}, kNever};
                    for (std::uint32_t i = 0; i < alternatives_of(ask); ++i) {
                        trial.slots[0].alternative = i;
                        trial.slots[0].devices.clear();
                        Owners owners = cluster.owners;
                        std::string fault;
                        bool claimed = false;
                        for (const auto& [other, waits] : cluster.queued)
                            if (waits.claim != nullptr)
                                for (const Slot& slot : waits.claim->slots)
                                    claimed |= slot.node == node_id;
                        if (claimed) continue;
                        EXPECT_FALSE(owners.bind(trial, shape, cluster.nodes, fault))
                            << "seed " << seed << ": job " << id.value << " fits on n"
                            << node_id.value << " and waits: " << Cluster::text_of(why);
                    }
                }
            }
            if (testing::Test::HasFailure()) FAIL() << "seed " << seed << " round " << round;
        }
    }
    if (seeds.many()) EXPECT_GT(looked, 500u);
}

/// Borrowers have everything; the owner asks for his own, and has it after as many plans as the
/// rate allows.
TEST(Laws, guarantees_come_back) {
    const Seeds seeds(200, {518, 1682});
    for (const std::uint64_t seed : seeds) {
        Prng random(seed);
        Cluster cluster;
        const std::int64_t nodes = random.between(2, 6), mine = random.between(1, nodes * 8);
        cluster.add("rules preemptions=1000 per_minute=" + num(random.between(4, 64)));
        cluster.add("queue 1 guarantee=gpus:" + num(mine));
        const std::int64_t theirs = random.between(0, nodes * 8 - mine);
        cluster.add("queue 2 guarantee=gpus:" + num(theirs));
        cluster.add("queue 3");
        for (std::int64_t id = 1; id <= nodes; ++id) cluster.add("node " + num(id) + " gpus=8");
        for (std::int64_t id = 1; id <= nodes * 6; ++id)
            cluster.add("job " + num(id) + " queue=" + num(random.between(2, 3)) + " nodes=" +
                        num(random.chance(800) ? 1 : 2) + " gpus=" + num(random.between(1, 8)) +
                        " prio=" + num(random.between(1, 99)));
        Time now{1000};
        for (int round = 0; round < 5; ++round) cluster.step(now), now = now + Duration{1000};
        cluster.add("job 1000 queue=1 gpus=1 count=" + num(mine));
        for (int round = 0; round < 3 * mine + 20; ++round, now = now + Duration{1000}) {
            cluster.step(now);
            cluster.freed(now);
        }
        std::int64_t has = 0;
        for (const auto& [id, job] : cluster.started)
            if (cluster.shapes.at(job.shape).queue == QueueId{1})
                has += std::ssize(job.slots[0].devices);
        ASSERT_EQ(has, mine) << "seed " << seed << " of " << nodes * 8;
    }
}

/// Nothing ends here: what runs is more and more over its expected end, so that a move may become
/// worth its cost late; but nobody has others moved again and again.
TEST(Laws, preemption_comes_to_rest) {
    const Seeds seeds(60, {155, 398, 1232, 1845});
    for (const std::uint64_t seed : seeds) {
        World world(seed + 2'000'000);
        Cluster& cluster = world.cluster;
        for (std::uint64_t id = 1; id <= 25; ++id) cluster.add(world.job_line(id));
        Time now{10'000};
        std::size_t late = 0;
        std::set<JobId> moved_for;
        for (int round = 0; round < 200; ++round, now = now + Duration{1000}) {
            const Plan plan = cluster.step(now);
            if (round >= 150 && !plan.stops.empty()) {
                const auto moves = [](const Stop& stop) {
                    return stop.reason == StopReason::Defragment;
                };
                const bool first = moved_for.insert(plan.stops[0].beneficiary).second;
                if (!first || std::ranges::none_of(plan.stops, moves)) ++late;
            }
            if (world.random.chance(700)) cluster.freed(now);
            if (testing::Test::HasFailure()) FAIL() << "seed " << seed << " round " << round;
        }
        EXPECT_EQ(late, 0u) << "seed " << seed;
        for (const auto& [id, times] : cluster.preempted)
            EXPECT_LE(times, 3) << "seed " << seed << " job " << id.value;
        if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
}

/// All that runs ends, and nothing new comes: in the end nobody waits for somebody's window, for
/// those whose windows they are would wait for one another.
TEST(Laws, windows_do_not_wait_for_each_other) {
    const Seeds seeds(200, {238});
    for (const std::uint64_t seed : seeds) {
        World world(seed + 3'000'000);
        Cluster& cluster = world.cluster;
        std::uint64_t next = 1;
        Time now{10'000};
        for (int round = 0; round < 100; ++round, now = now + Duration{5000}) {
            for (std::int64_t n = round < 20 ? world.random.between(0, 3) : 0; n > 0; --n)
                cluster.add(world.job_line(next++));
            const auto running = cluster.started;
            for (const auto& [id, job] : running)
                if (round >= 20 || world.random.chance(300)) {
                    cluster.stopping.erase(id), cluster.own_claims.erase(id);
                    cluster.end(id);
                }
            for (int i = 0; i < 3; ++i) cluster.step(now);
        }
        ASSERT_TRUE(cluster.started.empty()) << "seed " << seed;
        for (const auto& [id, job] : cluster.queued) {
            const Blocked why = cluster.index.why(id, now);
            EXPECT_NE(why.reason, Blocked::Reason::Reserved)
                << "seed " << seed << " job " << id.value << ": " << Cluster::text_of(why) << ", "
                << why.behind.value << ": "
                << (cluster.queued.contains(why.behind) ? cluster.why(why.behind.value, now)
                                                        : "is gone");
        }
        if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
}

/// A gang of the whole cluster, and more small jobs than ever end. With limits it starts when the
/// longest that was there before it has ended; without, when they have all ended: nothing new may
/// stand in its way.
TEST(Laws, F21_a_large_gang_starts_in_time) {
    const Seeds seeds(30);
    for (const bool limits : {true, false}) {
        for (const std::uint64_t seed : seeds) {
            Prng random(seed);
            Cluster cluster;
            for (int id = 1; id <= 4; ++id) cluster.add("node " + num(id) + " gpus=8");
            std::uint64_t next = 10;
            std::map<JobId, Time> ends;
            Time now{1000}, before{};
            const auto submit = [&] {
                cluster.add("job " + std::to_string(next++) + " gpus=" + num(random.between(1, 4)) +
                            (limits ? " time=" + num(random.between(1000, 20'000)) : ""));
            };
            const auto turn = [&] {
                for (int n = 0; n < 6; ++n) submit();
                const auto running = cluster.started;
                for (const auto& [id, job] : running)
                    if (ends.at(id) <= now) cluster.end(id);
                cluster.step(now);
                for (const auto& [id, job] : cluster.started)
                    if (!ends.contains(id))
                        ends[id] = job.expected_end < kNever
                                       ? job.expected_end
                                       : now + Duration{random.between(1000, 20'000)};
                now = now + Duration{500};
            };
            for (int round = 0; round < 30; ++round) turn();
            cluster.add("job 1 nodes=4 gpus=8 prio=50 at=0");
            for (const auto& [id, job] : cluster.started) before = std::max(before, ends.at(id));
            while (now < before + Duration{1500}) turn();
            EXPECT_TRUE(cluster.started.contains({1}))
                << "seed " << seed << (limits ? ", with limits" : ", without limits") << ": "
                << cluster.why(1, now);
            if (testing::Test::HasFailure()) FAIL();
        }
    }
}

/// One node's worth is asked for: no other node could give it with a lower highest priority.
TEST(Laws, victims_have_the_lowest_priority_that_will_do) {
    const Seeds seeds(300);
    std::size_t stops = 0;
    for (const std::uint64_t seed : seeds) {
        Prng random(seed);
        Cluster cluster("rules nodefrag \n queue 1");
        std::uint64_t next = 100;
        std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> held;
        const std::int64_t want = random.between(1, 8);
        for (std::int64_t node = 1; node <= 5; ++node) {
            cluster.add("node " + num(node) + " gpus=8");
            for (std::int64_t left = 8; left > 0;) {
                const std::int64_t gpus = random.between(1, left), priority = random.between(1, 60);
                cluster.add("run " + std::to_string(next++) + " node=" + num(node) +
                            " gpus=" + num(gpus) + " prio=" + num(priority));
                held[node].emplace_back(priority, gpus);
                left -= gpus;
            }
        }
        std::int64_t best = 50;
        for (auto& [node, jobs] : held) {
            std::ranges::sort(jobs);
            std::int64_t freed = 0;
            for (const auto& [priority, gpus] : jobs)
                if (freed < want && (freed += gpus) >= want) best = std::min(best, priority);
        }
        cluster.add("job 1 prio=50 gpus=" + num(want));
        const Plan plan = cluster.step({1000});
        std::int64_t highest = 0;
        for (const Stop& stop : plan.stops)
            highest = std::max(highest, cluster.started.at(stop.job).priority);
        if (best < 50) EXPECT_EQ(highest, best) << "seed " << seed;
        if (best == 50) EXPECT_TRUE(plan.stops.empty()) << "seed " << seed;
        stops += plan.stops.size();
    }
    if (seeds.many()) EXPECT_GT(stops, 100u);
}

}  // namespace
}  // namespace muster::scheduler
