// Real containers from an OCI layout, a tarball and a registry of our own. Root only.
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/posix.h"
#include "os/task_files.h"
#include "os/test_node.h"

namespace muster::os {
namespace {

using model::Cause;
using protocol::TaskState;

/// An image of busybox as an OCI layout, made once by umoci.
class Containers : public testing::Test {
protected:
    static void SetUpTestSuite() {
        char name[] = "/tmp/muster-image-XXXXXX";
        dir_ = ::mkdtemp(name);
        const std::string script =
            "set -e; cd " + dir_ +
            "; mkdir -p root/bin root/etc root/tmp; cp \"$(command -v busybox)\" root/bin/busybox; "
            "for a in sh cat ls id echo sleep mknod true seq head stty test; do ln -s busybox "
            "root/bin/$a; done; "
            "umoci init --layout oci; umoci new --image oci:bb; umoci insert --image oci:bb root "
            "/; "
            "umoci config --image oci:bb --config.env FROM_IMAGE=yes --config.env PATH=/bin "
            "--config.workingdir /tmp; "
            "skopeo copy --quiet oci:oci:bb docker-archive:bb.tar:bb:1";
        const Ran made = run_program({.argv = {"/bin/bash", "-c", script}, .timeout_ms = 120'000});
        why_not_ = made.exit_code == 0
                       ? ""
                       : "no image could be made (busybox, umoci, skopeo): " + made.out;
    }
    static void TearDownTestSuite() { (void)remove_tree(AT_FDCWD, dir_.c_str()); }
    void SetUp() override {
        if (!can_limit()) GTEST_SKIP();
        if (!why_not_.empty()) GTEST_SKIP() << why_not_;
        node_ = std::make_unique<TestNode>([](RuntimeOptions& options) {
            options.containers = true;
            options.insecure_registries = {kRegistry};
            options.devices = {{.id = "T-0", .kind = "test", .files = {kOwn}},
                               {.id = "T-1", .kind = "test", .files = {kOther}}};
        });
        model::NodeFacts facts;
        (*node_)->describe(facts);
        if (facts.runtime.empty()) GTEST_SKIP() << "no OCI runtime works here";
    }
    void TearDown() override {
        node_.reset();
        if (!lock_) return;
        ::unlink(kOwn);
        ::unlink(kOther);
    }
    protocol::StartTask order(std::uint64_t job, const std::string& run,
                              const std::function<void(model::JobSpec&)>& change = {}) {
        return make_order(job, run, [&](model::JobSpec& spec) {
            spec.image = "oci:" + dir_ + "/oci:bb";
            if (change) change(spec);
        });
    }
    model::TaskEnd run(const protocol::StartTask& order) {
        (*node_)->start(order);
        return node_->wait_end(order.key);
    }
    static constexpr const char* kRegistry = "127.0.0.1:5057";
    Fd lock_;  // While it has made them.
    static constexpr const char* kOwn = "/dev/muster-test-c0";
    static constexpr const char* kOther = "/dev/muster-test-c1";
    inline static std::string dir_, why_not_;
    std::unique_ptr<TestNode> node_;
};

TEST_F(Containers, a_task_runs_in_its_image_with_its_environment_and_exit_code) {
    const auto ask = order(1,
                           "echo $FROM_IMAGE $PATH $MUSTER_JOB_ID $(pwd) $X; ls /; echo mine > "
                           "/etc/mine; cat $MUSTER_HOSTFILE /job/hostfile; exit 7",
                           [](model::JobSpec& spec) {
                               spec.env = {{"X", "a b"}};
                           });
    const model::TaskEnd end = run(ask);
    EXPECT_EQ(end.cause, Cause::UserError) << end.message;
    EXPECT_EQ(end.exit_code, 7);
    const std::string log = node_->log(ask.key);
    EXPECT_TRUE(log.starts_with("yes /bin 1 /tmp a b\n")) << log;
    EXPECT_NE(log.find("127.0.0.1 slots=1\n127.0.0.1 slots=1\n"), std::string::npos) << log;
    // What it wrote into the image is its own.
    const auto next = order(2, "cat /etc/mine");
    EXPECT_EQ(run(next).exit_code, 1);
    bool pulled = false;
    for (const auto& message : node_->messages())
        if (const auto* status = std::get_if<protocol::TaskStatus>(&message))
            pulled |= status->state == TaskState::Pulling;
    EXPECT_TRUE(pulled);
}

TEST_F(Containers, it_can_do_nothing_that_needs_more_privileges) {
    const auto ask = order(
        1,
        "test -e /dev/kmsg && echo kmsg; (echo x > /proc/sys/kernel/hostname) 2>/dev/null && echo "
        "wrote; cat /proc/self/status | while read k v; do case $k in "
        "NoNewPrivs:|Seccomp:|CapEff:) echo $k $v;; esac; done");
    EXPECT_EQ(run(ask).cause, Cause::Success);
    EXPECT_EQ(node_->log(ask.key), "CapEff: 00000000000005fb\nNoNewPrivs: 1\nSeccomp: 2\n");
}

TEST_F(Containers, it_opens_its_own_device_and_no_other_nor_do_its_children) {
    lock_ = own_test_devices();
    for (const auto& [path, number] :
         {std::pair(kOwn, makedev(10, 237)), std::pair(kOther, makedev(10, 229))}) {
        ::unlink(path);
        if (::mknod(path, S_IFCHR | 0666, number) != 0)
            GTEST_SKIP() << "cannot make device nodes here";
        ::chmod(path, 0666);
        const Fd fd(::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        if (!fd) GTEST_SKIP() << path << " cannot be opened even without confinement";
    }
    auto ask =
        order(1,
              "for i in 0 1; do (exec 9</dev/muster-test-c$i) 2>/dev/null && echo $i open || echo "
              "$i closed; done; "
              "sh -c '(exec 9</host/muster-test-c1) 2>/dev/null && echo child open || echo child "
              "closed'; "
              "mknod /tmp/n c 10 229 2>/dev/null && echo made; head -c 1 /dev/urandom >/dev/null "
              "&& echo standard open",
              [](model::JobSpec& spec) { spec.mounts = {{.source = "/dev", .target = "/host"}}; });
    ask.devices = {"T-0"};
    EXPECT_EQ(run(ask).cause, Cause::Success);
    EXPECT_EQ(node_->log(ask.key), "0 open\n1 closed\nchild closed\nstandard open\n");
}

TEST_F(Containers, memory_setup_signals_and_commands_work_as_without_one) {
    auto big = order(1, "x=$(head -c 300000000 /dev/zero | cat -v | head -c 200000000); echo $?");
    big.memory = Bytes{64 << 20};
    EXPECT_EQ(model::to_text(run(big).cause), model::to_text(Cause::Oom));
    const auto set_up = order(
        2, "cat /etc/made", [](model::JobSpec& spec) { spec.setup = "echo by setup > /etc/made"; });
    EXPECT_EQ(run(set_up).cause, Cause::Success);
    EXPECT_EQ(node_->log(set_up.key), "by setup\n");
    const auto stopped =
        order(3, "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    (*node_)->start(stopped);
    ASSERT_TRUE(node_->wait_messages([&](const auto& messages) {
        for (const auto& message : messages)
            if (const auto* tail = std::get_if<protocol::LogTail>(&message);
                tail != nullptr && tail->key == stopped.key)
                return true;
        return false;
    }));
    EXPECT_EQ(node_->exec(stopped.key, {"sh", "-c", "echo $FROM_IMAGE $MUSTER_JOB_ID; exit 3"}),
              "yes 3\nexit 3");
    (*node_)->stop(stopped.key, Cause::Cancelled, Duration{30'000});
    const model::TaskEnd end = node_->wait_end(stopped.key);
    EXPECT_EQ(end.exit_code, 0) << end.message;
    EXPECT_NE(node_->log(stopped.key).find("saved\n"), std::string::npos);
}

TEST_F(Containers, commands_of_an_mpi_jobs_first_node_run_in_its_other_containers) {
    protocol::StartTask gang[2];
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        gang[rank] =
            order(1,
                  "echo in | ssh b 'read x; echo $x $MUSTER_NODE_RANK $FROM_IMAGE; "
                  "sleep 9874 & exit 5'; echo $?; muster-rsh b 'kill -9 $$'; echo $?; exit 3",
                  [](model::JobSpec& spec) { spec.launch = model::Launch::Mpi; });
        gang[rank].key.rank = rank;
        gang[rank].barrier = true;
        gang[rank].gang = std::make_shared<const protocol::Gang>(protocol::Gang{
            {.name = "a", .address = "127.0.0.1"}, {.name = "b", .address = "127.0.0.1"}});
        (*node_)->start(gang[rank]);
    }
    std::vector<protocol::LaunchPoint> points;
    for (const auto& task : gang)
        points.push_back(node_->wait_state(task.key, TaskState::Ready).launch);
    // The first node may be the faster one.
    for (const auto& task : gang)
        (*node_)->release({.term = 1, .key = task.key, .master_address = "x", .launch = points});
    EXPECT_EQ(node_->wait_end(gang[0].key).exit_code, 3);
    EXPECT_EQ(node_->log(gang[0].key), "in 1 yes\n5\n137\n");
    (*node_)->stop(gang[1].key, Cause::Peer, Duration{5'000});
    EXPECT_EQ(node_->wait_end(gang[1].key).cause, Cause::Peer);
}

TEST_F(Containers, an_agent_that_is_restarted_adopts_it_F33) {
    const auto ask =
        order(1, "while [ ! -e $MUSTER_SCRATCH/stop ]; do sleep 0.05; done; echo seen");
    (*node_)->start(ask);
    node_->wait_state(ask.key, TaskState::Running);
    node_->restart();
    node_->wait_state(ask.key, TaskState::Running);
    ASSERT_EQ(write_small_file(AT_FDCWD, (node_->task_folder(ask.key) + "/scratch/stop").c_str(),
                               "", false),
              0);
    EXPECT_EQ(node_->wait_end(ask.key).cause, Cause::Success);
    EXPECT_EQ(node_->log(ask.key), "seen\n");
}

TEST_F(Containers, a_tarball_is_an_image_too) {
    const auto ask =
        order(1, "echo $FROM_IMAGE", [](model::JobSpec& spec) { spec.image = dir_ + "/bb.tar"; });
    EXPECT_EQ(run(ask).cause, Cause::Success) << node_->wait_end(ask.key).message;
    EXPECT_EQ(node_->log(ask.key), "yes\n");
}

TEST_F(Containers, an_image_that_is_not_there_is_a_cause_of_its_own_F49) {
    const auto ask =
        order(1, "true", [](model::JobSpec& spec) { spec.image = "oci:" + dir_ + "/none:bb"; });
    const model::TaskEnd end = run(ask);
    EXPECT_EQ(end.cause, Cause::Image);
    EXPECT_NE(end.message.find("none:bb"), std::string::npos) << end.message;
    EXPECT_FALSE(end.permanent) << "a path may be there on another node";
}

TEST_F(Containers, a_registry_is_asked_once_for_what_two_tasks_want) {
    const std::string config = dir_ + "/registry.yml";
    ASSERT_EQ(write_small_file(AT_FDCWD, config.c_str(),
                               "version: 0.1\nstorage: {filesystem: {rootdirectory: " + dir_ +
                                   "/registry}}\nhttp: {addr: \"" + kRegistry + "\"}\n",
                               false),
              0);
    const std::string program = "docker-registry";
    char* argv[] = {const_cast<char*>(program.c_str()), const_cast<char*>("serve"),
                    const_cast<char*>(config.c_str()), nullptr};
    posix_spawn_file_actions_t quiet;
    ::posix_spawn_file_actions_init(&quiet);
    ::posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    pid_t registry = -1;
    const int failed = ::posix_spawnp(&registry, argv[0], &quiet, nullptr, argv, environ);
    ::posix_spawn_file_actions_destroy(&quiet);
    if (failed != 0) GTEST_SKIP() << "no docker-registry here";
    const Ran pushed =
        run_program({.argv = {"/bin/bash", "-c",
                              "for i in $(seq 100); do (exec 9<>/dev/tcp/127.0.0.1/5057) "
                              "2>/dev/null && break; sleep 0.1; done; "
                              "skopeo copy --quiet --dest-tls-verify=false oci:" +
                                  dir_ + "/oci:bb docker://" + kRegistry + "/test/bb:1"},
                     .timeout_ms = 60'000});
    EXPECT_EQ(pushed.exit_code, 0) << pushed.out;
    const auto change = [](model::JobSpec& spec) {
        spec.image = std::string(kRegistry) + "/test/bb:1";
    };
    const auto first = order(1, "echo $FROM_IMAGE", change),
               second = order(2, "echo $FROM_IMAGE", change);
    (*node_)->start(first);
    (*node_)->start(second);
    EXPECT_EQ(node_->wait_end(first.key).cause, Cause::Success)
        << node_->wait_end(first.key).message;
    EXPECT_EQ(node_->wait_end(second.key).cause, Cause::Success);
    const auto unknown = order(4, "true", [](model::JobSpec& spec) {
        spec.image = std::string(kRegistry) + "/test/bb:nosuch";
    });
    const model::TaskEnd none = run(unknown);
    EXPECT_EQ(none.cause, Cause::Image);
    EXPECT_TRUE(none.permanent) << none.message;
    ::kill(registry, SIGTERM);
    ::waitpid(registry, nullptr, 0);
    // The registry is away; what it named last is here.
    const auto third = order(3, "echo $FROM_IMAGE", change);
    EXPECT_EQ(run(third).cause, Cause::Success);
    EXPECT_EQ(node_->log(third.key), "yes\n");
    const auto away = order(5, "true", [](model::JobSpec& spec) {
        spec.image = std::string(kRegistry) + "/test/other:1";
    });
    EXPECT_FALSE(run(away).permanent) << "it may come back";
}

}  // namespace
}  // namespace muster::os
