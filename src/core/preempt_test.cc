// Deals: victims are told to stop, another is promised what they give back, and nobody else gets
// it; gangs that lost a node, and jobs that grow and shrink, keep what is theirs.
#include "core/indexes.h"
#include "core/test_world.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;
using protocol::TaskState;
using scheduler::StopReason;

std::vector<scheduler::Slot> slots(const World& world, const std::vector<std::string>& nodes,
                                   std::size_t spares = 0) {
    std::vector<scheduler::Slot> out;
    for (const std::string& node : nodes) {
        out.emplace_back().node = *find_node(world.state, node);
        out.back().spare = out.size() > nodes.size() - spares;
    }
    return out;
}
bool start(World& world, JobId job, const std::vector<std::string>& nodes, std::size_t spares = 0) {
    scheduler::Plan plan;
    plan.starts = {{job, slots(world, nodes, spares)}};
    world.must(PlanProposed{plan});
    return world.state.tables.live.contains(job.value);
}
model::JobSpec saving(std::int64_t nodes, std::int64_t gpus, std::string name = "victim") {
    model::JobSpec spec = gang_job(nodes, gpus, std::move(name));
    spec.checkpoint.dir = "/c";
    spec.checkpoint.grace = {20'000};
    return spec;
}
bool refused(const Step& step) {
    for (const auto& change : step.planning)
        if (std::holds_alternative<scheduler::PlanRefused>(change)) return true;
    return false;
}

/// n1, n2: a running victim on each; n3 is free. `big` wants two nodes.
struct Deal {
    World world;
    JobId v1, v2, big;
    scheduler::Plan plan;

    Deal() {
        for (const char* name : {"n1", "n2", "n3"}) world.hello(name);
        v1 = world.submit(saving(1, 8));
        v2 = world.submit(saving(1, 8));
        EXPECT_TRUE(start(world, v1, {"n1"}) && start(world, v2, {"n2"}));
        world.run(v1), world.run(v2);
        model::JobSpec spec = gang_job(2, 8, "big");
        spec.roles[0].cpus = {32'000};
        big = world.submit(spec, world.bob);
        plan.stops = {{v1, big, StopReason::Priority}, {v2, big, StopReason::Priority}};
        plan.promises = {{big, slots(world, {"n1", "n2"})}};
        world.clear();
    }
    void end(JobId victim) { world.end(victim, 0, Cause::Preempted); }
};

TEST(Deal, gives_notice_to_victims_and_a_claim_to_the_beneficiary) {
    Deal deal;
    World& world = deal.world;
    world.must(PlanProposed{deal.plan});
    EXPECT_EQ(world.job(deal.v1).state, JobState::Stopping);
    EXPECT_EQ(world.job(deal.v1).cause, Cause::Preempted);
    const auto notices = world.sent<protocol::NoticeTask>();
    ASSERT_EQ(notices.size(), 2u);
    EXPECT_EQ(notices[0].grace, Duration{20'000});
    EXPECT_NE(notices[0].reason.find("for job 3 of bob"), std::string::npos) << notices[0].reason;
    ASSERT_TRUE(world.extra(deal.big).claim);
    EXPECT_GT(world.extra(deal.big).claim->until, world.now + Duration{20'000});
    deal.end(deal.v1), deal.end(deal.v2);
    ASSERT_TRUE(start(world, deal.big, {"n1", "n2"}));
    EXPECT_FALSE(world.extra(deal.big).claim) << "it is used";
    // F23: counted, with the cause; its own restarts are its own; its place is kept.
    const JobExtra& victim = world.extra(deal.v1);
    EXPECT_EQ(victim.preemptions, 1);
    EXPECT_EQ(victim.attempts[0].cause, Cause::Preempted);
    EXPECT_EQ(victim.attempts[0].beneficiary, deal.big);
    EXPECT_NE(victim.attempts[0].message.find("higher priority"), std::string::npos);
    EXPECT_EQ(world.job(deal.v1).restarts, 0u);
    EXPECT_EQ(world.job(deal.v1).state, JobState::Pending);
    EXPECT_LT(world.job(deal.v1).submitted, world.now + Duration{1});
}

TEST(Deal, F13_the_first_victim_is_not_let_back_into_the_hole) {
    Deal deal;
    World& world = deal.world;
    world.must(PlanProposed{deal.plan});
    deal.end(deal.v1);
    EXPECT_FALSE(start(world, deal.v1, {"n1"}));
    EXPECT_FALSE(start(world, world.submit(gang_job(1, 1)), {"n1"}));
    EXPECT_TRUE(start(world, deal.v1, {"n3"})) << "elsewhere it may";
    world.restart();
    for (const char* name : {"n1", "n3"})
        world.hello(name, name == std::string("n3")
                              ? std::vector{world.status(deal.v1, 0, TaskState::Accepted)}
                              : std::vector<protocol::TaskStatus>{});
    EXPECT_FALSE(start(world, world.submit(gang_job(1, 1)), {"n1"})) << "nor by a new leader";
    // Without devices there is room beside the promise.
    EXPECT_TRUE(start(world, world.submit(small_job()), {"n1"}));
}

TEST(Deal, F19_who_finishes_inside_its_grace_is_done) {
    Deal deal;
    World& world = deal.world;
    world.must(PlanProposed{deal.plan});
    world.end(deal.v1, 0, Cause::Success);
    EXPECT_EQ(world.job(deal.v1).state, JobState::Succeeded);
    deal.end(deal.v2);
    EXPECT_TRUE(start(world, deal.big, {"n1", "n2"}));
}

TEST(Deal, F20_a_victim_that_still_starts_stops_by_its_own_timer) {
    World world;
    world.hello("n1");
    const JobId victim = world.submit(saving(1, 8));
    ASSERT_TRUE(start(world, victim, {"n1"}));
    const JobId big = world.submit(gang_job(1, 8, "big"));
    scheduler::Plan plan;
    plan.stops = {{victim, big, StopReason::Priority}};
    plan.promises = {{big, slots(world, {"n1"})}};
    world.must(PlanProposed{plan});
    EXPECT_EQ(world.job(victim).state, JobState::Stopping);
    EXPECT_EQ(world.sent<protocol::StopTask>().size(), 1u) << "nothing to save yet";
    world.pass(60'000, {"n1"});
    EXPECT_TRUE(world.told("job.stop-overdue"));
    world.end(victim, 0, Cause::Preempted);
    EXPECT_TRUE(start(world, big, {"n1"}));
}

TEST(Deal, F20_a_grace_ends_in_a_kill) {
    Deal deal;
    World& world = deal.world;
    world.must(PlanProposed{deal.plan});
    EXPECT_TRUE(world.sent<protocol::StopTask>().empty());
    world.pass(20'000, {"n1", "n2", "n3"});
    EXPECT_EQ(world.sent<protocol::StopTask>().size(), 2u);
}

struct Broken {
    const char* name;
    void (*spoil)(Deal&);
    friend void PrintTo(const Broken& row, std::ostream* out) { *out << row.name; }
};
void edit_default(Deal& deal, auto edit) {
    ApplyQueues event{deal.world.root, {{"default", {}, false}}, false};
    edit(event.queues[0].settings);
    deal.world.must(event);
}
const Broken kBroken[] = {
    {"F2_beneficiary_held",
     [](Deal& d) {
         d.world.must(ActOnJob{d.world.root, d.big, -1, JobAction::Hold, "", 0});
     }},
    {"F1_promise_does_not_fit",
     [](Deal& d) {
         d.plan.promises[0].slots = slots(d.world, {"n1", "n1"});
     }},
    {"F2_its_node_was_drained",
     [](Deal& d) {
         d.world.must(ActOnNode{d.world.root, "n2", NodeAction::Drain, ""});
     }},
    {"F2_its_node_was_taken",
     [](Deal& d) {
         d.plan.promises[0].slots = slots(d.world, {"n1", "n3"});
         start(d.world, d.world.submit(gang_job(1, 1)), {"n3"});
     }},
    {"F18_over_its_limit",
     [](Deal& d) { edit_default(d, [](auto& s) {
                       s.limit = {{"gpus", 15'000}};
                   }); }},
    {"queue_not_preemptible",
     [](Deal& d) { edit_default(d, [](auto& s) { s.preemptible = false; }); }},
    {"F23_victim_suffered_enough",
     [](Deal& d) {
         model::SchedulingRules rules;
         rules.preemptions_max = 0;
         d.world.must(SetRules{d.world.root, rules});
     }},
    {"victim_is_stopping_already",
     [](Deal& d) {
         d.world.must(ActOnJob{d.world.root, d.v1, -1, JobAction::Cancel, "", 0});
     }},
};
class DealsBroken : public testing::TestWithParam<Broken> {};
TEST_P(DealsBroken, harm_nobody) {
    Deal deal;
    GetParam().spoil(deal);
    const JobState before = deal.world.job(deal.v1).state;
    EXPECT_TRUE(refused(deal.world.must(PlanProposed{deal.plan})));
    EXPECT_EQ(deal.world.job(deal.v1).state, before);
    EXPECT_EQ(deal.world.job(deal.v2).state, JobState::Running);
    EXPECT_FALSE(deal.world.extra(deal.big).claim);
    EXPECT_EQ(deal.world.extra(deal.v2).preemptions, 0);
}
INSTANTIATE_TEST_SUITE_P(Table, DealsBroken, testing::ValuesIn(kBroken),
                         [](const auto& row) { return row.param.name; });

TEST(Deal, holds_though_a_victim_ended_meanwhile) {
    Deal deal;
    deal.world.end(deal.v1, 0, Cause::Success);
    EXPECT_FALSE(refused(deal.world.must(PlanProposed{deal.plan})));
    EXPECT_EQ(deal.world.job(deal.v2).state, JobState::Stopping);
    EXPECT_TRUE(deal.world.extra(deal.big).claim);
}

TEST(Deal, F18_victims_count_no_more_against_the_limit) {
    Deal deal;
    edit_default(deal, [](auto& s) { s.limit = {{"gpus", 16'000}}; });
    EXPECT_FALSE(refused(deal.world.must(PlanProposed{deal.plan})));
}

TEST(Deal, falls_with_its_beneficiary_or_in_time) {
    for (const bool cancel : {true, false}) {
        Deal deal;
        World& world = deal.world;
        world.must(PlanProposed{deal.plan});
        deal.end(deal.v1), deal.end(deal.v2);
        if (cancel)
            world.must(ActOnJob{world.bob, deal.big, -1, JobAction::Cancel, "", 0});
        else
            world.pass(180'000, {"n1", "n2", "n3"});
        EXPECT_FALSE(world.extra(deal.big).claim);
        EXPECT_TRUE(start(world, deal.v1, {"n1"}));
    }
}

TEST(Deal, for_an_array_is_used_by_the_element_that_starts_there) {
    Deal deal;
    World& world = deal.world;
    model::JobSpec spec = gang_job(1, 8, "array");
    spec.array.count = 2;
    const JobId parent = world.submit(spec);
    deal.plan.stops = {{deal.v1, parent, StopReason::Priority}};
    deal.plan.promises = {{parent, slots(world, {"n1"})}};
    ASSERT_FALSE(refused(world.must(PlanProposed{deal.plan})));
    scheduler::Plan plan;
    plan.starts = {{parent, slots(world, {"n3"})}};
    world.must(PlanProposed{plan});
    EXPECT_EQ(world.extra(parent).array->live, 1);
    EXPECT_TRUE(world.extra(parent).claim) << "another element started elsewhere";
    deal.end(deal.v1);
    plan.starts = {{parent, slots(world, {"n1"})}};
    world.must(PlanProposed{plan});
    EXPECT_EQ(world.extra(parent).array->live, 2);
    EXPECT_FALSE(world.extra(parent).claim);
}

// ---- gangs that lost a node ---------------------------------------------------------------------

TEST(Degraded, F4_a_gang_keeps_its_healthy_nodes_until_it_is_whole_again) {
    World world;
    std::vector<std::string> alive;
    for (const char* name : {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"})
        world.hello(name), alive.push_back(name);
    model::JobSpec spec = gang_job(2, 8);
    spec.topology.spares = 1;
    const JobId gang = world.submit(spec);
    ASSERT_TRUE(start(world, gang, {"n1", "n2", "n3"}, 1));
    EXPECT_EQ(world.sent<protocol::StartTask>().size(), 2u) << "none on the spare";
    const protocol::Gang& members = *world.sent<protocol::StartTask>()[0].gang;
    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[0].name + members[1].name, "n1n2") << "ranks only";
    EXPECT_FALSE(start(world, world.submit(gang_job(1, 1)), {"n3"})) << "but it is held";
    world.run(gang);
    world.end(gang, 0, Cause::DeviceFault);
    world.end(gang, 1, Cause::Peer);
    ASSERT_EQ(world.job(gang).state, JobState::Pending);
    ASSERT_TRUE(world.extra(gang).claim);
    ASSERT_EQ(world.extra(gang).claim->slots.size(), 2u);
    EXPECT_EQ(world.extra(gang).last_nodes, (std::vector<NodeId>{{1}, {2}}));
    const JobId other = world.submit(gang_job(1, 1, "other"));
    EXPECT_FALSE(start(world, other, {"n2"}) || start(world, other, {"n3"}));
    world.pass(1'000, alive);  // Its back-off.
    ASSERT_TRUE(start(world, gang, {"n2", "n3"})) << "the spare takes its place";
    world.run(gang);
    world.end(gang, 0, Cause::DeviceFault), world.end(gang, 1, Cause::Peer);
    world.pass(600'000, alive);
    EXPECT_FALSE(world.extra(gang).claim) << "not for ever";
    EXPECT_TRUE(start(world, other, {"n3"}));
}

TEST(Degraded, a_gang_that_failed_by_itself_keeps_nothing) {
    World world;
    for (const char* name : {"n1", "n2"}) world.hello(name);
    model::JobSpec spec = gang_job(2, 8);
    spec.restart.max = 3;
    const JobId gang = world.submit(spec);
    ASSERT_TRUE(start(world, gang, {"n1", "n2"}));
    world.run(gang);
    world.end(gang, 0, Cause::UserError), world.end(gang, 1, Cause::Peer);
    EXPECT_FALSE(world.extra(gang).claim);
}

TEST(Spare, that_is_lost_does_not_hurt_its_gang) {
    World world;
    std::vector<std::string> alive;
    for (const char* name : {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"}) {
        world.hello(name);
        if (name != std::string("n3")) alive.push_back(name);
    }
    model::JobSpec spec = gang_job(2, 8);
    spec.topology.spares = 1;
    const JobId gang = world.submit(spec);
    ASSERT_TRUE(start(world, gang, {"n1", "n2", "n3"}, 1));
    world.run(gang);
    world.pass(120'000, alive);
    EXPECT_EQ(world.job(gang).state, JobState::Running);
    world.end(gang, 0, Cause::Success), world.end(gang, 1, Cause::Success);
    EXPECT_EQ(world.job(gang).state, JobState::Succeeded);
}

// ---- topology -----------------------------------------------------------------------------------

TEST(Topology, of_a_gang_is_looked_at_again_when_it_starts) {
    World world;
    const auto hello = [&](const std::string& name, const std::string& leaf) {
        model::NodeFacts facts = facts_of(name, 8);
        facts.labels = {{"leaf", leaf}};
        world.hello(facts);
    };
    hello("n1", "a"), hello("n2", "a"), hello("n3", "b"), hello("n4", "b"), hello("n5", "");
    model::JobSpec near = gang_job(2, 1), sliced = gang_job(4, 1);
    near.topology.required = "leaf";
    sliced.topology.slice = 2, sliced.topology.slice_required = "leaf";
    EXPECT_FALSE(start(world, world.submit(near), {"n1", "n3"}));
    EXPECT_FALSE(start(world, world.submit(near), {"n4", "n5"}));
    EXPECT_TRUE(start(world, world.submit(near), {"n1", "n2"}));
    EXPECT_FALSE(start(world, world.submit(sliced), {"n1", "n2", "n3", "n5"}));
    EXPECT_TRUE(start(world, world.submit(sliced), {"n1", "n2", "n3", "n4"}));
    hello("n4", "a");  // Somebody moved the cable while a plan was made.
    EXPECT_FALSE(start(world, world.submit(near), {"n3", "n4"}));
}

// ---- elastic ------------------------------------------------------------------------------------

TEST(Elastic, starts_with_any_number_between_its_bounds) {
    World world;
    for (const char* name : {"n1", "n2", "n3", "n4"}) world.hello(name);
    model::JobSpec spec = gang_job(2, 8);
    spec.roles[0].nodes_max = 3;
    EXPECT_FALSE(start(world, world.submit(spec), {"n1"}));
    EXPECT_FALSE(start(world, world.submit(spec), {"n1", "n2", "n3", "n4"}));
    const JobId id = world.submit(spec);
    ASSERT_TRUE(start(world, id, {"n1", "n2", "n3"}));
    world.run(id);
    EXPECT_EQ(world.job(id).state, JobState::Running);
}

TEST(Elastic, shrinks_for_another_and_grows_again_with_what_is_its_own) {
    World world;
    for (const char* name : {"n1", "n2", "n3"}) world.hello(name);
    model::JobSpec spec = saving(1, 8, "elastic");
    spec.roles[0].nodes_max = 3;
    const JobId elastic = world.submit(spec);
    ASSERT_TRUE(start(world, elastic, {"n1", "n2", "n3"}));
    world.run(elastic);
    const JobId other = world.submit(gang_job(1, 8, "other"));
    scheduler::Plan plan;
    plan.stops = {{elastic, other, StopReason::Shrink}};
    plan.promises = {{other, slots(world, {"n3"})}, {elastic, slots(world, {"n1", "n2"})}};
    world.must(PlanProposed{plan});
    ASSERT_EQ(world.job(elastic).cause, Cause::Resized);
    EXPECT_EQ(world.sent<protocol::NoticeTask>().size(), 3u);
    for (std::uint32_t rank = 0; rank < 3; ++rank) world.end(elastic, rank, Cause::Resized);
    EXPECT_EQ(world.extra(elastic).attempts[0].cause, Cause::Resized);
    EXPECT_EQ(world.extra(elastic).attempts[0].beneficiary, other);
    EXPECT_EQ(world.extra(elastic).preemptions, 0) << "it was not preempted";
    EXPECT_EQ(world.job(elastic).restarts, 0u);
    EXPECT_FALSE(start(world, other, {"n2"})) << "that is the elastic job's";
    ASSERT_TRUE(start(world, other, {"n3"}));
    ASSERT_TRUE(start(world, elastic, {"n1", "n2"}));
    world.run(elastic);
    world.end(other, 0, Cause::Success);
    plan = {};
    plan.stops = {{elastic, elastic, StopReason::Grow}};
    plan.promises = {{elastic, slots(world, {"n1", "n2", "n3"})}};
    world.must(PlanProposed{plan});
    ASSERT_EQ(world.job(elastic).cause, Cause::Resized);
    EXPECT_FALSE(start(world, world.submit(gang_job(1, 1)), {"n3"}));
    for (std::uint32_t rank = 0; rank < 2; ++rank) world.end(elastic, rank, Cause::Resized);
    ASSERT_TRUE(start(world, elastic, {"n1", "n2", "n3"}));
}

TEST(Elastic, only_elastic_jobs_are_resized) {
    Deal deal;
    deal.plan.stops = {{deal.v1, deal.v1, StopReason::Grow}};
    deal.plan.promises = {{deal.v1, slots(deal.world, {"n1", "n3"})}};
    EXPECT_TRUE(refused(deal.world.must(PlanProposed{deal.plan})));
}

// ---- parts of devices, islands, kinds -----------------------------------------------------------

model::NodeFacts card(std::int64_t mib, bool enforced = true, int cards = 1) {
    model::NodeFacts facts = facts_of("n1", cards);
    for (model::Device& device : facts.devices) {
        device.memory = {mib << 20};
        device.share_enforced = enforced;
    }
    return facts;
}
model::JobSpec part(std::int64_t fraction, std::int64_t mib) {
    model::JobSpec spec = gang_job(1, 1, "part");
    spec.roles[0].cpus = {100};
    spec.roles[0].devices[0].fraction = fraction;
    spec.roles[0].devices[0].share_memory = {mib << 20};
    return spec;
}

TEST(Parts, F27_are_booked_device_by_device) {
    World world;
    world.hello(card(46'068));
    int started = 0;
    for (int i = 0; i < 24; ++i) started += start(world, world.submit(part(0, 2'000)), {"n1"});
    EXPECT_EQ(started, 22) << "44 thousandths each; 24 would be 48,000 MiB";
    const auto orders = world.sent<protocol::StartTask>();
    EXPECT_EQ(orders[0].device_share, 44);
    EXPECT_EQ(orders[0].device_memory, Bytes{std::int64_t{2'000} << 20});
}

TEST(Parts, F28_a_device_is_given_whole_or_in_parts) {
    World world;
    world.hello(card(80'000));
    const JobId half = world.submit(part(500, 0));
    ASSERT_TRUE(start(world, half, {"n1"}));
    EXPECT_FALSE(start(world, world.submit(gang_job(1, 1)), {"n1"}));
    const JobId other = world.submit(part(500, 0));
    ASSERT_TRUE(start(world, other, {"n1"}));
    EXPECT_FALSE(start(world, world.submit(part(1, 0)), {"n1"})) << "it is full";
    world.end(half, 0, Cause::Success), world.end(other, 0, Cause::Success);
    const JobId whole = world.submit(gang_job(1, 1));
    ASSERT_TRUE(start(world, whole, {"n1"}));
    EXPECT_FALSE(start(world, world.submit(part(1, 0)), {"n1"}));
}

TEST(Parts, fill_a_begun_device_first) {
    World world;
    world.hello(card(80'000, true, 2));
    const JobId a = world.submit(part(250, 0)), b = world.submit(part(600, 0));
    const JobId c = world.submit(part(250, 0));
    ASSERT_TRUE(start(world, a, {"n1"}) && start(world, b, {"n1"}) && start(world, c, {"n1"}));
    EXPECT_EQ(world.extra(a).allocation->slots[0].devices,
              world.extra(b).allocation->slots[0].devices);
    EXPECT_NE(world.extra(a).allocation->slots[0].devices,
              world.extra(c).allocation->slots[0].devices);
}

TEST(Parts, unenforced_only_for_who_accepts_that) {
    World world;
    world.hello(card(80'000, false));
    EXPECT_FALSE(start(world, world.submit(part(500, 0)), {"n1"}));
    model::JobSpec spec = part(500, 0);
    spec.share_unenforced = true;
    EXPECT_TRUE(start(world, world.submit(spec), {"n1"}));
}

TEST(Parts, partitions_are_of_their_profile_id) {
    World world;
    model::NodeFacts facts = card(10'000, true, 2);
    facts.devices[0].profile = "19", facts.devices[0].parent = "GPU-0";
    facts.devices[1].profile = "14", facts.devices[1].parent = "GPU-0";
    world.hello(facts);
    model::JobSpec spec = gang_job(1, 1);
    EXPECT_FALSE(start(world, world.submit(spec), {"n1"})) << "a partition is no whole device";
    spec.roles[0].devices[0].profile = "14";
    const JobId id = world.submit(spec);
    ASSERT_TRUE(start(world, id, {"n1"}));
    EXPECT_EQ(world.extra(id).allocation->slots[0].devices[0], facts.devices[1].id);
    facts.devices[0].parent = facts.devices[1].id;
    const Step step = world.must(LinkOpened{99, "n1", "", {0, facts, {}}});
    EXPECT_TRUE(world.told("node.refused")) << "a device and its partition are one";
}

struct Island {
    const char* name;
    const char* required;
    std::vector<std::string> links;  // By device; two NUMA nodes of four.
    std::int64_t busy, gpus;
    bool starts;
    friend void PrintTo(const Island& row, std::ostream* out) { *out << row.name; }
};
const Island kIslands[] = {
    {"F8_four_and_four_hold_no_eight", "numa", {}, 0, 8, false},
    {"F8_four_of_one_numa_node", "numa", {}, 0, 4, true},
    {"three_of_the_other_numa_node", "numa", {}, 2, 3, true},
    {"link_of_all", "link", {"a", "a", "a", "a", "a", "a", "a", "a"}, 0, 8, true},
    {"link_of_pairs", "link", {"a", "a", "b", "b", "c", "c", "d", "d"}, 0, 3, false},
    {"no_link_at_all", "link", {}, 0, 2, false},
    {"anywhere", "", {}, 0, 8, true},
};
class Islands : public testing::TestWithParam<Island> {};
TEST_P(Islands, hold_the_request_whole) {
    const Island& row = GetParam();
    World world;
    model::NodeFacts facts = facts_of("n1");
    for (std::size_t i = 0; i < row.links.size(); ++i) facts.devices[i].link_group = row.links[i];
    world.hello(facts);
    if (row.busy > 0) ASSERT_TRUE(start(world, world.submit(gang_job(1, row.busy)), {"n1"}));
    model::JobSpec spec = gang_job(1, row.gpus);
    spec.topology.required = row.required;
    const JobId id = world.submit(spec);
    EXPECT_EQ(start(world, id, {"n1"}), row.starts);
    if (!row.starts || row.required != std::string("numa")) return;
    for (const std::string& device : world.extra(id).allocation->slots[0].devices)
        EXPECT_EQ(device.back() - '0' >= 4, row.busy > 0) << device;
}
INSTANTIATE_TEST_SUITE_P(Table, Islands, testing::ValuesIn(kIslands),
                         [](const auto& row) { return row.param.name; });

TEST(Kinds, one_a_gang_unless_told_otherwise) {
    World world;
    world.hello("n1");
    model::NodeFacts other = facts_of("n2");
    for (model::Device& device : other.devices) device.kind = "a100";
    world.hello(other);
    model::JobSpec spec = gang_job(2, 4);
    spec.roles[0].devices = {{"h100", 4, {}, ""}, {"a100", 4, {}, ""}};
    scheduler::Plan plan;
    auto both = slots(world, {"n1", "n2"});
    both[1].alternative = 1;
    const JobId same = world.submit(spec);
    plan.starts = {{same, both}};
    world.must(PlanProposed{plan});
    EXPECT_EQ(world.job(same).state, JobState::Pending);
    spec.mixed_kinds = true;
    const JobId mixed = world.submit(spec);
    plan.starts = {{mixed, both}};
    world.must(PlanProposed{plan});
    EXPECT_EQ(world.job(mixed).state, JobState::Starting);
    EXPECT_EQ(world.extra(mixed).allocation->devices,
              (model::Amounts{{"a100", 4000}, {"gpu", 8000}, {"gpus", 8000}, {"h100", 4000}}));
}

// ---- bookings -----------------------------------------------------------------------------------

TEST(Bookings, are_of_jobs_that_wait) {
    World world;
    world.hello("n1"), world.hello("n2");
    const JobId a = world.submit(gang_job(1, 8)), b = world.submit(gang_job(2, 8));
    scheduler::Plan plan;
    plan.bookings = {{a, world.now + Duration{5000}, slots(world, {"n1"})},
                     {b, kNever, slots(world, {"n1", "n2"})},
                     {{99}, kNever, slots(world, {"n1"})}};
    world.must(PlanProposed{plan});
    ASSERT_EQ(world.state.tables.bookings->size(), 2u);
    ASSERT_TRUE(start(world, a, {"n1"}));
    ASSERT_EQ(world.state.tables.bookings->size(), 1u);
    world.must(ActOnNode{world.root, "n2", NodeAction::Forget, ""});
    EXPECT_TRUE(world.state.tables.bookings->empty()) << "its node is gone";
}

}  // namespace
}  // namespace muster::core
