// why in full, what if, plan, queues, reserve, and the topology of a job.
#include <gtest/gtest.h>

#include "cli/test_cluster.h"

namespace muster::cli::test {
namespace {

constexpr const char* kExplained = R"({"position":3,"queued":17,"priority":52,"queue_share":0.82,
  "user_share":0.1,"blocked":[{"text":"first"},{"text":"its queue is at its limit"}],
  "holders":[{"job":"4","name":"x","user":"ana","nodes":2,"devices":16,
              "end":"2026-12-01T09:00:00.000Z"},
             {"job":"5","name":"y","user":"bo","nodes":1,"devices":0,"end":null}],
  "closest":{"level":"leaf","path":["a","l3"],"nodes_fit":3,"nodes_wanted":4},
  "expected_start":"2026-12-01T14:20:00.000Z","earliest":"2026-12-01T14:00:00.000Z",
  "latest":"2026-12-01T15:10:00.000Z",
  "sooner":[{"field":"topology.required","value":"none","start":null},
            {"field":"gpus","value":"a100:8","start":"2026-12-01T09:00:00.000Z"}],
  "nodes_out":[{"node":"n9","state":"drained","reason":"fan"}]})";
constexpr const char* kReason = R"({"code":"topology","number":"E4019","text":"in no leaf",
  "fix":"wait","counts":{"nodes_wanted":4,"nodes_total":9,"nodes_unusable":1,"nodes_busy":2,
  "nodes_fit":6,"devices_wanted":32,"devices_free":40,"devices_total":64},"behind":null,
  "expected_start":null})";

TEST(Why, tells_everything) {
    Cluster cluster;
    cluster.answer("GET /v1/jobs/12/why",
                   R"({"id":"12","name":"sft","state":"pending","queue":"prod","priority":50,
      "wants":"4 nodes x 8 h100","waiting_ms":42000,"note":null,"reason":)" +
                       std::string(kReason) + R"(,"explanation":)" + kExplained + "}");
    EXPECT_EQ(cluster.run({"why", "12"}).out,
              R"(Job 12 sft · wants 4 nodes x 8 h100 · queue prod · pending 42.0s
  reason      in no leaf
  position    3 of 17 in prod; priority 52, share of the queue 0.82, of its user 0.1
  needs       4 nodes, 32 devices
  cluster     9 nodes · 6 fit now · 2 busy (would fit when empty) · 1 not usable (lost, suspect or held back)
  devices     40 free of 64 that would do
  out         n9 drained (fan)
  also        its queue is at its limit
  held by     job 4 ana 2 nodes, 16 devices, until 09:00:00 · job 5 bo 1 node, end unknown
  closest     leaf a/l3: 3 of 4 nodes fit
  starts      about 14:20:00, between 14:00:00 and 15:10:00
  sooner if   topology.required: none → now · gpus: a100:8 → 09:00:00
  do          wait
  code        E4019 (muster explain E4019)
)");
}

TEST(Why, what_if) {
    Cluster cluster;
    cluster.answer("GET /v1/jobs/12/why", R"({"wants":"2 nodes","forecast":{"starts_now":true,
      "could_run":true,"slots":[{"node":"n1","group":0,"spare":false},
      {"node":"n2","group":0,"spare":false},{"node":"n3","group":0,"spare":true}],"preempts":[],
      "why":null,"explanation":null}})");
    EXPECT_EQ(cluster.run({"why", "12", "--if", "nodes=2", "--if", "time=1h"}).out,
              "Job 12 with nodes=2, time=1h · wants 2 nodes\n  starts      now\n"
              "  nodes       n[1-2]\n  spares      n3\n");
    EXPECT_EQ(cluster.asked().front(), "GET /v1/jobs/12/why?if=nodes%3D2&if=time%3D1h");
}

