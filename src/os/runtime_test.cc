// Real processes below real supervisors.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/posix.h"
#include "os/supervisor/group.h"
#include "os/task_files.h"
#include "os/test_node.h"

namespace muster::os {
namespace {

using model::Cause;
using protocol::TaskState;

struct EndRow {
    const char* name;
    const char* run;
    Cause cause;
    int exit_code;
    int signal;
    const char* log;
};
void PrintTo(const EndRow& row, std::ostream* out) {
    *out << row.name;
}

class Ends : public testing::TestWithParam<EndRow> {};

TEST_P(Ends, are_told_as_they_were) {
    TestNode node;
    const protocol::StartTask order = make_order(1, GetParam().run);
    node->start(order);
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(model::to_text(end.cause), model::to_text(GetParam().cause)) << end.message;
    EXPECT_EQ(end.exit_code, GetParam().exit_code);
    EXPECT_EQ(end.signal, GetParam().signal);
    EXPECT_EQ(node.log(order.key), GetParam().log);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Ends,
    testing::Values(EndRow{"success", "true", Cause::Success, 0, 0, ""},
                    EndRow{"output", "echo one; echo two >&2", Cause::Success, 0, 0, "one\ntwo\n"},
                    EndRow{"exit_code", "exit 3", Cause::UserError, 3, 0, ""},
                    EndRow{"signal", "kill -SEGV $$", Cause::UserError, -1, SIGSEGV, ""},
                    EndRow{
                        "no_such_command", "no-such-command-here --x", Cause::UserError, 127, 0,
                        "[muster: cannot run no-such-command-here: No such file or directory]\n"},
                    EndRow{"no_signal_is_ignored", "exec grep SigIgn /proc/self/status",
                           Cause::Success, 0, 0, "SigIgn:\t0000000000000000\n"},
                    EndRow{"no_signal_is_blocked", "exec grep SigBlk /proc/self/status",
                           Cause::Success, 0, 0, "SigBlk:\t0000000000000000\n"},
                    EndRow{"partial_line", "printf half", Cause::Success, 0, 0, "half"},
                    EndRow{"left_behind", "sleep 1000 & echo bye", Cause::Success, 0, 0, "bye\n"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Runtime, finds_a_running_task_after_a_restart_and_loses_no_line_F33) {
    TestNode node;
    const protocol::StartTask order = make_order(
        2, "i=0; while [ ! -e stop ]; do echo line $i; i=$((i+1)); sleep 0.01; done; echo last $i");
    node->start(order);
    node.wait_state(order.key, TaskState::Running);
    ASSERT_TRUE(node.wait_messages([](const auto& messages) {
        for (const auto& message : messages)
            if (std::holds_alternative<protocol::LogTail>(message)) return true;
        return false;
    }));
    node.restart();
    const auto found = node->list();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].order.key, order.key);
    EXPECT_EQ(found[0].order.devices, order.devices);
    EXPECT_EQ(*found[0].order.spec, *order.spec);
    node.wait_state(order.key, TaskState::Running);
    ASSERT_EQ(write_small_file(AT_FDCWD, (node.task_folder(order.key) + "/scratch/stop").c_str(),
                               "", false),
              0);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    const std::string log = node.log(order.key);
    std::string expected;
    const int last = std::atoi(log.c_str() + log.rfind("last ") + 5);
    for (int i = 0; i < last; ++i) expected += "line " + std::to_string(i) + "\n";
    expected += "last " + std::to_string(last) + "\n";
    EXPECT_EQ(log, expected);
}

TEST(Runtime, reads_the_end_of_a_task_that_ended_while_no_agent_was_there_F33) {
    TestNode node;
    const protocol::StartTask order = make_order(3, "echo here; exit 5");
    node->start(order);
    node.wait_end(order.key);
    node.restart();
    const auto found = node->list();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].status.state, TaskState::Ended);
    EXPECT_EQ(found[0].status.end.exit_code, 5);
    EXPECT_EQ(node.log(order.key), "here\n");
    node->clean(order.key);
    EXPECT_TRUE(node->list().empty());
    EXPECT_EQ(node.log(order.key), "here\n");
}

