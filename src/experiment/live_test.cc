// The copy of a running cluster, against answers of the API's shape.
#include "experiment/live.h"

#include <regex>

#include <gtest/gtest.h>

#include "cli/test_cluster.h"
#include "experiment/simulate.h"

namespace muster::experiment {
namespace {

std::string node(const std::string& name, bool usable) {
    std::string devices;
    for (int i = 0; i < 2; ++i)
        devices += std::string(i > 0 ? "," : "") + R"({"id":")" + name + std::to_string(i) +
                   R"(","kind":"h100","class":"gpu","vendor":"nvidia","memory_bytes":85899345920,)"
                   R"("numa":null,"link_group":"","healthy":)" +
                   (i == 0 ? "true" : "false") + "}";
    return R"({"name":")" + name + R"(","usable":)" + (usable ? "true" : "false") +
           R"(,"cpus":63.5,"memory_bytes":1073741824,"disk_bytes":5,"domain":"s1/l2",)" +
           R"("labels":{"b":"2","a":"1"},"limits_enforced":true,"devices":[)" + devices + "]}";
}

class Live : public testing::Test {
protected:
    void SetUp() override {
        cluster_.answer("GET /v1/cluster", R"({"levels":["spine","leaf"]})");
        cluster_.handle(
            "GET /v1/nodes", [](const net::HttpRequest& request, net::Responder responder) {
                const bool second = request.target.find("cursor=c1") != std::string::npos;
                const std::string first = node("n1", true) + "," + node("n2", false);
                net::HttpResponse response;
                response.body = R"({"items":[)" + (second ? node("n3", true) : first) +
                                R"(],"next_cursor":)" + (second ? "null}" : "\"c1\"}");
                responder.answer(std::move(response));
            });
        cluster_.answer("GET /v1/queues",
                        R"({"items":[],"yaml":"queues:\n  default: {policy: fifo}\nrules: {}\n"})");
    }
    std::unique_ptr<cli::Client> client() {
        const auto config = cli::Config::load(cluster_.world(), {});
        auto made = cli::Client::make(cluster_.world(), *config, notes_);
        EXPECT_TRUE(made);
        return *std::move(made);
    }

    cli::test::Cluster cluster_;
    cli::Output notes_{-1};
};

TEST_F(Live, nodes_queues_and_topology_are_copied) {
    const auto paper = fetch_cluster(*client());
    ASSERT_TRUE(paper) << paper.error().message;
    EXPECT_EQ(paper->words, "2 nodes, 4 devices: h100 (1 more are drained or away)");
    ASSERT_EQ(paper->cluster.nodes.size(), 2u);
    const model::NodeFacts& n3 = paper->cluster.nodes[1];
    EXPECT_EQ(n3.name, "n3");
    EXPECT_EQ(n3.cpus.value, 63'500);
    EXPECT_EQ(n3.devices[0].numa, -1);
    EXPECT_FALSE(n3.devices[1].healthy);
    EXPECT_EQ(n3.labels.front().first, "a");
    const std::vector<std::string> levels = {"spine", "leaf"}, path = {"s1", "l2"};
    EXPECT_EQ(paper->cluster.topology.levels, levels);
    EXPECT_EQ(paper->cluster.topology.hosts.at("n3"), path);
    ASSERT_EQ(paper->cluster.queues.size(), 1u);
    EXPECT_EQ(paper->cluster.queues[0].settings.policy, model::QueuePolicy::Fifo);
}

TEST_F(Live, an_answer_of_another_version_is_refused) {
    cluster_.answer("GET /v1/cluster", R"({"nodes":{}})");
    const auto paper = fetch_cluster(*client());
    ASSERT_FALSE(paper);
    EXPECT_NE(paper.error().message.find("no domain for each level"), std::string::npos)
        << paper.error().message;
}

TEST_F(Live, tune_takes_the_history) {
    std::string items;
    for (int i = 0; i < 40; ++i)
        items += std::string(i > 0 ? "," : "") + R"({"id":")" + std::to_string(40 - i) +
                 R"(","state":"succeeded","submitted":"2026-12-01T0)" + std::to_string(i / 10) +
                 R"(:00:00Z","started":"2026-12-01T04:00:00Z","run_ms":60000,"lost_ms":0,)"
                 R"("nodes":1,"gpus":1,"gpus_per_node":"h100:1","queue":"default"})";
    cluster_.answer("GET /v1/jobs", R"({"items":[)" + items + R"(],"next_cursor":null})");
    cli::Output out(-1), err(-1);
    const std::vector<std::string> words = {"tune", "--history", "3d", "--goal", "utilisation"};
    EXPECT_EQ(run_verb(cluster_.world(), words, out, err), 0) << err.kept();
    EXPECT_NE(err.kept().find("40 jobs on 2 nodes, 4 devices: h100"), std::string::npos)
        << err.kept();
    bool asked = false;
    for (const std::string& line : cluster_.asked())
        asked |= line.find("/v1/jobs?") != std::string::npos &&
                 line.find("since=3d") != std::string::npos;
    EXPECT_TRUE(asked);
}

