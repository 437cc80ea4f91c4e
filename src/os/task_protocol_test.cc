// Lines of the task protocol, checkpoints and verdicts, as rows.
#include "os/task_protocol.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/checkpoints.h"
#include "os/posix.h"
#include "os/prepare.h"
#include "os/task_files.h"
#include "os/task_signals.h"
#include "os/verdict.h"

namespace muster::os {
namespace {

std::string say(const Result<TaskLine>& line) {
    if (!line) return "error " + line.error().message;
    if (const auto* p = std::get_if<ProgressLine>(&*line)) {
        std::string text = "progress " + std::to_string(p->step) + "/" + std::to_string(p->total) +
                           " rank " + std::to_string(p->rank);
        for (const auto& [key, value] : p->metrics)
            text += " " + key + "=" + std::to_string(value).substr(0, 5);
        return text;
    }
    if (const auto* c = std::get_if<CheckpointLine>(&*line))
        return "checkpoint " + std::to_string(c->step) + " " + c->path;
    if (const auto* s = std::get_if<SavedLine>(&*line)) return "saved " + std::to_string(s->step);
    return "done";
}

TEST(TaskProtocol, reads_lines_as_the_contract_says) {
    const std::pair<const char*, const char*> rows[] = {
        {"progress step=120 total=500 rank=1 loss=0.31 lr=-2e-3 note=hello acc=nan",
         "progress 120/500 rank 1 loss=0.310 lr=-0.00"},
        {"progress step=1", "progress 1/0 rank -1"},
        {"progress", "error step is missing"},
        {"progress step=-1", "error step is not a whole number"},
        {"progress step=9007199254740991", "progress 9007199254740991/0 rank -1"},
        {"progress step=9007199254740992", "error step is above 9007199254740991"},
        {"progress step=1 rank=70000", "error rank is above 65535"},
        {"progress step=1 step=2", "error key step is given twice"},
        {"progress  step=1", "error not key=value: ''"},
        {"progress step=1 9=1", "error not key=value: '9=1'"},
        {"checkpoint step=7 path=/c/step%207", "checkpoint 7 /c/step 7"},
        {"checkpoint step=7 path=a/b", "error path is not absolute"},
        {"checkpoint step=7", "error path is missing"},
        {"checkpoint step=7 path=/a%0", "error a value ends within an escape"},
        {"checkpoint step=7 path=/a%zz", "error a value holds a bad escape"},
        {"checkpoint step=7 path=/a%00", "error a value holds a NUL"},
        {"checkpoint step=7 path=/a%ff", "error a value is not valid UTF-8"},
        {"saved step=3 extra=1", "saved 3"},
        {"done", "done"},
        {"halt now=1", "error unknown verb halt"},
        {"Progress step=1", "error a line begins with a verb of a-z and '-'"},
    };
    for (const auto& [line, expected] : rows)
        EXPECT_EQ(say(parse_task_line(line)), expected) << line;
}

TEST(TaskProtocol, escapes_what_its_grammar_asks) {
    EXPECT_EQ(escape_value("preempted by job 17 100%"), "preempted%20by%20job%2017%20100%25");
    EXPECT_EQ(signal_number("USR2"), SIGUSR2);
    EXPECT_EQ(signal_number("SIGTERM"), SIGTERM);
    EXPECT_EQ(signal_number("12"), 12);
}

TEST(TaskProtocol, a_bucket_gives_bursts_and_then_its_rate) {
    TokenBucket bucket(10, 20, 0);
    int taken = 0;
    while (bucket.take(0)) ++taken;
    EXPECT_EQ(taken, 20);
    EXPECT_EQ(bucket.wait_ms(), 100);
    EXPECT_FALSE(bucket.take(99));
    EXPECT_TRUE(bucket.take(100));
}

class Checkpoints : public testing::Test {
protected:
    Checkpoints() {
        char name[] = "/tmp/muster-ckpt-XXXXXX";
        dir_ = ::mkdtemp(name);
    }
    ~Checkpoints() override { (void)remove_tree(AT_FDCWD, dir_.c_str()); }
    void file(const std::string& name, const std::string& text = "x") {
        const std::size_t slash = name.rfind('/');
        if (slash != std::string::npos)
            EXPECT_TRUE(make_folders(dir_ + "/" + name.substr(0, slash)));
        EXPECT_EQ(write_small_file(AT_FDCWD, (dir_ + "/" + name).c_str(), text, false), 0);
    }
    std::string check(const std::string& path) {
        const Status status = check_announced(dir_, "/seen/", path);
        return status ? "ok" : status.error().message;
    }
    std::string dir_;
};

TEST_F(Checkpoints, are_believed_only_when_complete) {
    file("step-1/.muster-complete", "");
    file("step-2/weights");
    file("step-3.pt");
    file("step-4.pt", "");
    file("step-5.tmp/.muster-complete");
    ASSERT_EQ(::symlink("step-1", (dir_ + "/step-6").c_str()), 0);
    EXPECT_EQ(check("/seen/step-1"), "ok");
    EXPECT_EQ(check("/seen/step-1///"), "ok");
    EXPECT_EQ(check("/seen/step-2"), "directory without .muster-complete");
    EXPECT_EQ(check("/seen/step-3.pt"), "ok");
    EXPECT_EQ(check("/seen/step-4.pt"), "neither a directory nor a regular file that is not empty");
    EXPECT_EQ(check("/seen/step-5.tmp"), "a name in path ends in .tmp");
    EXPECT_EQ(check("/seen/step-6"),
              "no such checkpoint below the directory, or through a symbolic link");
    EXPECT_EQ(check("/seen/../etc"), "path has an empty, '.' or '..' component");
    EXPECT_EQ(check("/seen"), "path is not below the checkpoint directory /seen");
    EXPECT_EQ(check("/seenx/step-1"), "path is not below the checkpoint directory /seen");
    EXPECT_EQ(check("/seen/" + std::string(1100, 'a')), "path longer than 1024 bytes");
}

TEST_F(Checkpoints, the_scan_finds_the_newest_complete_one) {
    EXPECT_EQ(scan_checkpoints(dir_, "/seen"), std::nullopt);
    file("step-10/.muster-complete", "");
    file("step-9.pt");
    file("step-9.pt.muster-complete", "");
    file("step-11/half");
    file("step-12.pt");  // No marker: on its own nobody knows.
    file("step-13.partial/.muster-complete");
    file("other-99/.muster-complete");
    EXPECT_EQ(scan_checkpoints(dir_, "/seen/"),
              (CheckpointFound{.step = 10, .path = "/seen/step-10"}));
    EXPECT_EQ(newest_checkpoint(dir_, "/seen", {.step = 12, .path = "/seen/step-12.pt"})->step, 12);
    EXPECT_EQ(newest_checkpoint(dir_, "/seen", {.step = 20, .path = "/seen/step-20"})->step, 10);
    file("step-0010.pt");
    file("step-0010.pt.muster-complete", "");
    EXPECT_EQ(scan_checkpoints(dir_, "/seen")->path, "/seen/step-10");
}

struct VerdictRow {
    const char* name;
    Exit exit;
    Told told;
    model::Cause cause;
};

TEST(Verdict, tells_causes_apart) {
    using model::Cause;
    const Told none, cancelled{.stop = Cause::Cancelled},
        noticed{.notice = Cause::Preempted, .notice_signal = SIGUSR1};
    Told finished = noticed;
    finished.done = true;
    Told stopped_done{.stop = Cause::Preempted, .done = true};
    const VerdictRow rows[] = {
        {"success", {.exit_code = 0}, none, Cause::Success},
        {"user error", {.exit_code = 3}, none, Cause::UserError},
        {"oom", {.exit_code = -1, .signal = SIGKILL, .oom = true}, none, Cause::Oom},
        {"a child's oom that the task survived",
         {.exit_code = 0, .oom = true},
         none,
         Cause::Success},
        {"launch", {.launch_failed = true}, none, Cause::Launch},
        {"cancelled", {.stopped = true, .exit_code = 0}, cancelled, Cause::Cancelled},
        {"ended before the cancel came", {.exit_code = 0}, cancelled, Cause::Success},
        {"without an agent for too long",
         {.stopped = true, .fenced = true, .exit_code = -1, .signal = SIGTERM},
         none,
         Cause::Fenced},
        {"preempted, exit 0", {.exit_code = 0}, noticed, Cause::Preempted},
        {"preempted, 143", {.exit_code = 143}, noticed, Cause::Preempted},
        {"preempted, by the signal",
         {.exit_code = -1, .signal = SIGUSR1},
         noticed,
         Cause::Preempted},
        {"preempted, killed",
         {.killed = true, .exit_code = -1, .signal = SIGKILL},
         noticed,
         Cause::Preempted},
        {"failed inside the grace", {.exit_code = 1}, noticed, Cause::UserError},
        {"done inside the grace F19", {.exit_code = 0}, finished, Cause::Success},
        {"done, then stopped F19", {.stopped = true, .exit_code = 0}, stopped_done, Cause::Success},
    };
    for (const VerdictRow& row : rows)
        EXPECT_EQ(model::to_text(judge(row.exit, row.told).cause), model::to_text(row.cause))
            << row.name;
}

TEST(Verdict, an_end_for_memory_tells_peak_and_limit) {
    const Exit killed{.exit_code = -1, .signal = SIGKILL, .oom = true, .peak_memory = 4LL << 30};
    EXPECT_EQ(judge(killed, {.memory = Bytes{4LL << 30}}).message,
              "killed: used 4GiB of its limit of 4GiB");
    EXPECT_EQ(judge(killed, {}).message, "killed: the node was out of memory when it used 4GiB");
}

struct ImageRow {
    const char* words;
    Code code;
};
TEST(ImageFailure, is_permanent_the_nodes_own_or_may_pass) {
    const ImageRow rows[] = {
        {"reading manifest nosuch in docker.io/library/busybox: manifest unknown: manifest unknown",
         Code::NotFound},
        {"reading manifest 1 in r/x: name unknown: repository name not known to registry",
         Code::NotFound},
        {"reading manifest latest in docker.io/a/b: errors:\ndenied: requested access to the "
         "resource is denied\nunauthorized: authentication required",
         Code::NotFound},
        {"invalid reference format: repository name must be lowercase", Code::NotFound},
        {"reading manifest 1 in r/x: received unexpected HTTP status: 404 Not Found",
         Code::NotFound},
        {"pinging container registry r:5055: Get \"https://r:5055/v2/\": dial tcp 10.0.0.1:5055: "
         "connect: connection refused",
         Code::Unavailable},
        {"received unexpected HTTP status: 503 Service Unavailable", Code::Unavailable},
        {"toomanyrequests: You have reached your unauthenticated pull rate limit: unauthorized",
         Code::Unavailable},
        {"Get \"https://r/v2/\": net/http: TLS handshake timeout", Code::Unavailable},
        {"dial tcp: lookup r on 10.0.0.1:53: server misbehaving", Code::Unavailable},
        {"writing blob: write /x/oci/blobs: no space left on device", Code::NoSpace},
        {"", Code::Unavailable},
    };
    for (const ImageRow& row : rows)
        EXPECT_EQ(static_cast<int>(image_failure(row.words)), static_cast<int>(row.code))
            << row.words;
}

TEST(Command, a_plain_one_needs_no_shell) {
    using Words = std::vector<std::string>;
    const Words shelled = {"/bin/bash", "-c"};
    EXPECT_EQ(command_of("true", "/bin/bash"), Words{"true"});
    EXPECT_EQ(command_of("python3 train.py --lr=1e-3\n", "/bin/bash"),
              (Words{"python3", "train.py", "--lr=1e-3"}));
    EXPECT_EQ(command_of("exec sleep 5", "/bin/bash"), (Words{"sleep", "5"}));
    EXPECT_EQ(command_of("exec echo hi", "/bin/bash"), (Words{"echo", "hi"}));
    for (const char* script : {"echo hi", "a; b", "x=1 y", "cd /tmp", "ls ~", "ls *", "a && b",
                               "a\nb", "exec", "exec -a b x", "exec x=1 y", "exec x > log",
                               "exec $X", "a 'b'", "$X", "", "{ a; }", "python3 a.py > log"})
        EXPECT_EQ(command_of(script, "/bin/bash"), (Words{"/bin/bash", "-c", script})) << script;
}

TEST(TaskFiles, come_back_whole_or_not_at_all) {
    Launch launch;
    launch.switch_user = true;
    launch.uid = 4'000'000'000U;
    launch.groups = {1, 2};
    launch.env = {"A=1=2", "B="};
    launch.run = {"x", "", "y z"};
    launch.ranks = {{.env = {"RANK=0"}}, {.env = {}}};
    launch.limits = {{.resource = 8, .soft = 1, .hard = ~0ULL}};
    launch.groups_to_join = {{.path = "/a:b", .unified = true, .memory = false, .own = false}};
    launch.barrier = true;
    const std::string bytes = encode(launch);
    Launch back;
    ASSERT_TRUE(decode_launch(bytes, back));
    EXPECT_EQ(encode(back), bytes);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
        Launch part;
        EXPECT_FALSE(decode_launch(std::string_view(bytes).substr(0, cut), part));
    }
    Exit exit{
        .stopped = true, .exit_code = 3, .oom = true, .peak_memory = 1LL << 40, .message = "a\nb"};
    Exit again;
    ASSERT_TRUE(decode_exit(encode(exit), again));
    EXPECT_EQ(again, exit);
    EXPECT_FALSE(decode_exit("", again));
}

}  // namespace
}  // namespace muster::os
