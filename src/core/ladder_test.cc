// Whose fault it was, and what comes next: causes apart, back-off, avoidance, resumption.
#include "core/test_world.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;
using protocol::TaskState;

struct Row {
    const char* name;
    Cause cause;
    int exit_code;
    std::int64_t restart_max;
    JobState want;
    std::uint32_t restarts, faults;
    bool avoids;
    friend void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
};
const Row kRows[] = {
    {"success", Cause::Success, 0, 0, JobState::Succeeded, 0, 0, false},
    {"user_error", Cause::UserError, 1, 0, JobState::Failed, 0, 0, false},
    {"user_error_with_a_restart", Cause::UserError, 1, 1, JobState::Pending, 1, 0, false},
    {"oom", Cause::Oom, -1, 0, JobState::Failed, 0, 0, false},
    {"oom_with_a_restart", Cause::Oom, -1, 3, JobState::Pending, 1, 0, false},
    {"launch_is_the_nodes_fault", Cause::Launch, -1, 0, JobState::Pending, 0, 1, true},
    {"device_fault", Cause::DeviceFault, -1, 0, JobState::Pending, 0, 1, true},
    {"vanished", Cause::Vanished, -1, 0, JobState::Pending, 0, 1, true},
    {"fenced", Cause::Fenced, -1, 0, JobState::Pending, 0, 1, true},
    {"image_is_tried_again", Cause::Image, -1, 0, JobState::Pending, 0, 1, false},
    {"preempted", Cause::Preempted, -1, 0, JobState::Pending, 0, 1, false},
};
class Ladder : public testing::TestWithParam<Row> {};
TEST_P(Ladder, counts_causes_apart) {
    const Row& row = GetParam();
    World world;
    world.hello("n1");
    model::JobSpec spec = small_job();
    spec.restart.max = row.restart_max;
    const JobId id = world.submit(spec);
    world.plan();
    world.run(id);
    world.end(id, 0, row.cause, row.exit_code);
    EXPECT_EQ(world.job(id).state, row.want);
    EXPECT_EQ(world.job(id).cause, row.cause);
    EXPECT_EQ(world.job(id).restarts, row.restarts);
    EXPECT_EQ(world.job(id).faults, row.faults);
    EXPECT_EQ(!world.extra(id).avoid.empty(), row.avoids);
    ASSERT_EQ(world.extra(id).attempts.size(), 1u);
    EXPECT_EQ(world.extra(id).attempts[0].cause, row.cause);
    EXPECT_TRUE(world.state.tables.node_use.at(1).jobs.empty());
}
INSTANTIATE_TEST_SUITE_P(Table, Ladder, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(Restart, on_names_the_exit_codes_that_count) {
    for (const int exit_code : {1, 42}) {
        World world;
        world.hello("n1");
        model::JobSpec spec = small_job();
        spec.restart = {.max = 5, .on_any = false, .exit_codes = {42}, .on_oom = false};
        const JobId id = world.submit(spec);
        world.plan();
        world.run(id);
        world.end(id, 0, Cause::UserError, exit_code);
        EXPECT_EQ(world.job(id).state, exit_code == 42 ? JobState::Pending : JobState::Failed);
    }
}

TEST(Restart, back_off_of_own_failures_doubles_to_ten_minutes) {
    World world;
    world.checks = false;
    world.hello("n1");
    model::JobSpec spec = small_job();
    spec.restart.max = -1;
    spec.restart.backoff = seconds(10);
    const JobId id = world.submit(spec);
    for (const std::int64_t wait : {10, 20, 40, 80, 160, 320, 600, 600}) {
        world.plan();
        world.run(id);
        world.end(id, 0, Cause::UserError);
        EXPECT_EQ((world.job(id).eligible - world.now).ms, wait * 1000);
        world.pass(wait * 1000, {"n1"});
    }
}

TEST(Restart, F38_a_node_that_fails_launches_is_avoided_and_backed_off_from) {
    World world;
    world.checks = false;
    world.state.settings.launch_failures_to_hold = 100;
    world.hello("n1");
    world.hello("n2");
    const JobId id = world.submit(small_job());
    world.plan();
    EXPECT_EQ(world.node_of(id), "n1");
    world.end(id, 0, Cause::Launch);
    EXPECT_EQ((world.job(id).eligible - world.now).ms, 1000);
    EXPECT_EQ(world.plan(), 0u) << "backs off";
    world.pass(1000, {"n1", "n2"});
    world.plan();
    EXPECT_EQ(world.node_of(id), "n2") << "avoids the node that failed it";
    world.end(id, 0, Cause::Launch);
    EXPECT_EQ((world.job(id).eligible - world.now).ms, 2000);
    world.pass(2000, {"n1", "n2"});
    EXPECT_EQ(world.plan(), 1u) << "nothing else fits: it may be used again";
    std::int64_t wait = 2000;
    for (int i = 0; i < 10; ++i) {
        world.end(id, 0, Cause::Launch);
        wait = std::min<std::int64_t>(wait * 2, 300'000);
        EXPECT_EQ((world.job(id).eligible - world.now).ms, wait);
        world.pass(wait, {"n1", "n2"});
        world.plan();
    }
    EXPECT_EQ(world.job(id).restarts, 0u);
}

TEST(Restart, F38_a_node_that_fails_different_jobs_is_held_and_comes_back_by_itself) {
    World world;
    world.hello("n1");
    for (int i = 0; i < 3; ++i) {
        const JobId id = world.submit(small_job("j" + std::to_string(i)));
        world.plan();
        world.end(id, 0, Cause::Launch);
        world.must(ActOnJob{world.alice, id, -1, JobAction::Cancel, "", 0});
    }
    ASSERT_EQ(world.state.tables.nodes.at(1).holds.size(), 1u);
    EXPECT_EQ(world.state.tables.nodes.at(1).holds[0].owner, "launch-failures");
    world.submit(small_job());
    EXPECT_EQ(world.plan(), 0u);
    world.pass(600'000, {"n1"});
    EXPECT_EQ(world.plan(), 1u);
}

TEST(Restart, an_image_that_cannot_be_had_is_asked_for_ten_times_with_back_off) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(small_job());
    for (std::int64_t i = 0, wait = 1000; i < 10; ++i, wait *= 2) {
        EXPECT_EQ(world.job(id).state, JobState::Pending);
        world.plan();
        world.end(id, 0, Cause::Image);
        if (i < 9)
            EXPECT_EQ((world.job(id).eligible - world.now).ms,
                      std::min<std::int64_t>(wait, 300'000));
        world.pass(wait, {"n1"});
    }
    EXPECT_EQ(world.job(id).state, JobState::Failed);
    EXPECT_EQ(world.job(id).cause, Cause::Image);
}

TEST(Restart, an_image_that_does_not_exist_fails_the_job_at_once_with_its_cause) {
    World world;
    world.hello("n1"), world.hello("n2");
    for (const std::int64_t nodes : {1, 2}) {
        const JobId id = world.submit(gang_job(nodes, 8));
        world.plan();
        protocol::TaskStatus end = world.ended(id, 0, Cause::Image);
        end.end.message = "image x: manifest unknown";
        end.end.permanent = true;
        world.report(end);
        if (nodes == 2) world.end(id, 1, Cause::Peer);
        EXPECT_EQ(world.job(id).state, JobState::Failed);
        EXPECT_EQ(world.job(id).cause, Cause::Image);
        EXPECT_EQ(world.extra(id).message, "image x: manifest unknown");
        EXPECT_EQ(world.extra(id).attempts_total, 1);
    }
}

TEST(Restart, the_signal_that_ended_an_attempt_is_kept) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(small_job());
    world.plan();
    world.run(id);
    protocol::TaskStatus end = world.ended(id, 0, Cause::UserError);
    end.end.signal = 11;
    world.report(end);
    EXPECT_EQ(world.extra(id).attempts.at(0).signal, 11);
    EXPECT_EQ(world.extra(id).exit_code, -1);
}

TEST(Gang, starts_when_all_stand_at_the_barrier_and_ends_when_all_ended) {
    World world;
    for (const char* name : {"n1", "n2", "n3"}) world.hello(name);
    const JobId id = world.submit(gang_job(3, 8));
    world.plan();
    ASSERT_EQ(world.sent<protocol::StartTask>().size(), 3u);
    EXPECT_TRUE(world.sent<protocol::StartTask>()[0].barrier);
    EXPECT_EQ(world.sent<protocol::StartTask>()[2].gang->size(), 3u);
    world.report(id, 0, TaskState::Ready);
    world.report(id, 1, TaskState::Ready);
    EXPECT_TRUE(world.sent<protocol::Go>().empty());
    world.report(id, 2, TaskState::Ready);
    ASSERT_EQ(world.sent<protocol::Go>().size(), 3u);
    EXPECT_EQ(world.sent<protocol::Go>()[1].master_address, "10.0.0.1");
    EXPECT_EQ(world.sent<protocol::Go>()[1].master_port, 29'500);
    EXPECT_EQ(world.job(id).state, JobState::Running);
    world.end(id, 0, Cause::Success);
    world.end(id, 1, Cause::Success);
    EXPECT_EQ(world.job(id).state, JobState::Running);
    world.end(id, 2, Cause::Success);
    EXPECT_EQ(world.job(id).state, JobState::Succeeded);
}

TEST(Gang, every_rank_learns_where_all_stand) {
    World world;
    for (const char* name : {"n1", "n2"}) world.hello(name);
    world.must(
        SetTopology{world.root, {{"zone", "leaf"}, {{"n1", {"z1", "l1"}}, {"n2", {"z1", "l2"}}}}});
    world.submit(gang_job(2, 8));
    world.plan();
    const auto orders = world.sent<protocol::StartTask>();
    ASSERT_EQ(orders.size(), 2u);
    for (const protocol::StartTask& order : orders) {
        EXPECT_EQ(order.levels, (std::vector<std::string>{"zone", "leaf"}));
        EXPECT_EQ((*order.gang)[0].path, (std::vector<std::string>{"z1", "l1"}));
        EXPECT_EQ((*order.gang)[1].path, (std::vector<std::string>{"z1", "l2"}));
    }
}

TEST(Gang, the_first_bad_end_decides_and_the_others_are_peers) {
    World world;
    for (const char* name : {"n1", "n2"}) world.hello(name);
    const JobId id = world.submit(gang_job(2, 8));
    world.plan();
    world.run(id);
    world.clear();
    world.end(id, 1, Cause::Oom);
    EXPECT_EQ(world.job(id).state, JobState::Stopping);
    ASSERT_EQ(world.sent<protocol::StopTask>().size(), 1u);
    EXPECT_EQ(world.sent<protocol::StopTask>()[0].cause, Cause::Peer);
    world.end(id, 0, Cause::UserError);
    EXPECT_EQ(world.job(id).state, JobState::Failed);
    EXPECT_EQ(world.job(id).cause, Cause::Oom);
    EXPECT_EQ(world.extra(id).attempts[0].rank, 1u);
    EXPECT_EQ(world.extra(id).attempts[0].node, "n2");
}

TEST(Gang, mpi_ranks_learn_where_their_peers_take_commands) {
    World world;
    for (const char* name : {"n1", "n2"}) world.hello(name);
    model::JobSpec spec = gang_job(2, 0);
    spec.launch = model::Launch::Mpi;
    spec.roles[0].cpus = MilliCpu{3'000};
    const JobId id = world.submit(spec);
    world.plan();
    // Without devices a slot is a CPU.
    EXPECT_EQ((*world.sent<protocol::StartTask>()[1].gang)[1].slots, 3u);
    for (const std::uint32_t rank : {0u, 1u}) {
        protocol::TaskStatus ready = world.status(id, rank, TaskState::Ready);
        ready.launch = {.port = 100 + static_cast<int>(rank), .secret = "s" + std::to_string(rank)};
        world.report(ready);
    }
    const std::vector<protocol::LaunchPoint> points = {{100, "s0"}, {101, "s1"}};
    ASSERT_EQ(world.sent<protocol::Go>().size(), 2u);
    for (const protocol::Go& go : world.sent<protocol::Go>()) EXPECT_EQ(go.launch, points);
}

TEST(Gang, mpi_is_done_when_its_first_rank_is) {
    World world;
    for (const char* name : {"n1", "n2"}) world.hello(name);
    model::JobSpec spec = gang_job(2, 0);
    spec.launch = model::Launch::Mpi;
    const JobId id = world.submit(spec);
    world.plan();
    world.run(id);
    world.end(id, 0, Cause::Success);
    EXPECT_EQ(world.job(id).state, JobState::Stopping);
    world.end(id, 1, Cause::Peer);
    EXPECT_EQ(world.job(id).state, JobState::Succeeded);
}

TEST(Gang, resumes_from_the_greatest_checkpoint_and_tells_what_it_lost) {
    World world;
    for (const char* name : {"n1", "n2"}) world.hello(name);
    model::JobSpec spec = gang_job(2, 8);
    spec.restart.max = 1;
    spec.restart.backoff = seconds(10);
    const JobId id = world.submit(spec);
    world.plan();
    world.run(id);
    const auto say = [&](auto message) {
        message.key = world.key(id, 1);
        world.must(FromAgent{world.sessions["n2"], message});
    };
    say(protocol::CheckpointDone{{}, 40, "/ckpt/40"});
    say(protocol::CheckpointDone{{}, 20, "/ckpt/20"});
    say(protocol::Progress{{}, 0, 55, 100, {}});
    world.end(id, 0, Cause::UserError);
    world.end(id, 1, Cause::Peer);
    EXPECT_EQ(world.job(id).state, JobState::Pending);
    world.pass(10'000, {"n1", "n2"});
    world.clear();
    world.plan();
    EXPECT_EQ(world.sent<protocol::StartTask>()[0].latest_checkpoint, "/ckpt/40");
    EXPECT_EQ(world.sent<protocol::StartTask>()[0].restart_count, 1u);
    world.pass(5'000, {"n1", "n2"});
    world.run(id);
    EXPECT_TRUE(world.told("job.recovered"));
    const Attempt& attempt = world.extra(id).attempts.at(0);
    EXPECT_EQ(attempt.last_step, 55);
    EXPECT_EQ(attempt.lost, seconds(15));
    EXPECT_EQ(world.extra(id).steps_repeated, 15);
    EXPECT_EQ(world.extra(id).lost_time, seconds(15));
}

struct Match {
    const char* name;
    model::LogRule::Action action;
    Cause cause;
    JobState want;
    bool avoids;
    friend void PrintTo(const Match& row, std::ostream* out) { *out << row.name; }
};
const Match kMatches[] = {
    {"fail", model::LogRule::Action::Fail, Cause::LogRule, JobState::Failed, false},
    {"exclude_node", model::LogRule::Action::ExcludeNode, Cause::DeviceFault, JobState::Pending,
     true},
    {"requeue", model::LogRule::Action::Requeue, Cause::Requeued, JobState::Pending, false},
};
class LogRules : public testing::TestWithParam<Match> {};
TEST_P(LogRules, act) {
    World world;
    world.hello("n1");
    model::JobSpec spec = small_job();
    spec.log_rules = {{"Xid", GetParam().action}};
    const JobId id = world.submit(spec);
    world.plan();
    world.run(id);
    world.must(
        FromAgent{world.sessions["n1"], protocol::LogMatch{world.key(id), 0, "NVRM: Xid 79"}});
    EXPECT_EQ(world.job(id).state, JobState::Stopping);
    world.end(id, 0, GetParam().cause);
    EXPECT_EQ(world.job(id).state, GetParam().want);
    EXPECT_EQ(world.job(id).restarts, 0u);
    EXPECT_EQ(!world.extra(id).avoid.empty(), GetParam().avoids);
}
INSTANTIATE_TEST_SUITE_P(Table, LogRules, testing::ValuesIn(kMatches),
                         [](const auto& row) { return row.param.name; });

TEST(Devices, F40_are_bound_by_id_in_one_island_if_one_holds_them) {
    World world;
    model::NodeFacts facts = facts_of("n1");
    for (std::size_t i = 0; i < facts.devices.size(); ++i)
        facts.devices[i].link_group = i % 2 == 0 ? "even" : "odd";
    world.hello(facts);
    const JobId one = world.submit(gang_job(1, 1));
    const JobId four = world.submit(gang_job(1, 4));
    const JobId three = world.submit(gang_job(1, 3));
    world.plan();
    const auto devices = [&](JobId id) { return world.extra(id).allocation->slots[0].devices; };
    EXPECT_EQ(devices(one), (std::vector<std::string>{"n1-gpu0"}));
    EXPECT_EQ(devices(four),
              (std::vector<std::string>{"n1-gpu1", "n1-gpu3", "n1-gpu5", "n1-gpu7"}));
    EXPECT_EQ(devices(three), (std::vector<std::string>{"n1-gpu2", "n1-gpu4", "n1-gpu6"}));
}

TEST(Devices, F43_a_device_that_fails_stops_its_owner_only) {
    World world;
    world.hello("n1");
    const JobId a = world.submit(gang_job(1, 1));
    const JobId b = world.submit(gang_job(1, 1));
    world.plan();
    world.run(a), world.run(b);
    model::NodeFacts facts = facts_of("n1");
    facts.devices[0].healthy = false;
    world.must(FromAgent{world.sessions["n1"], protocol::FactsChanged{facts}});
    EXPECT_EQ(world.job(a).cause, Cause::DeviceFault);
    EXPECT_EQ(world.job(a).state, JobState::Stopping);
    EXPECT_EQ(world.job(b).state, JobState::Running);
    const JobId rest = world.submit(gang_job(1, 6));
    EXPECT_EQ(world.plan(), 1u);
    EXPECT_EQ(world.job(rest).state, JobState::Starting);
}

TEST(Start, F2_a_plan_is_checked_against_the_state_as_it_is) {
    World world;
    world.hello("n1");
    const JobId a = world.submit(gang_job(1, 8, "a"));
    const scheduler::Plan first = world.index.plan(world.now);
    ASSERT_EQ(first.starts.size(), 1u);
    world.must(ActOnJob{world.alice, a, -1, JobAction::Hold, "", 0});
    const JobId b = world.submit(gang_job(1, 8, "b"));
    world.plan();
    EXPECT_EQ(world.job(b).state, JobState::Starting);
    world.must(ActOnJob{world.alice, a, -1, JobAction::Release, "", 0});
    world.must(PlanProposed{first});
    EXPECT_EQ(world.job(a).state, JobState::Pending) << "its place is taken";
    world.must(PlanProposed{first});
    world.end(b, 0, Cause::Success);
    EXPECT_EQ(world.plan(), 1u) << "and it is planned again";
}

TEST(Start, one_record_of_at_most_300_bytes) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(gang_job(1, 8));
    scheduler::Plan plan = world.index.plan(world.now);
    const Step step = world.must(PlanProposed{plan});
    std::map<RecordKind, int> durable;
    for (const Change& change : step.changes)
        if (const auto name = record_of(change)) ++durable[name->kind];
    // What its user uses is one record, for all that starts in a batch.
    EXPECT_EQ(durable, (std::map<RecordKind, int>{{RecordKind::Job, 1}, {RecordKind::Usage, 1}}));
    EXPECT_LE(encode_record(world.state, {RecordKind::Job, id.value})->size(), 300u);
}

}  // namespace
}  // namespace muster::core
