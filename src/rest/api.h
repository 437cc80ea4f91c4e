// Inside the room: one request under way (Call), what all requests share (Api),
// the route table.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error_codes.h"
#include "core/state.h"
#include "net/http.h"
#include "rest/auth.h"
#include "rest/backend.h"
#include "rest/event_feed.h"
#include "rest/handler.h"
#include "rest/hub.h"
#include "rest/job_facts.h"
#include "rest/problem.h"
#include "rest/rate_limit.h"
#include "rest/reply.h"
#include "rest/worker.h"

namespace muster::rest {

class Api;
struct Route;

/// The newest revision that each user's submits were answered with: his next reads show it, from
/// whichever connection they come.
class OwnWrites {
public:
    void note(const std::string& user, std::uint64_t revision) {
        const std::lock_guard lock(mutex_);
        std::uint64_t& newest = newest_[user];
        newest = std::max(newest, revision);
    }
    std::uint64_t of(const std::string& user) const {
        const std::lock_guard lock(mutex_);
        const auto at = newest_.find(user);
        return at == newest_.end() ? 0 : at->second;
    }

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::uint64_t> newest_;
};
using ViewPtr = std::shared_ptr<const core::View>;

struct Call {
    std::shared_ptr<Api> api;
    net::HttpRequest request;
    std::shared_ptr<Reply> reply;
    std::string request_id;
    const Route* route = nullptr;
    std::vector<std::string> args = {};  // What the path's {names} stand for, in order.
    Identity who = {};
    bool known = false;  // False on open routes, when nobody is named.
    Time now{};

    void answer(net::HttpResponse response) const;
    void json(std::string body, std::vector<net::Header> headers = {}, int status = 200) const;
    void fail(Problem problem) const;
    void fail(Error error) const { fail(Problem{std::move(error)}); }
    /// The answer's common headers, for streams.
    std::vector<net::Header> stream_headers() const;

    std::string query(std::string_view name) const;  // "" when absent.
    bool query_flag(std::string_view name) const;    // "1", "true", "yes", "" (present) are true.
    bool may_see(std::string_view owner) const {
        return who.caller.admin || who.caller.user == owner;
    }
};
using CallPtr = std::shared_ptr<const Call>;
using Handler = void (*)(const CallPtr&);

enum class Access : std::uint8_t { Open, User, Admin };
struct Route {
    std::string_view method;
    std::string_view pattern;  // "/v1/jobs/{id}/logs".
    Access access = Access::User;
    std::string_view parameters;  // Query parameters, with spaces between.
    Handler handle = nullptr;
};
std::span<const Route> routes();

class Api {
public:
    Api(Backend& backend, Options options);

    Backend& backend;
    Options options;
    Authenticator auth;
    RateLimiter limiter;
    JobFactsCache facts;
    OwnWrites own_writes;
    Worker reads;  // History, big lists, reads that waited for their revision.
    const std::shared_ptr<Worker> watches = std::make_shared<Worker>();  // Watchers, time-outs.
    Hub hub;
    EventFeed feed;

    std::string next_request_id();
    /// No work of ours runs any more when it returns, and none touches the Backend later.
    void stop();

private:
    std::atomic<std::uint64_t> requests_{0};
};

/// Everything from the request to its answer.
void serve(const std::shared_ptr<Api>& api, net::HttpRequest request, std::shared_ptr<Reply> reply);

// ---- revisions
// --------------------------------------------------------------------------------

/// "TERM-REVISION": opaque to clients; a new leader's revisions never pass for
/// an old one's.
std::string revision_text(std::uint64_t term, std::uint64_t revision);
inline std::string revision_text(const core::View& view) {
    return revision_text(view.meta.term, view.revision);
}
/// Calls `then` with a view that shows what `at_least` or Muster-Revision asks
/// for: at once, or on api->reads. Answers itself when that never comes.
void with_view(const CallPtr& call, std::function<void(const CallPtr&, const ViewPtr&)> then);
/// True when If-None-Match names `etag`: a 304 has been sent.
bool answered_unchanged(const Call& call, const std::string& etag);

// ---- parameters
// -------------------------------------------------------------------------------

/// In [low, high], `fallback` when absent; or the problem.
Result<std::int64_t> integer_parameter(const Call& call, std::string_view name, std::int64_t low,
                                       std::int64_t high, std::int64_t fallback);
/// A time, or a duration before now ("10m"); 0 when absent.
Result<Time> since_parameter(const Call& call, std::string_view name);
std::vector<std::string> list_parameter(const Call& call, std::string_view name);

// ---- handlers, by file
// ------------------------------------------------------------------------

void list_jobs(const CallPtr& call);
void watch_jobs(const CallPtr& call);
void submit_job(const CallPtr& call);
void get_job(const CallPtr& call);
void update_job(const CallPtr& call);
void why_job(const CallPtr& call);
void wait_job(const CallPtr& call);
void cancel_job(const CallPtr& call);
void hold_job(const CallPtr& call);
void release_job(const CallPtr& call);
void requeue_job(const CallPtr& call);
void job_logs(const CallPtr& call);
void exec_job(const CallPtr& call);
void attach_job(const CallPtr& call);
void list_nodes(const CallPtr& call);
void get_node(const CallPtr& call);
void drain_node(const CallPtr& call);
void resume_node(const CallPtr& call);
void fence_node(const CallPtr& call);
void forget_node(const CallPtr& call);
void list_gpus(const CallPtr& call);
void list_queues(const CallPtr& call);
void get_queue(const CallPtr& call);
void put_queues(const CallPtr& call);
void patch_queues(const CallPtr& call);
void patch_queue(const CallPtr& call);
void plan_job(const CallPtr& call);
void list_reservations(const CallPtr& call);
void create_reservation(const CallPtr& call);
void delete_reservation(const CallPtr& call);
void list_users(const CallPtr& call);
void get_cluster(const CallPtr& call);
void whoami(const CallPtr& call);
void list_tokens(const CallPtr& call);
void create_token(const CallPtr& call);
void revoke_token(const CallPtr& call);
void list_events(const CallPtr& call);
void get_health(const CallPtr& call);
void get_version(const CallPtr& call);
void get_ca(const CallPtr& call);
void get_openapi(const CallPtr& call);

}  // namespace muster::rest
