// The launcher of mpi jobs: its words, what both ends say, and real commands from task to task.
#include "os/remote.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "os/posix.h"
#include "os/sha256.h"
#include "os/supervisor/address.h"
#include "os/task_files.h"
#include "os/test_node.h"

namespace muster::os {
namespace {

using model::Cause;
using protocol::TaskState;

TEST(Sha256, gives_the_standards_examples) {
    const std::pair<std::string, const char*> rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {std::string(1'000'000, 'a'),
         "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
    for (const auto& [text, digest] : rows) EXPECT_EQ(remote::to_hex(sha256(text)), digest);
}

TEST(Sha256, authenticates_as_rfc_4231_does) {
    EXPECT_EQ(remote::to_hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    EXPECT_EQ(remote::to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(remote::to_hex(hmac_sha256(std::string(131, '\xaa'),
                                         "Test Using Larger Than Block-Size Key - Hash Key First")),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Secret, is_the_same_only_if_all_of_it_is) {
    EXPECT_TRUE(same_secret("abc", "abc"));
    EXPECT_FALSE(same_secret("abc", "abd"));
    EXPECT_FALSE(same_secret("abc", "ab"));
    EXPECT_FALSE(same_secret("\x01", "\x81"));
}

std::string say(const std::vector<std::string>& words) {
    const auto parsed = remote::parse_call(words);
    if (const auto* error = std::get_if<std::string>(&parsed)) return "error " + *error;
    const auto& call = std::get<remote::Call>(parsed);
    return (call.user.empty() ? "" : call.user + "@") + call.host + (call.no_input ? " -n" : "") +
           (call.background ? " -f" : "") + " [" + call.command + "]";
}

TEST(Call, takes_what_launchers_give_an_ssh) {
    const std::pair<std::vector<std::string>, const char*> rows[] = {
        {{"n2", "hostname"}, "n2 [hostname]"},
        // Open MPI, hydra, pdsh, DeepSpeed, Horovod.
        {{"-x", "10.0.0.2", "PATH=/x:$PATH ; orted -mca a \"b c\""},
         "10.0.0.2 [PATH=/x:$PATH ; orted -mca a \"b c\"]"},
        {{"-x", "10.0.0.2", "\"/usr/bin/hydra_pmi_proxy\"", "--proxy-id", "1"},
         "10.0.0.2 [\"/usr/bin/hydra_pmi_proxy\" --proxy-id 1]"},
        {{"-2", "-a", "-x", "-lann", "n2", "cd /a;", "train"}, "ann@n2 [cd /a; train]"},
        {{"-o", "StrictHostKeyChecking=no", "n2", "-p", "22", "ls", "-l"}, "n2 [ls -l]"},
        {{"-oBatchMode=yes", "-l", "ann", "n2", "true"}, "ann@n2 [true]"},
        {{"-qTn", "-p2222", "ann@n2", "true"}, "ann@n2 -n [true]"},
        {{"-f", "n2", "sleep", "9"}, "n2 -n -f [sleep 9]"},
        {{"--", "n2", "--", "true"}, "n2 [true]"},
        {{"n2"}, "n2 []"},
        {{"-i", "/key", "-n", "n2", "x"}, "n2 -n [x]"},
        {{"n2", "x", "-n"}, "n2 [x -n]"},
        {{}, "error no host is given"},
        {{"-n"}, "error no host is given"},
        {{"ann@"}, "error no host is given"},
        {{"-l"}, "error option -l needs a value"},
        {{"-u", "n2"}, "error unknown option -u; it takes those of ssh"}};
    for (const auto& [words, expected] : rows) EXPECT_EQ(say(words), expected);
}

TEST(Frames, come_out_as_they_went_in_however_they_are_cut) {
    std::string sent;
    remote::put_frame(sent, remote::Kind::Command, "true");
    remote::put_frame(sent, remote::Kind::Input, std::string(70'000, 'x'));
    remote::put_frame(sent, remote::Kind::InputEnd, "");
    std::string buffer, got;
    bool broken = false;
    for (std::size_t at = 0; at < sent.size(); at += 777) {
        buffer += sent.substr(at, 777);
        while (const auto frame = remote::take_frame(buffer, broken))
            got += static_cast<char>(frame->kind) + std::to_string(frame->bytes.size()) + " ";
        ASSERT_FALSE(broken);
    }
    EXPECT_EQ(got, "C4 I70000 E0 ");
    EXPECT_TRUE(buffer.empty());
}

TEST(Frames, refuse_nonsense_before_they_hold_it) {
    bool broken = false;
    std::string unknown = "Z";
    EXPECT_FALSE(remote::take_frame(unknown, broken));
    EXPECT_TRUE(broken);
    std::string long_one("I\x00\x02\x00\x01", 5);
    EXPECT_FALSE(remote::take_frame(long_one, broken));
    EXPECT_TRUE(broken);
    Prng random(7);
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes;
        for (std::uint64_t i = random.below(40); i > 0; --i)
            bytes.push_back(random.below(3) == 0 ? '\0' : static_cast<char>(random.below(256)));
        if (random.below(2) == 0) bytes.insert(0, 1, "CIEOoXR"[random.below(7)]);
        const std::size_t before = bytes.size();
        if (const auto frame = remote::take_frame(bytes, broken))
            EXPECT_EQ(frame->bytes.size() + 5 + bytes.size(), before);
        (void)remote::decode_peers(bytes);
    }
}

TEST(Peers, are_found_by_name_address_and_localhost) {
    const remote::Peers peers{.user = "ann",
                              .self = 1,
                              .nodes = {{"n1", "10.0.0.1", 5, "a"}, {"N2", "10.0.0.2", 6, "b"}}};
    const auto read = remote::decode_peers(encode(peers));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->user, "ann");
    const std::pair<const char*, int> rows[] = {{"n1", 5},        {"n2", 6},        {"10.0.0.1", 5},
                                                {"localhost", 6}, {"127.0.0.1", 6}, {"n3", 0}};
    for (const auto& [host, port] : rows) {
        const remote::Peer* peer = remote::find_peer(*read, host);
        EXPECT_EQ(peer == nullptr ? 0 : peer->port, port) << host;
    }
    EXPECT_FALSE(remote::decode_peers(encode(peers).substr(0, 30)));
}

/// Two nodes' tasks of one mpi job, at their barrier.
class MpiGang : public testing::Test {
protected:
    void start(const std::string& run) {
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
            protocol::StartTask order =
                make_order(7, run, [](model::JobSpec& spec) { spec.launch = model::Launch::Mpi; });
            order.key.rank = rank;
            order.barrier = true;
            if (!user_.empty()) order.user = user_;
            order.gang = std::make_shared<const protocol::Gang>(
                protocol::Gang{{.name = "a", .address = "127.0.0.1", .slots = 2},
                               {.name = "b", .address = "127.0.0.1", .slots = 2}});
            keys_[rank] = order.key;
            node_->start(order);
        }
        for (const auto& key : keys_)
            points_.push_back(node_.wait_state(key, TaskState::Ready).launch);
    }
    void release() {
        for (const auto& key : keys_)
            node_->release({.term = 1,
                            .key = key,
                            .master_address = "127.0.0.1",
                            .master_port = 29'500,
                            .launch = points_});
    }
    std::string run(const std::string& command) {
        start(command);
        release();
        const model::TaskEnd end = node_.wait_end(keys_[0]);
        node_->stop(keys_[1], Cause::Peer, Duration{0});
        node_.wait_end(keys_[1]);
        return node_.log(keys_[0]) + "exit " + std::to_string(end.exit_code);
    }
    TestNode node_;
    std::string user_;
    protocol::TaskKey keys_[2];
    std::vector<protocol::LaunchPoint> points_;
};

TEST_F(MpiGang, runs_a_command_in_the_other_task_and_carries_all_of_it) {
    EXPECT_EQ(run("echo in | $MUSTER_LAUNCH_BIN/muster-rsh -x b "
                  "'read x; echo $x $MUSTER_NODE_RANK; echo err >&2; exit 7' 2>&1; echo code $?"),
              "in 1\nerr\ncode 7\nexit 0");
}

TEST_F(MpiGang, runs_its_command_on_the_first_node_only) {
    EXPECT_EQ(run("echo here $MUSTER_NODE_RANK"), "here 0\nexit 0");
    EXPECT_EQ(node_.log(keys_[1]), "");
}

TEST_F(MpiGang, keeps_what_is_big_whole) {
    EXPECT_EQ(run("head -c 3000000 /dev/zero | $MUSTER_LAUNCH_BIN/muster-rsh b cat | wc -c"),
              "3000000\nexit 0");
}

TEST_F(MpiGang, reaches_itself_and_the_task_it_was_reached_from) {
    EXPECT_EQ(run("ssh b \"ssh a 'echo back \\$MUSTER_NODE_RANK'\"; ssh localhost 'kill -9 $$'; "
                  "echo $?"),
              "back 0\n137\nexit 0");
}

TEST_F(MpiGang, says_what_is_wrong) {
    const std::string rsh = "$MUSTER_LAUNCH_BIN/muster-rsh ";
    EXPECT_EQ(run(rsh + "c true 2>&1; echo $?; " + rsh +
                  "-l other b true 2>&1; "
                  "MUSTER_LAUNCH_FILE= " +
                  rsh + "b true 2>&1"),
              "muster-rsh: c is not a node of this job, whose nodes are a, b\n255\n"
              "muster-rsh: user other: a job's commands run as its own user, " +
                  make_order(1, "").user +
                  "\n"
                  "muster-rsh: MUSTER_LAUNCH_FILE names no list of this job's nodes; it works "
                  "inside a job of several nodes with launch: mpi\nexit 255");
}

TEST_F(MpiGang, leaves_hosts_that_are_not_the_jobs_to_the_ssh_that_is_there) {
    EXPECT_EQ(run("mkdir own; printf '#!/bin/sh\\necho to $@\\n' >own/ssh; chmod +x own/ssh; "
                  "PATH=$MUSTER_LAUNCH_BIN:$PWD/own; ssh -x c pull; ssh -x b 'echo to "
                  "$MUSTER_NODE_RANK'"),
              "to -x c pull\nto 1\nexit 0");
}

TEST_F(MpiGang, finds_its_nodes_in_the_files_that_each_mpi_reads) {
    EXPECT_EQ(run("cat $OMPI_MCA_orte_default_hostfile $HYDRA_HOST_FILE; "
                  "for x in $OMPI_MCA_plm_rsh_agent $HYDRA_LAUNCHER_EXEC; do $x b echo $x there; "
                  "done | grep -c 'bin/muster-rsh there'"),
              "127.0.0.1 slots=2\n127.0.0.1:2\n2\nexit 0");
}

TEST_F(MpiGang, commands_run_as_the_jobs_user_who_cannot_read_the_secrets_of_others) {
    struct stat about {};
    std::string path = std::string(MUSTER_BINARY_DIR) + "/bin/muster-task";
    for (; ::geteuid() == 0 && !path.empty(); path.resize(path.rfind('/')))
        if (::stat(path.c_str(), &about) != 0 || (about.st_mode & S_IXOTH) == 0)
            GTEST_SKIP() << path << " is closed to other users";
    if (::geteuid() != 0) GTEST_SKIP() << "only root can run tasks of other users";
    user_ = "nobody";
    EXPECT_EQ(run("muster-rsh b 'id -un; id -Gn | wc -w; cat /proc/$PPID/environ 2>/dev/null | wc -c; "
                  "cat ../launch ../go 2>/dev/null; stat -c %a%U $MUSTER_LAUNCH_FILE'"),
              "nobody\n1\n0\n600nobody\nexit 0");
}

TEST_F(MpiGang, a_broken_connection_ends_the_command_and_what_it_started) {
    start(
        "$MUSTER_LAUNCH_BIN/muster-rsh b 'setsid sleep 9871 & echo $! >pid; sleep 9872' & "
        "sleep 0.1; while [ ! -s ../../7-0-1/scratch/pid ]; do sleep 0.05; done; kill -9 $!; "
        "while kill -0 $(cat ../../7-0-1/scratch/pid); do sleep 0.05; done 2>&-; echo gone");
    release();
    EXPECT_EQ(node_.wait_end(keys_[0]).exit_code, 0);
    EXPECT_EQ(node_.log(keys_[0]), "gone\n");
    node_->stop(keys_[1], Cause::Peer, Duration{0});
    node_.wait_end(keys_[1]);
}

TEST_F(MpiGang, commands_end_with_the_task_they_run_in) {
    start("$MUSTER_LAUNCH_BIN/muster-rsh b 'trap \"\" TERM; echo up; sleep 9873; sleep 9873'");
    release();
    while (node_.log(keys_[0]) != "up\n") ::usleep(10'000);
    node_->stop(keys_[1], Cause::Cancelled, Duration{100});
    EXPECT_EQ(node_.wait_end(keys_[1]).cause, Cause::Cancelled);
    EXPECT_EQ(node_.wait_end(keys_[0]).exit_code, 255);
    EXPECT_EQ(node_.log(keys_[0]), "up\nmuster-rsh: the connection to b is lost\n");
}

TEST_F(MpiGang, lets_nobody_in_without_the_secret) {
    points_.clear();
    start("true");
    // Released here only: whoever comes earlier waits, whoever comes with another secret is sent
    // away, and the right one is served.
    std::vector<protocol::LaunchPoint> wrong = points_;
    wrong[1].secret = points_[0].secret;
    std::swap(points_, wrong);
    node_->release({.term = 1, .key = keys_[1], .master_address = "x", .launch = wrong});
    node_.wait_state(keys_[1], TaskState::Running);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const SocketAddress address = socket_address("127.0.0.1", wrong[1].port);
    ASSERT_EQ(::connect(fd, address.get(), address.size), 0);
    char buffer[256];
    ASSERT_EQ(::recv(fd, buffer, remote::kHelloSize, MSG_WAITALL),
              static_cast<ssize_t>(remote::kHelloSize));
    const std::string_view nonce(buffer + remote::kGreeting.size(), remote::kNonceSize);
    const std::string mine(remote::kNonceSize, 'n');
    std::string answer = mine + remote::client_proof(points_[1].secret, nonce, mine);
    remote::put_frame(answer, remote::Kind::Command, "touch taken");
    ASSERT_GT(::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL), 0);
    EXPECT_LE(::recv(fd, buffer, sizeof buffer, 0), 0) << "not even told its own proof";
    ::close(fd);
    EXPECT_NE(::access((node_.task_folder(keys_[1]) + "/scratch/taken").c_str(), F_OK), 0);
    struct stat about {};
    ASSERT_EQ(::stat((node_.task_folder(keys_[1]) + "/run/peers").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600U);
    points_ = wrong;
    node_->release({.term = 1, .key = keys_[0], .master_address = "x", .launch = points_});
    EXPECT_EQ(node_.wait_end(keys_[0]).exit_code, 0);
    node_->stop(keys_[1], Cause::Peer, Duration{0});
    node_.wait_end(keys_[1]);
}

TEST_F(MpiGang, tells_its_way_again_to_a_new_agent) {
    start("true");
    node_.restart();
    const auto again = node_.wait_state(keys_[1], TaskState::Ready).launch;
    EXPECT_EQ(again, points_[1]);
    EXPECT_NE(again.port, 0);
    EXPECT_EQ(again.secret.size(), 32U);
    for (const auto& key : keys_) {
        node_->stop(key, Cause::Cancelled, Duration{0});
        node_.wait_end(key);
    }
}

}  // namespace
}  // namespace muster::os