TEST(Plan, tells_where_when_and_whom_it_would_stop) {
    Cluster cluster;
    const auto answer = [&](const std::string& forecast) {
        cluster.answer("POST /v1/plan", R"({"wants":"1 node","forecast":)" + forecast + "}");
        return cluster.run({"plan", "--nodes", "4", "--", "true"});
    };
    const Ran stops = answer(
        R"({"starts_now":false,"could_run":true,"slots":[],"why":)" + std::string(kReason) +
        R"(,"preempts":[{"job":"7","name":"low","user":"bo","reason":"reclaim"}],"explanation":)" +
        kExplained + "}");
    EXPECT_EQ(stops.code, 0) << stops.err;
    EXPECT_TRUE(stops.out.starts_with(
        "Plan of true · wants 1 node\n  starts      after 1 job made room for it\n"
        "  preempts    job 7 low of bo (reclaim)\n  reason      in no leaf\n"))
        << stops.out;
    EXPECT_NE(cluster.requests().front().body.find(R"("nodes":4)"), std::string::npos);
    const Ran never = answer(R"({"starts_now":false,"could_run":false,"slots":[],"preempts":[],
        "why":{"text":"too big","fix":"ask for less","counts":null},"explanation":null})");
    EXPECT_EQ(never.code, 8);
    EXPECT_EQ(never.out,
              "Plan of true · wants 1 node\n  starts      never, as the cluster is\n"
              "  reason      too big\n  do          ask for less\n");
    const std::string file = cluster.folder().file("job.yaml", "nodez: 4\nrun: x\n");
    const Ran wrong = cluster.run({"plan", "-f", file});
    EXPECT_EQ(wrong.code, 6);
    EXPECT_NE(wrong.err.find("did you mean nodes?"), std::string::npos) << wrong.err;
}

constexpr const char* kQueue = R"({"name":"research/nlp","policy":"fair","weight":2,
  "preemptible":true,"share":0.125,"position":1,"running":3,"pending":1200,"lines":[
  {"resource":"gpus","guarantee":64,"used":96,"borrowed":32,"lent":0,"limit":128},
  {"resource":"cpus","guarantee":0,"used":12.5,"borrowed":12.5,"lent":0,"limit":null},
  {"resource":"memory","guarantee":0,"used":1073741824,"borrowed":0,"lent":0,"limit":null}],
  "below":["research/nlp/a"],"next":{"job":"12","name":"大模型","user":"wei","wants":"4 nodes",
  "waiting_ms":60000},"yaml":"queues: {}\n","revision":"1-2"})";

TEST(Queues, show_is_one_screen_of_eighty_columns) {
    Cluster cluster;
    cluster.answer("GET /v1/queues/research/nlp", kQueue);
    const Ran ran = cluster.run({"queues", "show", "research/nlp"});
    EXPECT_EQ(ran.out, R"(Queue research/nlp · policy fair · weight 2 · 3 running · 1,200 pending
  share       0.125; number 1 to be served of the queues beside it
  next        job 12 大模型 of wei: 4 nodes, waiting 1m00s
  below       research/nlp/a

RESOURCE  GUARANTEE  USED  BORROWED  LENT  LIMIT
gpus             64    96        32     0    128
cpus              0  12.5      12.5     0      -
memory           0B  1GiB        0B    0B      -
)") << ran.err;
    EXPECT_EQ(cluster.asked().front(), "GET /v1/queues/research%2Fnlp");
    EXPECT_EQ(cluster.run({"queues", "show", "research/nlp", "-o", "yaml"}).out, "queues: {}\n");
    cluster.answer("GET /v1/queues", R"({"items":[],"yaml":"rules: {}\n","revision":"1-2"})");
    EXPECT_EQ(cluster.run({"queues", "show", "-o", "yaml"}).out, "rules: {}\n");
}

TEST(Queues, apply_asks_before_it_drops) {
    Cluster cluster;
    const std::string file = cluster.folder().file("q.yaml", "queues: {a: {weight: 2}}\n");
    const auto changes = [](bool dry, const std::string& list) {
        return R"({"dry_run":)" + std::string(dry ? "true" : "false") + R"(,"changes":[)" + list +
               R"(],"rules":false,"revision":"1-2"})";
    };
    cluster.answer("PATCH /v1/queues", changes(false, R"({"queue":"a","change":"made"})"));
    EXPECT_EQ(cluster.run({"queues", "apply", "-f", file}).out, "queue a made\n");
    EXPECT_EQ(cluster.requests().front().header("content-type"), "application/yaml");
    cluster.answer("PATCH /v1/queues", changes(true, R"({"queue":"a","change":"made"})"));
    EXPECT_EQ(cluster.run({"queues", "apply", "-f", file, "--dry-run"}).out,
              "queue a would be made\n");
    EXPECT_EQ(cluster.asked().back(), "PATCH /v1/queues?dry_run=1");
    cluster.answer("PUT /v1/queues", changes(false, R"({"queue":"b","change":"dropped"})"));
    const Ran refused = cluster.run({"queues", "apply", "-f", file, "--prune"});
    EXPECT_EQ(refused.code, 2) << "nobody to ask";
    EXPECT_EQ(cluster.asked().back(), "PUT /v1/queues?dry_run=1");
    EXPECT_EQ(cluster.run({"queues", "apply", "-f", file, "--prune", "-y"}).out,
              "queue b dropped\n");
    const Ran wrong = cluster.run(
        {"queues", "apply", "-f", cluster.folder().file("w.yaml", "queues: {a: {wait: 2}}\n")});
    EXPECT_EQ(wrong.code, 6);
    EXPECT_NE(wrong.err.find("w.yaml:1:"), std::string::npos) << wrong.err;
    EXPECT_EQ(cluster.run({"queues", "apply"}).code, 2);
}

