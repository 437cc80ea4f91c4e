// One job: whole, its reason, what is done to it, waiting for it, and the history behind it.
#include "rest/test_client.h"

namespace muster::rest {
namespace {

class Jobs : public ApiTest {
protected:
    Jobs() {
        backend.with_world([](core::World& world) {
            world.hello("n1");
            world.hello("n2");
        });
    }
    void plan() {
        backend.with_world([](core::World& world) { world.plan(); });
    }
    void start(std::uint64_t id) {
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
    Got act(const std::string& path, std::vector<net::Header> headers = {},
            std::uint32_t uid = 1000) {
        return send({.method = "POST", .target = path, .headers = std::move(headers), .uid = uid});
    }
};

TEST_F(Jobs, are_shown_whole_from_queue_to_history) {
    const std::string id = run("name: train\nnodes: 2\ngpus: h100:8\nlabels: {team: nlp}\nrun: x");
    Got job = get("/v1/jobs/" + id);
    EXPECT_EQ(job.at("state"), "pending");
    EXPECT_EQ(job.at("labels.team"), "nlp");
    EXPECT_EQ(job.at("allocation"), "null");
    start(1);
    job = get("/v1/jobs/" + id);
    EXPECT_EQ(job.at("state"), "running");
    EXPECT_EQ(job.at("node_names"), R"(["n1","n2"])");
    EXPECT_NE(job.at("allocation").find("n1-gpu7"), std::string::npos);
    EXPECT_NE(job.at("ranks").find(R"("state":"running")"), std::string::npos);
    backend.with_world([](core::World& world) {
        protocol::Progress progress{
            .key = world.key(JobId{1}, 0), .step = 25, .total = 100, .metrics = {{"loss", 0.5}}};
        world.must(core::FromAgent{world.sessions.at("n1"), progress});
    });
    job = get("/v1/jobs/" + id);
    EXPECT_EQ(job.at("progress"),
              R"({"step":25,"total":100,"fraction":0.25,"metrics":{"loss":0.5}})");
    end(1, model::Cause::Success);
    job = get("/v1/jobs/" + id);
    EXPECT_EQ(job.at("state"), "succeeded");
    EXPECT_EQ(job.at("archived"), "false");
    EXPECT_EQ(job.at("exit_code"), "0");
    EXPECT_EQ(job.at("node_names"), R"(["n1","n2"])");
    EXPECT_NE(job.at("attempts").find(R"("cause":"success")"), std::string::npos) << job.body;
    backend.archive();
    const Got past = get("/v1/jobs/" + id);
    EXPECT_EQ(past.status, 200);
    EXPECT_EQ(past.at("archived"), "true");
    EXPECT_EQ(past.at("spec.name"), "train");
    EXPECT_EQ(past.at("node_names"), R"(["n1","n2"])");
    EXPECT_EQ(get("/v1/jobs/1?fields=id,state,exit_code").body,
              R"({"id":"1","state":"succeeded","exit_code":0})");
}

TEST_F(Jobs, of_others_are_shown_but_their_values_are_masked) {
    const std::string id =
        run("env: {KEY: s3cr3t}\nsecrets: {TOKEN: /home/alice/token}\nrun: train");
    for (const std::uint32_t uid : {1000u, 0u}) {
        EXPECT_EQ(get("/v1/jobs/" + id, uid).at("spec.env.KEY"), "s3cr3t") << uid;
    }
    Got others = get("/v1/jobs/" + id, 1001);
    EXPECT_EQ(others.at("spec.run"), "train");
    EXPECT_EQ(others.at("spec.env.KEY"), "***");
    EXPECT_EQ(others.at("spec.secrets.TOKEN"), "***");
    EXPECT_EQ(get("/v1/jobs?fields=spec", 1001).body.find("s3cr3t"), std::string::npos);
    act("/v1/jobs/" + id + "/cancel");
    backend.archive();
    EXPECT_EQ(get("/v1/jobs/" + id).at("spec.env.KEY"), "s3cr3t");
    others = get("/v1/jobs/" + id, 1001);
    EXPECT_EQ(others.at("spec.env.KEY"), "***");
    EXPECT_EQ(others.at("spec.secrets.TOKEN"), "***");
    EXPECT_EQ(get("/v1/jobs?all=1&fields=id,spec", 1001).body.find("s3cr3t"), std::string::npos);
}

TEST_F(Jobs, say_why_they_wait_with_numbers) {
    run("name: big\nnodes: 2\ngpus: h100:8\nrun: x");
    start(1);
    run("name: next\ngpus: h100:8\nrun: x");
    run("name: never\ngpus: h100:9\nrun: x");
    run("name: after\ndepends: afterok:1\nrun: x");
    run("name: held\nhold: true\nrun: x");
    plan();
    const Got next = get("/v1/jobs/2/why");
    EXPECT_EQ(next.at("reason.code"), "not-enough-free") << next.body;
    EXPECT_EQ(next.at("reason.number"), "E4004");
    EXPECT_EQ(next.at("reason.counts.nodes_total"), "2");
    EXPECT_EQ(next.at("reason.counts.nodes_busy"), "2");
    EXPECT_EQ(next.at("wants"), "1 node x 8 h100");
    EXPECT_EQ(get("/v1/jobs/3/why").at("reason.code"), "never-fits");
    const Got after = get("/v1/jobs/4/why");
    EXPECT_EQ(after.at("reason.code"), "dependency");
    EXPECT_EQ(after.at("reason.waiting_for"), R"(["1"])");
    EXPECT_EQ(after.at("reason.text"), "waits for job 1");
    EXPECT_EQ(get("/v1/jobs/5/why").at("reason.hold_owner"), "user");
    EXPECT_EQ(get("/v1/jobs/1/why").at("reason.code"), "running");
    EXPECT_EQ(get("/v1/jobs/2").at("reason"), next.at("reason.text")) << "the same in lists";
}

TEST_F(Jobs, are_held_released_cancelled_by_their_owners_and_administrators) {
    const std::string path = "/v1/jobs/" + run("run: x");
    EXPECT_EQ(act(path + "/hold", {}, 1001).at("code"), "E2004");
    Got got = act(path + "/hold");
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.at("state"), "pending");
    EXPECT_EQ(get(path).at("held"), "true");
    EXPECT_EQ(act(path + "/release").status, 200);
    EXPECT_EQ(act(path + "/hold", {}, 0).status, 200);
    EXPECT_EQ(get(path).at("hold_owner"), "admin:root");
    got = act(path + "/release");
    EXPECT_EQ(got.status, 403);
    EXPECT_EQ(got.at("code"), "E3008");
    EXPECT_EQ(act(path + "/release", {}, 0).status, 200);
    EXPECT_EQ(act(path + "/cancel").at("state"), "cancelled");
    EXPECT_EQ(act(path + "/cancel").status, 409);
    backend.archive();
    got = act(path + "/cancel");
    EXPECT_EQ(got.status, 409) << "history knows it";
    EXPECT_EQ(got.at("code"), "E3002");
}

TEST_F(Jobs, are_requeued_by_their_owner) {
    const std::string path = "/v1/jobs/" + run("run: x");
    start(1);
    const Got got = act(path + "/requeue");
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.at("state"), "stopping");
    end(1, model::Cause::UserError);
    const Got job = get(path);
    EXPECT_EQ(job.at("state"), "pending");
    EXPECT_EQ(job.at("cause"), "requeued");
    EXPECT_EQ(job.at("restarts"), "0");
}

TEST_F(Jobs, changes_name_the_version_they_are_based_on) {
    const std::string path = "/v1/jobs/" + run("hold: true\nrun: x");
    const std::string etag = get(path).header("ETag");
    const Ask change{.method = "PATCH",
                     .target = path,
                     .body = R"({"priority": 70})",
                     .headers = {{"if-match", etag}}};
    EXPECT_EQ(send(change).status, 200);
    EXPECT_EQ(get(path).at("priority"), "70");
    const Got late = send(change);
    EXPECT_EQ(late.status, 412);
    EXPECT_EQ(late.at("code"), "E3004");
    EXPECT_EQ(act(path + "/release", {{"if-match", etag}}).status, 412);
    EXPECT_EQ(act(path + "/release", {{"if-match", "*"}}).status, 200);
    Ask any = change;
    any.headers = {{"if-match", "*"}};
    any.body = R"({"queue": "nope"})";
    EXPECT_EQ(send(any).at("code"), "E1201");
}

TEST_F(Jobs, waiting_ends_with_the_job_or_the_time) {
    const std::string path = "/v1/jobs/" + run("run: x");
    Got got = get(path + "/wait?timeout=0");
    EXPECT_EQ(got.at("reached"), "false");
    EXPECT_EQ(got.at("job.state"), "pending");
    const auto running = open({.target = path + "/wait?for=running"});
    const auto ended = open({.target = path + "/wait?timeout=10m"});
    start(1);
    EXPECT_TRUE(running->wait([&] { return running->answered; }));
    EXPECT_FALSE(ended->answered);
    end(1, model::Cause::UserError, 3);
    EXPECT_TRUE(ended->wait([&] { return ended->answered; }));
    EXPECT_NE(ended->response.body.find(R"("reached":true,"ended":true)"), std::string::npos);
    EXPECT_NE(ended->response.body.find(R"("exit_code":3)"), std::string::npos);
    backend.archive();
    got = get(path + "/wait");
    EXPECT_EQ(got.at("ended"), "true");
    EXPECT_EQ(got.at("job.exit_code"), "3");
    EXPECT_EQ(get("/v1/jobs/99/wait").status, 404);
}

TEST_F(Jobs, that_no_node_could_start_say_where_and_why_F38) {
    run("gpus: h100:8\nrun: x");
    for (int i = 0; i < 3; ++i) {
        backend.with_world([](core::World& world) {
            world.plan();
            protocol::TaskStatus end = world.ended(JobId{1}, 0, model::Cause::Launch);
            end.end.message = "write /var/lib/muster/agent/tasks/1: No space left on device";
            world.report(end);
            if (world.extra(JobId{1}).attempts_total < 3) world.pass(10'000, {"n1", "n2"});
        });
    }
    const Got why = get("/v1/jobs/1/why");
    EXPECT_EQ(why.at("reason.code"), "not-eligible") << why.body;
    const std::string text = why.at("reason.text");
    EXPECT_TRUE(
        text.ends_with("could not start it: write /var/lib/muster/agent/tasks/1: No space "
                       "left on device; 3 attempts in a row ended so"))
        << text;
    EXPECT_NE(text.find(": n"), std::string::npos) << text;
    EXPECT_EQ(get("/v1/jobs/1").at("reason"), text) << "the same in lists";
}

TEST_F(Jobs, that_a_signal_ended_say_which) {
    run("run: x");
    start(1);
    EXPECT_EQ(get("/v1/jobs/1").at("signal"), "null");
    backend.with_world([](core::World& world) {
        protocol::TaskStatus end = world.ended(JobId{1}, 0, model::Cause::UserError);
        end.end.signal = 11;
        world.report(end);
    });
    const Got job = get("/v1/jobs/1");
    EXPECT_EQ(job.at("signal"), "11");
    EXPECT_NE(job.at("attempts").find(R"("signal":11)"), std::string::npos) << job.body;
}

TEST_F(Jobs, reads_wait_for_what_their_caller_wrote) {
    EXPECT_EQ(get("/v1/jobs").status, 200);  // The hub and the caches know the older view.
    backend.hold_back(true);
    const std::string path = "/v1/jobs/" + run("array: 0..1\nhold: true\nrun: x");
    struct Row {
        const char* what;
        Ask ask;
        int status;
    };
    const net::Header upgrade{"upgrade", "muster-tty"};
    const net::Header any{"if-match", "*"};
    const Row rows[] = {
        {"job", {.target = path}, 200},
        {"why", {.target = path + "/why"}, 200},
        {"wait", {.target = path + "/wait?timeout=0"}, 200},
        {"logs", {.target = path + "/logs"}, 200},
        {"attach", {.method = "POST", .target = path + "/attach", .headers = {upgrade}}, 409},
        {"element", {.target = path + "_1"}, 200},
        {"change of an element",
         {.method = "PATCH",
          .target = path + "_1",
          .body = R"({"priority": 70})",
          .headers = {any}},
         404},
    };
    std::vector<std::shared_ptr<Heard>> heard;
    for (const Row& row : rows) heard.push_back(open(row.ask));
    backend.hold_back(false);
    for (std::size_t i = 0; i < heard.size(); ++i) {
        EXPECT_TRUE(heard[i]->wait([&] { return heard[i]->answered; })) << rows[i].what;
        EXPECT_EQ(heard[i]->response.status, rows[i].status)
            << rows[i].what << heard[i]->response.body;
    }
    // An element's own order goes to the core, which knows more than any view.
    backend.hold_back(true);
    const std::string next = "/v1/jobs/" + run("array: 0..1\nhold: true\nrun: x");
    const auto cancel = open({.method = "POST", .target = next + "_1/cancel"});
    backend.hold_back(false);
    EXPECT_TRUE(cancel->wait([&] { return cancel->answered; }));
    EXPECT_EQ(cancel->response.status, 200) << cancel->response.body;
}

TEST_F(Jobs, elements_of_arrays_have_names_before_they_start) {
    run("array: 0..3\nparallel: 1\nrun: x");
    plan();
    const Got parent = get("/v1/jobs/1");
    EXPECT_EQ(parent.at("kind"), "array");
    EXPECT_EQ(parent.at("array.count"), "4");
    EXPECT_EQ(parent.at("array.waiting"), "3");
    EXPECT_EQ(parent.at("array.live"), "1");
    const Got first = get("/v1/jobs/1_0");
    EXPECT_EQ(first.at("kind"), "element");
    EXPECT_EQ(first.at("id"), "1_0");
    EXPECT_EQ(first.at("state"), "starting");
    const Got waiting = get("/v1/jobs/1_3");
    EXPECT_EQ(waiting.status, 200);
    EXPECT_EQ(waiting.at("id"), "1_3");
    EXPECT_EQ(waiting.at("state"), "pending");
    EXPECT_EQ(get("/v1/jobs/1_4").status, 404);
    EXPECT_EQ(get("/v1/jobs?array=1&fields=id").at("items"), R"([{"id":"1_0"}])");
    EXPECT_EQ(act("/v1/jobs/1_3/cancel").status, 200);
    EXPECT_EQ(get("/v1/jobs/1").at("array.cancelled"), "1");
}

}  // namespace
}  // namespace muster::rest
