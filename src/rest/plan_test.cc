// Why with everything, what if, plan, queues and reservations over a real planner.
#include "rest/test_client.h"
#include "rest/windows.h"

namespace muster::rest {
namespace {

class Planning : public ApiTest {
protected:
    Planning() {
        backend.with_world([](core::World& world) {
            world.hello("n1");
            world.hello("n2");
        });
    }
    void plan() {
        backend.with_world([](core::World& world) { world.plan(); });
    }
    Got change(const std::string& method, const std::string& target, const std::string& body,
               std::uint32_t uid = 0) {
        return send({.method = method,
                     .target = target,
                     .body = body,
                     .headers = {{"content-type", "application/json"}},
                     .uid = uid});
    }
    Got planned(const std::string& yaml) {
        return send({.method = "POST",
                     .target = "/v1/plan",
                     .body = yaml,
                     .headers = {{"content-type", "application/yaml"}}});
    }
};

TEST_F(Planning, why_tells_position_share_holders_and_what_would_be_sooner) {
    run("name: big\nnodes: 2\ngpus: h100:6\ntime: 1h\nrun: x");
    plan();
    run("name: next\nnodes: 2\ngpus: h100:8\ntime: 1h\nrun: x");
    run("name: after\nnodes: 2\ngpus: h100:8\ntime: 1h\nrun: x", 1001);
    plan();
    const Got why = get("/v1/jobs/3/why");
    EXPECT_EQ(why.at("explanation.position"), "2") << why.body;
    EXPECT_EQ(why.at("explanation.queued"), "2");
    EXPECT_EQ(why.at("note"), "null");
    EXPECT_NE(why.at("explanation.holders")
                  .find(R"({"job":"1","name":"big","user":"alice",)"
                        R"("nodes":2,"devices":12,"end":"2027-01-15T)"),
              std::string::npos)
        << why.body;
    EXPECT_NE(
        why.at("explanation.sooner").find(R"({"field":"gpus","value":"h100:2","start":null})"),
        std::string::npos)
        << why.body;
    EXPECT_NE(get("/v1/jobs/2/why").at("explanation.expected_start"), "null");
    EXPECT_EQ(get("/v1/jobs/2/why").at("explanation.earliest").size(), 24u);
    EXPECT_EQ(get("/v1/jobs/1/why").at("explanation"), "null") << "it runs";
}

TEST_F(Planning, why_falls_back_on_the_view_when_the_planner_is_late) {
    run("gpus: h100:9\nrun: x");
    plan();
    backend.planner_late = true;
    const Got why = get("/v1/jobs/1/why");
    EXPECT_EQ(why.status, 200);
    EXPECT_EQ(why.at("reason.code"), "never-fits");
    EXPECT_EQ(why.at("explanation"), "null");
    EXPECT_NE(why.at("note").find("the planner is late"), std::string::npos) << why.body;
    EXPECT_EQ(planned("run: x").status, 503);
    EXPECT_EQ(get("/v1/queues/default").status, 503);
}

TEST_F(Planning, why_tells_nodes_that_are_out) {
    EXPECT_EQ(post("/v1/nodes/n2/drain", R"({"reason": "fan"})", 0).status, 200);
    run("nodes: 2\nrun: x");
    plan();
    EXPECT_EQ(get("/v1/jobs/1/why").at("explanation.nodes_out"),
              R"([{"node":"n2","state":"drained","reason":"fan"}])");
}

TEST_F(Planning, what_if_a_waiting_job_asked_for_less) {
    run("name: big\nnodes: 1\ngpus: h100:8\ntime: 1h\nrun: x");
    plan();
    run("nodes: 2\ngpus: h100:8\ntime: 1h\nrun: x");
    plan();
    const Got less = get("/v1/jobs/2/why?if=nodes=1");
    EXPECT_EQ(less.status, 200) << less.body;
    EXPECT_EQ(less.at("wants"), "1 node x 8 h100");
    EXPECT_EQ(less.at("forecast.starts_now"), "true") << less.body;
    EXPECT_NE(less.at("forecast.slots").find(R"("node":"n)"), std::string::npos);
    EXPECT_EQ(get("/v1/jobs/2/why?if=nodes=2&if=gpus=h100:7").at("forecast.starts_now"), "false");
    const Got never = get("/v1/jobs/2/why?if=nodes=3");
    EXPECT_EQ(never.at("forecast.could_run"), "false") << never.body;
    EXPECT_EQ(get("/v1/jobs/2/why?if=topology.required=none").at("forecast.starts_now"), "false");
    EXPECT_EQ(get("/v1/jobs/2/why?if=name=x").at("code"), "E1102");
    EXPECT_EQ(get("/v1/jobs/2/why?if=nodes=many").status, 422);
    EXPECT_EQ(get("/v1/jobs/2/why?if=queue=none").at("code"), "E1201");
    EXPECT_EQ(get("/v1/jobs/1/why?if=nodes=1").at("code"), "E3003") << "it runs";
    EXPECT_EQ(get("/v1/jobs/2").at("nodes"), "2") << "nothing was changed";
}

TEST_F(Planning, a_job_that_is_not_there_is_planned) {
    const Got now_ = planned("nodes: 2\ngpus: h100:8\nrun: x");
    EXPECT_EQ(now_.at("forecast.starts_now"), "true") << now_.body;
    EXPECT_EQ(now_.at("forecast.why"), "null");
    EXPECT_EQ(planned("nodes: 3\nrun: x").at("forecast.could_run"), "false");
    EXPECT_EQ(planned("nodez: 3\nrun: x").status, 422);
    run("name: low\npriority: 10\nnodes: 2\ngpus: h100:8\ntime: 2h\nrun: x");
    plan();
    backend.with_world([](core::World& world) {
        world.run(JobId{1});
        world.pass(600'000, {"n1", "n2"});
    });
    const Got waits = planned("priority: 90\nnodes: 2\ngpus: h100:8\ntime: 1h\nrun: x");
    EXPECT_EQ(waits.at("forecast.starts_now"), "false");
    EXPECT_NE(waits.at("forecast.preempts").find(R"("job":"1","name":"low","user":"alice")"),
              std::string::npos)
        << waits.body;
    EXPECT_EQ(backend.view()->jobs.size(), 1u) << "nothing was submitted";
}

constexpr const char* kTree = R"({"queues": {"research": {"guarantee": {"gpus": 8},
    "queues": {"nlp": {"guarantee": {"gpus": 8}, "limit": {"gpus": 12}}, "vision": {}}},
    "batch": {"policy": "fifo"}}})";

