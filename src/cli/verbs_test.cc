// Whole commands against a server with recorded answers: output forms, exit codes, errors.
#include <gtest/gtest.h>

#include "cli/test_cluster.h"

namespace muster::cli::test {
namespace {

constexpr const char* kJobs = R"({"items":[
{"id":"12","name":"大模型预训练","user":"wei","state":"running","held":false,"nodes":3,"gpus":24,"run_ms":252000,"wait_ms":900,"node_names":["n1","n2","n4"],"progress":{"step":412,"total":800,"fraction":0.515,"metrics":{"loss":0.31}},"reason":null,"queue":"prod"},
{"id":"11","name":"eval","user":"ana","state":"pending","held":false,"nodes":1,"gpus":0,"run_ms":0,"wait_ms":65000,"node_names":[],"progress":null,"reason":"3 of 4 nodes are busy","queue":"prod"},
{"id":"9_3","name":"lr, sweep","user":"ana","state":"pending","held":true,"nodes":1,"gpus":1,"run_ms":0,"wait_ms":3000,"node_names":[],"progress":null,"reason":"held","queue":"prod"}],
"next_cursor":null,"revision":"1-7"})";

constexpr const char* kRows = R"({"fields":["id"],"rows":[
["12","大模型预训练","wei","running",false,3,24,252000,900,["n1","n2","n4"],{"step":412,"total":800,"fraction":0.515,"metrics":{"loss":0.31}},null],
["11","eval","ana","pending",false,1,0,0,65000,[],null,"3 of 4 nodes are busy"],
["9_3","lr, sweep","ana","pending",true,1,1,0,3000,[],null,"held"]],
"next_cursor":null,"revision":"1-7"})";

class Ps : public testing::Test {
protected:
    Ps() {
        cluster.handle("GET /v1/jobs", [](const net::HttpRequest& request, const auto& responder) {
            const std::string* layout = request.query_value("layout");
            responder.answer({.body = layout != nullptr && *layout == "rows" ? kRows : kJobs});
        });
    }
    Cluster cluster;
};

