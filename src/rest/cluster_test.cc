// Nodes, devices and tokens.
#include "net/pki.h"
#include "rest/test_client.h"

namespace muster::rest {
namespace {

class Cluster : public ApiTest {
protected:
    Cluster() {
        backend.with_world([](core::World& world) {
            world.hello("n1");
            world.hello("n2");
        });
    }
};

TEST_F(Cluster, shows_nodes_with_their_devices_and_owners) {
    run("gpus: 2\nrun: x");
    backend.with_world([](core::World& world) {
        world.plan();
        world.run(JobId{1});
    });
    const Got list = get("/v1/nodes?fields=name,state,gpus,gpus_used,gpu_kinds");
    EXPECT_EQ(list.at("items"),
              R"([{"name":"n1","state":"ready","gpus":8,"gpus_used":2,"gpu_kinds":"h100:8"},)"
              R"({"name":"n2","state":"ready","gpus":8,"gpus_used":0,"gpu_kinds":"h100:8"}])");
    EXPECT_EQ(get("/v1/nodes").body.find("n1-gpu0"), std::string::npos);
    const Got node = get("/v1/nodes/n1");
    EXPECT_NE(node.body.find(R"("state":"used","job":"1","user":"alice")"), std::string::npos)
        << node.body;
    EXPECT_EQ(node.at("jobs"), R"(["1"])");
    const Got page = get("/v1/nodes?limit=1&fields=name");
    EXPECT_EQ(page.at("next_cursor"), "n1");
    EXPECT_EQ(get("/v1/nodes?limit=1&fields=name&cursor=n1").at("items"), R"([{"name":"n2"}])");
    const Got gpus = get("/v1/gpus");
    EXPECT_NE(gpus.at("kinds").find(R"("total":16,"free":14,"used":2,"unusable":0,"nodes":2,)"
                                    R"("most_free_on_a_node":8)"),
              std::string::npos)
        << gpus.body;
    EXPECT_EQ(get("/v1/gpus?devices=0").at("devices"), "");
    EXPECT_EQ(get("/v1/gpus?kind=mi300").at("kinds"), "[]");
}

TEST_F(Cluster, administrators_drain_resume_and_forget) {
    const Got drained = post("/v1/nodes/n1/drain", R"({"reason": "fan"})", 0);
    EXPECT_EQ(drained.status, 200);
    EXPECT_EQ(drained.at("state"), "drained");
    Got node = get("/v1/nodes/n1");
    EXPECT_EQ(node.at("usable"), "false");
    EXPECT_EQ(node.at("reason"), "admin:root: fan");
    EXPECT_EQ(get("/v1/nodes?state=drained&fields=name").at("items"), R"([{"name":"n1"}])");
    EXPECT_NE(get("/v1/gpus?devices=0").body.find(R"("free":8,"used":0,"unusable":8)"),
              std::string::npos);
    EXPECT_EQ(post("/v1/nodes/n1/resume", {}, 0).at("state"), "ready");
    EXPECT_EQ(post("/v1/nodes/n1/fenced", {}, 0).status, 409) << "it is alive";
    EXPECT_EQ(post("/v1/nodes/n9/drain", {}, 0).at("code"), "E3007");
    EXPECT_EQ(post("/v1/nodes/n2/forget", {}, 0).status, 200);
    EXPECT_EQ(get("/v1/nodes/n2").status, 404);
}

TEST_F(Cluster, a_silent_node_is_declared_fenced) {
    backend.with_world([](core::World& world) { world.pass(20'000, {"n1"}); });
    EXPECT_EQ(get("/v1/nodes/n2").at("usable"), "false");
    const Got got = post("/v1/nodes/n2/fenced", {}, 0);
    EXPECT_EQ(got.status, 200) << got.body;
    EXPECT_EQ(get("/v1/nodes/n2").at("fenced"), "true");
}

TEST_F(Cluster, api_tokens_open_the_door_until_revoked_or_expired) {
    const Got made = post("/v1/tokens", R"({"expires_in": "1h"})");
    EXPECT_EQ(made.status, 201);
    const std::string secret = made.at("token");
    EXPECT_EQ(secret.substr(0, 11), "MUSTER_pat_");
    const core::Token& kept = backend.view()->tokens.at(1);
    EXPECT_EQ(kept.hash, net::sha256_hex(secret)) << "only the hash is kept";
    const Ask ask{
        .target = "/v1/whoami", .headers = {{"authorization", "Bearer " + secret}}, .local = false};
    Got got = send(ask);
    EXPECT_EQ(got.at("user"), "alice");
    EXPECT_EQ(got.at("by"), "token");
    EXPECT_EQ(got.at("token_expires"), "2027-01-15T09:00:00.000Z");
    for (const char* wrong : {"Bearer MUSTER_pat_x", "Bearer", "Basic abc", "bearer  "}) {
        got = send({.target = "/v1/whoami", .headers = {{"authorization", wrong}}, .local = false});
        EXPECT_EQ(got.status, 401) << wrong;
    }
    now = now + seconds(3600);
    EXPECT_EQ(send(ask).at("code"), "E2003");
    now = now - seconds(3600);
    EXPECT_EQ(get("/v1/tokens", 1001).at("items"), "[]") << "bob sees his own alone";
    EXPECT_NE(get("/v1/tokens").at("items").find("\"api\""), std::string::npos);
    EXPECT_EQ(get("/v1/tokens", 0).body.find(secret), std::string::npos);
    EXPECT_EQ(send({.method = "DELETE", .target = "/v1/tokens/1", .uid = 1001}).status, 404);
    EXPECT_EQ(send({.method = "DELETE", .target = "/v1/tokens/1"}).status, 204);
    EXPECT_EQ(send(ask).at("code"), "E2002");
}

TEST_F(Cluster, administrators_make_tokens_for_others_and_for_nodes) {
    EXPECT_EQ(post("/v1/tokens", R"({"kind": "join"})").at("code"), "E2005");
    EXPECT_EQ(post("/v1/tokens", R"({"admin": true})").at("code"), "E2005");
    const Got bob = post("/v1/tokens", R"({"user": "bob", "expires_in": "never"})", 0);
    EXPECT_EQ(bob.at("user"), "bob");
    EXPECT_EQ(bob.at("expires"), "null");
    Got join = post("/v1/tokens", R"({"kind": "join"})", 0);
    EXPECT_EQ(join.status, 409) << "no agents are served";
    backend.health_now.ca_sha256 = std::string(64, 'a');
    backend.health_now.agent_address = "ctl:7071";
    join = post("/v1/tokens", R"({"kind": "join", "node": "n3", "uses": 1})", 0);
    EXPECT_EQ(join.status, 201) << join.body;
    const auto parsed = net::parse_join_token(join.at("token"));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->address, "ctl:7071");
    const core::Token& kept = backend.view()->tokens.at(2);
    EXPECT_EQ(kept.hash, net::sha256_hex(parsed->secret));
    EXPECT_EQ(kept.user, "n3");
    EXPECT_EQ(kept.uses_left, 1);
    const Got list = get("/v1/tokens", 0);
    EXPECT_NE(list.body.find(R"("kind":"join","user":null,"node":"n3")"), std::string::npos);
}

}  // namespace
}  // namespace muster::rest
