#include "rest/api.h"

namespace muster::rest {
namespace {

constexpr std::string_view kReads = "at_least";

constexpr Route kRoutes[] = {
    {"GET", "/v1/jobs", Access::User,
     "state user queue name label array node id all since fields layout limit "
     "cursor watch "
     "at_least",
     list_jobs},
    {"POST", "/v1/jobs", Access::User, "dry_run", submit_job},
    {"GET", "/v1/jobs/{id}", Access::User, "fields at_least", get_job},
    {"PATCH", "/v1/jobs/{id}", Access::User, "", update_job},
    {"GET", "/v1/jobs/{id}/why", Access::User, "if", why_job},
    {"GET", "/v1/jobs/{id}/wait", Access::User, "timeout for", wait_job},
    {"POST", "/v1/jobs/{id}/cancel", Access::User, "", cancel_job},
    {"POST", "/v1/jobs/{id}/hold", Access::User, "", hold_job},
    {"POST", "/v1/jobs/{id}/release", Access::User, "", release_job},
    {"POST", "/v1/jobs/{id}/requeue", Access::User, "", requeue_job},
    {"GET", "/v1/jobs/{id}/logs", Access::User, "rank local_rank attempt follow from tail since",
     job_logs},
    {"POST", "/v1/jobs/{id}/exec", Access::User, "", exec_job},
    {"POST", "/v1/jobs/{id}/attach", Access::User, "", attach_job},
    {"GET", "/v1/nodes", Access::User, "state label fields limit cursor watch at_least",
     list_nodes},
    {"GET", "/v1/nodes/{name}", Access::User, kReads, get_node},
    {"POST", "/v1/nodes/{name}/drain", Access::Admin, "", drain_node},
    {"POST", "/v1/nodes/{name}/resume", Access::Admin, "", resume_node},
    {"POST", "/v1/nodes/{name}/fenced", Access::Admin, "", fence_node},
    {"POST", "/v1/nodes/{name}/forget", Access::Admin, "", forget_node},
    {"GET", "/v1/gpus", Access::User, "kind devices at_least", list_gpus},
    {"POST", "/v1/plan", Access::User, "", plan_job},
    {"GET", "/v1/queues", Access::User, "yaml at_least", list_queues},
    {"PUT", "/v1/queues", Access::Admin, "dry_run", put_queues},
    {"PATCH", "/v1/queues", Access::Admin, "dry_run", patch_queues},
    {"GET", "/v1/queues/{queue}", Access::User, kReads, get_queue},
    {"PATCH", "/v1/queues/{queue}", Access::Admin, "dry_run", patch_queue},
    {"GET", "/v1/reservations", Access::User, kReads, list_reservations},
    {"POST", "/v1/reservations", Access::Admin, "", create_reservation},
    {"DELETE", "/v1/reservations/{name}", Access::Admin, "", delete_reservation},
    {"GET", "/v1/users", Access::User, kReads, list_users},
    {"GET", "/v1/whoami", Access::User, "", whoami},
    {"GET", "/v1/cluster", Access::User, kReads, get_cluster},
    {"GET", "/v1/tokens", Access::User, "", list_tokens},
    {"POST", "/v1/tokens", Access::User, "", create_token},
    {"DELETE", "/v1/tokens/{token_id}", Access::User, "", revoke_token},
    {"GET", "/v1/events", Access::User, "after type job node limit watch", list_events},
    {"GET", "/v1/health", Access::Open, "", get_health},
    {"GET", "/v1/version", Access::Open, "", get_version},
    {"GET", "/v1/ca", Access::Open, "", get_ca},
    {"GET", "/openapi.json", Access::Open, "", get_openapi},
};

}  // namespace

std::span<const Route> routes() {
    return kRoutes;
}

std::vector<std::string> route_names() {
    std::vector<std::string> names;
    for (const Route& route : kRoutes) {
        names.push_back(std::string(route.method) + " " + std::string(route.pattern));
    }
    return names;
}

}  // namespace muster::rest
