#include "cli/test_cluster.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "cli/files.h"

namespace muster::cli::test {

Folder::Folder() {
    char path[] = "/tmp/muster-cli-XXXXXX";
    path_ = ::mkdtemp(path);
}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string Folder::file(const std::string& name, std::string_view text, unsigned mode) const {
    const std::string path = path_ + "/" + name;
    const Status wrote = write_file(path, text, mode);
    EXPECT_TRUE(wrote) << path;
    ::chmod(path.c_str(), mode);
    return path;
}

Cluster::Cluster() {
    world_.environment = {{"HOME", folder_.path()},
                          {"MUSTER_SOCKET_PATH", folder_.path() + "/api.sock"},
                          {"TERM", "xterm"},
                          {"PATH", "/usr/bin:/bin"}};
    world_.directory = folder_.path();
    world_.program = folder_.path() + "/muster";
    world_.now = [] { return kNow; };
    world_.uid = ::getuid();
    ::setenv("TZ", "UTC", 1);
    start();
}

void Cluster::start() {
    auto made = net::HttpServer::start(
        {.unix_path = folder_.path() + "/api.sock"},
        [this](net::HttpRequest request, net::Responder responder) {
            Handler handler;
            {
                const std::scoped_lock lock(mutex_);
                requests_.push_back(request);
                const auto it = routes_.find(request.method + " " + request.path);
                if (it != routes_.end()) handler = it->second;
            }
            if (handler) return handler(request, responder);
            responder.answer({.status = 404,
                              .content_type = "application/problem+json",
                              .body =
                                  R"({"type":"about:blank","title":"Not Found","status":404,)"
                                  R"("detail":"no such route","code":"E1104","request_id":"r"})"});
        });
    ASSERT_TRUE(made) << made.error().message;
    server_ = *std::move(made);
}

void Cluster::stop() {
    server_.reset();
}

void Cluster::handle(const std::string& route, Handler handler) {
    const std::scoped_lock lock(mutex_);
    routes_[route] = std::move(handler);
}

void Cluster::answer(const std::string& route, std::string body, int status,
                     std::vector<net::Header> headers) {
    const std::string type = status >= 400 ? "application/problem+json" : "application/json";
    handle(route, [=](const net::HttpRequest&, const net::Responder& responder) {
        responder.answer(
            {.status = status, .content_type = type, .headers = headers, .body = body});
    });
}

std::vector<net::HttpRequest> Cluster::requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
}

std::vector<std::string> Cluster::asked() const {
    std::vector<std::string> out;
    for (const net::HttpRequest& request : requests())
        out.push_back(request.method + " " + request.target);
    return out;
}

Ran Cluster::run(std::vector<std::string> words) {
    Output out(-1), err(-1);
    const int code = run_muster(world_, words, out, err);
    return {code, out.kept(), err.kept()};
}

}  // namespace muster::cli::test