TEST_F(Planning, queues_are_applied_shown_and_set) {
    EXPECT_EQ(change("PUT", "/v1/queues", kTree, 1000).status, 403);
    const Got dry = change("PUT", "/v1/queues?dry_run=1", kTree);
    EXPECT_EQ(dry.at("dry_run"), "true") << dry.body;
    EXPECT_NE(dry.at("changes").find(R"({"queue":"research/nlp","change":"made"})"),
              std::string::npos);
    EXPECT_EQ(get("/v1/queues/batch").at("code"), "E3010") << "only a dry run";
    EXPECT_EQ(change("PUT", "/v1/queues", kTree).status, 200);
    run("queue: research/nlp\ngpus: h100:8\nrun: x");
    plan();
    run("name: second\nqueue: research/nlp\ngpus: h100:8\nrun: x");
    plan();
    const Got nlp = get("/v1/queues/research%2Fnlp");
    EXPECT_EQ(nlp.at("running"), "1") << nlp.body;
    EXPECT_EQ(nlp.at("pending"), "1");
    EXPECT_EQ(nlp.at("next.name"), "second");
    EXPECT_NE(nlp.at("lines").find(R"({"resource":"gpus","guarantee":8,"used":8,"borrowed":0,)"
                                   R"("lent":0,"limit":12})"),
              std::string::npos)
        << nlp.body;
    const Got why = get("/v1/jobs/2/why");
    EXPECT_EQ(why.at("reason.code"), "queue-limit") << why.body;
    EXPECT_EQ(why.at("reason.queue"), "research/nlp");
    EXPECT_EQ(get("/v1/queues/research").at("below"), R"(["research/nlp","research/vision"])");
    EXPECT_NE(get("/v1/queues?yaml=1").at("yaml").find("policy: fifo"), std::string::npos);

    const std::string path = "/v1/queues/research%2Fnlp";
    EXPECT_EQ(change("PATCH", path, R"({"set": ["limit.gpus=16", "weight=2"]})").status, 200);
    EXPECT_EQ(get(path).at("weight"), "2");
    EXPECT_EQ(change("PATCH", path, R"({"set": ["wieght=2"]})").status, 422);
    EXPECT_EQ(change("PATCH", path, R"({"set": []})").status, 400);
    EXPECT_EQ(change("PATCH", path, R"({"set": ["guarantee.gpus=99"]})").at("code"), "E1210")
        << "more than its parent has";
    EXPECT_EQ(change("PATCH", "/v1/queues/none", R"({"set": ["weight=2"]})").status, 404);
}

