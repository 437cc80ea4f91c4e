// Watches and events: snapshot, changes, resumption, slow clients.
#include "rest/test_client.h"

namespace muster::rest {
namespace {

class Streams : public ApiTest {
protected:
    static std::size_t count(const std::string& text, std::string_view part) {
        std::size_t n = 0;
        for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
        return n;
    }
    static std::string last_id(const std::string& text) {
        const std::size_t at = text.rfind("id: ");
        return at == std::string::npos ? "" : text.substr(at + 4, text.find('\n', at) - at - 4);
    }
};

TEST_F(Streams, a_watch_of_jobs_begins_with_a_snapshot_and_goes_on) {
    run("name: one\nrun: x");
    run("name: two\nrun: x");
    const Ask ask{.target = "/v1/jobs?watch=1&fields=id,state,held"};
    const auto heard = open(ask);
    ASSERT_TRUE(heard->wait_text("event: bookmark"));
    EXPECT_EQ(heard->response.content_type, "text/event-stream");
    EXPECT_EQ(count(heard->so_far(), "event: snapshot"), 2u);
    EXPECT_NE(heard->so_far().find(R"({"id":"2","state":"pending","held":false})"),
              std::string::npos);
    post("/v1/jobs/1/hold");
    ASSERT_TRUE(
        heard->wait_text("event: put\ndata: {\"id\":\"1\",\"state\":\"pending\",\"held\":true}"));
    run("name: three\nrun: x");
    ASSERT_TRUE(heard->wait_text("event: put\ndata: {\"id\":\"3\""));
    post("/v1/jobs/2/cancel");
    ASSERT_TRUE(heard->wait_text(R"("cancelled")"));
    backend.archive();
    ASSERT_TRUE(heard->wait_text("event: delete\ndata: {\"id\":\"2\",\"number\":2}"));
    record_stream(ask, *heard);
    heard->hang_up();
}

TEST_F(Streams, a_filtered_watch_tells_what_leaves_the_filter) {
    run("hold: true\nrun: x");
    const auto heard = open({.target = "/v1/jobs?watch=1&state=pending&fields=id"});
    ASSERT_TRUE(heard->wait_text("event: bookmark"));
    post("/v1/jobs/1/cancel");
    ASSERT_TRUE(heard->wait_text("event: delete\ndata: {\"id\":\"1\",\"number\":1}"));
    heard->hang_up();
}

TEST_F(Streams, a_watch_resumes_where_it_was_or_is_told_to_start_over) {
    run("hold: true\nrun: x");
    const auto first = open({.target = "/v1/jobs?watch=1&fields=id"});
    ASSERT_TRUE(first->wait_text("event: bookmark"));
    const std::string id = last_id(first->so_far());
    run("run: x");
    ASSERT_TRUE(first->wait_text("event: put"));
    const auto second =
        open({.target = "/v1/jobs?watch=1&fields=id", .headers = {{"last-event-id", id}}});
    ASSERT_TRUE(second->wait_text("event: bookmark"));
    EXPECT_EQ(count(second->so_far(), "event: snapshot"), 0u);
    EXPECT_EQ(count(second->so_far(), "event: put"), 1u) << second->so_far();
    for (const char* old : {"1-0", "9-1", "x"}) {
        const Got got = send({.target = "/v1/jobs?watch=1", .headers = {{"last-event-id", old}}});
        EXPECT_EQ(got.status, 410) << old;
        EXPECT_EQ(got.at("code"), "E3006");
    }
    first->hang_up();
    second->hang_up();
}

TEST_F(Streams, a_slow_watcher_loses_nothing) {
    for (int i = 0; i < 300; ++i) run("run: x");
    const auto heard = open({.target = "/v1/jobs?watch=1", .room = 70'000});
    ASSERT_TRUE(heard->wait_text("event: snapshot"));
    post("/v1/jobs/7/hold");
    heard->drain();
    ASSERT_TRUE(heard->wait_text("event: bookmark"));
    const std::string text = heard->so_far();
    for (int i = 1; i <= 300; ++i) {
        const std::string row = "event: snapshot\ndata: {\"id\":\"" + std::to_string(i) + "\",";
        EXPECT_EQ(count(text, row), 1u) << i;
    }
    ASSERT_TRUE(heard->wait_text("\"held\":true"));
    heard->hang_up();
}

TEST_F(Streams, a_watch_of_nodes_tells_of_holds_and_not_of_heartbeats) {
    backend.with_world([](core::World& world) { world.hello("n1"); });
    const Ask ask{.target = "/v1/nodes?watch=1&fields=name,state"};
    const auto heard = open(ask);
    ASSERT_TRUE(heard->wait_text("event: bookmark"));
    backend.with_world([](core::World& world) {
        world.must(core::FromAgent{world.sessions.at("n1"), protocol::Heartbeat{1}});
    });
    post("/v1/nodes/n1/drain", {}, 0);
    ASSERT_TRUE(heard->wait_text(R"(event: put
data: {"name":"n1","state":"drained"})"));
    EXPECT_EQ(count(heard->so_far(), "event: put"), 1u);
    post("/v1/nodes/n1/forget", {}, 0);
    ASSERT_TRUE(heard->wait_text("event: delete\ndata: {\"name\":\"n1\"}"));
    record_stream(ask, *heard);
    heard->hang_up();
}

TEST_F(Streams, events_are_listed_and_filtered) {
    run("run: x");
    post("/v1/jobs/1/hold");
    run("run: x");
    const Got all = get("/v1/events");
    EXPECT_EQ(all.status, 200);
    EXPECT_NE(all.body.find(R"("type":"job.held")"), std::string::npos) << all.body;
    EXPECT_EQ(all.at("last"), std::to_string(backend.last_event()));
    const Got held = get("/v1/events?type=job.held");
    EXPECT_EQ(count(held.body, "\"sequence\""), 1u);
    EXPECT_EQ(count(get("/v1/events?type=job.*&job=2").body, "\"sequence\""), 1u);
    EXPECT_EQ(count(get("/v1/events?limit=1").body, "\"sequence\""), 1u);
    EXPECT_EQ(get("/v1/events?limit=1").body.find("job.held"), std::string::npos) << "the newest";
    EXPECT_EQ(count(get("/v1/events?after=1&limit=1").body, "\"sequence\":2"), 1u);
    backend.compact_events(3);
    EXPECT_EQ(get("/v1/events?after=1").status, 410);
    EXPECT_EQ(get("/v1/events").status, 200) << "what is kept";
}

TEST_F(Streams, events_flow_and_resume) {
    run("run: x");
    const Ask ask{.target = "/v1/events?watch=1"};
    const auto heard = open(ask);
    ASSERT_TRUE(heard->wait([&] { return heard->answered; }));
    post("/v1/jobs/1/hold");
    ASSERT_TRUE(heard->wait_text("event: job.held\ndata: {"));
    EXPECT_EQ(heard->so_far().find("job.queued"), std::string::npos) << "a watch starts now";
    const std::string id = last_id(heard->so_far());
    post("/v1/jobs/1/release");
    const auto again = open({.target = "/v1/events?watch=1", .headers = {{"last-event-id", id}}});
    ASSERT_TRUE(again->wait_text("event: job.released"));
    EXPECT_EQ(again->so_far().find("job.held"), std::string::npos);
    const auto all = open({.target = "/v1/events?watch=1&after=0&type=job.held", .room = 10});
    post("/v1/jobs/1/hold");
    all->drain();
    ASSERT_TRUE(all->wait([&] { return count(all->text, "event: job.held") == 2; }));
    backend.compact_events(5);
    EXPECT_EQ(send({.target = "/v1/events?watch=1&after=1"}).status, 410);
    record_stream(ask, *heard);
    for (const auto& each : {heard, again, all}) each->hang_up();
}

}  // namespace
}  // namespace muster::rest
