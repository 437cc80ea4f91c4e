// Routes, identity, limits, parameters: what every request goes through.
#include <set>

#include "rest/test_client.h"

namespace muster::rest {
namespace {

struct Refused {
    const char* name;
    const char* method;
    const char* target;
    const char* body;
    int status;
    const char* code;
    const char* says;  // Part of the answer.

    friend void PrintTo(const Refused& row, std::ostream* out) { *out << row.name; }
};

const Refused kRefused[] = {
    {"unknown_route", "GET", "/v1/jobz", "", 404, "E1104", "GET /v1/jobs"},
    {"unknown_sub_route", "POST", "/v1/jobs/1/cancle", "", 404, "E1104",
     "POST /v1/jobs/{id}/cancel"},
    {"outside", "GET", "/", "", 404, "E1104", "no route GET /"},
    {"method", "PUT", "/v1/jobs", "", 405, "E1105", "does not take PUT"},
    {"parameter", "GET", "/v1/jobs?stat=running", "", 400, "E1102", "did you mean state?"},
    {"state", "GET", "/v1/jobs?state=runing", "", 400, "E1102", "pending, held, starting, running"},
    {"field", "GET", "/v1/jobs?fields=id,nmae", "", 400, "E1102", "did you mean name?"},
    {"node_field", "GET", "/v1/nodes?fields=nam", "", 400, "E1102", "did you mean name?"},
    {"limit", "GET", "/v1/jobs?limit=0", "", 400, "E1102", "from 1 to 100000"},
    {"cursor", "GET", "/v1/jobs?cursor=x", "", 400, "E1109", "is not valid"},
    {"layout", "GET", "/v1/jobs?layout=table", "", 400, "E1102", "objects or rows"},
    {"at_least", "GET", "/v1/jobs?at_least=7", "", 400, "E1102", "Muster-Revision"},
    {"job", "GET", "/v1/jobs/77", "", 404, "E3001", "job 77"},
    {"job_id", "GET", "/v1/jobs/x7", "", 404, "E3001", "is no job id"},
    {"job_id_huge", "GET", "/v1/jobs/99999999999999999999", "", 404, "E3001", "is no job id"},
    {"node", "GET", "/v1/nodes/n77", "", 404, "E3007", "node n77"},
    {"cancel_unknown", "POST", "/v1/jobs/77/cancel", "", 404, "E3001", "job 77"},
    {"body_syntax", "POST", "/v1/jobs/1/cancel", "{\"reason\": }", 400, "E1101", "column"},
    {"body_array", "POST", "/v1/jobs/1/cancel", "[]", 400, "E1101", "not a JSON object"},
    {"body_member", "POST", "/v1/jobs/1/cancel", "{\"reson\": \"x\"}", 400, "E1110",
     "did you mean reason?"},
    {"body_type", "POST", "/v1/jobs/1/cancel", "{\"reason\": 7}", 400, "E1110",
     "expected a string"},
    {"patch_without_version", "PATCH", "/v1/jobs/1", "{\"priority\": 7}", 428, "E3011", "If-Match"},
    {"patch_range", "PATCH", "/v1/jobs/1", "{\"priority\": 101}", 400, "E1110", "from 0 to 100"},
    {"patch_nothing", "PATCH", "/v1/jobs/1", "{}", 400, "E1110", "nothing to change"},
    {"wait", "GET", "/v1/jobs/1/wait?timeout=2d", "", 400, "E1102", "at most 10m"},
    {"wait_for", "GET", "/v1/jobs/1/wait?for=lunch", "", 400, "E1102", "ended, started or running"},
    {"exec_no_argv", "POST", "/v1/jobs/1/exec", "{\"argv\": []}", 400, "E1110", "a command"},
    {"exec_no_upgrade", "POST", "/v1/jobs/1/exec", "{\"argv\": [\"ls\"]}", 426, "E1108",
     "muster-tty"},
    {"drain_by_user", "POST", "/v1/nodes/n1/drain", "", 403, "E2005", "alice is none"},
    {"token_kind", "POST", "/v1/tokens", "{\"kind\": \"car\"}", 400, "E1110", "api or join"},
    {"token_life", "POST", "/v1/tokens", "{\"expires_in\": \"soon\"}", 400, "E1110", "30d"},
    {"token_for_other", "POST", "/v1/tokens", "{\"user\": \"bob\"}", 403, "E2005",
     "administrators"},
    {"token_unknown", "DELETE", "/v1/tokens/9", "", 404, "E3009", "token 9"},
    {"events_after", "GET", "/v1/events?after=-1", "", 400, "E1102", "sequence"},
    {"log_rank", "GET", "/v1/jobs/1/logs?rank=x", "", 400, "E1102", "a rank, or all"},
    {"log_from", "GET", "/v1/jobs/1/logs?from=1:2", "", 400, "E1102", "RANK:OFFSET"},
    {"since", "GET", "/v1/jobs?since=yesterday", "", 400, "E1102", "a time such as"},
};

class Refusals : public ApiTest, public testing::WithParamInterface<Refused> {};

TEST_P(Refusals, are_problems_with_code_and_fix) {
    const Refused& row = GetParam();
    const Got got = send({.method = row.method, .target = row.target, .body = row.body});
    EXPECT_EQ(got.status, row.status) << got.body;
    EXPECT_EQ(got.content_type, "application/problem+json");
    EXPECT_EQ(got.at("code"), row.code);
    EXPECT_NE(got.body.find(row.says), std::string::npos) << got.body;
    EXPECT_NE(got.at("fix"), "");
    EXPECT_EQ(got.at("request_id"), got.header("X-Request-Id"));
}

INSTANTIATE_TEST_SUITE_P(Table, Refusals, testing::ValuesIn(kRefused),
                         [](const auto& row) { return row.param.name; });

using Serve = ApiTest;

TEST_F(Serve, a_wrong_method_names_the_right_ones) {
    EXPECT_EQ(send({.method = "PUT", .target = "/v1/jobs"}).header("Allow"), "GET, POST");
}

TEST_F(Serve, keeps_the_clients_request_id_if_it_is_plain) {
    EXPECT_EQ(send({.target = "/v1/version", .headers = {{"x-request-id", "abc-7"}}})
                  .header("X-Request-Id"),
              "abc-7");
    EXPECT_NE(send({.target = "/v1/version", .headers = {{"x-request-id", "a b"}}})
                  .header("X-Request-Id"),
              "a b");
}

TEST_F(Serve, needs_a_token_over_tls_but_for_open_routes) {
    const Got refused = send({.target = "/v1/jobs", .local = false});
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(refused.at("code"), "E2001");
    EXPECT_EQ(refused.header("WWW-Authenticate"), "Bearer");
    const Got health = send({.target = "/v1/health", .local = false});
    EXPECT_EQ(health.status, 200);
    EXPECT_EQ(health.body, R"({"status":"ok"})");
    EXPECT_EQ(send({.target = "/v1/version", .local = false}).status, 200);
    EXPECT_EQ(send({.target = "/v1/ca", .local = false}).status, 404);
    backend.health_now.ca_pem = "-----BEGIN CERTIFICATE-----";
    EXPECT_EQ(send({.target = "/v1/ca", .local = false}).status, 200);
}

TEST_F(Serve, knows_local_users_by_the_kernels_word) {
    EXPECT_EQ(get("/v1/whoami").body,
              R"({"user":"alice","admin":false,"by":"unix-socket","token_id":null,)"
              R"("token_expires":null})");
    EXPECT_EQ(get("/v1/whoami", 0).at("admin"), "true");
    EXPECT_EQ(get("/v1/whoami", 42).status, 401);
    EXPECT_EQ(get("/v1/whoami", 42).at("code"), "E2006");
}

TEST_F(Serve, identity_never_comes_from_the_request_F29) {
    for (const char* header : {"x-user", "x-remote-user", "user"}) {
        const Got got = send({.target = "/v1/whoami", .headers = {{header, "root"}}});
        EXPECT_EQ(got.at("user"), "alice");
    }
    const Got got = send({.method = "POST",
                          .target = "/v1/jobs",
                          .body = R"({"run": "true", "user": "bob"})",
                          .headers = {{"content-type", "application/json"}}});
    EXPECT_EQ(got.status, 422) << "a job has no field of that name";
    EXPECT_EQ(get("/v1/jobs/" + run("run: true")).at("user"), "alice");
}

TEST_F(Serve, limits_each_user_by_himself_F54) {
    options.rate = {.per_second = 10, .burst = 3};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(get("/v1/version").status, 200);
    const Got refused = get("/v1/version");
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.header("Retry-After"), "1");
    EXPECT_EQ(get("/v1/version", 1001).status, 200) << "bob has a bucket of his own";
    now = now + Duration{100};
    EXPECT_EQ(get("/v1/version").status, 200);
    EXPECT_EQ(get("/v1/version").status, 429);
}

TEST_F(Serve, big_answers_cost_more) {
    RateLimiter limiter({.per_second = 10, .burst = 100});
    EXPECT_FALSE(limiter.take("alice", now));
    limiter.charge("alice", 200 * 16 * 1024);
    const auto wait = limiter.take("alice", now);
    ASSERT_TRUE(wait);
    EXPECT_EQ(wait->ms, 10'100)
        << "100 in debt, which is the most, and one to take, at 10 a second";
}

TEST_F(Serve, waits_for_the_revision_that_a_write_returned) {
    const Got made = send({.method = "POST", .target = "/v1/jobs", .body = "{\"run\": \"true\"}"});
    const std::string revision = made.header("Muster-Revision");
    EXPECT_EQ(get("/v1/jobs?at_least=" + revision).status, 200);
    const std::uint64_t next = backend.view()->revision + 1;
    const auto heard = open({.target = "/v1/jobs?at_least=1-" + std::to_string(next)});
    EXPECT_FALSE(heard->answered);
    backend.with_world([](core::World&) {});
    EXPECT_TRUE(heard->wait([&] { return heard->answered; }));
    EXPECT_EQ(get("/v1/jobs?at_least=9-99").status, 200) << "another leader's revision";
    EXPECT_EQ(send({.target = "/v1/jobs", .headers = {{"muster-revision", revision}}}).status, 200);
}

TEST_F(Serve, tells_that_nothing_changed) {
    for (const char* target : {"/v1/jobs", "/v1/nodes", "/v1/gpus"}) {
        const Got first = get(target);
        const Ask again{.target = target, .headers = {{"if-none-match", first.header("ETag")}}};
        EXPECT_EQ(send(again).status, 304);
        backend.with_world([](core::World&) {});
        EXPECT_EQ(send(again).status, 200);
    }
}

TEST_F(Serve, every_route_is_in_the_document_and_the_other_way_round) {
    std::set<std::string> documented;
    for_each_member(member_of(openapi_json(), "paths"),
                    [&](std::string_view path, std::string_view item) {
                        for_each_member(item, [&](std::string_view method, std::string_view) {
                            if (method == "parameters") return;
                            std::string name;
                            for (const char c : method)
                                name.push_back(static_cast<char>(c - 'a' + 'A'));
                            documented.insert(name + " " + std::string(path));
                        });
                    });
    const auto names = route_names();
    EXPECT_EQ(documented, std::set<std::string>(names.begin(), names.end()));
}

TEST_F(Serve, parameters_are_those_of_the_document) {
    const std::string_view shared =
        member_of(member_of(openapi_json(), "components"), "parameters");
    for (const Route& route : routes()) {
        std::string method;
        for (const char c : route.method) method.push_back(static_cast<char>(c - 'A' + 'a'));
        const std::string_view operation =
            member_of(member_of(member_of(openapi_json(), "paths"), route.pattern), method);
        std::set<std::string> documented;
        const std::string_view list = member_of(operation, "parameters");
        for (std::size_t at = list.find('{'); at != std::string_view::npos;) {
            const std::size_t end = end_of_value(list, at);
            std::string_view each = list.substr(at, end - at);
            if (const std::string_view ref = member_of(each, "$ref"); !ref.empty()) {
                const std::size_t slash = ref.rfind('/');
                each = member_of(shared, ref.substr(slash + 1, ref.size() - slash - 2));
            }
            const std::string_view name = member_of(each, "name");
            if (member_of(each, "in") == "\"query\"") {
                documented.insert(std::string(name.substr(1, name.size() - 2)));
            }
            at = list.find('{', end);
        }
        std::set<std::string> served;
        for (const std::string_view name : split(route.parameters, ' ')) {
            if (!name.empty()) served.insert(std::string(name));
        }
        EXPECT_EQ(documented, served) << route.method << " " << route.pattern;
    }
}

TEST_F(Serve, describes_itself) {
    const Got got = get("/openapi.json");
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.at("openapi"), "3.1.0");
    const Got health = get("/v1/health");
    EXPECT_EQ(health.at("version"), "0.1.0");
    backend.health_now.disk_full = true;
    EXPECT_EQ(get("/v1/health").at("status"), "degraded");
}

}  // namespace
}  // namespace muster::rest