TEST_F(Ps, table_piped_is_whole_and_aligned) {
    const Ran ran = cluster.run({"ps"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out,
              "JOB  NAME          USER  STATE      NODES  GPUS   TIME  WHERE/WHY\n"
              "12   大模型预训练  wei   R running      3    24  4m12s  51% n[1-2,4]\n"
              "11   eval          ana   P pending      1     -  1m05s  3 of 4 nodes are busy\n"
              "9_3  lr, sweep     ana   H held         1     1   3.0s  held\n");
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(cluster.asked().front(),
              "GET /v1/jobs?fields=id%2Cname%2Cuser%2Cstate%2Cheld%2Cnodes%2Cgpus%2Crun_ms%2C"
              "wait_ms%2Cnode_names%2Cprogress%2Creason&layout=rows&limit=100000");
}

TEST_F(Ps, fits_a_terminal) {
    cluster.world().out_tty = true;
    cluster.world().columns = 60;
    cluster.world().environment["NO_COLOR"] = "1";
    EXPECT_EQ(cluster.run({"ps"}).out,
              "JOB  NAME      USER  STATE      NODES  GPUS   TIME  WHERE/W…\n"
              "12   大模型…   wei   R running      3    24  4m12s  51% n[1…\n"
              "11   eval      ana   P pending      1     -  1m05s  3 of 4 …\n"
              "9_3  lr, swe…  ana   H held         1     1   3.0s  held\n");
}

struct FormRow {
    const char* name;
    std::vector<std::string> flags;
    std::string want;
    friend void PrintTo(const FormRow& row, std::ostream* out) { *out << row.name; }
};
class Forms : public Ps, public testing::WithParamInterface<FormRow> {};
TEST_P(Forms, of_output) {
    std::vector<std::string> words{"ps"};
    words.insert(words.end(), GetParam().flags.begin(), GetParam().flags.end());
    const Ran ran = cluster.run(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Forms,
    testing::Values(
        FormRow{"name", {"-o", "name"}, "12\n11\n9_3\n"}, FormRow{"quiet", {"-q"}, "12\n11\n9_3\n"},
        FormRow{"json passes bytes through", {"-ojson"}, std::string(kJobs) + "\n"},
        FormRow{"custom",
                {"-o", "custom=id,name,progress.step"},
                "ID   NAME          PROGRESS.STEP\n12   大模型预训练  412\n11   eval          -\n"
                "9_3  lr, sweep     -\n"},
        FormRow{"custom with heads, kubectl's way",
                {"-o", "custom=J:.id,S:.state", "--sort=id"},
                "J    S\n11   pending\n12   running\n9_3  pending\n"},
        FormRow{"no headers", {"--no-headers", "-o", "custom=id"}, "12\n11\n9_3\n"},
        FormRow{"jsonpath", {"-o", "jsonpath={.items[*].id}"}, "12 11 9_3\n"},
        FormRow{"sort, largest first",
                {"-o", "custom=id", "--no-headers", "--sort", "-gpus"},
                "12\n9_3\n11\n"},
        FormRow{"sort by a column", {"-q", "--sort", "USER"}, "11\n9_3\n12\n"}));

TEST_F(Ps, csv_and_ndjson_and_yaml) {
    const Ran csv = cluster.run({"ps", "-o", "csv"});
    EXPECT_TRUE(csv.out.starts_with("id,name,user,queue,state,")) << csv.out;
    EXPECT_NE(csv.out.find("9_3,\"lr, sweep\",ana,prod,pending,"), std::string::npos) << csv.out;
    const Ran lines = cluster.run({"ps", "-o", "ndjson"});
    EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 3);
    EXPECT_TRUE(lines.out.starts_with("{\"id\":\"12\"")) << lines.out;
    const Ran yaml = cluster.run({"ps", "-o", "yaml"});
    EXPECT_TRUE(yaml.out.starts_with("items:\n  - id: \"12\"\n    name: 大模型预训练\n"))
        << yaml.out;
}

TEST_F(Ps, colour_only_where_it_is_wanted) {
    EXPECT_EQ(cluster.run({"ps"}).out.find('\x1b'), std::string::npos);
    EXPECT_NE(cluster.run({"ps", "--color=always"}).out.find("\x1b[32mR running\x1b[0m"),
              std::string::npos);
    cluster.world().out_tty = true;
    EXPECT_NE(cluster.run({"ps"}).out.find('\x1b'), std::string::npos);
    EXPECT_EQ(cluster.run({"ps", "--color", "never"}).out.find('\x1b'), std::string::npos);
    cluster.world().environment["NO_COLOR"] = "1";
    EXPECT_EQ(cluster.run({"ps"}).out.find('\x1b'), std::string::npos);
    cluster.world().environment.erase("NO_COLOR");
    cluster.world().environment["TERM"] = "dumb";
    EXPECT_EQ(cluster.run({"ps"}).out.find('\x1b'), std::string::npos);
    cluster.world().out_tty = false;
    cluster.world().environment["CLICOLOR_FORCE"] = "1";
    EXPECT_NE(cluster.run({"ps"}).out.find('\x1b'), std::string::npos);
}

TEST_F(Ps, filters_become_the_query) {
    cluster.run(
        {"ps", "12", "--user", "wei", "--label", "a=b", "--label", "c", "-a", "-o", "name"});
    EXPECT_EQ(cluster.asked().front(),
              "GET /v1/jobs?user=wei&label=a%3Db&label=c&all=1&id=12&fields=id&limit=100000");
}

std::string problem(int status, const std::string& code, const std::string& detail) {
    return R"({"type":"about:blank","title":"T","status":)" + std::to_string(status) +
           R"(,"detail":")" + detail + R"(","code":")" + code +
           R"(","cause":"because","fix":"do this","request_id":"r1"})";
}

