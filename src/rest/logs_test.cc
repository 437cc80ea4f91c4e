// Logs from nodes and from kept tails, through restarts; and the tunnels of attach and exec.
#include "net/tty_frame.h"
#include "rest/log_format.h"
#include "rest/test_client.h"

namespace muster::rest {
namespace {

class Logs : public ApiTest {
protected:
    Logs() {
        backend.with_world([](core::World& world) {
            world.hello("n1");
            world.hello("n2");
        });
    }
    void start(const std::string& yaml, std::uint64_t id = 1) {
        run(yaml);
        backend.with_world([&](core::World& world) {
            world.plan();
            world.run(JobId{id});
        });
    }
    void end(std::uint64_t id, model::Cause cause, int exit_code = 1) {
        backend.with_world([&](core::World& world) {
            const std::size_t ranks = world.extra(JobId{id}).allocation->slots.size();
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                world.end(JobId{id}, rank, cause, exit_code);
            }
        });
    }
    static protocol::TaskKey key(std::uint32_t rank = 0, std::uint32_t epoch = 0) {
        return {.job = JobId{1}, .epoch = epoch, .rank = rank};
    }
    /// The whole of a log that is not followed.
    std::string read(const std::string& query = {}, std::uint32_t uid = 1000) {
        const auto heard = open({.target = "/v1/jobs/1/logs" + query, .uid = uid});
        EXPECT_TRUE(heard->wait_closed());
        source = {};
        for (const auto& header : heard->response.headers) {
            if (header.name == "Muster-Log-Source") source = header.value;
        }
        return heard->so_far();
    }
    std::string source;
    const std::vector<net::Header> events{{"accept", "text/event-stream"}};
};

TEST_F(Logs, are_read_from_the_node) {
    start("run: x");
    backend.append_log(key(), "one\ntwo\nthree\n");
    EXPECT_EQ(read(), "one\ntwo\nthree\n");
    EXPECT_EQ(source, "node");
    EXPECT_EQ(read("?tail=2"), "two\nthree\n");
    EXPECT_EQ(read("?tail=0"), "");
    EXPECT_EQ(read("?from=4"), "two\nthree\n");
    EXPECT_EQ(read("?rank=0", 0), "one\ntwo\nthree\n") << "administrators too";
    EXPECT_EQ(get("/v1/jobs/1/logs", 1001).at("code"), "E2004");
    EXPECT_EQ(get("/v1/jobs/1/logs?rank=3").at("code"), "E3014");
    EXPECT_EQ(get("/v1/jobs/1/logs?attempt=5").status, 404);
    end(1, model::Cause::Success);
    EXPECT_EQ(read(), "one\ntwo\nthree\n") << "the node still has it";
    backend.archive();
    EXPECT_EQ(read("?tail=1"), "three\n") << "history knows where it ran";
}

TEST_F(Logs, longer_than_a_piece_come_whole) {
    start("run: x");
    std::string text;
    for (int i = 0; text.size() < 3'000'000; ++i) text += "line " + std::to_string(i) + "\n";
    backend.append_log(key(), text);
    EXPECT_EQ(read(), text);
    EXPECT_EQ(read("?tail=20000").size(), text.size() - start_of_last_lines(text, 20'000));
}

TEST_F(Logs, of_several_ranks_have_prefixes) {
    start("nodes: 2\ngpus: 8\nrun: x");
    backend.append_log(key(0), "a\nb");
    backend.append_log(key(1), "c\n");
    EXPECT_EQ(read(), "[0] a\n[0] b\n[1] c\n");
    EXPECT_EQ(read("?rank=1"), "c\n");
}

TEST_F(Logs, fall_back_to_the_kept_tail_when_the_node_is_gone) {
    start("nodes: 2\ngpus: 8\nrun: x");
    backend.append_log(key(0), "alive\n");
    backend.cut(NodeId{2});
    backend.keep_tail({.key = key(1), .offset = 100, .bytes = "last words\n"});
    EXPECT_EQ(read(), "[0] alive\n[1] last words\n");
    EXPECT_EQ(source, "node") << "of what came first";
    EXPECT_EQ(read("?rank=1"), "last words\n");
    EXPECT_EQ(source, "tail");
    backend.cut(NodeId{1});
    const Got got = get("/v1/jobs/1/logs?rank=0");
    EXPECT_EQ(got.status, 503);
    EXPECT_EQ(got.at("code"), "E5001");
    EXPECT_EQ(got.at("cause"), "node n1: the node has no link");
    end(1, model::Cause::UserError);
    EXPECT_EQ(get("/v1/jobs/1/logs?rank=0").at("code"), "E5002");
}

TEST_F(Logs, followed_go_on_through_a_restart_to_the_end) {
    const Ask ask{.target = "/v1/jobs/1/logs?follow=1", .headers = events};
    run("restart: {max: 1, backoff: 0s}\nrun: x");
    const auto heard = open(ask);
    ASSERT_TRUE(heard->wait([&] { return heard->answered; })) << "it waits for the start";
    backend.with_world([](core::World& world) {
        world.plan();
        world.run(JobId{1});
    });
    backend.append_log(key(), "first \xe4\xb8");
    ASSERT_TRUE(heard->wait_text(R"(data: {"rank":0,"offset":0,"text":"first "})"));
    backend.append_log(key(), "\xad\n");
    ASSERT_TRUE(heard->wait_text("中"));
    ASSERT_TRUE(heard->wait_text("id: 0/0:10\n"));
    end(1, model::Cause::UserError, 3);
    backend.end_log(key());
    backend.with_world([](core::World& world) {
        world.pass(1000, {"n1", "n2"});
        world.plan();
        world.run(JobId{1});
    });
    ASSERT_TRUE(heard->wait_text(R"(event: attempt
data: {"attempt":1})"));
    backend.append_log(key(0, 1), "second\n");
    ASSERT_TRUE(heard->wait_text("second"));
    end(1, model::Cause::Success);
    backend.end_log(key(0, 1));
    ASSERT_TRUE(heard->wait_text(R"(event: end
data: {"state":"succeeded","exit_code":0})"));
    ASSERT_TRUE(heard->wait_closed());
    record_stream(ask, *heard);
}

TEST_F(Logs, followed_on_a_kept_tail_end_when_the_job_is_archived) {
    start("run: x");
    backend.cut(NodeId{1});
    backend.keep_tail({.key = key(), .offset = 100, .bytes = "last words\n"});
    const auto heard = open({.target = "/v1/jobs/1/logs?follow=1", .headers = events});
    ASSERT_TRUE(heard->wait_text("last words"));
    backend.with_world([](core::World& world) {  // In one round: its end alone is never seen.
        world.end(JobId{1}, 0, model::Cause::Success, 0);
        world.must(core::Archived{{JobId{1}}});
    });
    ASSERT_TRUE(heard->wait_closed());
    EXPECT_NE(heard->so_far().find("event: end"), std::string::npos) << heard->so_far();
}

TEST_F(Logs, of_a_node_that_is_back_when_the_job_ends_are_read_to_their_end_F33) {
    start("run: x");
    backend.append_log(key(), "one\n");
    backend.cut(NodeId{1});
    backend.keep_tail({.key = key(), .offset = 0, .bytes = "one\n"});
    const auto heard = open({.target = "/v1/jobs/1/logs?follow=1", .headers = events});
    ASSERT_TRUE(heard->wait_text("one"));
    backend.mend();
    backend.append_log(key(), "two\n");
    backend.end_log(key());
    end(1, model::Cause::Success);  // Before the node is tried again.
    ASSERT_TRUE(heard->wait_closed());
    EXPECT_NE(heard->so_far().find(R"("offset":4,"text":"two\n")"), std::string::npos)
        << heard->so_far();
}

TEST_F(Logs, resume_at_the_last_event) {
    start("run: x");
    backend.append_log(key(), "one\ntwo\n");
    const auto heard =
        open({.target = "/v1/jobs/1/logs",
              .headers = {{"accept", "text/event-stream"}, {"last-event-id", "0/0:4"}}});
    ASSERT_TRUE(heard->wait_closed());
    EXPECT_NE(heard->so_far().find(R"({"rank":0,"offset":4,"text":"two\n"})"), std::string::npos)
        << heard->so_far();
}

TEST_F(Logs, a_slow_reader_loses_nothing) {
    start("run: x");
    const auto heard = open({.target = "/v1/jobs/1/logs?follow=1", .room = 100});
    ASSERT_TRUE(heard->wait([&] { return heard->answered; }));
    std::string text;
    for (int i = 0; i < 200; ++i) {
        const std::string line = "line " + std::to_string(i) + "\n";
        text += line;
        backend.append_log(key(), line);
    }
    heard->drain();
    ASSERT_TRUE(heard->wait_text("line 199\n"));
    EXPECT_EQ(heard->so_far(), text);
    heard->hang_up();
}

TEST_F(Logs, a_client_that_leaves_leaves_nothing_behind) {
    start("run: x");
    const auto heard = open({.target = "/v1/jobs/1/logs?follow=1"});
    backend.append_log(key(), "x\n");
    ASSERT_TRUE(heard->wait_text("x\n"));
    EXPECT_EQ(backend.readers(), 1u) << heard->so_far();
    heard->hang_up();
    // Its turn on the worker's thread comes before that of a later request.
    const Got later = get("/v1/jobs/1/wait?timeout=0");
    EXPECT_EQ(later.status, 200);
    EXPECT_EQ(backend.readers(), 0u);
}

TEST(LogFormat, last_lines) {
    EXPECT_EQ(start_of_last_lines("a\nb\nc\n", 2), 2u);
    EXPECT_EQ(start_of_last_lines("a\nb\nc", 2), 2u);
    EXPECT_EQ(start_of_last_lines("a\nb\n", 9), 0u);
    EXPECT_EQ(start_of_last_lines("a\n", 0), 2u);
    EXPECT_EQ(start_of_last_lines("", 3), 0u);
}

class Tty : public Logs {
protected:
    const std::vector<net::Header> upgrade{{"upgrade", "muster-tty"}, {"connection", "Upgrade"}};
};

TEST_F(Tty, exec_passes_frames_both_ways_and_ends_with_the_exit_code) {
    start("run: x");
    const auto heard = open({.method = "POST",
                             .target = "/v1/jobs/1/exec",
                             .body = R"({"argv": ["ls", "-l"], "tty": true, "columns": 120})",
                             .headers = upgrade});
    ASSERT_TRUE(heard->upgraded);
    EXPECT_EQ(backend.tunnel_asked.argv, (std::vector<std::string>{"ls", "-l"}));
    EXPECT_EQ(backend.tunnel_asked.columns, 120);
    EXPECT_TRUE(backend.tunnel_asked.key == key());
    const std::string sent = net::tty_frame(net::TtyKind::Input, "hello") +
                             net::tty_frame(net::TtyKind::Resize, "100x40") +
                             net::tty_frame(net::TtyKind::InputEnd, "");
    heard->raw.on_data(sent.substr(0, 7));
    heard->raw.on_data(sent.substr(7));
    ASSERT_EQ(backend.tunnel_inputs.size(), 3u);
    EXPECT_EQ(backend.tunnel_inputs[0].bytes, "hello");
    EXPECT_EQ(backend.tunnel_inputs[1].rows, 40);
    EXPECT_TRUE(backend.tunnel_inputs[2].end);
    backend.tunnel_out(protocol::TunnelOutput{.bytes = "out", .error = {}});
    backend.tunnel_out(protocol::TunnelOutput{.bytes = "err", .is_stderr = true, .error = {}});
    backend.tunnel_out(
        protocol::TunnelOutput{.bytes = {}, .end = true, .exit_code = 7, .error = {}});
    EXPECT_EQ(heard->so_far(), net::tty_frame(net::TtyKind::Output, "out") +
                                   net::tty_frame(net::TtyKind::ErrorOutput, "err") +
                                   net::tty_frame(net::TtyKind::Exit, "7"));
    EXPECT_TRUE(heard->closed);
    EXPECT_TRUE(backend.tunnel_closed);
}

TEST_F(Tty, output_waits_for_the_client_and_input_for_the_process) {
    start("run: x");
    const std::string first = net::tty_frame(net::TtyKind::Output, "out");
    const auto heard = open({.method = "POST",
                             .target = "/v1/jobs/1/exec",
                             .body = R"({"argv": ["cat"]})",
                             .headers = upgrade,
                             .room = first.size()});
    ASSERT_TRUE(heard->upgraded);
    ASSERT_GT(backend.tunnel_asked.window, 0);
    backend.tunnel_out(protocol::TunnelOutput{.bytes = "out", .error = {}});
    ASSERT_EQ(backend.tunnel_inputs.size(), 1u);
    EXPECT_EQ(backend.tunnel_inputs[0].taken, 3);
    backend.tunnel_out(protocol::TunnelOutput{.bytes = "more", .error = {}});
    EXPECT_EQ(backend.tunnel_inputs.size(), 1u) << "the client has not taken it";
    heard->room = std::size_t{1} << 40;
    heard->raw.on_drain();
    ASSERT_EQ(backend.tunnel_inputs.size(), 2u);
    EXPECT_EQ(backend.tunnel_inputs[1].taken, 4);

    std::int64_t sent = 0;
    const std::string piece(32'768, 'x');
    while (!heard->reading_paused && sent < 8 * backend.tunnel_asked.window) {
        heard->raw.on_data(net::tty_frame(net::TtyKind::Input, piece));
        sent += static_cast<std::int64_t>(piece.size());
    }
    EXPECT_TRUE(heard->reading_paused);
    EXPECT_LT(sent, 2 * backend.tunnel_asked.window);
    backend.tunnel_out(protocol::TunnelOutput{.bytes = {}, .error = {}, .taken = sent});
    EXPECT_FALSE(heard->reading_paused);
}

TEST_F(Tty, a_client_that_hangs_up_ends_the_tunnel) {
    start("run: x");
    const auto heard = open({.method = "POST", .target = "/v1/jobs/1/attach", .headers = upgrade});
    ASSERT_TRUE(heard->upgraded);
    EXPECT_EQ(backend.tunnel_asked.kind, protocol::OpenTunnel::Kind::Attach);
    heard->raw.on_closed();
    EXPECT_TRUE(backend.tunnel_closed);
}

TEST_F(Tty, a_broken_frame_is_told_and_ends_it) {
    start("run: x");
    const auto heard = open({.method = "POST", .target = "/v1/jobs/1/attach", .headers = upgrade});
    heard->raw.on_data(std::string("\x63\0\0\0\0", 5));
    EXPECT_NE(heard->so_far().find(net::tty_frame(net::TtyKind::Exit, "125")), std::string::npos);
    EXPECT_TRUE(heard->closed);
}

TEST_F(Tty, needs_a_running_task_of_ones_own) {
    run("run: x");
    const Ask ask{.method = "POST",
                  .target = "/v1/jobs/1/exec",
                  .body = R"({"argv": ["ls"]})",
                  .headers = upgrade};
    Got got = send(ask);
    EXPECT_EQ(got.status, 409);
    EXPECT_EQ(got.at("code"), "E3015");
    Ask others = ask;
    others.uid = 1001;
    EXPECT_EQ(send(others).at("code"), "E2004");
    backend.with_world([](core::World& world) {
        world.plan();
        world.run(JobId{1});
    });
    Ask rank = ask;
    rank.body = R"({"argv": ["ls"], "rank": 4})";
    EXPECT_EQ(send(rank).at("code"), "E3014");
}

}  // namespace
}  // namespace muster::rest
