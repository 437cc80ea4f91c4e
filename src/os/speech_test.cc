// What goes up from a running task: progress, checkpoints, tails, matches; and the notice down.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/posix.h"
#include "os/task_files.h"
#include "os/test_node.h"

namespace muster::os {
namespace {

using model::Cause;
using protocol::TaskState;

/// A client in Python's standard library, as a user would write it for another language.
const char* const kSay = R"(/usr/bin/python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["MUSTER_SOCKET"]); f = s.makefile("rw")
for line in sys.argv[1:]:
    f.write(line + "\n"); f.flush(); print(f.readline().strip(), flush=True)
' )";

template <class T>
std::vector<T> all(TestNode& node) {
    std::vector<T> found;
    for (const protocol::AgentMessage& message : node.messages())
        if (const auto* one = std::get_if<T>(&message)) found.push_back(*one);
    return found;
}

TEST(Speech, progress_goes_up_with_its_metrics_and_the_last_is_not_lost) {
    TestNode node;
    const protocol::StartTask order =
        make_order(1, std::string(kSay) +
                          "'progress step=1 total=9 loss=0.5' 'progress step=2 total=9' 'progress "
                          "step=3 total=9 loss=0.25' 'done' 'nonsense'");
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    EXPECT_EQ(node.log(order.key), "ok\nok\nok\nok\nerror unknown verb nonsense\n");
    const auto progress = all<protocol::Progress>(node);
    ASSERT_EQ(progress.size(), 2U);  // One a second, and the last before the end.
    EXPECT_EQ(progress[0].step, 1);
    EXPECT_EQ(progress[1].step, 3);
    EXPECT_EQ(progress[1].total, 9);
    EXPECT_EQ(progress[1].metrics, (std::vector<std::pair<std::string, double>>{{"loss", 0.25}}));
}

TEST(Speech, a_checkpoint_is_believed_only_when_it_is_there) {
    TestNode node;
    const std::string dir = node.folder() + "/ckpt";
    const protocol::StartTask order =
        make_order(2,
                   "mkdir -p $MUSTER_CHECKPOINT_DIR/step-5 && " + std::string(kSay) +
                       "\"checkpoint step=5 path=$MUSTER_CHECKPOINT_DIR/step-5\"; touch "
                       "$MUSTER_CHECKPOINT_DIR/step-5/.muster-complete; " +
                       kSay + "\"checkpoint step=5 path=$MUSTER_CHECKPOINT_DIR/step-5\"",
                   [&](model::JobSpec& spec) { spec.checkpoint.dir = dir; });
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    EXPECT_EQ(node.log(order.key), "error directory without .muster-complete\nok\n");
    const auto done = all<protocol::CheckpointDone>(node);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].path, dir + "/step-5");
    // The next attempt finds it, though its order knows nothing.
    protocol::StartTask next = order;
    next.key.epoch = 1;
    next.spec = make_order(2, "echo $MUSTER_LATEST_CHECKPOINT", [&](model::JobSpec& spec) {
                    spec.checkpoint.dir = dir;
                }).spec;
    node->start(next);
    EXPECT_EQ(node.wait_end(next.key).cause, Cause::Success);
    EXPECT_EQ(node.log(next.key), dir + "/step-5\n");
    EXPECT_EQ(all<protocol::CheckpointDone>(node).back().key, next.key);
}

