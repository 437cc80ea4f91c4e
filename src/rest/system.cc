// Health, versions, the CA and this API's own description.
#include "rest/api.h"

namespace muster::rest {

void get_health(const CallPtr& call) {
    const Backend::Health health = call->api->backend.health();
    std::vector<std::string> problems;
    if (health.disk_full) problems.emplace_back("the disk is nearly full: new work is refused");
    if (health.frozen) {
        problems.emplace_back("too many nodes fell silent at once: evictions are frozen");
    }
    if (health.loop_lag_ms > 1000) {
        problems.emplace_back("the loop is " + std::to_string(health.loop_lag_ms) + " ms behind");
    }
    JsonWriter json;
    json.begin_object().field("status", problems.empty() ? "ok" : "degraded");
    if (call->known) {
        const ViewPtr view = call->api->backend.view();
        json.key("problems").begin_array();
        for (const std::string& problem : problems) json.value(problem);
        json.end_array().field("version", health.version).field("term", health.term);
        json.field("uptime_ms", health.uptime_ms).field("loop_lag_ms", health.loop_lag_ms);
        json.field("planner_lag_ms", health.planner_lag_ms).field("disk_full", health.disk_full);
        json.field("frozen", health.frozen).field("state_dir", health.state_dir);
        json.field("store", health.store).field("agent_address", health.agent_address);
        json.field("ca_sha256", health.ca_sha256).field("revision", revision_text(*view));
        json.field("last_event", call->api->backend.last_event());
    }
    json.end_object();
    call->json(std::move(json).text(), {{"Cache-Control", "no-store"}});
}

void get_version(const CallPtr& call) {
    const Backend::Health health = call->api->backend.health();
    JsonWriter json;
    json.begin_object().field("version", health.version).field("api", "v1").key("ca_sha256");
    if (health.ca_sha256.empty())
        json.null();
    else
        json.value(health.ca_sha256);
    json.end_object();
    call->json(std::move(json).text());
}

void get_ca(const CallPtr& call) {
    const Backend::Health health = call->api->backend.health();
    if (health.ca_pem.empty()) {
        return call->fail(Error{.code = Code::NotFound,
                                .message = "this controller serves only its Unix socket and has "
                                           "no CA",
                                .fix = "set `listen` in controller.yaml to serve over TLS",
                                .number = errors::kNoRoute});
    }
    call->answer({.content_type = "application/x-pem-file", .body = health.ca_pem});
}

void get_openapi(const CallPtr& call) {
    // One copy for all: net sends it from where it is.
    static const auto kDocument = std::make_shared<const std::string>(openapi_json());
    net::HttpResponse response;
    response.shared_body = kDocument;
    call->answer(std::move(response));
}

}  // namespace muster::rest
