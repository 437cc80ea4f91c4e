// From a request to its handler: route, identity, limits, parameters.
#include <algorithm>
#include <charconv>
#include <chrono>

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "net/pki.h"
#include "rest/api.h"

namespace muster::rest {
namespace {

Time wall_clock() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

std::optional<std::string> name_of_uid(std::uint32_t uid) {
    char buffer[4096];
    passwd entry{};
    passwd* found = nullptr;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || found == nullptr) {
        return std::nullopt;
    }
    return std::string(found->pw_name);
}

std::vector<std::string> groups_of_name(const std::string& user) {
    char buffer[16 * 1024];
    passwd entry{};
    passwd* found = nullptr;
    if (getpwnam_r(user.c_str(), &entry, buffer, sizeof buffer, &found) != 0 || found == nullptr)
        return {};
    std::vector<gid_t> ids(64);
    int count = static_cast<int>(ids.size());
    if (getgrouplist(user.c_str(), entry.pw_gid, ids.data(), &count) < 0) {
        ids.resize(static_cast<std::size_t>(count));  // As many as there are.
        if (getgrouplist(user.c_str(), entry.pw_gid, ids.data(), &count) < 0) return {};
    }
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
        group one{};
        group* named = nullptr;
        std::vector<char> room(std::size_t{1} << 18);  // Of a group with many members.
        if (getgrgid_r(ids[static_cast<std::size_t>(i)], &one, room.data(), room.size(), &named) ==
                0 &&
            named != nullptr)
            names.emplace_back(named->gr_name);
    }
    std::ranges::sort(names);
    return names;
}

/// One segment of a path or pattern, taken off its front.
std::string_view next_segment(std::string_view& path) {
    path.remove_prefix(1);  // The '/'.
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    return segment;
}

/// Fills `args` on success.
bool matches(std::string_view pattern, std::string_view path, std::vector<std::string>& args) {
    args.clear();
    while (!pattern.empty() && !path.empty()) {
        const std::string_view want = next_segment(pattern);
        if (want == "{queue}" && pattern.empty() && path.size() > 1) {  // Its name has slashes.
            args.emplace_back(path.substr(1));
            return true;
        }
        const std::string_view have = next_segment(path);
        if (!want.empty() && want.front() == '{') {
            if (have.empty()) return false;
            args.emplace_back(have);
        } else if (want != have) {
            return false;
        }
    }
    return pattern.empty() && path.empty();
}

struct Found {
    const Route* route = nullptr;
    std::vector<std::string> args = {};
    std::string allowed = {};  // Methods of the path, when it has others.
};

Found find_route(const net::HttpRequest& request) {
    Found found;
    std::string_view path = request.path;
    if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    std::vector<std::string> args;
    for (const Route& route : routes()) {
        const bool method = route.method == request.method;
        if (!method && found.route != nullptr) continue;
        if (!matches(route.pattern, path, args)) continue;
        if (method) {
            found.route = &route;
            found.args = std::move(args);
            return found;
        }
        found.allowed += (found.allowed.empty() ? "" : ", ") + std::string(route.method);
    }
    return found;
}

/// How unlike a path and a pattern are: edits of their segments, a {name}
/// costing nothing.
std::size_t distance(std::string_view pattern, std::string_view path) {
    std::size_t far = 0;
    while (!pattern.empty() || !path.empty()) {
        const std::string_view want = pattern.empty() ? std::string_view() : next_segment(pattern);
        const std::string_view have = path.empty() ? std::string_view() : next_segment(path);
        if (want == have || (!want.empty() && want.front() == '{' && !have.empty())) continue;
        const std::string candidate[] = {std::string(want)};
        far += !want.empty() && !have.empty() && !nearest(have, candidate).empty() ? 1 : 3;
    }
    return far;
}

Problem no_route(const net::HttpRequest& request) {
    Problem problem{
        .error = numbered(errors::kNoRoute, "no route " + request.method + " " + request.path)};
    std::vector<std::pair<std::size_t, std::string>> near;
    for (const Route& route : routes()) {
        near.emplace_back(distance(route.pattern, request.path),
                          std::string(route.method) + " " + std::string(route.pattern));
    }
    std::ranges::stable_sort(near, {}, [](const auto& entry) { return entry.first; });
    for (std::size_t i = 0; i < near.size() && i < 3; ++i) {
        problem.nearest.push_back(std::move(near[i].second));
    }
    return problem;
}

