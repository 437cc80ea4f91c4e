// What the kernel keeps for us: memory, processes, CPUs, devices. Root only.
#include <algorithm>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/cgroups.h"
#include "os/posix.h"
#include "os/test_node.h"

namespace muster::os {
namespace {

using model::Cause;
using protocol::TaskState;

class Limits : public testing::Test {
protected:
    void SetUp() override {
        if (!can_limit()) GTEST_SKIP();
    }
};

TEST_F(Limits, memory_over_the_limit_is_told_apart_from_a_crash) {
    TestNode node;
    protocol::StartTask order =
        make_order(1, "exec /usr/bin/python3 -c 'x = bytearray(400 << 20); print(len(x))'");
    order.memory = Bytes{64 << 20};
    node->start(order);
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(model::to_text(end.cause), model::to_text(Cause::Oom)) << end.message;
    EXPECT_EQ(end.signal, SIGKILL);
    EXPECT_GT(end.peak_memory.value, std::int64_t{32} << 20);
    EXPECT_LE(end.peak_memory.value, std::int64_t{64} << 20);
    EXPECT_NE(end.message.find("64MiB"), std::string::npos) << end.message;
    // The same without a limit is no OOM.
    protocol::StartTask free =
        make_order(2, "exec /usr/bin/python3 -c 'x = bytearray(400 << 20); print(len(x))'");
    node->start(free);
    EXPECT_EQ(node.wait_end(free.key).cause, Cause::Success);
}

TEST_F(Limits, a_child_killed_for_memory_is_an_oom_too) {
    TestNode node;
    protocol::StartTask order =
        make_order(1, "/usr/bin/python3 -c 'x = bytearray(400 << 20)'; exit 1");
    order.memory = Bytes{64 << 20};
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Oom);
}

TEST_F(Limits, a_fork_bomb_ends_at_its_limit_and_goes_as_a_whole_F42) {
    TestNode node([](RuntimeOptions& options) { options.pids_max = 64; });
    const protocol::StartTask order = make_order(1,
                                                 "f() { f | f & }; echo begin; f 2>/dev/null; "
                                                 "while :; do sleep 0.01 2>/dev/null || :; done");
    node->start(order);
    node.wait_state(order.key, TaskState::Running);
    node->stop(order.key, Cause::Cancelled, Duration{200});
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Cancelled);
    const protocol::StartTask next = make_order(2, "echo fine");
    node->start(next);
    EXPECT_EQ(node.wait_end(next.key).cause, Cause::Success);
}

TEST_F(Limits, cpus_are_written_as_a_quota) {
    TestNode node;
    protocol::StartTask order = make_order(1,
                                           "g=$(grep -oE 'muster-test[^ ]*' /proc/self/cgroup | "
                                           "head -1); cat /sys/fs/cgroup/cpu/$g/cpu.cfs_quota_us "
                                           "/sys/fs/cgroup/$g/cpu.max 2>/dev/null | head -1");
    order.cpus = MilliCpu{1500};
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    EXPECT_TRUE(node.log(order.key).starts_with("150000")) << node.log(order.key);
}

TEST_F(Limits, the_first_program_is_in_every_group_of_its_task) {
    TestNode node;
    protocol::StartTask order = make_order(5, "exec cat /proc/self/cgroup");
    order.cpus = MilliCpu{1000};
    order.memory = Bytes{256 << 20};
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    const std::string log = node.log(order.key);
    std::size_t inside = 0;
    for (std::size_t at = 0; (at = log.find("/5-0-0\n", at)) != std::string::npos; ++at) ++inside;
    // Legacy: memory, cpu and pids, and the twin for killing; else the one group that has it all.
    const bool pure = ::access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    const bool twin = ::access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0;
    EXPECT_EQ(inside, pure ? 1U : twin ? 4U : 3U) << log;
}

TEST_F(Limits, no_group_is_left_behind) {
    std::string group;
    TestNode node([&](RuntimeOptions& options) { group = group_name(options); });
    for (std::uint64_t job = 1; job <= 5; ++job) {
        protocol::StartTask order = make_order(job, "true");
        order.memory = Bytes{64 << 20};
        order.cpus = MilliCpu{1000};
        node->start(order);
        node.wait_end(order.key);
    }
    const Cgroups groups = Cgroups::probe("/sys/fs/cgroup", group);
    EXPECT_TRUE(groups.names().empty());
}