struct ExitRow {
    const char* name;
    int status;
    const char* code;
    int exit;
    friend void PrintTo(const ExitRow& row, std::ostream* out) { *out << row.name; }
};
class Exits : public testing::TestWithParam<ExitRow> {};
TEST_P(Exits, code_of) {
    Cluster cluster;
    cluster.answer("GET /v1/jobs/7/why", problem(GetParam().status, GetParam().code, "what"),
                   GetParam().status);
    const Ran ran = cluster.run({"why", "7"});
    EXPECT_EQ(ran.code, GetParam().exit) << ran.err;
    const std::string code = GetParam().code;
    EXPECT_EQ(ran.err, "error: what\n  cause: because\n  fix: do this\n  code: " + code +
                           " (muster explain " + code + ")\n");
    EXPECT_EQ(ran.out, "");
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Exits,
    testing::Values(ExitRow{"damaged", 500, "E9004", 1}, ExitRow{"not found", 404, "E3001", 3},
                    ExitRow{"not signed in", 401, "E2001", 4},
                    ExitRow{"not allowed", 403, "E2004", 4}, ExitRow{"conflict", 409, "E3002", 5},
                    ExitRow{"precondition", 412, "E3004", 5},
                    ExitRow{"validation", 422, "E1200", 6}, ExitRow{"quota", 429, "E1204", 6},
                    ExitRow{"disk full", 507, "E9002", 7}));

TEST(Errors, nobody_there) {
    Cluster cluster;
    cluster.world().environment["MUSTER_SOCKET_PATH"] = cluster.folder().path() + "/none.sock";
    const Ran ran = cluster.run({"ps"});
    EXPECT_EQ(ran.code, 7);
    EXPECT_EQ(ran.err, "error: no controller here\n  cause: there is no socket at " +
                           cluster.folder().path() +
                           "/none.sock\n  fix: start one with `muster up`, or use one elsewhere: "
                           "`muster login URL`\n  code: E9101 (muster explain E9101)\n");
}

struct UsageRow {
    const char* name;
    std::vector<std::string> words;
    std::string want;
    friend void PrintTo(const UsageRow& row, std::ostream* out) { *out << row.name; }
};
class Usage : public testing::TestWithParam<UsageRow> {};
TEST_P(Usage, is_refused_with_a_hint) {
    Cluster cluster;
    const Ran ran = cluster.run(GetParam().words);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(ran.err.starts_with(GetParam().want)) << ran.err;
    EXPECT_TRUE(cluster.asked().empty());
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Usage,
    testing::Values(
        UsageRow{"verb", {"pss"}, "error: muster pss: unknown command; did you mean ps?\n"},
        UsageRow{
            "group", {"node"}, "error: muster node: say what to do\n  cause: it knows drain, "},
        UsageRow{"word of a group",
                 {"node", "drian", "n1"},
                 "error: muster node drian: unknown command; did you mean drain?\n"},
        UsageRow{"flag",
                 {"run", "--gpuz", "8"},
                 "error: --gpuz: unknown flag of `muster run`; did you mean --gpus?\n"},
        UsageRow{"value missing", {"ps", "--user"}, "error: --user needs a value\n"},
        UsageRow{"switch with a value",
                 {"ps", "--all=yes"},
                 "error: --all takes no value, but got 'yes'\n"},
        UsageRow{"choice",
                 {"ps", "--color", "alwyas"},
                 "error: --color: 'alwyas' is not one of its values; did you mean always?\n"},
        UsageRow{"form",
                 {"ps", "-o", "jsn"},
                 "error: --output: 'jsn' is not one of its values; did you mean json?\n"},
        UsageRow{"argument missing", {"why"}, "error: muster why: JOB is missing\n  fix: usage: "},
        UsageRow{"one too many",
                 {"attach", "1", "2"},
                 "error: muster attach: '2' is one word too many\n"},
        UsageRow{"command missing", {"exec", "1"}, "error: muster exec: the COMMAND is missing\n"},
        UsageRow{"no command wanted",
                 {"ps", "--", "x"},
                 "error: muster ps: nothing can stand after --\n"},
        UsageRow{"twice",
                 {"logs", "1", "--tail", "5", "--tail", "6"},
                 "error: --tail is given twice, with different values\n"}));