TEST(Queues, set_sends_what_was_typed) {
    Cluster cluster;
    cluster.answer("PATCH /v1/queues/a",
                   R"({"dry_run":false,"changes":[{"queue":"a","change":"changed"}],
                       "rules":false,"revision":"1-2"})");
    EXPECT_EQ(cluster.run({"queues", "set", "a", "weight=2", "limit.gpus=64"}).out,
              "queue a changed\n");
    EXPECT_EQ(cluster.requests().front().body, R"({"set":["weight=2","limit.gpus=64"]})");
    EXPECT_EQ(cluster.run({"queues", "set", "a"}).code, 2);
}

constexpr const char* kReservation = R"({"name":"course","reason":"teaching","maintenance":false,
  "active":false,"nodes":["n1","n2"],"users":["ana"],"queues":["prod"],
  "start":"2026-12-01T09:00:00.000Z","end":"2026-12-01T11:00:00.000Z","every":"day","zone":"UTC",
  "until":null,"created_by":"root"})";

TEST(Reserve, make_list_and_drop) {
    Cluster cluster;
    cluster.answer("POST /v1/reservations", kReservation, 201);
    const Ran made = cluster.run({"reserve", "course", "--count", "2", "--users", "ana", "--start",
                                  "now+1h", "--for", "2h", "--every", "day"});
    EXPECT_EQ(made.out, "reservation course: n[1-2], 09:00:00 to 11:00:00, every day\n")
        << made.err;
    EXPECT_EQ(cluster.requests().front().body,
              R"({"name":"course","count":"2","users":"ana","start":"now+1h","for":"2h",)"
              R"("every":"day"})");
    cluster.answer("GET /v1/reservations", R"({"items":[)" + std::string(kReservation) + "]}");
    EXPECT_EQ(cluster.run({"reserve", "list"}).out,
              "NAME    WINDOW                EVERY  COUNT  FOR             NODES\n"
              "course  09:00:00 to 11:00:00  day        2  ana,queue prod  n[1-2]\n");
    cluster.answer("DELETE /v1/reservations/course", "", 204);
    EXPECT_EQ(cluster.run({"reserve", "delete", "course"}).code, 2) << "nobody to ask";
    EXPECT_EQ(cluster.run({"reserve", "delete", "course", "-y"}).out,
              "reservation course dropped\n");
}

TEST(Status, shows_the_topology_as_a_tree) {
    Cluster cluster;
    cluster.answer("GET /v1/jobs/12", R"({"id":"12","name":"x","user":"wei","queue":"q",
      "state":"running","priority":50,"node_names":["n1","n2","n3"],"attempts":[],"ranks":[],
      "allocation":{"attempt":1,"levels":["zone","leaf"],"slots":[
      {"rank":0,"node":"n1","path":["a","l1"],"spare":false},
      {"rank":1,"node":"n3","path":["a","l2"],"spare":false},
      {"rank":2,"node":"n1","path":["a","l1"],"spare":false},
      {"rank":3,"node":"n2","path":["a",""],"spare":true}]}})");
    const std::string out = cluster.run({"status", "12", "--topology"}).out;
    EXPECT_NE(out.find("Topology\n  zone a\n    leaf l1\n      n1: rank 0, rank 2\n"
                       "    leaf l2\n      n3: rank 1\n    leaf (none)\n      n2: spare\n"),
              std::string::npos)
        << out;
    EXPECT_EQ(cluster.run({"status", "12"}).out.find("Topology"), std::string::npos);
}

}  // namespace
}  // namespace muster::cli::test