TEST(Speech, the_notice_comes_as_signal_and_file_and_exit_zero_is_preempted) {
    TestNode node;
    const protocol::StartTask order =
        make_order(3,
                   "trap 'cut -d\" \" -f1,2 $MUSTER_PREEMPT_FILE; exit 0' USR1; echo up; while :; "
                   "do sleep 0.05; done");
    node->start(order);
    ASSERT_TRUE(node.wait_messages([](const auto& messages) {
        for (const auto& message : messages)
            if (std::holds_alternative<protocol::LogTail>(message)) return true;
        return false;
    }));
    node->notice({.term = 1,
                  .key = order.key,
                  .cause = Cause::Preempted,
                  .grace = Duration{30'000},
                  .reason = "by job 17"});
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(model::to_text(end.cause), model::to_text(Cause::Preempted)) << end.message;
    EXPECT_EQ(end.exit_code, 0);
    EXPECT_NE(node.log(order.key).find("preempt reason=by%20job%2017"), std::string::npos)
        << node.log(order.key);
}

TEST(Speech, a_task_that_says_saved_is_stopped_at_once_when_it_is_alone) {
    TestNode node;
    const protocol::StartTask order =
        make_order(4,
                   "trap ': ' USR1; trap 'exit 143' TERM; echo up; while [ ! -e "
                   "$MUSTER_PREEMPT_FILE ]; do sleep 0.02; done; " +
                       std::string(kSay) + "'saved step=7'; while :; do sleep 0.05; done");
    node->start(order);
    ASSERT_TRUE(node.wait_messages([](const auto& messages) {
        for (const auto& message : messages)
            if (std::holds_alternative<protocol::LogTail>(message)) return true;
        return false;
    }));
    node->notice({.term = 1,
                  .key = order.key,
                  .cause = Cause::Preempted,
                  .grace = Duration{600'000},
                  .reason = ""});
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(model::to_text(end.cause), model::to_text(Cause::Preempted)) << end.message;
}

TEST(Speech, log_rules_match_lines_once_each) {
    TestNode node;
    const protocol::StartTask order = make_order(
        5, "echo ok; echo CUDA error: 700; echo CUDA error: 701; printf 'last Xid 79'",
        [](model::JobSpec& spec) {
            spec.log_rules = {
                {.match = "CUDA error: [0-9]+"}, {.match = "Xid (79|94)"}, {.match = "never"}};
        });
    node->start(order);
    node.wait_end(order.key);
    const auto matches = all<protocol::LogMatch>(node);
    ASSERT_EQ(matches.size(), 2U);
    EXPECT_EQ(matches[0].line, "CUDA error: 700");
    EXPECT_EQ(matches[1].rule, 1U);
}

TEST(Speech, a_log_is_bounded_and_its_newest_end_is_kept) {
    TestNode node([](RuntimeOptions& options) { options.log_max = Bytes{1 << 20}; });
    const protocol::StartTask order = make_order(6, "seq 1 400000");
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    const std::string log = node.log(order.key);
    EXPECT_LE(log.size(), std::size_t{1} << 20);
    EXPECT_GE(log.size(), std::size_t{1} << 19);
    EXPECT_TRUE(log.ends_with("399999\n400000\n"));
    int number = std::atoi(log.c_str() + log.find('\n') + 1);
    for (std::size_t at = log.find('\n') + 1; at < log.size(); at = log.find('\n', at) + 1)
        ASSERT_EQ(std::atoi(log.c_str() + at), number++);
    EXPECT_EQ(node.log(order.key, -1, -14), "399999\n400000\n");
    const auto tails = all<protocol::LogTail>(node);
    ASSERT_FALSE(tails.empty());
    EXPECT_TRUE(tails.back().bytes.ends_with("400000\n"));
    EXPECT_LE(tails.back().bytes.size(), 64U << 10);
}

TEST(Speech, ranks_of_a_node_have_their_own_environment_and_lines) {
    TestNode node;
    protocol::StartTask order =
        make_order(7, "echo $RANK $LOCAL_RANK/$LOCAL_WORLD_SIZE of $WORLD_SIZE at $MASTER_ADDR",
                   [](model::JobSpec& spec) { spec.launch = model::Launch::PerGpu; });
    order.devices = {"D-0", "D-1"};
    order.gang = std::make_shared<const protocol::Gang>(
        protocol::Gang{{.name = "a", .address = "10.0.0.1", .slots = 2},
                       {.name = "b", .address = "10.0.0.2", .slots = 2}});
    order.key.rank = 1;
    node->set_devices({{.id = "D-0"}, {.id = "D-1"}});
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    EXPECT_EQ(node.log(order.key, 0), "2 0/2 of 4 at 10.0.0.1\n");
    EXPECT_EQ(node.log(order.key, 1), "3 1/2 of 4 at 10.0.0.1\n");
}

TEST(Speech, one_rank_that_fails_ends_the_others_and_is_the_one_named) {
    TestNode node;
    protocol::StartTask order =
        make_order(8, "[ $LOCAL_RANK = 1 ] && exit 9; exec sleep 1000",
                   [](model::JobSpec& spec) { spec.launch = model::Launch::PerGpu; });
    order.devices = {"D-0", "D-1", "D-2"};
    node->set_devices({{.id = "D-0"}, {.id = "D-1"}, {.id = "D-2"}});
    node->start(order);
    const model::TaskEnd end = node.wait_end(order.key);
    EXPECT_EQ(end.cause, Cause::UserError);
    EXPECT_EQ(end.exit_code, 9);
    EXPECT_EQ(end.local_rank, 1);
}

TEST(Speech, a_secret_is_read_on_the_node_and_never_stored) {
    TestNode node;
    const std::string file = node.folder() + "/token";
    ASSERT_EQ(write_small_file(AT_FDCWD, file.c_str(), "s3cret-value\n", false), 0);
    const protocol::StartTask order = make_order(9, "echo ${#API_KEY}", [&](model::JobSpec& spec) {
        spec.secrets = {{.name = "API_KEY", .file = file}};
    });
    node->start(order);
    EXPECT_EQ(node.wait_end(order.key).cause, Cause::Success);
    EXPECT_EQ(node.log(order.key), "12\n");
    for (const std::string& name : list_folder(node.task_folder(order.key))) {
        const auto text = read_file(node.task_folder(order.key) + "/" + name);
        if (text) EXPECT_EQ(text->find("s3cret"), std::string::npos) << name;
    }
}

TEST(Speech, commands_run_inside_a_task_with_and_without_a_terminal) {
    TestNode node;
    const protocol::StartTask order = make_order(10, "exec sleep 1000");
    node->start(order);
    node.wait_state(order.key, TaskState::Running);
    EXPECT_EQ(node.exec(order.key, {"bash", "-c", "echo $MUSTER_JOB_ID; echo err >&2; cat; exit 7"},
                        false, "from stdin\n"),
              "10\nerr\nfrom stdin\nexit 7");
    EXPECT_EQ(node.exec(order.key, {"bash", "-c", "test -t 0 && stty size"}, true),
              "24 80\r\nexit 0");
    EXPECT_EQ(node.exec(order.key, {"no-such-program"}),
              "cannot run no-such-program: No such file or directory\nexit 127");
    EXPECT_EQ(node.exec(order.key, {"/etc/passwd"}),
              "cannot run /etc/passwd: Permission denied\nexit 126");
    // A task that is no short one can be reached by name, as the next agent will.
    while (::access((node.task_folder(order.key) + "/" + files::kControl).c_str(), F_OK) != 0)
        ::usleep(10'000);
    EXPECT_EQ(node.exec(order.key, {"true"}), "exit 0");
}

/// Reads a tunnel with a window of 100,000 bytes to its end, taking what has come whenever the
/// window is full; how much was under way at most, and in all.
struct Windowed {
    std::int64_t most = 0, all = 0, input_taken = 0;
};
Windowed read_windowed(TestNode& node, protocol::OpenTunnel ask, const std::string& input) {
    ask.window = 100'000;
    std::mutex mutex;
    std::condition_variable changed;
    Windowed sums;
    std::int64_t under_way = 0;
    bool end = false;
    const auto stream = node->open_tunnel(ask, [&](protocol::AgentMessage message) {
        const std::lock_guard lock(mutex);
        const auto& output = std::get<protocol::TunnelOutput>(message);
        const auto size = static_cast<std::int64_t>(output.bytes.size());
        under_way += size, sums.all += size;
        sums.most = std::max(sums.most, under_way);
        sums.input_taken += output.taken;
        end = end || output.end;
        changed.notify_all();
    });
    for (std::size_t at = 0; at < input.size(); at += 32'768)
        stream->input({.request = ask.request, .bytes = input.substr(at, 32'768)});
    if (ask.kind == protocol::OpenTunnel::Kind::Exec)
        stream->input({.request = ask.request, .bytes = {}, .end = true});
    std::unique_lock lock(mutex);
    while (!end) {
        changed.wait(lock, [&] { return end || under_way >= ask.window; });
        const std::int64_t taken = std::exchange(under_way, 0);
        lock.unlock();
        stream->input({.request = ask.request, .bytes = {}, .taken = taken});
        lock.lock();
    }
    return sums;
}

TEST(Speech, a_tunnel_carries_no_more_than_its_other_end_takes) {
    TestNode node;
    const protocol::StartTask order = make_order(12, "exec sleep 1000");
    node->start(order);
    node.wait_state(order.key, TaskState::Running);
    const protocol::OpenTunnel ask{
        .request = 1,
        .key = order.key,
        .kind = protocol::OpenTunnel::Kind::Exec,
        .argv = {"bash", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; cat | wc -c"}};
    const Windowed sums = read_windowed(node, ask, std::string(300'000, 'y'));
    EXPECT_EQ(sums.all, 1'000'007) << "all of it, and the length of the input";
    EXPECT_LE(sums.most, 100'000 + 32 * 1024 + 64 * 1024) << "the last words come at once";
    EXPECT_EQ(sums.input_taken, 300'000);
}

TEST(Speech, a_job_with_a_terminal_can_be_attached_to) {
    TestNode node;
    const protocol::StartTask order = make_order(11, "test -t 0 && echo tty; read x; echo got $x",
                                                 [](model::JobSpec& spec) { spec.pty = true; });
    node->start(order);
    node.wait_state(order.key, TaskState::Running);
    const std::string text = node.attach(order.key, "hello\n");
    EXPECT_NE(text.find("tty\r\n"), std::string::npos) << text;
    EXPECT_NE(text.find("got hello\r\n"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("exit 0")) << text;
}

}  // namespace
}  // namespace muster::os
