// The REST API as one handler for net's HTTP server.
//
// Reads come from the Backend's published view, never from the loop; writes are
// answered when they are durable. The handler is thread-safe and may outlive
// the server, but not the Backend.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "net/http.h"
#include "rest/backend.h"

namespace muster::rest {

/// A token bucket for each user (F54). A request costs 1, and 1 more for each
/// 16 KiB of its answer.
struct RateLimit {
    std::int64_t per_second = 20'000;  // 0: no limit.
    std::int64_t burst = 40'000;
};

struct Options {
    std::function<Time()> now = {};  // Default: the wall clock.
    /// The name of a local uid; empty: it has none. Default: getpwuid_r.
    std::function<std::optional<std::string>(std::uint32_t)> user_of_uid = {};
    /// The names of a user's groups, sorted; empty: unknown here. Default: getgrouplist.
    std::function<std::vector<std::string>(const std::string&)> groups_of_user = {};
    std::uint32_t own_uid = 0;  // Of the controller: with root, the local administrators.
    RateLimit rate = {};
};

net::HttpHandler make_handler(Backend& backend, Options options);

/// The document served as /openapi.json, and every route as "GET
/// /v1/jobs/{id}", for the tests that keep the two equal.
std::string_view openapi_json();
std::vector<std::string> route_names();

}  // namespace muster::rest
