// For tests: net's HTTP server with recorded answers of the shape of api/openapi.yaml, a made-up
// world, and whole commands run in it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cli/app.h"
#include "net/http.h"

namespace muster::cli::test {

struct Ran {
    int code = 0;
    std::string out;
    std::string err;
};

/// A folder of its own, removed at the end.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const std::string& path() const { return path_; }
    /// Writes a file below it and returns its path.
    std::string file(const std::string& name, std::string_view text, unsigned mode = 0600) const;

private:
    std::string path_;
};

/// 2026-12-01T08:00:00Z.
constexpr Time kNow{1'796'112'000'000};

class Cluster {
public:
    using Handler = std::function<void(const net::HttpRequest&, net::Responder)>;

    Cluster();
    /// "GET /v1/jobs" answers `body`; the path is without its query.
    void answer(const std::string& route, std::string body, int status = 200,
                std::vector<net::Header> headers = {});
    void handle(const std::string& route, Handler handler);
    /// Every request, as "METHOD TARGET", in order.
    std::vector<std::string> asked() const;
    std::vector<net::HttpRequest> requests() const;
    void stop();
    void start();

    Ran run(std::vector<std::string> words);
    World& world() { return world_; }
    const Folder& folder() const { return folder_; }

private:
    Folder folder_;
    World world_;
    mutable std::mutex mutex_;
    std::map<std::string, Handler> routes_;
    std::vector<net::HttpRequest> requests_;
    std::unique_ptr<net::HttpServer> server_;
};

}  // namespace muster::cli::test
