// What a task leaves behind decides whether its folder is the next one's.
#include <cstdio>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/order_file.h"
#include "os/posix.h"
#include "os/supervisor_link.h"
#include "os/task_files.h"
#include "os/test_node.h"

namespace muster::os {
namespace {

struct Row {
    const char* name;
    const char* run;
    std::size_t kept;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

void clean(TestNode& node, const protocol::TaskKey& key) {
    const Fd folder(::open(node.task_folder(key).c_str(), O_RDONLY | O_DIRECTORY));
    while (!supervisor_gone(folder.get())) ::usleep(1'000);
    node->clean(key);
    EXPECT_TRUE(node->list().empty());
    EXPECT_NE(::access(node.task_folder(key).c_str(), F_OK), 0);
}

void run_and_clean(TestNode& node, const protocol::StartTask& order) {
    node->start(order);
    node.wait_end(order.key);
    clean(node, order.key);
}

constexpr const char* kSay =
    "/usr/bin/python3 -c 'import os, socket; s = socket.socket(socket.AF_UNIX); "
    "s.connect(os.environ[\"MUSTER_SOCKET\"]); s.sendall(b\"progress step=7\\n\"); "
    "print(s.recv(9).decode(), end=\"\")'";

class SpareFolder : public testing::TestWithParam<Row> {};

TEST_P(SpareFolder, is_kept_when_only_the_next_tasks_files_are_in_it) {
    TestNode node;
    run_and_clean(node, make_order(1, GetParam().run));
    const std::string spares = node.folder() + "/spare";
    const std::vector<std::string> kept = list_folder(spares);
    ASSERT_EQ(kept.size(), GetParam().kept);
    for (const std::string& name : kept) {
        const auto order = read_file(spares + "/" + name + "/" + files::kOrder),
                   launch = read_file(spares + "/" + name + "/" + files::kLaunch);
        ASSERT_TRUE(order && launch);
        Launch decoded;
        EXPECT_FALSE(decode_order(*order));
        EXPECT_FALSE(decode_launch(*launch, decoded));
    }
    const protocol::StartTask next =
        make_order(2, "pwd; ls -A . \"${MUSTER_SOCKET%/*}\"; stat -c %a . \"$MUSTER_HOSTFILE\"; " +
                          std::string(kSay));
    node->start(next);
    EXPECT_EQ(node.wait_end(next.key).cause, model::Cause::Success);
    const std::string folder = node.task_folder(next.key), run = folder + "/run";
    EXPECT_EQ(node.log(next.key), folder + "/scratch\n.:\n\n" + run +
                                      ":\nhostfile\nsock\ntopology.json\n700\n600\nok\n");
    EXPECT_TRUE(list_folder(spares).empty());
}

INSTANTIATE_TEST_SUITE_P(
    Rows, SpareFolder,
    testing::Values(
        Row{"nothing_left", "true", 1}, Row{"failed", "exit 3", 1}, Row{"a_log", "echo hi", 0},
        Row{"a_file", "touch x", 0}, Row{"a_hidden_folder", "mkdir .x", 0},
        Row{"another_mode", "chmod 777 .", 0},
        Row{"a_file_beside_the_socket", "touch \"${MUSTER_SOCKET%/*}/x\"", 0},
        Row{"a_link_in_its_place",
            "rm \"$MUSTER_HOSTFILE\"; ln -s /etc/hostname \"$MUSTER_HOSTFILE\"", 0},
        Row{"another_socket_in_its_place",
            "/usr/bin/python3 -c 'import os, socket; p = os.environ[\"MUSTER_SOCKET\"]; "
            "os.unlink(p); s = socket.socket(socket.AF_UNIX); s.bind(p); "
            "os.chmod(p, 0o600)'",
            1},
        Row{"no_socket", "rm \"$MUSTER_SOCKET\"", 1},
        Row{"a_second_name", "ln \"$MUSTER_HOSTFILE\" ../../../name", 0},
        Row{"no_such_command", "no-such-command-here", 0}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(SpareFolders, what_was_said_to_the_task_before_is_not_heard) {
    TestNode node;
    const protocol::StartTask first = make_order(1, "true"), next = make_order(2, kSay);
    node->start(first);
    node.wait_end(first.key);
    const std::string folder = node.task_folder(first.key);
    const Fd late(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/run/sock", folder.c_str());
    ASSERT_EQ(::connect(late.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::send(late.get(), "progress step=99\n", 17, MSG_NOSIGNAL), 17);
    clean(node, first.key);
    ASSERT_EQ(list_folder(node.folder() + "/spare").size(), 1U);
    node->start(next);
    EXPECT_EQ(node.wait_end(next.key).cause, model::Cause::Success);
    EXPECT_EQ(node.log(next.key), "ok\n");
    std::vector<std::int64_t> steps;
    for (const protocol::AgentMessage& message : node.messages())
        if (const auto* progress = std::get_if<protocol::Progress>(&message))
            steps.push_back(progress->step);
    EXPECT_EQ(steps, std::vector<std::int64_t>{7});
}

TEST(SpareFolders, are_gone_after_a_restart) {
    TestNode node;
    run_and_clean(node, make_order(1, "true"));
    EXPECT_EQ(list_folder(node.folder() + "/spare").size(), 1U);
    node.restart();
    EXPECT_TRUE(list_folder(node.folder() + "/spare").empty());
}

TEST(SilentLogs, are_names_of_one_file) {
    TestNode node;
    ino_t file = 0;
    for (const std::uint64_t job : {1, 2}) {
        const protocol::StartTask order = make_order(job, "true");
        run_and_clean(node, order);
        struct stat about {};
        const std::string kept = node.folder() + "/logs/" + std::to_string(job) + "-0-0";
        ASSERT_EQ(::stat(kept.c_str(), &about), 0);
        EXPECT_EQ(about.st_nlink, job);
        EXPECT_TRUE(file == 0 || about.st_ino == file);
        file = about.st_ino;
        EXPECT_EQ(node.log(order.key), "");
    }
}

}  // namespace
}  // namespace muster::os