TEST(Cancel, names_filters_and_dry_run) {
    Cluster cluster;
    cluster.answer("POST /v1/jobs/7/cancel",
                   R"({"id":"7","state":"stopping","warnings":[],"revision":"1-8"})");
    cluster.answer("POST /v1/jobs/8/cancel", problem(409, "E3002", "job 8 has ended"), 409);
    const Ran ran = cluster.run({"cancel", "7", "8", "--reason", "no longer needed"});
    EXPECT_EQ(ran.code, 5);
    EXPECT_EQ(ran.out, "job 7 cancelled (stopping)\n");
    const net::HttpRequest first = cluster.requests().front();
    EXPECT_EQ(first.body, R"({"reason":"no longer needed"})");
    EXPECT_EQ(first.header("idempotency-key").size(), 32u);
    EXPECT_EQ(cluster.run({"cancel", "7", "--dry-run"}).out, "would cancel job 7\n");
    EXPECT_EQ(cluster.run({"cancel"}).code, 2);
    cluster.answer("GET /v1/jobs", R"({"items":[{"id":"7"},{"id":"8"}],"next_cursor":null})");
    // Several at once by a filter are asked for, and without a terminal refused.
    const Ran many = cluster.run({"cancel", "--user", "me"});
    EXPECT_EQ(many.code, 2);
    EXPECT_NE(many.err.find("--yes; nothing was done"), std::string::npos) << many.err;
}

TEST(Wait, gives_the_jobs_own_code) {
    Cluster cluster;
    const auto ended = [&](const std::string& job) {
        cluster.answer("GET /v1/jobs/7/wait", R"({"reached":true,"ended":true,"job":)" + job + "}");
        return cluster.run({"wait", "7", "-q"}).code;
    };
    EXPECT_EQ(ended(R"({"id":"7","state":"succeeded","exit_code":0})"), 0);
    EXPECT_EQ(ended(R"({"id":"7","state":"failed","cause":"user-error","exit_code":3})"), 3);
    EXPECT_EQ(
        ended(R"({"id":"7","state":"failed","exit_code":null,"signal":9,"message":"killed by signal 9"})"),
        137);
    EXPECT_EQ(ended(R"({"id":"7","state":"cancelled","exit_code":null})"), 1);
}

TEST(Why, numbers_in_words) {
    Cluster cluster;
    cluster.answer("GET /v1/jobs/12/why", R"({"id":"12","name":"llama-sft","state":"pending",
      "queue":"prod","priority":50,"wants":"4 nodes x 8 h100 per node","waiting_ms":42000,"reason":{
      "code":"not-enough-free","number":"E4004","text":"2 of 4 nodes have 8 free h100","fix":"wait",
      "counts":{"nodes_wanted":4,"nodes_total":160,"nodes_unusable":8,"nodes_unfit":12,"nodes_busy":138,
      "nodes_fit":2,"devices_wanted":32,"devices_free":40,"devices_total":1184,"ahead":2},
      "behind":null,"expected_start":"2026-12-01T14:20:00.000Z"}})");
    EXPECT_EQ(cluster.run({"why", "12"}).out,
              R"(Job 12 llama-sft · wants 4 nodes x 8 h100 per node · queue prod · pending 42.0s
  reason      2 of 4 nodes have 8 free h100
  position    2 jobs ahead; priority 50
  needs       4 nodes, 32 devices
  cluster     160 nodes · 2 fit now · 138 busy (would fit when empty) · 12 unfit (wrong kind or labels, or too small) · 8 not usable (lost, suspect or held back)
  devices     40 free of 1,184 that would do
  starts      about 14:20:00, from running jobs' time limits
  do          wait
  code        E4004 (muster explain E4004)
)");
}

TEST(Why, says_nothing_twice) {
    struct Row {
        const char* reason;
        const char* lines;
    };
    for (const Row& each : {
             Row{R"("code":"held","number":"E4007","text":"held by wei","hold_owner":"user")",
                 "  reason      held by wei\n  do          fix\n"},
             Row{R"("code":"dependency","number":"E4008","text":"waits for job 5","behind":"5",
                 "waiting_for":["5"])",
                 "  reason      waits for job 5\n  do          fix\n"},
             Row{R"("code":"not-eligible","number":"E4006","text":"not before 08:10",
                 "eligible":"2026-12-01T08:10:00.000Z","expected_start":"2026-12-01T08:10:00.000Z")",
                 "  reason      not before 08:10\n"
                 "  starts      in 10m00s, at 08:10:00, if there is room\n  do          fix\n"},
         }) {
        Cluster cluster;
        cluster.answer("GET /v1/jobs/12/why",
                       R"({"id":"12","name":"x","state":"pending","queue":"q","priority":50,
                       "wants":"1 node","waiting_ms":1000,"reason":{"fix":"fix",)" +
                           std::string(each.reason) + "}}");
        const std::string out = cluster.run({"why", "12"}).out;
        EXPECT_NE(out.find("pending 1.0s\n" + std::string(each.lines)), std::string::npos) << out;
    }
}

