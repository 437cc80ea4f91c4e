// Cancel in every state, holds and their owners, requeue, arrays and their elements.
#include "core/test_world.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;
using protocol::TaskState;

ActOnJob act(const Caller& caller, JobId job, JobAction action, std::int64_t element = -1) {
    return {caller, job, element, action, "", 0};
}

TEST(Act, users_act_on_their_own_jobs_admins_on_all) {
    World world;
    const JobId id = world.submit(small_job());
    EXPECT_EQ(world.refused(act(world.bob, id, JobAction::Cancel)).code, Code::Denied);
    EXPECT_EQ(world.refused(UpdateJob{world.bob, id, 99, "", 0}).code, Code::Denied);
    world.must(act(world.root, id, JobAction::Cancel));
    EXPECT_EQ(world.job(id).state, JobState::Cancelled);
    EXPECT_EQ(world.refused(act(world.alice, id, JobAction::Cancel)).code, Code::Conflict);
    EXPECT_EQ(world.refused(act(world.alice, {99}, JobAction::Cancel)).code, Code::NotFound);
}

TEST(Act, an_old_revision_is_refused) {
    World world;
    const JobId id = world.submit(small_job());
    ActOnJob event = act(world.alice, id, JobAction::Hold);
    event.if_revision = revision_of(world.job(id));
    world.must(event);
    EXPECT_EQ(world.refused(event).code, Code::Precondition);
}

TEST(Act, a_user_does_not_release_an_admins_hold) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(small_job());
    world.must(act(world.root, id, JobAction::Hold));
    world.must(act(world.alice, id, JobAction::Hold));
    EXPECT_EQ(world.refused(act(world.alice, id, JobAction::Release)).code, Code::Denied);
    EXPECT_EQ(world.plan(), 0u);
    EXPECT_EQ(wait_of(world.state.tables, world.job(id), world.now).reason,
              scheduler::Blocked::Reason::Held);
    world.must(act(world.root, id, JobAction::Release));
    EXPECT_EQ(world.plan(), 1u);
}

TEST(Act, cancel_of_a_starting_job_waits_for_the_agents_word) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(small_job());
    world.plan();
    world.clear();
    world.must(act(world.alice, id, JobAction::Cancel));
    EXPECT_EQ(world.job(id).state, JobState::Stopping);
    ASSERT_EQ(world.sent<protocol::StopTask>().size(), 1u);
    EXPECT_EQ(world.sent<protocol::StopTask>()[0].cause, Cause::Cancelled);
    EXPECT_EQ(world.state.tables.node_use.at(1).jobs.size(), 1u) << "not free before it has ended";
    world.end(id, 0, Cause::Cancelled);
    EXPECT_EQ(world.job(id).state, JobState::Cancelled);
    EXPECT_TRUE(world.state.tables.node_use.at(1).jobs.empty());
    EXPECT_EQ(world.sent<protocol::ForgetTask>().size(), 1u);
}

model::JobSpec checkpointed() {
    model::JobSpec spec = small_job();
    spec.checkpoint.dir = "/ckpt";
    spec.checkpoint.grace = seconds(60);
    return spec;
}

TEST(Act, cancel_with_a_checkpoint_is_notice_then_stop_in_time) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(checkpointed());
    world.plan();
    world.run(id);
    world.clear();
    world.must(act(world.alice, id, JobAction::Cancel));
    ASSERT_EQ(world.sent<protocol::NoticeTask>().size(), 1u);
    EXPECT_EQ(world.sent<protocol::NoticeTask>()[0].grace, seconds(60));
    EXPECT_TRUE(world.sent<protocol::StopTask>().empty());
    world.pass(49'000, {"n1"});
    EXPECT_TRUE(world.sent<protocol::StopTask>().empty());
    world.pass(1'000, {"n1"});
    ASSERT_EQ(world.sent<protocol::StopTask>().size(), 1u) << "SIGTERM 10 s before the grace ends";
    EXPECT_EQ(world.sent<protocol::StopTask>()[0].grace, seconds(10));
    world.end(id, 0, Cause::Cancelled);
    EXPECT_EQ(world.job(id).state, JobState::Cancelled);
}

TEST(Act, a_second_cancel_does_not_wait_for_the_grace) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(checkpointed());
    world.plan();
    world.run(id);
    world.must(act(world.alice, id, JobAction::Cancel));
    world.clear();
    world.must(act(world.alice, id, JobAction::Cancel));
    EXPECT_EQ(world.sent<protocol::StopTask>().size(), 1u);
}