// Two devices of a harmless kind that container runtimes do not allow by themselves.
class Devices : public Limits {
protected:
    void SetUp() override {
        Limits::SetUp();
        if (IsSkipped()) return;
        lock_ = own_test_devices();
        // 1:11 is kmsg, 10:237 loop-control: both exist on every kernel that runs tests.
        for (const auto& [path, number] :
             {std::pair(kOwn, makedev(1, 11)), std::pair(kOther, makedev(10, 237))}) {
            ::unlink(path);
            if (::mknod(path, S_IFCHR | 0666, number) != 0)
                GTEST_SKIP() << "cannot make device nodes here";
            ::chmod(path, 0666);
            const Fd fd(::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
            if (!fd) GTEST_SKIP() << path << " cannot be opened even without confinement";
        }
    }
    void TearDown() override {
        ::unlink(kOwn);
        ::unlink(kOther);
    }
    Fd lock_;
    static constexpr const char* kOwn = "/dev/muster-test-0";
    static constexpr const char* kOther = "/dev/muster-test-1";
    static std::vector<model::Device> devices() {
        return {{.id = "T-0", .kind = "test", .files = {kOwn}},
                {.id = "T-1", .kind = "test", .files = {kOther}}};
    }
    static std::string script() {
        return "for i in 0 1; do (exec 9</dev/muster-test-$i) 2>/dev/null && echo $i open || echo "
               "$i closed; done; "
               "setsid bash -c '(exec 9</dev/muster-test-1) 2>/dev/null && echo child open || echo "
               "child closed'; "
               "bash -c 'mknod own-node c 10 237 2>/dev/null; (exec 9<own-node) 2>/dev/null && "
               "echo made open || echo made closed'; "
               "cat /dev/null; head -c 1 /dev/urandom >/dev/null && echo standard open; echo "
               "$MUSTER_DEVICES";
    }
};

TEST_F(Devices, a_bare_task_opens_its_own_and_none_of_the_others) {
    TestNode node([](RuntimeOptions& options) { options.devices = devices(); });
    protocol::StartTask order = make_order(1, script());
    order.devices = {"T-0"};
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    EXPECT_EQ(node.log(order.key),
              "0 open\n1 closed\nchild closed\nmade closed\nstandard open\nT-0\n");
    protocol::StartTask none = make_order(2, script());
    node->start(none);
    EXPECT_EQ(node.wait_end(none.key).cause, Cause::Success);
    EXPECT_EQ(node.log(none.key),
              "0 closed\n1 closed\nchild closed\nmade closed\nstandard open\n\n");
}

TEST_F(Devices, tasks_that_share_one_both_open_it) {
    TestNode node([](RuntimeOptions& options) { options.devices = devices(); });
    for (const std::uint64_t job : {1, 2}) {
        protocol::StartTask order =
            make_order(job, "exec 9</dev/muster-test-0 && echo open; exec sleep 1000");
        order.devices = {"T-0"};
        order.device_share = 500;
        node->start(order);
        node.wait_state(order.key, TaskState::Running);
        EXPECT_EQ(node.exec(order.key, {"bash", "-c", script().substr(0, script().find("; set"))}),
                  "0 open\n1 closed\nexit 0");
    }
}

TEST_F(Devices, a_process_put_into_a_running_task_is_confined_as_well) {
    TestNode node([](RuntimeOptions& options) { options.devices = devices(); });
    protocol::StartTask order = make_order(1, "exec sleep 1000");
    order.devices = {"T-0"};
    node->start(order);
    node.wait_state(order.key, TaskState::Running);
    EXPECT_EQ(node.exec(order.key,
                        {"bash", "-c",
                         "(exec 9</dev/muster-test-1) 2>/dev/null && echo open || echo closed"}),
              "closed\nexit 0");
}

TEST_F(Devices, v2_confines_them_with_a_program_of_its_own_F41) {
    const std::string base = ::access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0
                                 ? "/sys/fs/cgroup"
                                 : "/sys/fs/cgroup/unified";
    const std::string group = base + "/muster-filter-test";
    if (::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) GTEST_SKIP() << "no cgroup v2 here";
    std::vector<DeviceNumber> allowed = standard_devices();
    allowed.push_back(*device_number(kOwn));
    const Status attached = attach_device_filter(group, allowed);
    const Ran ran =
        attached ? run_program({.argv = {"/bin/bash", "-c",
                                         "echo 0 > " + group + "/cgroup.procs; " + script()}})
                 : Ran{};
    for (int i = 0; i < 100 && ::rmdir(group.c_str()) != 0; ++i) ::usleep(10'000);
    ::unlink("own-node");
    if (!attached && attached.error().code == Code::Denied)
        GTEST_SKIP() << attached.error().message;
    ASSERT_TRUE(attached) << attached.error().message;
    EXPECT_EQ(ran.out, "0 open\n1 closed\nchild closed\nmade closed\nstandard open\n\n");
}

TEST_F(Devices, one_that_is_gone_is_a_device_fault_F40) {
    TestNode node([](RuntimeOptions& options) { options.devices = devices(); });
    protocol::StartTask order = make_order(1, "true");
    order.devices = {"T-9"};
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::DeviceFault);
}

}  // namespace
}  // namespace muster::os