TEST_F(Planning, a_file_of_queues_changes_all_or_nothing) {
    EXPECT_EQ(change("PATCH", "/v1/queues", kTree).status, 200);
    const Got kept = change("PATCH", "/v1/queues", R"({"queues": {"extra": {}}})");
    EXPECT_EQ(kept.at("changes"), R"([{"queue":"extra","change":"made"}])");
    EXPECT_EQ(get("/v1/queues/batch").status, 200);
    const Got wrong = change("PUT", "/v1/queues", R"({"queues": {"a": {"wieght": 2}}})");
    EXPECT_EQ(wrong.status, 422);
    EXPECT_NE(wrong.body.find("did you mean weight?"), std::string::npos) << wrong.body;
    EXPECT_EQ(get("/v1/queues/batch").status, 200);
    run("queue: batch\nrun: x");
    EXPECT_EQ(change("PUT", "/v1/queues", R"({"queues": {"a": {}}})").at("code"), "E3017");
    EXPECT_EQ(change("PATCH", "/v1/queues", R"({"rules": {"half_life": "3d"}})").at("rules"),
              "true");
    EXPECT_EQ(backend.view()->rules.half_life.ms, std::int64_t{3} * 24 * 3600 * 1000);
}

TEST_F(Planning, a_file_is_compared_with_what_its_sender_wrote_before) {
    backend.hold_back(true);  // The first is durable, but not published yet.
    EXPECT_EQ(change("PATCH", "/v1/queues", kTree).status, 200);
    const auto second = open({.method = "PATCH",
                              .target = "/v1/queues?dry_run=1",
                              .body = kTree,
                              .headers = {{"content-type", "application/json"}},
                              .uid = 0});
    backend.hold_back(false);
    ASSERT_TRUE(second->wait([&] { return second->answered; }));
    EXPECT_NE(second->response.body.find(R"("changes":[])"), std::string::npos)
        << second->response.body;
}

TEST_F(Planning, a_group_of_the_system_opens_a_queue) {
    change("PATCH", "/v1/queues", R"({"queues": {"nlp": {"groups": ["nlp"]}}})");
    run("queue: nlp\nrun: x");
    const Got bob = send({.method = "POST",
                          .target = "/v1/jobs",
                          .body = "queue: nlp\nrun: x",
                          .headers = {{"content-type", "application/yaml"}},
                          .uid = 1001});
    EXPECT_EQ(bob.at("code"), "E1206") << bob.body;
    // The groups are those of the token's user, not of who shows it.
    const std::string secret = post("/v1/tokens", R"({"expires_in": "1h"})").at("token");
    EXPECT_EQ(send({.method = "POST",
                    .target = "/v1/jobs",
                    .body = "queue: nlp\nrun: x",
                    .headers = {{"content-type", "application/yaml"},
                                {"authorization", "Bearer " + secret}},
                    .local = false})
                  .status,
              201);
}