std::string job(int number, const std::string& state, const std::string& more) {
    return R"({"id":")" + std::to_string(number) + R"(","number":)" + std::to_string(number) +
           R"(,"user":"wei","queue":"default","state":")" + state +
           R"(","code":null,"priority":50,"held":false,"run_ms":60000,"array":null,)" + more + "}";
}

TEST_F(Live, running_jobs_stay_where_they_are_and_waiting_ones_come_in_their_order) {
    const std::string spec =
        R"("spec":{"name":"a","gpus":"h100:1","time":"10m","run":"x","env":{"K":"***"},)"
        R"("secrets":{"S":"***"},"depends":["1"]})";
    cluster_.answer("GET /v1/jobs", R"({"items":[)" +
                                        job(5, "pending", R"("node_names":[],)" + spec) + "," +
                                        job(4, "pending", R"("node_names":[],)" + spec) + "," +
                                        job(3, "running", R"("node_names":["n3"],)" + spec) + "," +
                                        job(2, "running", R"("node_names":["n2"],)" + spec) +
                                        R"(],"next_cursor":null})");
    const auto connection = client();
    const auto paper = fetch_cluster(*connection);
    ASSERT_TRUE(paper);
    const auto standing = fetch_jobs(*connection, paper->cluster, {1000}, seconds(5));
    ASSERT_TRUE(standing) << standing.error().message;
    EXPECT_EQ(standing->running, 1);
    EXPECT_EQ(standing->waiting, 2);
    const std::map<std::string, std::int64_t> left_out = {
        {"jobs on nodes that are drained or away", 1}};
    EXPECT_EQ(standing->left_out, left_out);
    ASSERT_EQ(standing->jobs.size(), 3u);
    const simulator::study::TraceJob& runs = standing->jobs[0];
    EXPECT_EQ(runs.name, "3");
    EXPECT_EQ(runs.submit.ms, 1000);
    EXPECT_EQ(runs.model.work_ms, 540'000) << "ten minutes less the one it has run";
    ASSERT_EQ(runs.spec.constraint.size(), 1u);
    EXPECT_EQ(runs.spec.constraint[0].values, std::vector<std::string>{"n3"});
    EXPECT_EQ(standing->jobs[1].name, "4");
    EXPECT_EQ(standing->jobs[2].name, "5");
    EXPECT_EQ(standing->jobs[1].model.work_ms, 600'000);
    EXPECT_TRUE(standing->jobs[1].spec.depends.empty() && standing->jobs[1].spec.env.empty());
}

TEST_F(Live, simulate_shows_what_more_nodes_would_do) {
    const std::string spec = R"("spec":{"name":"a","gpus":"h100:1","time":"10m","run":"x"})";
    std::string items;
    for (int number = 9; number > 1; --number)
        items += std::string(items.empty() ? "" : ",") +
                 (number < 4 ? job(number, "running",
                                   R"("node_names":["n)" + std::string(number == 2 ? "1" : "3") +
                                       R"("],)" + spec)
                             : job(number, "pending", R"("node_names":[],)" + spec));
    cluster_.answer("GET /v1/jobs", R"({"items":[)" + items + R"(],"next_cursor":null})");
    cli::Output out(-1), err(-1);
    const std::vector<std::string> words = {"simulate", "--from-live", "--add", "3x2:h100"};
    EXPECT_EQ(run_verb(cluster_.world(), words, out, err), 0) << err.kept();
    // Of two devices a node one is broken: each node runs one job, for nine minutes more.
    EXPECT_TRUE(std::regex_search(out.kept(), std::regex("\n4 +default +in 8m59s +now\n")))
        << out.kept();
    EXPECT_NE(err.kept().find("muster, seed 1: 8 succeeded"), std::string::npos) << err.kept();
    EXPECT_NE(err.kept().find("2 jobs running, 6 waiting now"), std::string::npos) << err.kept();
    EXPECT_NE(err.kept().find("changed, seed 1: 8 succeeded"), std::string::npos) << err.kept();
    cli::Output none(-1), why(-1);
    const std::vector<std::string> wrong = {"simulate", "--add", "3x2:h100"};
    EXPECT_EQ(run_verb(cluster_.world(), wrong, none, why), 6);
}

TEST_F(Live, without_history_it_says_so) {
    cluster_.answer("GET /v1/jobs", R"({"items":[],"next_cursor":null})");
    cli::Output out(-1), err(-1);
    const std::vector<std::string> words = {"tune"};
    EXPECT_EQ(run_verb(cluster_.world(), words, out, err), 3);
    EXPECT_NE(err.kept().find("no job ended within 14d"), std::string::npos) << err.kept();
}

}  // namespace
}  // namespace muster::experiment
