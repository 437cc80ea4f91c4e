// What people and watchers are told. One JSON object each; times are milliseconds since 1970.
#include "core/stepper.h"

namespace muster::core {

void Stepper::tell_job(std::string_view type, const Job& job, std::string_view message,
                       std::string_view node) {
    JsonWriter json;
    json.begin_object().field("type", type).field("at", at_.ms).field("job", job.id.value);
    if (job.array_job != 0)
        json.field("array_job", job.array_job).field("array_element", job.array_element);
    if (const Spec* spec = tables_.specs.find(job.spec.value))
        json.field("name", std::string_view(*spec->name));
    if (const User* user = tables_.users.find(job.user))
        json.field("user", std::string_view(user->name));
    json.field("state", model::to_text(job.state)).field("attempt", job.epoch);
    if (job.cause != model::Cause::None) json.field("cause", model::to_text(job.cause));
    if (!node.empty()) json.field("node", node);
    if (!message.empty()) json.field("message", message);
    json.end_object();
    step_.notices.push_back({std::string(type), job.id, {}, std::move(json).text()});
}

void Stepper::tell_node(std::string_view type, NodeId node, std::string_view message,
                        std::string_view user) {
    JsonWriter json;
    json.begin_object().field("type", type).field("at", at_.ms);
    json.field("node", std::string_view(node_name(state_, node)));
    if (!user.empty()) json.field("user", user);
    if (!message.empty()) json.field("message", message);
    json.end_object();
    step_.notices.push_back({std::string(type), {}, node, std::move(json).text()});
}

void Stepper::tell(std::string_view type, std::string_view message) {
    JsonWriter json;
    json.begin_object().field("type", type).field("at", at_.ms).field("message", message);
    json.end_object();
    step_.notices.push_back({std::string(type), {}, {}, std::move(json).text()});
}

}  // namespace muster::core
