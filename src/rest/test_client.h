// For tests: sends requests to the API without sockets, waits for what comes back, and records
// every answer for the contract test when MUSTER_RECORD names a folder.
#pragma once

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "rest/test_backend.h"

namespace muster::rest {

/// What a client sees of one answer.
struct Heard {
    std::mutex mutex;
    std::condition_variable changed;
    bool answered = false, closed = false, upgraded = false;
    net::HttpResponse response;
    std::string text;  // Of a stream or tunnel.
    net::RawOptions raw;
    std::size_t room = std::size_t{1} << 40;  // Bytes that a stream takes before it is Full.
    bool reading_paused = false;
    std::function<void()> on_closed, on_drain;

    template <class Condition>
    bool wait(Condition condition) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, std::chrono::seconds(60), condition);
    }
    bool wait_text(std::string_view part) {
        return wait([&] { return text.find(part) != std::string::npos; });
    }
    bool wait_closed() {
        return wait([&] { return closed; });
    }
    std::string so_far() {
        const std::lock_guard lock(mutex);
        return text;
    }
    void hang_up() {
        std::function<void()> call;
        {
            const std::lock_guard lock(mutex);
            closed = true;
            call = std::move(on_closed);
        }
        if (call) call();
    }
    void drain() {
        std::function<void()> call;
        {
            const std::lock_guard lock(mutex);
            room = std::size_t{1} << 40;
            call = on_drain;
        }
        if (call) call();
    }
};

class TestStream final : public Stream {
public:
    explicit TestStream(std::shared_ptr<Heard> heard) : heard_(std::move(heard)) {}
    net::Write write(std::shared_ptr<const std::string> chunk) override {
        const std::lock_guard lock(heard_->mutex);
        if (heard_->closed) return net::Write::Closed;
        if (heard_->room < chunk->size()) return net::Write::Full;
        heard_->room -= chunk->size();
        heard_->text += *chunk;
        heard_->changed.notify_all();
        return net::Write::Accepted;
    }
    void close() override {
        std::function<void()> call;
        {
            const std::lock_guard lock(heard_->mutex);
            heard_->closed = true;
            call = std::move(heard_->on_closed);
            heard_->on_drain = nullptr;
        }
        heard_->changed.notify_all();
        if (call) call();
    }
    void on_closed(std::function<void()> callback) override {
        const std::lock_guard lock(heard_->mutex);
        heard_->on_closed = std::move(callback);
    }
    void on_drain(std::function<void()> callback) override {
        const std::lock_guard lock(heard_->mutex);
        heard_->on_drain = std::move(callback);
    }

private:
    std::shared_ptr<Heard> heard_;
};

class TestTunnel final : public Tunnel {
public:
    explicit TestTunnel(std::shared_ptr<Heard> heard) : heard_(std::move(heard)) {}
    net::Write write(std::string bytes) override {
        const std::lock_guard lock(heard_->mutex);
        if (heard_->text.size() + bytes.size() > heard_->room) return net::Write::Full;
        heard_->text += bytes;
        heard_->changed.notify_all();
        return net::Write::Accepted;
    }
    void close() override {
        const std::lock_guard lock(heard_->mutex);
        heard_->closed = true;
        heard_->changed.notify_all();
    }
    void pause_reading(bool paused) override {
        const std::lock_guard lock(heard_->mutex);
        heard_->reading_paused = paused;
    }

private:
    std::shared_ptr<Heard> heard_;
};

class TestReply final : public Reply {
public:
    explicit TestReply(std::shared_ptr<Heard> heard) : heard_(std::move(heard)) {}
    void answer(net::HttpResponse response) override {
        const std::lock_guard lock(heard_->mutex);
        EXPECT_FALSE(heard_->answered) << "answered twice";
        heard_->answered = true;
        heard_->response = std::move(response);
        heard_->changed.notify_all();
    }
    std::shared_ptr<Stream> stream(net::StreamOptions options) override {
        answer({.status = options.status,
                .content_type = options.content_type,
                .headers = options.headers});
        return std::make_shared<TestStream>(heard_);
    }
    Result<std::shared_ptr<Tunnel>> upgrade(net::RawOptions options) override {
        answer({.status = 101});
        const std::lock_guard lock(heard_->mutex);
        heard_->upgraded = true;
        heard_->raw = std::move(options);
        return std::shared_ptr<Tunnel>(std::make_shared<TestTunnel>(heard_));
    }
    bool gone() const override {
        const std::lock_guard lock(heard_->mutex);
        return heard_->closed;
    }

private:
    std::shared_ptr<Heard> heard_;
};

struct Got {
    int status = 0;
    std::string body;
    std::vector<net::Header> headers;
    std::string content_type;

