// Real tasks on the CPUs that their node's book gives them: bound near their devices, or floating.
#include <filesystem>
#include <fstream>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/cgroups.h"
#include "os/cpu_list.h"
#include "os/node_facts.h"
#include "os/posix.h"
#include "os/task_files.h"
#include "os/test_node.h"

namespace muster::os {
namespace {

using model::Cause;
using protocol::TaskState;

constexpr const char* kSay = "grep Cpus_allowed_list: /proc/self/status | cut -f2";

/// Two NUMA nodes of one CPU each, a device at the second; with control groups or without.
class BoundCpus : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        if (GetParam() && !can_limit()) GTEST_SKIP();
        const std::vector<int> usable = usable_cpus();
        if (usable.size() < 2) GTEST_SKIP() << "one CPU alone cannot be bound to one of two";
        near_ = std::to_string(usable[1]);
        far_ = std::to_string(usable[0]);
        node_.emplace([&](RuntimeOptions& options) {
            options.cgroups = GetParam();
            options.devices = {{.id = "D-0", .numa = 1}, {.id = "D-1", .numa = 1}};
            options.numa = {{0, far_}, {1, near_}};
        });
        // Without the CPUs of the machine that are in no NUMA node declared here.
        for (const int cpu : usable)
            if (cpu != usable[1]) rest_.push_back(cpu);
        all_ = usable;
    }
    static protocol::StartTask bound(std::uint64_t job, const std::string& run,
                                     const std::string& device) {
        protocol::StartTask order = make_order(job, run);
        order.devices = {device};
        order.cpus = MilliCpu{1000};
        return order;
    }
    std::string run(const protocol::StartTask& order) {
        (*node_)->start(order);
        EXPECT_EQ(node_->wait_end(order.key).cause, Cause::Success);
        return node_->log(order.key);
    }

    std::optional<TestNode> node_;
    std::string near_, far_;
    std::vector<int> rest_, all_;
};

TEST_P(BoundCpus, are_near_the_devices_and_nobody_elses_over_a_restart_of_the_agent) {
    EXPECT_EQ(run(bound(1, kSay, "D-0")), near_ + "\n");
    const protocol::StartTask holder = bound(2, "exec sleep 1000", "D-0");
    (*node_)->start(holder);
    node_->wait_state(holder.key, TaskState::Running);
    EXPECT_EQ(node_->exec(holder.key, {"bash", "-c", kSay}), near_ + "\nexit 0");
    EXPECT_EQ(run(make_order(3, kSay)), format_cpu_list(rest_) + "\n") << "floats beside it";
    node_->restart();
    node_->wait_state(holder.key, TaskState::Running);
    EXPECT_EQ(run(bound(4, kSay, "D-1")), far_ + "\n") << "the near one is taken";
    (*node_)->stop(holder.key, Cause::Cancelled, Duration{0});
    node_->wait_end(holder.key);
    EXPECT_EQ(run(bound(5, kSay, "D-1")), near_ + "\n") << "and is free again";
    EXPECT_EQ(run(make_order(6, kSay)), format_cpu_list(all_) + "\n") << "nothing is bound";
}

TEST_P(BoundCpus, hold_where_the_kernel_has_cpusets) {
    model::NodeFacts facts;
    (*node_)->describe(facts);
    const bool enforced =
        facts.limits_enforced && facts.unenforced_why.find("affinity") == std::string::npos;
    EXPECT_EQ(
        run(bound(1, "taskset -c " + far_ + " true 2>/dev/null && echo free || echo held", "D-0")),
        enforced ? "held\n" : "free\n");
}