TEST(Token, secret_on_stdout_alone) {
    Cluster cluster;
    cluster.answer(
        "POST /v1/tokens",
        R"({"id":3,"kind":"join","token":"MJ1.abc","expires":"2026-12-02T08:00:00.000Z","revision":"1-9"})",
        201);
    const Ran ran = cluster.run({"token", "create", "--join", "--uses", "4"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "MJ1.abc\n");
    EXPECT_EQ(cluster.requests().front().body, R"({"kind":"join","uses":4})");
    EXPECT_EQ(cluster.run({"token", "create", "--join", "-q"}).err, "");
}

TEST(Api, passes_everything_through) {
    Cluster cluster;
    cluster.answer("GET /v1/version", R"({"version":"0.1.0","api":"v1"})");
    EXPECT_EQ(cluster.run({"api", "GET", "/v1/version"}).out,
              "{\"version\":\"0.1.0\",\"api\":\"v1\"}\n");
    EXPECT_EQ(cluster.run({"api", "get", "/v1/none"}).code, 3);
    EXPECT_EQ(cluster.run({"api", "GET", "v1/none"}).code, 2);
}

TEST(Nodes, table_and_confirmation) {
    Cluster cluster;
    cluster.answer("GET /v1/nodes",
                   R"({"items":[{"name":"n1","state":"ready","gpus":8,"gpus_used":3,
      "gpu_kinds":"h100:8","cpus":64,"cpus_used":12.5,"memory_bytes":1099511627776,
      "memory_used_bytes":68719476736,"jobs":["12","14"],"reason":null,"limits_enforced":true},
      {"name":"n2","state":"lost","gpus":0,"gpus_used":0,"gpu_kinds":"","cpus":2,"cpus_used":0,
      "memory_bytes":8589934592,"memory_used_bytes":0,"jobs":[],"reason":"silent for 31 s",
      "limits_enforced":false}],"next_cursor":null,"revision":"1-1"})");
    EXPECT_EQ(cluster.run({"nodes"}).out,
              "NODE  STATE    GPUS  KIND       CPUS      MEMORY  JOBS   NOTE\n"
              "n1    R ready   3/8  h100:8  12.5/64  64GiB/1TiB  12,14  -\n"
              "n2    L lost      -  -           0/2     0B/8GiB  -      silent for 31 s\n");
    EXPECT_EQ(cluster.run({"node", "fenced", "n2"}).code, 2);
    cluster.answer("POST /v1/nodes/n2/fenced",
                   R"({"name":"n2","state":"lost","warnings":[],"revision":"1-2"})");
    EXPECT_EQ(cluster.run({"node", "fenced", "n2", "-y"}).out, "node n2 confirmed off: lost\n");
    cluster.answer("POST /v1/nodes/n1/drain", R"({"name":"n1","state":"draining","warnings":[]})");
    EXPECT_EQ(cluster.run({"node", "drain", "n1"}).out, "node n1 draining\n");
}

TEST(Doctor, tells_problem_and_remedy) {
    Cluster cluster;
    cluster.answer(
        "GET /v1/health",
        R"({"status":"ok","problems":[],"version":"0.0.9","disk_full":false,"state_dir":"/s"})");
    cluster.answer("GET /v1/whoami", R"({"user":"wei","admin":false,"by":"unix-socket"})");
    cluster.answer("GET /v1/cluster", R"({"at":"2026-12-01T08:01:00.000Z","frozen":false})");
    cluster.answer("GET /v1/nodes", R"({"items":[]})");
    const Ran ran = cluster.run({"doctor"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.out.find("warning  clock          the controller's clock is 1m00s ahead"),
              std::string::npos)
        << ran.out;
    EXPECT_NE(ran.out.find("warning  versions"), std::string::npos);
    EXPECT_NE(ran.out.find("problem  nodes          no node has joined"), std::string::npos);
}

}  // namespace
}  // namespace muster::cli::test
