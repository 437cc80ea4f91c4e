// muster run: what is sent, what is refused here already, and repeats that never submit twice
// (F34).
#include <atomic>

#include <gtest/gtest.h>

#include "cli/json.h"
#include "cli/test_cluster.h"

namespace muster::cli::test {
namespace {

constexpr const char* kMade =
    R"({"id":"7","number":7,"name":"train","state":"pending","repeated":false,"warnings":[],"revision":"1-2"})";

std::string sent(const Cluster& cluster) {
    return cluster.requests().back().body;
}

TEST(Run, command_and_flags) {
    Cluster cluster;
    cluster.answer("POST /v1/jobs", kMade, 201);
    const Ran ran = cluster.run({"run", "--nodes", "4", "--gpus=h100:8", "--env", "A=1", "--env",
                                 "B=2", "--", "torchrun", "train.py", "--lr", "3e-4"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "job 7 train submitted\n");
    const auto body = JsonDocument::parse(sent(cluster));
    ASSERT_TRUE(body);
    EXPECT_EQ(body->root()["nodes"].integer(), 4);
    EXPECT_EQ(body->root()["run"].text(), "torchrun train.py --lr 3e-4");
    EXPECT_EQ(body->root()["env"]["B"].text(), "2");
    EXPECT_EQ(body->root()["workdir"].text(), cluster.folder().path());
    EXPECT_EQ(cluster.requests().back().header("idempotency-key").size(), 32u);
    EXPECT_EQ(cluster.run({"submit", "-q", "--", "true"}).out, "7\n");
}

TEST(Run, file_with_flags_on_top_and_defaults_below) {
    Cluster cluster;
    cluster.answer("POST /v1/jobs", kMade, 201);
    cluster.folder().file(".muster.yaml", "defaults: {queue: vision, priority: 70, cpus: 3}\n");
    const std::string file =
        cluster.folder().file("job.yaml", "name: train\npriority: 60\ncpus: 2\nrun: python x.py\n");
    const Ran ran = cluster.run({"run", file, "--cpus", "4"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const auto body = JsonDocument::parse(sent(cluster));
    ASSERT_TRUE(body);
    EXPECT_EQ(body->root()["queue"].text(), "vision");
    EXPECT_EQ(body->root()["priority"].text(), "60");
    EXPECT_EQ(body->root()["cpus"].text(), "4");
}

TEST(Run, F25_all_problems_are_told_before_anything_is_sent) {
    Cluster cluster;
    const std::string file = cluster.folder().file("job.yaml", "memry: 4GB\ngpus: -1\nrun: x\n");
    const Ran ran = cluster.run({"run", file});
    EXPECT_EQ(ran.code, 6);
    EXPECT_NE(ran.err.find(file + ":1:1: error: memry: unknown key; did you mean memory?"),
              std::string::npos)
        << ran.err;
    EXPECT_NE(ran.err.find(file + ":2:"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("the job is not valid: 2 problems"), std::string::npos) << ran.err;
    EXPECT_TRUE(cluster.asked().empty());
}

TEST(Run, files_that_are_none) {
    Cluster cluster;
    const Ran missing = cluster.run({"run", "python"});
    EXPECT_EQ(missing.code, 3);
    EXPECT_NE(missing.err.find("error: "), std::string::npos) << missing.err;
    const std::string script = cluster.folder().file("job.sh", "#!/bin/sh\ntrue\n");
    EXPECT_EQ(cluster.run({"run", script}).code, 6);
    EXPECT_TRUE(cluster.asked().empty());
}

TEST(Run, F34_a_submit_that_is_cut_off_is_repeated_under_the_same_key) {
    Cluster cluster;
    std::atomic<int> calls = 0;
    cluster.handle("POST /v1/jobs", [&](const net::HttpRequest&, const net::Responder& responder) {
        if (++calls == 1) {
            responder.answer(
                {.status = 503,
                 .content_type = "application/problem+json",
                 .headers = {{"Retry-After", "0"}},
                 .body = R"({"status":503,"title":"t","detail":"starts","code":"E9003"})"});
            return;
        }
        responder.answer({.status = 201, .body = kMade});
    });
    const Ran ran = cluster.run({"run", "--", "true"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const auto requests = cluster.requests();
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    EXPECT_EQ(requests[0].body, requests[1].body);
}

TEST(Run, dry_run_tells_whether_it_could_ever_start) {
    Cluster cluster;
    cluster.answer("POST /v1/jobs",
                   R"({"valid":true,"could_run":false,"starts_now":false,"why":{"code":"never-fits",
                   "text":"wants 9 nodes, there are 4","fix":"ask for 4"},"spec":{},
                   "yaml":"nodes: 9\nrun: x\n","warnings":[]})");
    const Ran ran = cluster.run({"run", "--dry-run", "--nodes", "9", "--", "x"});
    EXPECT_EQ(ran.code, 8);
    EXPECT_EQ(ran.out, "nodes: 9\nrun: x\n");
    EXPECT_EQ(ran.err,
              "error: this job can never start here\n  cause: wants 9 nodes, there are 4\n"
              "  fix: ask for 4\n  code: E4002 (muster explain E4002)\n");
    EXPECT_EQ(cluster.asked().back(), "POST /v1/jobs?dry_run=1");
}

TEST(Run, one_quoted_word_with_blanks_is_a_line_for_the_shell) {
    struct Row {
        std::vector<std::string> words;
        std::string run;
    };
    for (const Row& each : {Row{{"sleep 1; echo done"}, R"("run":"sleep 1; echo done")"},
                            Row{{"sleep", "1; echo"}, R"("run":"sleep '1; echo'")"},
                            Row{{"true"}, R"("run":"true")"}}) {
        Cluster cluster;
        cluster.answer("POST /v1/jobs", kMade, 201);
        std::vector<std::string> line = {"run", "--"};
        line.insert(line.end(), each.words.begin(), each.words.end());
        EXPECT_EQ(cluster.run(line).code, 0);
        EXPECT_NE(cluster.requests().back().body.find(each.run), std::string::npos)
            << cluster.requests().back().body;
    }
}

TEST(Run, a_program_in_place_of_a_job_file_is_told_apart) {
    Cluster cluster;
    const Ran ran = cluster.run({"run", "/bin/true"});
    EXPECT_EQ(ran.code, 6);
    EXPECT_NE(ran.err.find("/bin/true is a program, not a job file"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("`muster run -- /bin/true`"), std::string::npos) << ran.err;
}

constexpr const char* kJobEnded =
    R"({"id":"7","name":"digits","user":"wei","queue":"default","state":"succeeded","cause":"success",
    "nodes":2,"gpus":0,"gpus_per_node":"","attempt":1,"faults":1,"lost_ms":31200,"steps_repeated":20,
    "run_ms":104000,"submitted":"2026-12-01T07:58:00.000Z","since":"2026-12-01T07:59:45.000Z",
    "started":"2026-12-01T07:58:01.000Z","ended":"2026-12-01T07:59:45.000Z","node_names":["n1","n3"],
    "exit_code":0,"progress":null,"attempts":[
    {"attempt":0,"queued":"2026-12-01T07:58:00.000Z","started":"2026-12-01T07:58:01.000Z",
     "running":"2026-12-01T07:58:02.000Z","ended":"2026-12-01T07:58:40.000Z","cause":"node-lost",
     "exit_code":null,"rank":1,"node":"n2","message":null,"last_step":380,"resumed_step":null,
     "lost_ms":31200},
    {"attempt":1,"queued":"2026-12-01T07:58:40.000Z","started":"2026-12-01T07:58:41.000Z",
     "running":"2026-12-01T07:59:11.200Z","ended":"2026-12-01T07:59:45.000Z","cause":"success",
     "exit_code":0,"rank":0,"node":"","message":null,"last_step":800,"resumed_step":360,"lost_ms":0}]})";

std::string event(const std::string& name, const std::string& id, std::string data) {
    std::erase(data, '\n');
    return "event: " + name + "\nid: " + id + "\ndata: " + data + "\n\n";
}

std::string row(const std::string& state, int attempt, const std::string& rest) {
    return R"({"id":"7","name":"digits","state":")" + state + R"(","attempt":)" +
           std::to_string(attempt) + R"(,"nodes":2)" + rest + "}";
}

TEST(Follow, F32_from_submit_through_a_lost_node_to_the_timeline) {
    Cluster cluster;
    cluster.answer("POST /v1/jobs", kMade, 201);
    cluster.answer("GET /v1/jobs/7", kJobEnded);
    std::atomic<int> watches = 0;
    cluster.handle("GET /v1/jobs", [&](const net::HttpRequest& request, const auto& responder) {
        const auto stream = responder.stream();
        if (++watches == 1) {
            stream->write(event("snapshot", "1-1", row("pending", 0, "")) +
                          event("bookmark", "1-1", "{}") +
                          event("put", "1-2", row("running", 0, R"(,"node_names":["n1","n2"],
                          "progress":{"step":380,"total":800,"metrics":{"loss":0.5}})")));
            stream->close();  // The controller restarts.
            return;
        }
        EXPECT_EQ(request.header("last-event-id"), "1-2");
        stream->write(
            event("put", "2-1", row("fencing", 0, R"(,"node_names":["n1","n2"])")) +
            event("put", "2-2", row("pending", 1, R"(,"attempts":[{"attempt":0,"cause":"node-lost",
            "node":"n2","last_step":380}])")) +
            event("put", "2-3", row("running", 1, R"(,"node_names":["n1","n3"],"lost_ms":31200,
            "steps_repeated":20,"attempts":[{"attempt":0,"cause":"node-lost","node":"n2",
            "last_step":380}],"progress":{"step":800,"total":800,"metrics":{"test_accuracy":0.962}})")) +
            event("put", "2-4", row("succeeded", 1, "")) + event("delete", "2-5", R"({"id":"7"})"));
    });
    cluster.handle(
        "GET /v1/jobs/7/logs", [&](const net::HttpRequest& request, const auto& responder) {
            const auto stream = responder.stream();
            const std::string attempt = *request.query_value("attempt");
            stream->write(
                event("log", "0:5", R"({"rank":0,"offset":0,"text":"one )" + attempt + R"("})") +
                event("log", "0:5,1:9", R"({"rank":1,"offset":0,"text":"two\n"})") +
                event("log", "0:9,1:9", R"({"rank":0,"offset":5,"text":"!\n"})") +
                event("end", "", R"({"state":"ended","exit_code":0})"));
        });
    const Ran ran = cluster.run({"run", "--follow", "--", "train"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("[1] two\n"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("[0] one 0!\n"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("[0] one 1!\n"), std::string::npos) << ran.out;
    for (const char* said :
         {"job 7 train submitted\n", "running on n[1-2]\n", "n2 fell silent, at step 380\n",
          "recovered: running on n[1,3], 31.2s lost, 20 steps to repeat\n", "succeeded\n"})
        EXPECT_NE(ran.err.find(said), std::string::npos) << said << "\nin:\n" << ran.err;
    const std::string timeline = ran.err.substr(ran.err.find("Timeline"));
    EXPECT_EQ(timeline,
              "Timeline of job 7 digits\n"
              "  07:58:00      +0ms  queued     2 nodes, queue default\n"
              "  07:58:02     +2.0s  started    attempt 0\n"
              "  07:58:40    +40.0s  lost       n2 fell silent, at step 380\n"
              "  07:59:11    +1m11s  recovered  attempt 1 on n[1,3], from step 360: 20 steps "
              "repeated, 31.2s lost\n"
              "  07:59:45    +1m45s  done       exit 0; ran 1m44s, of which 31.2s lost, "
              "20 steps repeated\n"
              "Result  test_accuracy 0.962\n");
}

TEST(Follow, a_job_that_is_not_there) {
    Cluster cluster;
    cluster.handle("GET /v1/jobs", [](const net::HttpRequest&, const auto& responder) {
        responder.stream()->write(event("bookmark", "1-1", "{}"));
    });
    cluster.answer(
        "GET /v1/jobs/7",
        R"({"status":404,"title":"t","detail":"no job 7","code":"E3001","request_id":"r"})", 404);
    EXPECT_EQ(cluster.run({"status", "7", "-w"}).code, 125);
}

TEST(Logs, merged_and_single) {
    Cluster cluster;
    cluster.answer("GET /v1/jobs/7", R"({"nodes":12})");
    cluster.handle("GET /v1/jobs/7/logs", [](const net::HttpRequest&, const auto& responder) {
        const auto stream = responder.stream();
        stream->write(event("log", "0:1", R"({"rank":0,"offset":0,"text":"a\nb"})") +
                      event("note", "", R"({"rank":3,"message":"its node is gone"})") +
                      event("log", "0:1,11:2", R"({"rank":11,"offset":0,"text":"c\n"})") +
                      event("end", "", R"({"state":"running","exit_code":null})"));
        stream->close();
    });
    const Ran all = cluster.run({"logs", "7", "--tail", "5"});
    EXPECT_EQ(all.code, 0) << all.err;
    EXPECT_EQ(all.out, "[ 0] a\n[11] c\n[ 0] b\n");
    EXPECT_EQ(all.err, "muster: rank 3: its node is gone\n");
    EXPECT_EQ(cluster.run({"logs", "7", "--rank", "0"}).out, "a\nbc\n");
}

}  // namespace
}  // namespace muster::cli::test