    std::string header(std::string_view name) const {
        for (const net::Header& each : headers) {
            if (each.name == name) return each.value;
        }
        return {};
    }
    /// The text of a member, by path: "reason.code".
    std::string at(std::string_view path) const {
        std::string_view value = body;
        for (const std::string_view name : split(path, '.')) value = member_of(value, name);
        if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
        return std::string(value);
    }
};

/// A whole cluster's API: two users, an administrator, time that stands still.
class ApiTest : public testing::Test {
protected:
    ApiTest() {
        options.now = [this] { return now; };
        options.user_of_uid = [](std::uint32_t uid) -> std::optional<std::string> {
            if (uid == 0) return "root";
            if (uid == 1000) return "alice";
            if (uid == 1001) return "bob";
            return std::nullopt;
        };
        options.groups_of_user = [](const std::string& user) {
            return user == "alice" ? std::vector<std::string>{"nlp", "staff"}
                                   : std::vector<std::string>{};
        };
        options.own_uid = 500;
        backend.health_now.version = "0.1.0";
        backend.health_now.term = 1;
    }
    ~ApiTest() override {
        if (api) api->stop();
    }

    struct Ask {
        std::string method = "GET", target;
        std::string body = {};
        std::vector<net::Header> headers = {};
        std::uint32_t uid = 1000;
        bool local = true;
        std::size_t room = std::size_t{1} << 40;
    };
    std::shared_ptr<Heard> open(const Ask& ask) {
        if (!api) api = std::make_shared<Api>(backend, options);
        net::HttpRequest request;
        request.method = ask.method;
        request.target = ask.target;
        const std::size_t mark = ask.target.find('?');
        request.path = ask.target.substr(0, mark);
        for (std::size_t at; (at = request.path.find("%2F")) != std::string::npos;)
            request.path.replace(at, 3, "/");  // As net does.
        if (mark != std::string::npos) {
            for (const std::string_view pair :
                 split(std::string_view(ask.target).substr(mark + 1), '&')) {
                const std::size_t equals = pair.find('=');
                request.query.emplace_back(pair.substr(0, equals), equals == std::string_view::npos
                                                                       ? std::string_view()
                                                                       : pair.substr(equals + 1));
            }
        }
        request.headers = ask.headers;
        request.body = ask.body;
        request.peer.local = ask.local;
        request.peer.uid = ask.uid;
        request.peer.address = ask.local ? "unix" : "10.0.0.7:5000";
        auto heard = std::make_shared<Heard>();
        heard->room = ask.room;
        serve(api, std::move(request), std::make_shared<TestReply>(heard));
        return heard;
    }
    Got send(const Ask& ask) {
        const auto heard = open(ask);
        EXPECT_TRUE(heard->wait([&] { return heard->answered; })) << ask.method << ask.target;
        Got got;
        {
            const std::lock_guard lock(heard->mutex);
            got = {.status = heard->response.status,
                   .body = heard->response.shared_body ? *heard->response.shared_body
                                                       : heard->response.body,
                   .headers = heard->response.headers,
                   .content_type = heard->response.content_type};
        }
        record(ask, got);
        return got;
    }
    Got get(const std::string& target, std::uint32_t uid = 1000) {
        return send({.target = target, .uid = uid});
    }
    Got post(const std::string& target, const std::string& body = {}, std::uint32_t uid = 1000) {
        return send({.method = "POST", .target = target, .body = body, .uid = uid});
    }
    /// Submits YAML; the id.
    std::string run(const std::string& yaml, std::uint32_t uid = 1000) {
        const Got got = send({.method = "POST",
                              .target = "/v1/jobs",
                              .body = yaml,
                              .headers = {{"content-type", "application/yaml"}},
                              .uid = uid});
        EXPECT_EQ(got.status, 201) << got.body;
        return got.at("id");
    }
    void record_stream(const Ask& ask, Heard& heard) {
        record(ask, {.status = 200,
                     .body = heard.so_far(),
                     .headers = {},
                     .content_type = "text/event-stream"});
    }
    void record(const Ask& ask, const Got& got) {
        const char* folder = std::getenv("MUSTER_RECORD");
        if (folder == nullptr) return;
        const auto* test = testing::UnitTest::GetInstance()->current_test_info();
        std::ofstream out(std::string(folder) + "/" + test->name() + ".jsonl", std::ios::app);
        JsonWriter json;
        json.begin_object().field("method", ask.method).field("target", ask.target);
        json.field("status", got.status).field("type", got.content_type).field("body", got.body);
        json.end_object();
        out << json.text() << "\n";
    }

    Time now{1'800'000'000'000};
    TestBackend backend;
    Options options;
    std::shared_ptr<Api> api;
};

}  // namespace muster::rest
