// Lists: filters, fields, pages, the history merged in; and the sums over jobs.
#include "rest/job_filter.h"
#include "rest/test_client.h"

namespace muster::rest {
namespace {

class List : public ApiTest {
protected:
    List() {
        backend.with_world([](core::World& world) {
            world.hello("n1");
            world.hello("n2", {}, 0);
        });
        run("name: 训练\nlabels: {team: nlp}\ngpus: 8\nrun: x");  // 1: runs.
        run("name: eval\nlabels: {team: cv}\nrun: x", 1001);      // 2: runs.
        run("name: eval-2\ngpus: 8\nrun: x");                     // 3: waits.
        run("name: held\nhold: true\nrun: x", 1001);              // 4
        run("name: done\nlabels: {kind: batch}\nrun: x");         // 5: succeeds.
        run("name: bad\nrun: x", 1001);                           // 6: fails.
        backend.with_world([](core::World& world) {
            world.plan();
            for (const std::uint64_t id : {1u, 2u, 5u, 6u}) world.run(JobId{id});
            world.end(JobId{5}, 0, model::Cause::Success);
            world.end(JobId{6}, 0, model::Cause::UserError, 2);
        });
    }
    std::string ids(const std::string& query, std::uint32_t uid = 1000) {
        const Got got = get("/v1/jobs?fields=id&layout=rows" + query, uid);
        EXPECT_EQ(got.status, 200) << got.body;
        std::string out;
        for (const char c : got.at("rows")) {
            if ((c >= '0' && c <= '9') || c == '_')
                out.push_back(c);
            else if (c == ',')
                out.push_back(' ');
        }
        return out;
    }
};

TEST_F(List, filters) {
    struct Row {
        const char* query;
        const char* want;
    };
    const Row rows[] = {
        {"", "6 5 4 3 2 1"},
        {"&state=RUNNING", "2 1"},
        {"&state=pending,running", "4 3 2 1"},
        {"&state=live", "4 3 2 1"},
        {"&state=ended", "6 5"},
        {"&state=failed", "6"},
        {"&user=me", "5 3 1"},
        {"&user=bob", "6 4 2"},
        {"&user=alice,bob&state=active", "2 1"},
        {"&user=nobody", ""},
        {"&queue=default&state=active", "2 1"},
        {"&queue=nope", ""},
        {"&name=eval", "2"},
        {"&name=eval*", "3 2"},
        {"&name=*a*", "6 3 2"},
        {"&label=team", "2 1"},
        {"&label=team=nlp", "1"},
        {"&label=team=nlp&label=other", ""},
        {"&node=n1&label=team=nlp", "1"},
        {"&node=n9", ""},
        {"&state=held", "4"},
        {"&state=held,succeeded", "5 4"},
        {"&id=2,3,9", "3 2"},
        {"&all=1", "6 5 4 3 2 1"},
    };
    for (const Row& row : rows) EXPECT_EQ(ids(row.query), row.want) << row.query;
    backend.archive();
    const Row after[] = {
        {"", "4 3 2 1"},
        {"&state=ended", "6 5"},
        {"&state=succeeded", "5"},
        {"&state=failed,running", "6 2 1"},
        {"&all=1", "6 5 4 3 2 1"},
        {"&all=1&user=bob", "6 4 2"},
        {"&all=1&name=bad", "6"},
        {"&all=1&id=6,1", "6 1"},
        {"&state=ended&since=1h", "6 5"},
        {"&state=ended&since=2040-01-01", ""},
        {"&all=1&label=kind=batch", "5"},
        {"&all=1&label=kind", "5"},
        {"&all=1&label=kind=bat", ""},
        {"&state=ended&node=n2", "6 5"},
        {"&state=ended&node=n1", ""},
        {"&state=ended&node=n", ""},
    };
    for (const Row& row : after) EXPECT_EQ(ids(row.query), row.want) << row.query;
}

TEST_F(List, pages_do_not_repeat_or_miss_though_history_takes_over) {
    std::string cursor, all;
    for (int page = 0; page < 10; ++page) {
        const Got got =
            get("/v1/jobs?all=1&fields=id&limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor));
        all += got.at("items");
        cursor = got.at("next_cursor");
        if (cursor == "null") {
            EXPECT_EQ(got.header("Link"), "");
            break;
        }
        EXPECT_NE(got.header("Link").find("cursor=" + cursor + ">; rel=\"next\""),
                  std::string::npos);
        if (page == 0) backend.archive();
    }
    EXPECT_EQ(all, R"([{"id":"6"},{"id":"5"}][{"id":"4"},{"id":"3"}][{"id":"2"},{"id":"1"}])");
}

TEST_F(List, rows_are_the_fields_asked_for_in_their_order) {
    const Got got = get("/v1/jobs?id=1&layout=rows&fields=name,id,gpus,state,exit_code");
    EXPECT_EQ(got.at("fields"), R"(["name","id","gpus","state","exit_code"])");
    EXPECT_EQ(got.at("rows"), R"([["训练","1",8,"running",null]])");
    const Got whole = get("/v1/jobs?id=3");
    EXPECT_NE(whole.body.find(R"("code":"E4004")"), std::string::npos) << whole.body;
    EXPECT_EQ(whole.body.find("\"spec\""), std::string::npos) << "not unless asked for";
}

TEST_F(List, history_rows_have_the_same_fields) {
    backend.archive();
    const Got got =
        get("/v1/jobs?state=ended&layout=rows&fields=id,user,state,cause,exit_code,code,name");
    EXPECT_EQ(got.at("rows"), R"([["6","bob","failed","user-error",2,"E5101","bad"],)"
                              R"(["5","alice","succeeded","success",0,null,"done"]])");
    EXPECT_EQ(get("/v1/jobs?all=1").status, 200);
}

TEST_F(List, sums_by_queue_user_and_cluster) {
    const Got queues = get("/v1/queues");
    EXPECT_NE(queues.body.find(R"("name":"default","pending":2,"active":2,"held":1,"gpus_used":8,)"
                               R"("gpus_pending":8)"),
              std::string::npos)
        << queues.body;
    const Got users = get("/v1/users");
    EXPECT_NE(users.body.find(R"("name":"bob","admin":false,"pending":1,"active":1)"),
              std::string::npos)
        << users.body;
    const Got cluster = get("/v1/cluster");
    EXPECT_EQ(cluster.at("nodes.ready"), "2");
    EXPECT_EQ(cluster.at("jobs.pending"), "2");
    EXPECT_EQ(cluster.at("jobs.running"), "2");
    EXPECT_EQ(cluster.at("gpus"), R"({"total":8,"free":0,"used":8,"unusable":0})");
}

TEST(Glob, matches_runs) {
    EXPECT_TRUE(glob("a*c", "abbc"));
    EXPECT_TRUE(glob("*", ""));
    EXPECT_TRUE(glob("a**b*", "ab"));
    EXPECT_FALSE(glob("a*c", "abcd"));
    EXPECT_FALSE(glob("", "a"));
    EXPECT_TRUE(glob("*ab", "aab"));
}

}  // namespace
}  // namespace muster::rest
