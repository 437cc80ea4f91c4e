// A whole agent between a real link, with a controller that a test plays, and real tasks.
#include "agent/agent.h"

#include <functional>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/job_spec.h"
#include "net/test_link.h"
#include "os/order_file.h"
#include "os/posix.h"
#include "os/task_files.h"
#include "os/user.h"

namespace muster::agent {
namespace {

using net::testing::Log;
using net::testing::TestController;
using protocol::TaskState;

class AgentAndController : public testing::Test {
protected:
    AgentAndController() {
        char name[] = "/tmp/muster-agent-XXXXXX";
        dir_ = ::mkdtemp(name);
        ::chmod(dir_.c_str(), 0711);
        net::AgentLinkCallbacks callbacks;
        callbacks.on_messages = [this](net::SessionId id, std::vector<protocol::AgentMessage> all) {
            for (protocol::AgentMessage& message : all) take(id, message);
        };
        controller_ =
            std::make_unique<TestController>(net::AgentLinkServerOptions{}, std::move(callbacks));
        config_.state_dir = dir_;
        config_.peers = "127.0.0.1:0";
        config_.supervisor = std::string(MUSTER_BINARY_DIR) + "/bin/muster-task";
        identity_ = {.name = "node1",
                     .controller = controller_->address(),
                     .tls = net::testing::agent_tls("node1")};
        start();
    }
    ~AgentAndController() override {
        agent_.reset();
        controller_.reset();
        (void)os::remove_tree(AT_FDCWD, dir_.c_str());
        for (const char* group : {"cpu", "memory", "pids", "devices", "unified", "."})
            ::rmdir((std::string("/sys/fs/cgroup/") + group + "/muster-node1").c_str());
    }
    void start() {
        AgentHooks hooks;
        hooks.log = [this](const std::string& line) { log_.add("log " + line); };
        hooks.version = "test";
        auto started = Agent::start(config_, identity_, std::move(hooks));
        ASSERT_TRUE(started) << started.error().message;
        agent_ = *std::move(started);
    }
    /// What the agent says becomes lines: "status 1 running", "chunk text", "hello 1".
    void take(net::SessionId id, const protocol::AgentMessage& message) {
        if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
            controller_->link->send(
                id,
                protocol::Welcome{.term = 1, .node = NodeId{1}, .rules = {}, .wanted = wanted_});
            log_.add("hello " + std::to_string(hello->tasks.size()) + " " + hello->facts.name);
            for (const auto& task : hello->tasks) add(task);
        } else if (const auto* beat = std::get_if<protocol::Heartbeat>(&message)) {
            controller_->link->send(
                id, protocol::LeaseGrant{.term = 1, .sequence = beat->sequence, .peers = {}});
        } else if (const auto* status = std::get_if<protocol::TaskStatus>(&message)) {
            add(*status);
        } else if (const auto* chunk = std::get_if<protocol::LogChunk>(&message)) {
            if (!chunk->bytes.empty()) log_.add("chunk " + chunk->bytes);
            if (chunk->end) log_.add("chunks end");
        } else if (const auto* facts = std::get_if<protocol::FactsChanged>(&message)) {
            log_.add("facts " + std::string(model::label(facts->facts, "zone")));
        }
    }
    void add(const protocol::TaskStatus& status) {
        log_.add("status " + std::to_string(status.key.job.value) + " " +
                 std::string(protocol::to_text(status.state)) +
                 (status.state == TaskState::Ended
                      ? " " + std::string(model::to_text(status.end.cause))
                      : ""));
    }
    protocol::StartTask order(std::uint64_t job, const std::string& run) {
        model::JobSpec spec;
        spec.name = "test";
        spec.roles = {model::Role{.run = run}};
        protocol::StartTask start;
        start.term = 1;
        start.key.job = JobId{job};
        start.user = os::own_user()->name;
        start.job_name = "test";
        start.spec = std::make_shared<const std::string>(model::encode(spec));
        start.gang = std::make_shared<const protocol::Gang>(
            protocol::Gang{{.name = "node1", .address = "127.0.0.1"}});
        wanted_.push_back(start.key);
        return start;
    }
    void send(protocol::ControllerMessage message) {
        EXPECT_TRUE(controller_->link->send(controller_->session("node1"), std::move(message)));
    }
    std::size_t count(const std::string& line) {
        const auto lines = log_.lines();
        return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), line));
    }

    std::string dir_;
    Log log_;
    std::vector<protocol::TaskKey> wanted_;
    std::unique_ptr<TestController> controller_;
    Config config_;
    Identity identity_;
    std::unique_ptr<Agent> agent_;
};

TEST_F(AgentAndController, runs_what_it_is_ordered_and_shows_the_log) {
    log_.wait_for_line("hello 0 node1");
    const protocol::StartTask start = order(1, "echo hello from $MUSTER_JOB_ID");
    send(start);
    log_.wait_for_line("status 1 ended success");
    send(protocol::ReadLog{.request = 7, .key = start.key});
    log_.wait_for_line("chunk hello from 1\n");
    log_.wait_for_line("chunks end");
    send(protocol::ForgetTask{.term = 1, .key = start.key});
    // The folder goes, the log stays.
    while (::access((dir_ + "/tasks/1-0-0").c_str(), F_OK) == 0) ::usleep(5'000);
    send(protocol::ReadLog{.request = 8, .key = start.key});
    log_.wait_until([&](const auto& lines) {
        return std::count(lines.begin(), lines.end(), "chunk hello from 1\n") == 2;
    });
}

TEST_F(AgentAndController, a_new_agent_adopts_what_the_old_one_left_running_F32_F33) {
    log_.wait_for_line("hello 0 node1");
    const protocol::StartTask start =
        order(2, "while [ ! -e stop ]; do sleep 0.02; done; echo stopped by file");
    send(start);
    log_.wait_for_line("status 2 running");
    agent_.reset();
    controller_->log.wait_for_line("close node1");
    this->start();
    log_.wait_for_line("hello 1 node1");
    EXPECT_EQ(
        os::write_small_file(AT_FDCWD, (dir_ + "/tasks/2-0-0/scratch/stop").c_str(), "", false), 0);
    log_.wait_for_line("status 2 ended success");
    EXPECT_EQ(count("status 2 ended success"), 1U);
}

TEST_F(AgentAndController, what_the_controller_does_not_want_is_stopped) {
    log_.wait_for_line("hello 0 node1");
    send(order(3, "exec sleep 1000"));
    log_.wait_for_line("status 3 running");
    wanted_.clear();
    agent_.reset();
    controller_->log.wait_for_line("close node1");
    this->start();
    log_.wait_for_line("status 3 ended cancelled");
}

TEST_F(AgentAndController, a_reload_tells_new_labels) {
    log_.wait_for_line("hello 0 node1");
    config_.labels = {{"zone", "b"}};
    agent_->reload(config_);
    log_.wait_for_line("facts b");
}

TEST(Identity, survives_on_disk_and_is_not_found_before_the_first_join) {
    char name[] = "/tmp/muster-agent-XXXXXX";
    const std::string dir = ::mkdtemp(name);
    const auto none = load_identity(dir);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::NotFound);
    const auto denied = join(dir, "node1", "not a token");
    EXPECT_FALSE(denied);
    (void)os::remove_tree(AT_FDCWD, dir.c_str());
    EXPECT_EQ(address_towards("127.0.0.1:7071"), "127.0.0.1");
    EXPECT_EQ(address_towards("nonsense"), "");
}

}  // namespace
}  // namespace muster::agent