TEST_P(BoundCpus, push_away_who_floats_and_let_it_come_back) {
    const auto until = [](const std::vector<int>& cpus) {
        return "until [ \"$(" + std::string(kSay) + ")\" = " + format_cpu_list(cpus) +
               " ]; do sleep 0.05; done; ";
    };
    // One process that chose for itself keeps its choice.
    const protocol::StartTask order =
        make_order(1, "taskset -c " + near_ + " sleep 1000 & own=$!; echo up; " + until(rest_) +
                          "touch moved; " + until(all_) +
                          "grep Cpus_allowed_list: /proc/$own/status | cut -f2");
    (*node_)->start(order);
    node_->wait_state(order.key, TaskState::Running);
    const protocol::StartTask holder = bound(
        2,
        "while [ ! -e " + node_->task_folder(order.key) + "/scratch/moved ]; do sleep 0.05; done",
        "D-0");
    EXPECT_EQ(run(holder), "");
    EXPECT_EQ(node_->wait_end(order.key).cause, Cause::Success);
    EXPECT_EQ(node_->log(order.key), "up\n" + near_ + "\n");
}

TEST_P(BoundCpus, that_became_free_while_no_agent_was_there_are_told_by_the_next) {
    const auto until = [](const std::string& what) {
        return "until " + what + "; do sleep 0.05; done; ";
    };
    const std::string own = "[ \"$(" + std::string(kSay) + ")\" = ";
    const protocol::StartTask order =
        make_order(1, "echo up; " + until(own + format_cpu_list(rest_) + " ]") + "touch moved; " +
                          until(own + format_cpu_list(all_) + " ]"));
    const std::string scratch = node_->task_folder(order.key) + "/scratch";
    (*node_)->start(order);
    node_->wait_state(order.key, TaskState::Running);
    const protocol::StartTask holder = bound(
        2, until("[ -e " + scratch + "/moved ]") + until("[ -e " + scratch + "/left ]"), "D-0");
    (*node_)->start(holder);
    while (::access((scratch + "/moved").c_str(), F_OK) != 0) ::usleep(10'000);
    node_->leave();
    ASSERT_EQ(write_small_file(AT_FDCWD, (scratch + "/left").c_str(), "", false, 0644), 0);
    while (::access((node_->task_folder(holder.key) + "/exit").c_str(), F_OK) != 0)
        ::usleep(10'000);
    node_->restart();
    EXPECT_EQ(node_->wait_end(order.key).cause, Cause::Success);
}

TEST(CpuSets, are_written_to_a_tasks_own_group_of_a_stand_in_v2_tree) {
    namespace fs = std::filesystem;
    const fs::path mount = fs::temp_directory_path() / ("muster-v2-" + std::to_string(::getpid()));
    const auto put = [&](const fs::path& folder, std::initializer_list<const char*> names) {
        fs::create_directories(mount / folder);
        for (const char* name : names) std::ofstream(mount / folder / name) << "";
    };
    put("", {"cgroup.controllers", "cgroup.procs", "cgroup.subtree_control"});
    put("ours", {"cgroup.procs", "cgroup.subtree_control"});
    put("ours/7-0-0", {"cpu.max", "cpu.weight", "cpuset.cpus"});
    put("ours/8-0-0", {"cpu.max", "cpu.weight", "cpuset.cpus"});
    Cgroups groups = Cgroups::probe(mount.string(), "ours");
    ASSERT_TRUE(groups.usable()) << groups.why_not();
    EXPECT_EQ(groups.why_no_cpuset(), "");
    const auto bound = groups.make({.name = "7-0-0", .cpus = MilliCpu{2000}, .cpu_list = "2-3"});
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_EQ(bound->size(), 1U) << "no group more to join";
    ASSERT_TRUE(groups.make({.name = "8-0-0", .cpus = MilliCpu{500}}));
    EXPECT_EQ(*read_file((mount / "ours/7-0-0/cpuset.cpus").string()), "2-3");
    EXPECT_EQ(*read_file((mount / "ours/8-0-0/cpuset.cpus").string()), "") << "it floats";
    fs::remove_all(mount);
}

INSTANTIATE_TEST_SUITE_P(With, BoundCpus, testing::Values(true, false), [](const auto& row) {
    return row.param ? "control_groups" : "affinity_alone";
});

}  // namespace
}  // namespace muster::os