TEST(Runtime, stops_a_tree_that_ignores_term_F42) {
    TestNode node;
    const protocol::StartTask order =
        make_order(4,
                   "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & setsid bash -c "
                   "\"trap '' TERM; echo up; while :; do sleep 1; done\" & wait");
    node->start(order);
    ASSERT_TRUE(node.wait_messages([](const auto& messages) {
        for (const auto& message : messages)
            if (std::holds_alternative<protocol::LogTail>(message)) return true;
        return false;
    }));
    node->stop(order.key, Cause::Cancelled, Duration{300});
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(end.cause, Cause::Cancelled);
    EXPECT_EQ(end.signal, SIGKILL);
    EXPECT_NE(end.message.find("killed after its grace"), std::string::npos) << end.message;
}

TEST(Runtime, lets_a_task_use_its_grace) {
    TestNode node;
    const protocol::StartTask order = make_order(
        5, "trap 'sleep 0.3; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    node->start(order);
    ASSERT_TRUE(node.wait_messages([](const auto& messages) {
        for (const auto& message : messages)
            if (std::holds_alternative<protocol::LogTail>(message)) return true;
        return false;
    }));
    node->stop(order.key, Cause::Requeued, Duration{30'000});
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(end.cause, Cause::Requeued);
    EXPECT_EQ(end.exit_code, 0);
    EXPECT_TRUE(node.log(order.key).ends_with("saved\n"));
}

TEST(Runtime, holds_a_task_at_the_barrier_until_go) {
    TestNode node;
    protocol::StartTask order =
        make_order(6, "echo $MASTER_ADDR:$MASTER_PORT $MUSTER_NODE_RANK/$MUSTER_NUM_NODES",
                   [](model::JobSpec& spec) { spec.setup = "echo set up"; });
    order.barrier = true;
    order.gang = std::make_shared<const protocol::Gang>(
        protocol::Gang{{.name = "a", .address = "10.0.0.1"}, {.name = "b", .address = "10.0.0.2"}});
    order.key.rank = 1;
    node->start(order);
    node.wait_state(order.key, TaskState::Ready);
    node.restart();
    node.wait_state(order.key, TaskState::Ready);
    EXPECT_FALSE(node->list()[0].released);
    node->release({.term = 1, .key = order.key, .master_address = "10.0.0.1", .master_port = 4711});
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    EXPECT_EQ(node.log(order.key), "set up\n10.0.0.1:4711 1/2\n");
}

TEST(Runtime, says_that_a_task_vanished_with_its_supervisor_and_kills_what_it_left) {
    if (!can_limit()) GTEST_SKIP();
    TestNode node;
    const protocol::StartTask order = make_order(7, "echo $PPID; exec sleep 1000");
    node->start(order);
    ASSERT_TRUE(node.wait_messages([](const auto& messages) {
        for (const auto& message : messages)
            if (std::holds_alternative<protocol::LogTail>(message)) return true;
        return false;
    }));
    const pid_t supervisor = std::atoi(node.log(order.key).c_str());
    ASSERT_GT(supervisor, 1);
    ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(end.cause, Cause::Vanished);
}

TEST(Runtime, a_gangs_task_stops_itself_when_no_agent_comes_for_longer_than_the_lease) {
    TestNode node;
    node->set_fence(Duration{300});
    const auto gang = std::make_shared<const protocol::Gang>(
        protocol::Gang{{.name = "a", .address = "10.0.0.1"}, {.name = "b", .address = "10.0.0.2"}});
    protocol::StartTask order = make_order(1, "exec sleep 1000");
    order.gang = gang;
    const protocol::StartTask single = make_order(2, "exec sleep 1000");
    node->start(order);
    node->start(single);
    node.wait_state(order.key, TaskState::Running);
    node.wait_state(single.key, TaskState::Running);
    node.leave();
    // Its own end is in its folder before any agent is back.
    while (::access((node.task_folder(order.key) + "/exit").c_str(), F_OK) != 0) ::usleep(10'000);
    node.restart();
    EXPECT_EQ(model::to_text(node.wait_end(order.key).cause), model::to_text(Cause::Fenced));
    EXPECT_EQ(node.wait_state(single.key, TaskState::Running).state, TaskState::Running);
}

TEST(Runtime, without_an_agent_a_gangs_task_ends_with_the_lease_or_soon_after_if_that_is_over) {
    for (const Duration left : {Duration{300}, Duration{-60'000}}) {
        TestNode node;
        node->set_lease(Duration{100}, left);
        protocol::StartTask order = make_order(1, "exec sleep 1000");
        order.gang = std::make_shared<const protocol::Gang>(protocol::Gang{
            {.name = "a", .address = "10.0.0.1"}, {.name = "b", .address = "10.0.0.2"}});
        node->start(order);
        node.wait_state(order.key, TaskState::Running);
        node.leave();
        while (::access((node.task_folder(order.key) + "/exit").c_str(), F_OK) != 0)
            ::usleep(10'000);
        node.restart();
        EXPECT_EQ(model::to_text(node.wait_end(order.key).cause), model::to_text(Cause::Fenced));
    }
}

TEST(Runtime, runs_as_the_submitting_user_and_never_as_root_for_another) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    TestNode node;
    protocol::StartTask order = make_order(
        1,
        "id -un; id -u; touch here && echo writes; touch ../order 2>/dev/null || echo not there; "
        "cat ../launch 2>/dev/null || echo nor reads; /usr/bin/python3 -c 'import os,socket; "
        "s=socket.socket(socket.AF_UNIX); s.connect(os.environ[\"MUSTER_SOCKET\"]); "
        "s.sendall(b\"progress step=1\\n\"); print(s.recv(9).decode().strip())'");
    order.user = "nobody";
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    EXPECT_EQ(node.log(order.key), "nobody\n65534\nwrites\nnot there\nnor reads\nok\n");
}

TEST(Stuck, a_process_that_does_not_end_is_named_with_place_and_file_F45) {
    const int fd = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    const std::string text = describe_stuck(::getpid());
    ::close(fd);
    EXPECT_TRUE(text.starts_with("pid " + std::to_string(::getpid()) + " (os_test) state R in "))
        << text;
    EXPECT_TRUE(text.ends_with(", file /dev/zero")) << text;
}

TEST(Runtime, a_supervisor_whose_folder_was_removed_does_not_stay) {
    TestNode node;
    const protocol::StartTask order =
        make_order(1,
                   "echo $PPID; while [ ! -e $0.stop ]; do sleep 0.02; [ -d . ] || exit; [ $(stat "
                   "-c %h .) = 0 ] && exit; done");
    node->start(order);
    ASSERT_TRUE(node.wait_messages([](const auto& messages) {
        for (const auto& message : messages)
            if (std::holds_alternative<protocol::LogTail>(message)) return true;
        return false;
    }));
    const pid_t supervisor = std::atoi(node.log(order.key).c_str());
    ASSERT_GT(supervisor, 1);
    node.leave();
    ASSERT_TRUE(remove_tree(AT_FDCWD, node.task_folder(order.key).c_str()));
    while (::kill(supervisor, 0) == 0) ::usleep(10'000);
    node.restart();
    EXPECT_TRUE(node->list().empty());
}

TEST(Runtime, refuses_a_user_that_the_node_does_not_know) {
    TestNode node;
    protocol::StartTask order = make_order(8, "true");
    order.user = "no-such-user";
    node->start(order);
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(end.cause, Cause::Launch);
    EXPECT_NE(end.message.find("no-such-user"), std::string::npos);
}

}  // namespace
}  // namespace muster::os
