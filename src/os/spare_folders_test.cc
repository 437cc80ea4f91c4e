// What a task leaves behind decides whether its folder is the next one's.
#include <fcntl.h>
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

void run_and_clean(TestNode& node, const protocol::StartTask& order) {
    node->start(order);
    node.wait_end(order.key);
    const Fd folder(::open(node.task_folder(order.key).c_str(), O_RDONLY | O_DIRECTORY));
    while (!supervisor_gone(folder.get())) ::usleep(1'000);
    node->clean(order.key);
    EXPECT_TRUE(node->list().empty());
    EXPECT_NE(::access(node.task_folder(order.key).c_str(), F_OK), 0);
}

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
        make_order(2, "pwd; ls -A . \"${MUSTER_SOCKET%/*}\"; stat -c %a . \"$MUSTER_HOSTFILE\"");
    node->start(next);
    EXPECT_EQ(node.wait_end(next.key).cause, model::Cause::Success);
    const std::string folder = node.task_folder(next.key), run = folder + "/run";
    EXPECT_EQ(node.log(next.key),
              folder + "/scratch\n.:\n\n" + run + ":\nhostfile\nsock\ntopology.json\n700\n600\n");
    EXPECT_TRUE(list_folder(spares).empty());
}

INSTANTIATE_TEST_SUITE_P(
    Rows, SpareFolder,
    testing::Values(Row{"nothing_left", "true", 1}, Row{"failed", "exit 3", 1},
                    Row{"a_log", "echo hi", 0}, Row{"a_file", "touch x", 0},
                    Row{"a_hidden_folder", "mkdir .x", 0}, Row{"another_mode", "chmod 777 .", 0},
                    Row{"a_file_beside_the_socket", "touch \"${MUSTER_SOCKET%/*}/x\"", 0},
                    Row{"a_link_in_its_place",
                        "rm \"$MUSTER_HOSTFILE\"; ln -s /etc/hostname \"$MUSTER_HOSTFILE\"", 0},
                    Row{"a_second_name", "ln \"$MUSTER_HOSTFILE\" ../../../name", 0},
                    Row{"no_such_command", "no-such-command-here", 0}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(SpareFolders, are_gone_after_a_restart) {
    TestNode node;
    run_and_clean(node, make_order(1, "true"));
    EXPECT_EQ(list_folder(node.folder() + "/spare").size(), 1U);
    node.restart();
    EXPECT_TRUE(list_folder(node.folder() + "/spare").empty());
}

}  // namespace
}  // namespace muster::os