TEST_F(Planning, reservations_are_made_listed_and_dropped) {
    const std::string body = R"({"name": "course", "count": "1", "gpus": "h100:8",
        "users": "bob", "start": "now+1h", "for": "2h", "reason": "teaching"})";
    EXPECT_EQ(change("POST", "/v1/reservations", body, 1000).status, 403);
    const Got made = change("POST", "/v1/reservations", body);
    EXPECT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.at("nodes"), R"(["n1"])");
    EXPECT_EQ(made.at("start"), "2027-01-15T09:00:00.000Z");
    EXPECT_EQ(made.at("active"), "false");
    const Got second = change("POST", "/v1/reservations",
                              R"({"name": "two", "count": "2", "gpus": "h100:8",
                                  "users": "bob", "start": "now+2h", "for": "2h"})");
    EXPECT_EQ(second.at("code"), "E1212") << second.body;
    const Got wrong = change("POST", "/v1/reservations", R"({"name": "x", "nodes": "n1"})");
    EXPECT_EQ(wrong.status, 422) << wrong.body;
    EXPECT_NE(wrong.at("errors").find(R"("pointer":"/users")"), std::string::npos) << wrong.body;
    EXPECT_NE(get("/v1/reservations").at("items").find(R"("name":"course","reason":"teaching")"),
              std::string::npos);
    run("name: long\nnodes: 2\ngpus: h100:8\ntime: 3h\nrun: x");
    plan();
    const Got why = get("/v1/jobs/1/why");
    EXPECT_EQ(why.at("reason.code"), "window") << why.body;
    EXPECT_EQ(why.at("reason.reservation"), "course");
    EXPECT_NE(why.at("reason.text").find("course"), std::string::npos);
    EXPECT_EQ(send({.method = "DELETE", .target = "/v1/reservations/course", .uid = 0}).status,
              204);
    EXPECT_EQ(send({.method = "DELETE", .target = "/v1/reservations/course", .uid = 0}).at("code"),
              "E3016");
}

TEST_F(Planning, a_job_shows_where_it_stands) {
    backend.with_world([](core::World& world) {
        model::Topology topology;
        topology.levels = {"zone", "leaf"};
        topology.hosts = {{"n1", {"a", "l1"}}, {"n2", {"a", "l2"}}};
        world.must(core::SetTopology{world.root, topology});
    });
    run("gpus: h100:8\nrun: x");
    plan();
    const Got job = get("/v1/jobs/1");
    EXPECT_EQ(job.at("allocation.levels"), R"(["zone","leaf"])");
    EXPECT_NE(job.at("allocation").find(R"("path":["a","l)"), std::string::npos) << job.body;
    EXPECT_EQ(get("/v1/nodes/n2").at("domain"), "a/l2");
}

TEST(Windows, of_a_recurring_reservation_are_known_for_months) {
    const Time now{1'800'000'000'000};
    model::Reservation made;
    made.first = {now, now + seconds(3600)};
    EXPECT_FALSE(windows_due(made, now)) << "it does not come again";
    made.recurrence.every = model::Recurrence::Every::Day;
    EXPECT_TRUE(windows_due(made, now));
    const auto windows = windows_from(made.first, made.recurrence, now);
    ASSERT_TRUE(windows) << windows.error().message;
    EXPECT_EQ(windows->size(), 90u);
    made.windows = *windows;
    EXPECT_FALSE(windows_due(made, now));
    const Duration day{std::int64_t{24} * 3600 * 1000};
    EXPECT_TRUE(windows_due(made, now + Duration{day.ms * 60}));
    made.recurrence.until = made.windows.back().start;
    EXPECT_FALSE(windows_due(made, now + Duration{day.ms * 60})) << "no other will come";
    made.recurrence.zone = "Nowhere/None";
    EXPECT_FALSE(windows_from(made.first, made.recurrence, now));
}

}  // namespace
}  // namespace muster::rest
