// Silence and return: leases, fences, the freeze, reconciliation, restarts of the controller.
#include <algorithm>

#include "core/test_world.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;
using model::NodeHealth;
using protocol::TaskState;

NodeHealth health(const World& world, const std::string& name) {
    return world.state.tables.node_live.at(find_node(world.state, name)->value).health;
}
std::vector<std::string> names(int count, int first = 1) {
    std::vector<std::string> out;
    for (int i = first; i < first + count; ++i) out.push_back("n" + std::to_string(i));
    return out;
}
void hello_all(World& world, int count) {
    for (const std::string& name : names(count)) world.hello(name);
}

TEST(Lease, one_host_of_three_that_dies_is_recovered_from) {
    World world;
    hello_all(world, 4);
    const JobId id = world.submit(gang_job(3, 8));
    world.plan();
    world.run(id);
    ASSERT_EQ(world.node_of(id, 0), "n1");
    world.must(
        FromAgent{world.sessions["n2"], protocol::CheckpointDone{world.key(id, 1), 40, "/c/40"}});
    const Time died = world.now;
    world.must(LinkClosed{world.sessions["n1"]});
    world.clear();
    world.end(id, 1, Cause::UserError);  // Its peers notice first, and fail for it.
    EXPECT_EQ(world.job(id).state, JobState::Stopping);
    world.end(id, 2, Cause::Peer);
    const std::vector<std::string> alive = names(3, 2);
    world.pass(5'000, alive);
    EXPECT_EQ(health(world, "n1"), NodeHealth::Suspect);
    world.pass(10'000, alive);
    EXPECT_EQ(health(world, "n1"), NodeHealth::Lost);
    EXPECT_EQ(world.job(id).state, JobState::Fencing);
    EXPECT_TRUE(world.told("job.lost"));
    world.pass(22'000, alive);
    EXPECT_EQ(world.job(id).state, JobState::Fencing) << "nothing is replaced before the fence";
    world.pass(2'000, alive);
    EXPECT_EQ(world.job(id).state, JobState::Pending);
    EXPECT_EQ(world.job(id).cause, Cause::NodeLost) << "not its peers' fault";
    EXPECT_EQ(world.job(id).restarts, 0u);
    world.pass(1'000, alive);
    world.plan();
    ASSERT_EQ(world.job(id).state, JobState::Starting);
    EXPECT_EQ(world.node_of(id, 2), "n4");
    EXPECT_EQ(world.sent<protocol::StartTask>().back().latest_checkpoint, "/c/40");
    world.run(id);
    EXPECT_EQ(world.extra(id).attempts[0].fault, died);
    EXPECT_GE(world.extra(id).attempts[0].lost, seconds(33));
}

TEST(Lease, F35_a_flap_is_not_a_death) {
    World world;
    hello_all(world, 3);
    const JobId id = world.submit(gang_job(2, 8));
    world.plan();
    world.run(id);
    world.must(LinkClosed{world.sessions["n1"]});
    world.pass(12'000, names(2, 2));
    EXPECT_EQ(health(world, "n1"), NodeHealth::Suspect);
    world.clear();
    world.hello("n1", {world.status(id, 0, TaskState::Running)});
    EXPECT_EQ(world.job(id).state, JobState::Running);
    EXPECT_EQ(world.job(id).epoch, 0u);
    EXPECT_TRUE(world.sent<protocol::StopTask>().empty());
    EXPECT_EQ(world.sent<protocol::Welcome>().at(0).wanted.size(), 1u);
    world.pass(60'000, names(3));
    EXPECT_EQ(world.job(id).state, JobState::Running);
}

TEST(Lease, a_single_node_job_is_replaced_on_the_agents_word_or_a_fence_only) {
    World world;
    hello_all(world, 3);
    const JobId id = world.submit(small_job());
    world.plan();
    world.run(id);
    world.pass(3'600'000, names(2, 2));
    EXPECT_EQ(world.job(id).state, JobState::Fencing);
    EXPECT_EQ(world.extra(id).message, "node silent");
    EXPECT_FALSE(world.state.tables.node_use.at(1).jobs.empty());
    // It was there all the time.
    world.hello("n1", {world.status(id, 0, TaskState::Running)});
    EXPECT_EQ(world.job(id).state, JobState::Running);
    EXPECT_EQ(world.job(id).cause, Cause::None);
    // Silent again, and a person says that it is off.
    world.must(LinkClosed{world.sessions["n1"]});
    world.pass(20'000, names(2, 2));
    EXPECT_EQ(world.job(id).state, JobState::Fencing);
    world.must(ActOnNode{world.root, "n1", NodeAction::Fenced, "pulled the plug"});
    EXPECT_EQ(world.job(id).state, JobState::Pending);
    world.pass(1'000, names(2, 2));
    world.plan();
    EXPECT_EQ(world.node_of(id), "n2");
}

TEST(Lease, F37_a_job_cancelled_on_a_silent_node_ends_when_the_node_has_spoken) {
    World world;
    hello_all(world, 3);
    const JobId id = world.submit(small_job());
    world.plan();
    world.run(id);
    world.pass(20'000, names(2, 2));
    world.must(ActOnJob{world.alice, id, -1, JobAction::Cancel, "", 0});
    EXPECT_EQ(world.job(id).state, JobState::Fencing);
    world.clear();
    world.hello("n1", {world.status(id, 0, TaskState::Running)});
    EXPECT_EQ(world.sent<protocol::StopTask>().size(), 1u);
    world.end(id, 0, Cause::Cancelled);
    EXPECT_EQ(world.job(id).state, JobState::Cancelled);
}

TEST(Lease, F36_all_dark_at_once_freezes_evictions) {
    World world;
    hello_all(world, 4);
    const JobId id = world.submit(gang_job(2, 8));
    world.plan();
    world.run(id);
    world.pass(120'000);
    EXPECT_TRUE(world.state.tables.frozen);
    EXPECT_TRUE(world.told("cluster.frozen"));
    EXPECT_EQ(world.job(id).state, JobState::Running);
    world.hello("n1", {world.status(id, 0, TaskState::Running)});
    world.hello("n2", {world.status(id, 1, TaskState::Running)});
    EXPECT_FALSE(world.state.tables.frozen);
    EXPECT_TRUE(world.told("cluster.thawed"));
    world.pass(14'000, names(2));
    EXPECT_NE(health(world, "n3"), NodeHealth::Lost) << "their silence is counted anew";
    EXPECT_EQ(world.job(id).state, JobState::Running);
}

struct Silent {
    const char* name;
    int nodes, silent;
    bool frozen;
    friend void PrintTo(const Silent& row, std::ostream* out) { *out << row.name; }
};
const Silent kSilent[] = {
    {"one_of_three", 3, 1, false},   {"two_of_three", 3, 2, true},
    {"one_of_two", 2, 1, true},      {"two_of_four", 4, 2, false},
    {"three_of_four", 4, 3, true},   {"two_of_eight", 8, 2, false},
    {"three_of_eight", 8, 3, true},  {"three_of_twelve", 12, 3, false},
    {"four_of_twelve", 12, 4, true}, {"the_only_one", 1, 1, true},
};
class Freeze : public testing::TestWithParam<Silent> {};
TEST_P(Freeze, by_a_quarter_and_three_or_all_but_one) {
    World world;
    hello_all(world, GetParam().nodes);
    const int alive = GetParam().nodes - GetParam().silent;
    world.pass(16'000, names(alive));
    EXPECT_EQ(world.state.tables.frozen, GetParam().frozen);
    const std::string last = "n" + std::to_string(GetParam().nodes);
    EXPECT_EQ(health(world, last) == NodeHealth::Lost, !GetParam().frozen);
}
INSTANTIATE_TEST_SUITE_P(Table, Freeze, testing::ValuesIn(kSilent),
                         [](const auto& row) { return row.param.name; });

/// Nodes without leaves: the peers of n1 are n2 to n6. A gang runs on n1 and n2.
struct Island {
    const char* name;
    int nodes;
    std::vector<int> silent;
    bool replaced;
    friend void PrintTo(const Island& row, std::ostream* out) { *out << row.name; }
};
const Island kIslands[] = {
    {"alone", 20, {1}, true},
    {"with_two_of_five_peers", 20, {1, 3, 4}, true},
    {"with_three_of_five_peers", 20, {1, 3, 4, 5}, false},
    {"with_three_who_are_not_its_peers", 20, {1, 9, 10, 11}, true},
    {"one_of_three", 3, {1}, true},
    {"two_of_four", 4, {1, 2}, true},
    {"two_of_five", 5, {1, 2}, true},
};
class CutOff : public testing::TestWithParam<Island> {
protected:
    CutOff() {
        world.checks = false;
        hello_all(world, GetParam().nodes);
        world.pass(31'000, names(GetParam().nodes));  // Until they have heard of their peers.
        gang = world.submit(gang_job(2, 8));
        world.plan();
        world.run(gang);
        for (const std::string& name : names(GetParam().nodes)) {
            const int number = std::stoi(name.substr(1));
            if (std::ranges::find(GetParam().silent, number) == GetParam().silent.end())
                alive.push_back(name);
        }
    }
    /// Its gang's other member ends as it is told to.
    void stop_the_other() {
        if (world.job(gang).state == JobState::Fencing && GetParam().silent.size() != 2)
            world.end(gang, 1, Cause::Peer);
    }

    World world;
    JobId gang;
    std::vector<std::string> alive;
};
TEST_P(CutOff, is_replaced_only_if_half_of_its_peers_are_heard) {
    world.pass(20'000, alive);
    stop_the_other();
    world.pass(120'000, alive);
    EXPECT_EQ(world.job(gang).epoch, GetParam().replaced ? 1u : 0u);
    EXPECT_EQ(world.told("node.unconfirmed"), !GetParam().replaced);
    if (GetParam().replaced) return;
    EXPECT_EQ(world.job(gang).state, JobState::Fencing);
    EXPECT_NE(world.extra(gang).message.find("its peers are silent too"), std::string::npos);
    // Most of its peers are back: what they do not confirm any more ends soon after.
    world.hello("n3");
    alive.push_back("n3");
    world.pass(30'000, alive);
    EXPECT_EQ(world.job(gang).epoch, 0u);
    world.pass(3'000, alive);
    EXPECT_EQ(world.job(gang).epoch, 1u);
    EXPECT_EQ(world.extra(gang).attempts.at(0).message, "node n1 is lost");
}
TEST_P(CutOff, is_so_for_the_next_controller_too) {
    const auto other = world.status(gang, 1, TaskState::Running);
    const auto present = [&] {
        for (const std::string& name : alive)
            world.hello(name,
                        name == "n2" ? std::vector{other} : std::vector<protocol::TaskStatus>{});
    };
    world.pass(20'000, alive);
    world.restart();
    present();
    world.pass(16'000, alive);
    stop_the_other();
    world.pass(60'000, alive);
    EXPECT_EQ(world.job(gang).epoch, GetParam().replaced ? 1u : 0u);
    if (GetParam().replaced) return;
    world.must(ActOnNode{world.root, "n1", NodeAction::Fenced, "pulled the plug"});
    EXPECT_EQ(world.job(gang).epoch, 1u);
}
INSTANTIATE_TEST_SUITE_P(Table, CutOff, testing::ValuesIn(kIslands),
                         [](const auto& row) { return row.param.name; });

/// n1 is cut off, with three of the five peers that it was told of, before the leaves are named
/// anew. The names on the new leaves vouch for nothing: it would not ask them.
TEST(Restart, a_node_is_judged_by_the_peers_that_it_was_told_of) {
    World world;
    hello_all(world, 20);
    const JobId gang = world.submit(gang_job(2, 8));
    world.plan();
    world.run(gang);
    const auto other = world.status(gang, 1, TaskState::Running);
    ASSERT_EQ(world.node_of(gang, 0), "n1");
    ASSERT_EQ(world.node_of(gang, 1), "n2");
    world.pass(31'000, names(20));  // The sets of the time when they came one by one are over.
    std::vector<std::string> alive{"n2"};
    for (int i = 6; i <= 20; ++i) alive.push_back("n" + std::to_string(i));
    const auto present = [&] {
        for (const std::string& name : alive) {
            model::NodeFacts facts = facts_of(name);
            if (name != "n2" && name != "n6") facts.labels = {{"leaf", "b"}};
            world.hello(facts,
                        name == "n2" ? std::vector{other} : std::vector<protocol::TaskStatus>{});
        }
    };
    world.pass(3'000, alive);
    present();
    world.restart();
    present();
    world.pass(16'000, alive);
    world.end(gang, 1, Cause::Peer);
    world.pass(60'000, alive);
    EXPECT_EQ(world.job(gang).epoch, 0u) << "it may run on together with n3, n4 and n5";
    world.hello("n3"), world.hello("n4");
    alive.insert(alive.end(), {"n3", "n4"});
    world.pass(60'000, alive);
    EXPECT_EQ(world.job(gang).epoch, 1u);
}

TEST(Restart, F32_running_jobs_stay_as_they_are_and_are_learnt_again) {
    World world;
    hello_all(world, 3);
    const JobId gang = world.submit(gang_job(2, 8));
    const JobId single = world.submit(small_job());
    world.plan();
    world.run(gang), world.run(single);
    const auto a = world.status(gang, 0, TaskState::Running);
    const auto b = world.status(gang, 1, TaskState::Running);
    const auto c = world.status(single, 0, TaskState::Running);
    const std::string home = world.node_of(single);
    world.restart();
    world.pass(4'000);
    EXPECT_EQ(world.job(gang).state, JobState::Running);
    world.clear();
    for (const std::string& name : names(3)) {
        std::vector<protocol::TaskStatus> tasks;
        if (name == "n1") tasks.push_back(a);
        if (name == "n2") tasks.push_back(b);
        if (name == home) tasks.push_back(c);
        world.hello(name, tasks);
    }
    EXPECT_TRUE(world.sent<protocol::StopTask>().empty());
    EXPECT_TRUE(world.sent<protocol::StartTask>().empty());
    world.pass(60'000, names(3));
    EXPECT_EQ(world.job(gang).state, JobState::Running);
    EXPECT_EQ(world.job(gang).epoch, 0u);
    world.end(gang, 0, Cause::Success), world.end(gang, 1, Cause::Success);
    EXPECT_EQ(world.job(gang).state, JobState::Succeeded);
}

TEST(Restart, a_controller_that_is_down_for_an_hour_blames_nobody) {
    World world;
    hello_all(world, 3);
    const JobId id = world.submit(gang_job(2, 8));
    world.plan();
    world.run(id);
    const auto a = world.status(id, 0, TaskState::Running);
    const auto b = world.status(id, 1, TaskState::Running);
    world.now = world.now + seconds(3600);
    world.restart();
    world.pass(10'000);
    world.hello("n1", {a});
    world.hello("n2", {b});
    world.hello("n3");
    world.pass(60'000, names(3));
    EXPECT_EQ(world.job(id).state, JobState::Running);
    EXPECT_EQ(world.job(id).epoch, 0u);
}

TEST(Restart, a_silent_single_node_job_is_waited_for_by_the_next_controller_too) {
    World world;
    hello_all(world, 3);
    const JobId id = world.submit(small_job());
    world.plan();
    world.run(id);
    const auto running = world.status(id, 0, TaskState::Running);
    world.pass(20'000, names(2, 2));
    EXPECT_EQ(world.job(id).state, JobState::Fencing);
    world.restart();
    world.clear();
    world.hello("n2"), world.hello("n3");
    world.pass(100'000, names(2, 2));
    EXPECT_FALSE(world.told("job.stop-overdue"));
    world.clear();
    world.hello("n1", {running});
    EXPECT_EQ(world.job(id).state, JobState::Running);
    EXPECT_TRUE(world.sent<protocol::StopTask>().empty());
}

TEST(Restart, archives_again_what_was_not_said_to_be_archived) {
    World world;
    const JobId id = world.submit(small_job());
    world.must(ActOnJob{world.alice, id, -1, JobAction::Cancel, "", 0});
    world.clear();
    world.restart();
    ASSERT_EQ(world.commands.size(), 1u);
    EXPECT_EQ(std::get<Archive>(world.commands[0]).job, id);
}

TEST(Link, F33_what_an_agent_has_lost_is_started_again_or_counted_as_its_fault) {
    World world;
    hello_all(world, 1);
    const JobId id = world.submit(small_job());
    world.plan();
    world.clear();
    world.hello("n1");  // The order was lost with the link.
    ASSERT_EQ(world.sent<protocol::StartTask>().size(), 1u);
    EXPECT_EQ(world.job(id).state, JobState::Starting);
    world.report(id, 0, TaskState::Accepted);
    world.clear();
    world.hello("n1");  // It had it, and has it no more.
    EXPECT_TRUE(world.sent<protocol::StartTask>().empty());
    EXPECT_EQ(world.job(id).cause, Cause::Vanished);
    EXPECT_EQ(world.job(id).state, JobState::Pending);
    EXPECT_EQ(world.job(id).faults, 1u);
}

TEST(Link, a_reboot_takes_all_tasks_with_it) {
    World world;
    hello_all(world, 3);
    const JobId id = world.submit(gang_job(2, 8));
    world.plan();
    world.run(id);
    model::NodeFacts facts = facts_of("n1");
    facts.boot_id = "boot-2";
    world.hello(facts);
    EXPECT_EQ(world.job(id).cause, Cause::Vanished);
    EXPECT_EQ(world.job(id).state, JobState::Stopping) << "its peer is being stopped";
    world.end(id, 1, Cause::Peer);
    EXPECT_EQ(world.job(id).state, JobState::Pending);
}

TEST(Link, a_stale_epoch_is_stopped_and_its_node_gets_nothing_before_it_has_ended) {
    World world;
    hello_all(world, 3);
    const JobId id = world.submit(gang_job(2, 8));
    world.plan();
    world.run(id);
    const auto old = world.status(id, 0, TaskState::Running);
    world.pass(20'000, names(2, 2));
    world.end(id, 1, Cause::Peer);
    world.pass(20'000, names(2, 2));
    EXPECT_EQ(world.job(id).epoch, 1u);
    world.clear();
    world.hello("n1", {old});
    ASSERT_EQ(world.sent<protocol::StopTask>("n1").size(), 1u);
    EXPECT_TRUE(world.sent<protocol::Welcome>("n1")[0].wanted.empty());
    const JobId other = world.submit(gang_job(1, 8));
    world.plan();
    EXPECT_EQ(world.job(other).state, JobState::Pending) << "the stray still holds its devices";
    auto gone = old;
    gone.state = TaskState::Ended;
    world.must(FromAgent{world.sessions["n1"], gone});
    EXPECT_EQ(world.sent<protocol::ForgetTask>("n1").size(), 1u);
    EXPECT_GE(world.plan(), 1u);
}

TEST(Link, a_stray_that_is_never_reported_ended_costs_its_node_the_link) {
    World world;
    hello_all(world, 1);
    protocol::TaskStatus stray;
    stray.key = {{7}, 0, 0};
    stray.state = TaskState::Running;
    world.must(FromAgent{world.sessions["n1"], stray});
    world.clear();
    world.pass(41'000, {"n1"});
    ASSERT_FALSE(world.commands.empty());
    bool closed = false;
    for (const Command& command : world.commands)
        closed |= std::holds_alternative<CloseLink>(command);
    EXPECT_TRUE(closed);
    world.hello("n1");
    world.submit(small_job());
    EXPECT_EQ(world.plan(), 1u);
}

TEST(Link, orders_to_stop_are_repeated_after_every_hello) {
    World world;
    hello_all(world, 1);
    const JobId id = world.submit(small_job());
    world.plan();
    world.run(id);
    world.must(ActOnJob{world.alice, id, -1, JobAction::Cancel, "", 0});
    for (int i = 0; i < 3; ++i) {
        world.clear();
        world.hello("n1", {world.status(id, 0, TaskState::Running)});
        EXPECT_EQ(world.sent<protocol::StopTask>().size(), 1u);
    }
    world.hello("n1", {world.ended(id, 0, Cause::Cancelled)});
    EXPECT_EQ(world.job(id).state, JobState::Cancelled);
}

TEST(Link, a_lost_go_is_repeated_even_by_the_next_controller) {
    World world;
    hello_all(world, 2);
    const JobId id = world.submit(gang_job(2, 8));
    world.plan();
    world.report(id, 0, TaskState::Ready);
    world.report(id, 1, TaskState::Ready);
    const auto a = world.status(id, 0, TaskState::Running);
    const auto b = world.status(id, 1, TaskState::Ready);
    world.restart();
    world.hello("n2", {b});
    EXPECT_TRUE(world.sent<protocol::Go>("n2").empty()) << "its master is not known yet";
    world.hello("n1", {a});
    ASSERT_EQ(world.sent<protocol::Go>("n2").size(), 1u);
    EXPECT_EQ(world.sent<protocol::Go>("n2")[0].master_port, 29'500);
}

TEST(Link, a_second_link_replaces_the_first_and_the_first_is_not_heard_any_more) {
    World world;
    world.hello("n1");
    const std::uint64_t old = world.sessions["n1"];
    world.clear();
    world.hello("n1");
    EXPECT_EQ(std::get<CloseLink>(world.commands.at(0)).session, old);
    EXPECT_EQ(world.refused(FromAgent{old, protocol::Heartbeat{1}}).code, Code::Gone);
}

TEST(Link, newer_terms_are_not_contradicted) {
    World world;
    world.must(LinkOpened{7, "n1", "", {5, facts_of("n1"), {}}});
    EXPECT_TRUE(std::holds_alternative<CloseLink>(world.commands.back()));
    EXPECT_EQ(world.refused(BecomeLeader{1}).code, Code::Conflict);
    world.hello("n2");
    protocol::TaskStatus status;
    status.key = {{1}, 0, 0};
    status.term = 9;
    EXPECT_EQ(world.refused(FromAgent{world.sessions["n2"], status}).code, Code::Conflict);
}

TEST(Link, F25_facts_out_of_bounds_are_refused) {
    World world;
    model::NodeFacts facts = facts_of("n1");
    facts.cpus = {-1};
    world.must(LinkOpened{7, "n1", "", {0, facts, {}}});
    EXPECT_TRUE(std::holds_alternative<CloseLink>(world.commands.back()));
    EXPECT_FALSE(find_node(world.state, "n1"));
}

TEST(Link, a_heartbeat_is_granted_and_names_peers_on_other_leaves) {
    World world;
    for (int i = 1; i <= 6; ++i) {
        model::NodeFacts facts = facts_of("n" + std::to_string(i));
        facts.labels = {{"leaf", i <= 2 ? "a" : i <= 4 ? "b" : "c"}};
        world.hello(facts);
    }
    std::vector<protocol::PeerAddress> peers;  // As it was told last.
    for (const protocol::LeaseGrant& grant : world.sent<protocol::LeaseGrant>("n1"))
        if (!grant.peers.empty()) peers = grant.peers;
    ASSERT_EQ(peers.size(), 4u);
    EXPECT_EQ(peers[0].name, "n3");
    EXPECT_EQ(peers[1].name, "n5");
    EXPECT_EQ(peers[2].name, "n4");
    EXPECT_EQ(peers[3].name, "n6");
    world.clear();
    world.must(FromAgent{world.sessions["n1"], protocol::Heartbeat{17}});
    const auto grants = world.sent<protocol::LeaseGrant>("n1");
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_EQ(grants[0].sequence, 17u);
    EXPECT_TRUE(grants[0].peers.empty()) << "as before";
}

TEST(EmptyState, running_tasks_of_a_lost_state_are_adopted_and_never_killed) {
    Settings settings;
    settings.bootstrap = false;
    World world(settings);
    protocol::TaskStatus running;
    running.key = {{41}, 3, 0};
    running.term = 1;
    running.state = TaskState::Running;
    world.hello("n1", {running});
    EXPECT_TRUE(world.sent<protocol::Welcome>().at(0).adopt_all);
    EXPECT_TRUE(world.sent<protocol::StopTask>().empty());
    EXPECT_TRUE(world.told("cluster.adopted"));
    running.key.job = {12};
    world.hello("n2", {running});
    EXPECT_TRUE(world.sent<protocol::Welcome>("n2").at(0).adopt_all);
    EXPECT_GT(world.submit(small_job()).value, 41u) << "their ids are not given out again";
    EXPECT_EQ(world.plan(), 0u) << "their nodes get nothing new";
    world.pass(600'000, {"n1", "n2"});
    EXPECT_TRUE(world.sent<protocol::StopTask>().empty());
    running.state = TaskState::Ended;
    world.must(FromAgent{world.sessions["n2"], running});
    EXPECT_EQ(world.plan(), 1u);
}

TEST(EmptyState, told_to_bootstrap_it_starts_over) {
    World world;
    protocol::TaskStatus running;
    running.key = {{41}, 0, 0};
    running.term = 1;
    running.state = TaskState::Running;
    world.hello("n1", {running});
    EXPECT_FALSE(world.sent<protocol::Welcome>().at(0).adopt_all);
    EXPECT_EQ(world.sent<protocol::StopTask>().size(), 1u);
}

}  // namespace
}  // namespace muster::core