std::optional<Problem> check_parameters(const Call& call) {
    for (const auto& [name, value] : call.request.query) {
        const auto known = split(call.route->parameters, ' ');
        if (std::ranges::find(known, name) != known.end()) continue;
        const std::vector<std::string> names(known.begin(), known.end());
        const std::string near = nearest(name, names);
        Problem problem{.error =
                            numbered(errors::kBadParameter,
                                     name + ": unknown parameter of " + call.request.method + " " +
                                         std::string(call.route->pattern) +
                                         (near.empty() ? "" : "; did you mean " + near + "?"))};
        if (!near.empty()) problem.nearest.push_back(near);
        return problem;
    }
    return std::nullopt;
}

bool plain_id(std::string_view id) {
    return !id.empty() && id.size() <= 64 &&
           std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7f && c != '"'; });
}

/// Who asks, and whether he may go on; answers itself if not.
bool admit(Call& call) {
    const ViewPtr view = call.api->backend.view();
    Result<Identity> who = call.api->auth.identify(call.request, *view, call.now);
    if (who) {
        call.who = *std::move(who);
        call.known = true;
    } else if (call.route->access != Access::Open) {
        call.fail(std::move(who).error());
        return false;
    }
    const std::string& bucket = call.known ? call.who.caller.user : call.request.peer.address;
    const auto wait = call.api->limiter.take(bucket, call.now);
    if (wait) {
        const std::int64_t whole = (wait->ms + 999) / 1000;
        call.fail(Problem{.error = numbered(errors::kRateLimit,
                                            "user " + bucket + " is over " +
                                                std::to_string(call.api->options.rate.per_second) +
                                                " requests a second"),
                          .headers = {{"Retry-After", std::to_string(whole)}}});
        return false;
    }
    if (call.route->access == Access::Admin && !call.who.caller.admin) {
        call.fail(numbered(errors::kAdminOnly, call.request.method + " " + call.request.path +
                                                   " is for administrators; " +
                                                   call.who.caller.user + " is none"));
        return false;
    }
    return true;
}

}  // namespace

Api::Api(Backend& the_backend, Options the_options)
    : backend(the_backend),
      options([&] {
          if (!the_options.now) the_options.now = wall_clock;
          if (!the_options.user_of_uid) the_options.user_of_uid = name_of_uid;
          if (!the_options.groups_of_user) the_options.groups_of_user = groups_of_name;
          return std::move(the_options);
      }()),
      auth(options),
      limiter(options.rate),
      hub(backend, watches),
      feed(backend, watches) {}

void Api::stop() {
    reads.stop();
    watches->stop();
}

std::string Api::next_request_id() {
    const std::uint64_t number = requests_.fetch_add(1, std::memory_order_relaxed) + 1;
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, number, 16).ptr;
    return "r" + std::to_string(backend.view()->meta.term) + "-" + std::string(text, end);
}

void serve(const std::shared_ptr<Api>& api, net::HttpRequest request,
           std::shared_ptr<Reply> reply) {
    auto call = std::make_shared<Call>();
    call->api = api;
    call->reply = std::move(reply);
    call->now = api->options.now();
    const std::string_view given = request.header("x-request-id");
    call->request_id = plain_id(given) ? std::string(given) : api->next_request_id();
    Found found = find_route(request);
    call->request = std::move(request);
    if (found.route == nullptr) {
        if (found.allowed.empty()) return call->fail(no_route(call->request));
        return call->fail(Problem{
            .error = numbered(errors::kMethod,
                              call->request.path + " does not take " + call->request.method),
            .headers = {{"Allow", found.allowed}}});
    }
    call->route = found.route;
    call->args = std::move(found.args);
    if (!admit(*call)) return;
    if (auto problem = check_parameters(*call)) return call->fail(*std::move(problem));
    found.route->handle(call);
}

net::HttpHandler make_handler(Backend& backend, Options options) {
    // Calls that still wait for the Backend may keep the Api for longer than the handler lives.
    struct Door {
        std::shared_ptr<Api> api;
        ~Door() { api->stop(); }
    };
    auto door = std::make_shared<Door>(std::make_shared<Api>(backend, std::move(options)));
    return [door](net::HttpRequest request, net::Responder responder) {
        serve(door->api, std::move(request), make_reply(std::move(responder)));
    };
}

}  // namespace muster::rest
