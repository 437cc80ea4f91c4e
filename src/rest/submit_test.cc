// Submitting: formats, all errors at once, dry runs, repeats, what a refusal of the core becomes.
#include "rest/test_client.h"

namespace muster::rest {
namespace {

class Submit : public ApiTest {
protected:
    Got submit(const std::string& body, std::vector<net::Header> headers = {},
               const std::string& query = {}) {
        return send({.method = "POST",
                     .target = "/v1/jobs" + query,
                     .body = body,
                     .headers = std::move(headers)});
    }
    const net::Header yaml{"content-type", "application/yaml"};
    const net::Header json{"content-type", "application/json; charset=utf-8"};
};

TEST_F(Submit, takes_yaml_and_json) {
    const Got first = submit("name: one\nrun: python train.py\n", {yaml});
    EXPECT_EQ(first.status, 201);
    EXPECT_EQ(first.at("id"), "1");
    EXPECT_EQ(first.at("name"), "one");
    EXPECT_EQ(first.header("Location"), "/v1/jobs/1");
    EXPECT_EQ(first.header("Muster-Revision"), first.at("revision"));
    const Got second = submit(R"({"run": "true", "gpus": "h100:8", "nodes": 2})", {json});
    EXPECT_EQ(second.status, 201);
    const Got job = get("/v1/jobs/" + second.at("id"));
    EXPECT_EQ(job.at("kind"), "gang");
    EXPECT_EQ(job.at("gpus"), "16");
    EXPECT_EQ(job.at("gpus_per_node"), "h100:8");
    EXPECT_EQ(submit("run: true", {{"content-type", "text/plain"}}).status, 415);
}

TEST_F(Submit, tells_all_that_is_wrong_with_its_place) {
    const Got got = submit("memry: 4GB\ngpus: -1\nrun: true\n", {yaml});
    EXPECT_EQ(got.status, 422);
    const std::string errors = got.at("errors");
    EXPECT_NE(errors.find("did you mean memory?"), std::string::npos) << errors;
    EXPECT_NE(errors.find(R"("pointer":"/gpus")"), std::string::npos) << errors;
    EXPECT_NE(errors.find(R"("line":2)"), std::string::npos) << errors;
    for (const char* bad : {"", "{", "\x01\x02", "[]", "run: [", "gpus: 9223372036854775808"}) {
        const Got refused = submit(bad, {yaml});
        EXPECT_EQ(refused.status, 422) << bad;
        EXPECT_NE(refused.at("errors"), "") << bad;
    }
    EXPECT_EQ(submit(std::string(100'000, '['), {json}).status, 422);
}

TEST_F(Submit, a_repeat_gets_the_same_job_F34) {
    const net::Header key{"idempotency-key", "k-1"};
    const Got first = submit("run: true", {yaml, key});
    const Got again = submit("run: true", {yaml, key});
    EXPECT_EQ(again.status, 201);
    EXPECT_EQ(again.at("id"), first.at("id"));
    EXPECT_EQ(again.at("repeated"), "true");
    const Got other = submit("run: false", {yaml, key});
    EXPECT_EQ(other.status, 422);
    EXPECT_EQ(other.at("code"), "E3005");
    EXPECT_EQ(submit("run: true", {yaml, {"idempotency-key", std::string(300, 'k')}}).status, 400);
}

TEST_F(Submit, a_dry_run_changes_nothing_and_tells_with_numbers) {
    backend.with_world([](core::World& world) { world.hello("n1"); });
    const Got fits = submit("gpus: 8\nrun: true", {yaml}, "?dry_run=1");
    EXPECT_EQ(fits.status, 200);
    EXPECT_EQ(fits.at("could_run"), "true");
    EXPECT_EQ(fits.at("starts_now"), "true") << fits.body;
    EXPECT_EQ(fits.at("spec.gpus"), "8");
    EXPECT_NE(fits.at("yaml").find("run"), std::string::npos);
    const Got never = submit("gpus: 16\nrun: true", {yaml}, "?dry_run=1");
    EXPECT_EQ(never.status, 200);
    EXPECT_EQ(never.at("could_run"), "false");
    EXPECT_EQ(never.at("why.code"), "never-fits");
    EXPECT_EQ(never.at("why.number"), "E4002");
    EXPECT_EQ(never.at("why.counts.nodes_total"), "1");
    EXPECT_EQ(
        never.at("why.text"),
        "can never start here: asks 16 devices a node; 0 of 1 node can give that, the most is "
        "8 (n1)");
    EXPECT_EQ(submit("queue: prodd\nrun: true", {yaml}, "?dry_run=1").at("code"), "E1201");
    EXPECT_EQ(backend.view()->jobs.size(), 0u);
}

TEST_F(Submit, a_dry_run_looks_at_the_queue_of_the_job) {
    backend.with_world([](core::World& world) {
        world.hello("n1");
        core::Settings settings = world.state.settings;
        settings.queues.push_back("prod");
        world.must(core::SettingsChanged{settings});
    });
    EXPECT_EQ(submit("queue: prod\nrun: true", {yaml}, "?dry_run=1").status, 200);
    EXPECT_EQ(submit("queue: none\nrun: true", {yaml}, "?dry_run=1").at("code"), "E1201");
    backend.planner_late = true;
    EXPECT_EQ(submit("queue: prod\nrun: true", {yaml}, "?dry_run=1").status, 503);
}

TEST_F(Submit, refusals_of_the_core_keep_their_numbers) {
    const Got queue = submit("queue: prodd\nrun: true", {yaml});
    EXPECT_EQ(queue.status, 422);
    EXPECT_EQ(queue.at("code"), "E1201");
    const Got depends = submit("depends: afterok:77\nrun: true", {yaml});
    EXPECT_EQ(depends.status, 422);
    EXPECT_EQ(depends.at("code"), "E1202");
    backend.refuse_submits = Error{.code = Code::NoSpace, .message = "the disk is nearly full"};
    const Got full = submit("run: true", {yaml});
    EXPECT_EQ(full.status, 507);
    EXPECT_EQ(full.at("code"), "E9002");
    EXPECT_EQ(full.header("Retry-After"), "30");
    backend.refuse_submits = Error{.code = Code::Unavailable, .message = "handing over"};
    EXPECT_EQ(submit("run: true", {yaml}).header("Retry-After"), "1");
}

TEST_F(Submit, may_depend_on_a_job_that_only_history_knows) {
    backend.with_world([](core::World& world) { world.hello("n1"); });
    const std::string first = run("run: true");
    backend.with_world([](core::World& world) {
        world.plan();
        world.run(JobId{1});
        world.end(JobId{1}, 0, model::Cause::Success);
    });
    backend.archive();
    ASSERT_FALSE(backend.view()->jobs.contains(1));
    const Got got = submit("depends: afterok:" + first + "\nrun: true", {yaml});
    EXPECT_EQ(got.status, 201) << got.body;
    EXPECT_EQ(get("/v1/jobs/" + got.at("id")).at("depends"), "[]") << "it is met already";
}

TEST_F(Submit, may_depend_on_a_job_that_goes_to_history_just_now) {
    backend.with_world([](core::World& world) { world.hello("n1"); });
    const std::string first = run("run: true");
    backend.with_world([](core::World& world) {
        world.plan();
        world.run(JobId{1});
        world.end(JobId{1}, 0, model::Cause::Success);
    });
    // The view still has the job, the core has it no more.
    backend.hold_back(true);
    backend.archive();
    ASSERT_TRUE(backend.view()->jobs.contains(1));
    const Got got = submit("depends: afterok:" + first + "\nrun: true", {yaml});
    EXPECT_EQ(got.status, 201) << got.body;
    EXPECT_EQ(submit("depends: afterok:77\nrun: true", {yaml}).at("code"), "E1202");
    backend.hold_back(false);
    EXPECT_EQ(get("/v1/jobs/" + got.at("id")).at("depends"), "[]") << "it is met already";
}

}  // namespace
}  // namespace muster::rest