TEST(Act, F19_done_inside_the_grace_is_done) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(checkpointed());
    world.plan();
    world.run(id);
    world.must(act(world.alice, id, JobAction::Requeue));
    world.end(id, 0, Cause::Success);
    EXPECT_EQ(world.job(id).state, JobState::Succeeded);
}

TEST(Act, requeue_keeps_id_and_budget_and_takes_the_next_epoch) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(checkpointed());
    world.plan();
    world.run(id);
    world.must(act(world.alice, id, JobAction::Requeue));
    world.end(id, 0, Cause::Requeued);
    EXPECT_EQ(world.job(id).state, JobState::Pending);
    EXPECT_EQ(world.job(id).epoch, 1u);
    EXPECT_EQ(world.job(id).restarts, 0u);
    EXPECT_EQ(world.plan(), 1u);
    EXPECT_EQ(world.sent<protocol::StartTask>().back().key.epoch, 1u);
}

TEST(Act, F45_a_stop_that_never_ends_is_told_once) {
    World world;
    world.hello("n1");
    const JobId id = world.submit(small_job());
    world.plan();
    world.run(id);
    world.must(act(world.alice, id, JobAction::Cancel));
    world.clear();
    world.pass(39'000, {"n1"});
    EXPECT_FALSE(world.told("job.stop-overdue"));
    world.pass(2'000, {"n1"});
    EXPECT_TRUE(world.told("job.stop-overdue"));
    EXPECT_EQ(world.sent<protocol::StopTask>().size(), 1u) << "and asked for again";
    world.clear();
    world.pass(600'000, {"n1"});
    EXPECT_FALSE(world.told("job.stop-overdue"));
    EXPECT_EQ(world.job(id).state, JobState::Stopping) << "its devices are not given on";
}

TEST(Act, begin_deadline_and_time_limit) {
    World world;
    world.hello("n1");
    model::JobSpec spec = small_job();
    spec.begin = world.now + seconds(100);
    const JobId later = world.submit(spec);
    EXPECT_EQ(world.plan(), 0u);
    world.pass(100'000, {"n1"});
    EXPECT_EQ(world.plan(), 1u);
    spec = small_job();
    spec.time = seconds(50);
    const JobId limited = world.submit(spec);
    spec = small_job();
    spec.deadline = world.now + seconds(30);
    const JobId urgent = world.submit(spec);
    spec.hold = true;
    const JobId held = world.submit(spec);
    world.plan();
    world.run(later), world.run(limited), world.run(urgent);
    world.pass(30'000, {"n1"});
    EXPECT_EQ(world.job(urgent).cause, Cause::Deadline);
    EXPECT_EQ(world.job(urgent).state, JobState::Stopping);
    EXPECT_EQ(world.job(held).state, JobState::Failed) << "never started";
    world.end(urgent, 0, Cause::Deadline);
    EXPECT_EQ(world.job(urgent).state, JobState::Failed);
    world.pass(20'000, {"n1"});
    EXPECT_EQ(world.job(limited).cause, Cause::TimeLimit);
    world.end(limited, 0, Cause::TimeLimit);
    EXPECT_EQ(world.job(limited).state, JobState::Failed);
    EXPECT_EQ(world.job(later).state, JobState::Running);
}

TEST(Act, priority_and_queue_of_a_waiting_job) {
    Settings settings;
    settings.queues = {"default", "prod"};
    World world(settings);
    const JobId id = world.submit(small_job());
    world.must(UpdateJob{world.alice, id, 90, "prod", 0});
    EXPECT_EQ(world.job(id).priority, 90);
    EXPECT_EQ(world.state.tables.queues.at(world.job(id).queue).name, "prod");
    EXPECT_EQ(world.refused(UpdateJob{world.alice, id, 101, "", 0}).code, Code::Invalid);
    EXPECT_EQ(world.refused(UpdateJob{world.alice, id, -1, "prd", 0}).code, Code::Invalid);
}

model::JobSpec array_of(std::int64_t count, std::int64_t parallel = 0) {
    model::JobSpec spec = small_job("array");
    spec.array.count = count;
    spec.array.parallel = parallel;
    return spec;
}

TEST(Array, elements_become_jobs_when_they_start_and_the_parent_ends_with_the_last) {
    World world;
    world.hello("n1");
    const JobId parent = world.submit(array_of(5, 2));
    EXPECT_EQ(world.plan(), 2u);
    EXPECT_EQ(world.extra(parent).array->live, 2);
    const JobId first = *find_job(world.state.tables, std::to_string(parent.value) + "_0");
    EXPECT_EQ(world.job(first).array_job, parent.value);
    EXPECT_EQ(world.sent<protocol::StartTask>()[1].array_element, 1);
    EXPECT_EQ(wait_of(world.state.tables, world.job(parent), world.now).reason,
              scheduler::Blocked::Reason::Parallel);
    for (int i = 0; i < 5; ++i) {
        const auto id =
            find_job(world.state.tables, std::to_string(parent.value) + "_" + std::to_string(i));
        ASSERT_TRUE(id) << i;
        world.run(*id);
        world.end(*id, 0, Cause::Success);
        world.plan();
    }
    EXPECT_EQ(world.job(parent).state, JobState::Succeeded);
}

TEST(Array, requeue_takes_what_runs_of_it) {
    World world;
    world.hello("n1");
    const JobId parent = world.submit(array_of(2, 1));
    EXPECT_EQ(world.refused(act(world.alice, parent, JobAction::Requeue)).code, Code::Conflict);
    world.plan();
    const JobId element = *find_job(world.state.tables, std::to_string(parent.value) + "_0");
    world.run(element);
    world.must(act(world.alice, parent, JobAction::Requeue));
    EXPECT_EQ(world.job(element).state, JobState::Stopping);
    world.end(element, 0, Cause::Requeued);
    EXPECT_EQ(world.job(element).state, JobState::Pending);
    EXPECT_EQ(world.extra(parent).array->live, 1);
}

TEST(Array, F26_failed_elements_release_what_they_held) {
    World world;
    world.hello("n1");
    model::JobSpec spec = array_of(3);
    spec.roles[0].devices = {{"gpu", 8, {}, ""}};
    const JobId parent = world.submit(spec);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(world.plan(), 1u) << i;
        const JobId id =
            *find_job(world.state.tables, std::to_string(parent.value) + "_" + std::to_string(i));
        world.run(id);
        world.end(id, 0, i == 1 ? Cause::UserError : Cause::Success);
        EXPECT_TRUE(world.state.tables.node_use.at(1).devices.empty());
    }
    EXPECT_EQ(world.job(parent).state, JobState::Failed);
    EXPECT_EQ(world.extra(parent).array->failed, 1);
}

TEST(Array, one_waiting_element_is_held_released_and_cancelled) {
    World world;
    const JobId parent = world.submit(array_of(4));
    world.must(act(world.alice, parent, JobAction::Hold, 1));
    EXPECT_EQ(world.extra(parent).array->held, std::vector<std::int64_t>{1});
    world.must(act(world.alice, parent, JobAction::Release, 1));
    EXPECT_EQ(world.extra(parent).array->waiting, (std::vector<ElementRange>{{0, 4}}));
    world.must(act(world.alice, parent, JobAction::Cancel, 2));
    EXPECT_EQ(world.refused(act(world.alice, parent, JobAction::Cancel, 2)).code, Code::Conflict);
    EXPECT_EQ(world.refused(act(world.alice, parent, JobAction::Cancel, 4)).code, Code::NotFound);
    world.must(act(world.alice, parent, JobAction::Hold, 0));
    world.hello("n1");
    EXPECT_EQ(world.plan(), 2u);
    world.must(act(world.alice, parent, JobAction::Cancel));
    EXPECT_EQ(world.job(parent).state, JobState::Pending) << "two still run";
    for (const int i : {1, 3})
        world.end(
            *find_job(world.state.tables, std::to_string(parent.value) + "_" + std::to_string(i)),
            0, Cause::Cancelled);
    EXPECT_EQ(world.job(parent).state, JobState::Cancelled);
    EXPECT_EQ(world.extra(parent).array->cancelled, 4);
}

TEST(Admin, F48_nobody_undoes_anothers_drain) {
    World world;
    world.hello("n1");
    const Caller eve{"eve", true};
    EXPECT_EQ(world.refused(ActOnNode{world.alice, "n1", NodeAction::Drain, ""}).code,
              Code::Denied);
    world.must(ActOnNode{world.root, "n1", NodeAction::Drain, "fan"});
    EXPECT_EQ(world.refused(ActOnNode{eve, "n1", NodeAction::Resume, ""}).code, Code::Conflict);
    world.submit(small_job());
    EXPECT_EQ(world.plan(), 0u);
    world.must(ActOnNode{world.root, "n1", NodeAction::Resume, ""});
    EXPECT_EQ(world.plan(), 1u);
    EXPECT_EQ(world.refused(ActOnNode{world.root, "n1", NodeAction::Forget, ""}).code,
              Code::Conflict);
    EXPECT_EQ(world.refused(ActOnNode{world.root, "n1", NodeAction::Fenced, ""}).code,
              Code::Conflict);
    // Once its link is down an admin's word that it is off is taken, before it is missed.
    world.must(LinkClosed{world.sessions["n1"]});
    world.must(ActOnNode{world.root, "n1", NodeAction::Fenced, "pulled the plug"});
    EXPECT_EQ(world.state.tables.node_live.at(1).health, model::NodeHealth::Lost);
}

TEST(Admin, join_tokens_bind_a_name_to_a_certificate) {
    World world;
    Token token;
    token.kind = TokenKind::Join;
    token.hash = "abc";
    token.uses_left = 1;
    EXPECT_EQ(world.refused(CreateToken{world.alice, token}).code, Code::Denied);
    const std::uint64_t id = world.must(CreateToken{world.root, token}).answer.id;
    world.must(NodeJoined{id, "n1", "cert-1"});
    EXPECT_EQ(world.refused(NodeJoined{id, "n2", "cert-2"}).code, Code::Denied) << "used up";
    token.hash = "def";
    const std::uint64_t any = world.must(CreateToken{world.root, token}).answer.id;
    EXPECT_EQ(world.refused(NodeJoined{any, "n1", "cert-3"}).code, Code::Denied) << "taken";
    const auto open = [&](std::uint64_t session, const std::string& certificate) {
        world.clear();
        world.must(LinkOpened{session, "n1", certificate, {0, facts_of("n1"), {}}});
        return world.commands.size() == 1 && std::holds_alternative<CloseLink>(world.commands[0]);
    };
    EXPECT_TRUE(open(7, "cert-2"));
    EXPECT_TRUE(open(8, ""));
    EXPECT_FALSE(open(9, "cert-1"));
    world.clear();
    world.must(LinkOpened{10, "n9", "cert-9", {0, facts_of("n9"), {}}});
    EXPECT_TRUE(std::holds_alternative<CloseLink>(world.commands.at(0))) << "never joined";
}

TEST(Admin, tokens_expire_and_are_revoked) {
    World world;
    Token token;
    token.hash = "h";
    token.user = "alice";
    token.expires = world.now + seconds(10);
    const std::uint64_t id = world.must(CreateToken{world.alice, token}).answer.id;
    EXPECT_EQ(world.refused(RevokeToken{world.bob, id}).code, Code::Denied);
    world.pass(11'000);
    EXPECT_FALSE(world.state.tables.tokens.contains(id));
    token.user = "bob";
    EXPECT_EQ(world.refused(CreateToken{world.alice, token}).code, Code::Denied);
}

}  // namespace
}  // namespace muster::core
