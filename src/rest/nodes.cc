// /v1/nodes: list, watch, one node, and what administrators do to it.
#include <algorithm>

#include "rest/body.h"
#include "rest/ids.h"
#include "rest/node_json.h"
#include "rest/watch.h"

namespace muster::rest {
namespace {

struct NodeFilter {
    std::vector<std::string> states;
    std::vector<std::pair<std::string, std::string>> labels;  // Value "*": any.

    bool accepts(const core::View& view, const core::Node& node) const {
        if (node.forgotten || !node.facts) return false;
        if (!states.empty() && std::ranges::find(states, node_state(view, node)) == states.end()) {
            return false;
        }
        return std::ranges::all_of(labels, [&](const auto& wanted) {
            return std::ranges::any_of(node.facts->labels, [&](const auto& label) {
                return label.first == wanted.first &&
                       (wanted.second == "*" || wanted.second == label.second);
            });
        });
    }
};

Result<NodeFilter> parse_filter(const Call& call) {
    constexpr std::string_view kStates[] = {"ready",   "suspect",  "lost", "unknown",
                                            "drained", "draining", "held"};
    NodeFilter filter{.states = list_parameter(call, "state"), .labels = {}};
    for (const std::string& state : filter.states) {
        if (std::ranges::find(kStates, state) == std::end(kStates)) {
            return bad_parameter("state", state,
                                 "ready, suspect, lost, unknown, draining, drained or held")
                .error;
        }
    }
    for (const auto& [name, value] : call.request.query) {
        if (name != "label" || value.empty()) continue;
        const std::size_t equals = value.find('=');
        if (equals == std::string::npos)
            filter.labels.emplace_back(value, "*");
        else
            filter.labels.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    }
    return filter;
}

class WatchedNodes final : public Subject {
public:
    WatchedNodes(NodeFilter filter, std::vector<std::string> fields)
        : filter_(std::move(filter)), fields_(std::move(fields)) {}

    const std::vector<std::uint64_t>& changed(const Round& round) const override {
        return round.nodes;
    }
    std::vector<std::uint64_t> missed(const Hub::Missed& missed) const override {
        return missed.nodes;
    }
    std::uint64_t below(const core::View& view, std::uint64_t id) override {
        std::uint64_t found = 0;
        view.nodes.visit_back_from(id - 1, [&](std::uint64_t each, const core::Node& node) {
            if (filter_.accepts(view, node)) found = each;
            return found == 0;
        });
        return found;
    }
    bool shown(const core::View& view, std::uint64_t id) override {
        const core::Node* node = view.nodes.find(id);
        return node != nullptr && filter_.accepts(view, *node);
    }
    void write(JsonWriter& json, const core::View& view, std::uint64_t id) override {
        write_node(json, view, view.nodes.at(id), fields_);
    }
    void write_key(JsonWriter& json, const core::View& view, std::uint64_t id) override {
        json.begin_object().field("name", node_name(view, NodeId{id})).end_object();
    }

private:
    const NodeFilter filter_;
    const std::vector<std::string> fields_;
};

void answer_nodes(const CallPtr& call, const core::View& view, const NodeFilter& filter,
                  const std::vector<std::string>& fields, std::size_t limit) {
    std::vector<const core::Node*> nodes;
    view.nodes.for_each([&](std::uint64_t, const core::Node& node) {
        if (filter.accepts(view, node)) nodes.push_back(&node);
    });
    std::ranges::sort(nodes, {}, [](const core::Node* node) { return node->facts->name; });
    const std::string after = call->query("cursor");
    auto at = nodes.begin();
    if (!after.empty()) {
        at = std::ranges::upper_bound(nodes, after, {},
                                      [](const core::Node* node) { return node->facts->name; });
    }
    JsonWriter json;
    json.begin_object().key("items").begin_array();
    std::string last;
    for (std::size_t count = 0; at != nodes.end() && count < limit; ++at, ++count) {
        write_node(json, view, **at, fields);
        last = (*at)->facts->name;
    }
    json.end_array().key("next_cursor");
    if (at != nodes.end())
        json.value(last);
    else
        json.null();
    json.field("revision", revision_text(view)).end_object();
    call->json(std::move(json).text(), {{"ETag", "\"" + revision_text(view) + "\""}});
}

void act(const CallPtr& call, core::NodeAction action) {
    Body body(call->request, BodyNeed::Optional);
    const auto reason = body.text("reason", 500);
    if (auto problem = body.finish()) return call->fail(*std::move(problem));
    core::ActOnNode event{.caller = call->who.caller,
                          .node = call->args[0],
                          .action = action,
                          .reason = reason.value_or("")};
    call->api->backend.submit(std::move(event), [call](Result<Backend::Answered> done) {
        if (!done) return call->fail(std::move(done).error());
        call->api->backend.when_published(done->revision, [call, answered = *done] {
            const ViewPtr view = call->api->backend.view();
            const std::string revision = revision_text(view->meta.term, answered.revision);
            const core::Node* node = find_node_named(*view, call->args[0]);
            JsonWriter json;
            json.begin_object().field("name", call->args[0]).key("state");
            if (node != nullptr)
                json.value(node_state(*view, *node));
            else
                json.null();
            json.key("warnings").begin_array();
            for (const std::string& warning : answered.answer.warnings) json.value(warning);
            json.end_array().field("revision", revision).end_object();
            call->json(std::move(json).text(), {{"Muster-Revision", revision}});
        });
    });
}

}  // namespace

void list_nodes(const CallPtr& call) {
    auto filter = parse_filter(*call);
    if (!filter) return call->fail(filter.error());
    auto fields = parse_node_fields(call->query("fields"), false);
    if (!fields) return call->fail(fields.error());
    if (call->query_flag("watch")) {
        return start_watch(call,
                           std::make_shared<WatchedNodes>(*std::move(filter), *std::move(fields)));
    }
    const auto limit = integer_parameter(*call, "limit", 1, 100'000, 1'000);
    if (!limit) return call->fail(limit.error());
    with_view(call, [filter = *std::move(filter), fields = *std::move(fields),
                     limit = static_cast<std::size_t>(*limit)](const CallPtr& ready,
                                                               const ViewPtr& view) {
        if (answered_unchanged(*ready, "\"" + revision_text(*view) + "\"")) return;
        if (view->nodes.size() < 500) return answer_nodes(ready, *view, filter, fields, limit);
        ready->api->reads.post([ready, view, filter, fields, limit] {
            answer_nodes(ready, *view, filter, fields, limit);
        });
    });
}

void get_node(const CallPtr& call) {
    with_view(call, [](const CallPtr& ready, const ViewPtr& view) {
        const core::Node* node = find_node_named(*view, ready->args[0]);
        if (node == nullptr) {
            return ready->fail(numbered(errors::kNodeNotFound,
                                        "node " + ready->args[0] + ": there is no such node"));
        }
        JsonWriter json;
        write_node(json, *view, *node, node_fields());
        ready->json(std::move(json).text());
    });
}

void drain_node(const CallPtr& call) {
    act(call, core::NodeAction::Drain);
}
void resume_node(const CallPtr& call) {
    act(call, core::NodeAction::Resume);
}
void fence_node(const CallPtr& call) {
    act(call, core::NodeAction::Fenced);
}
void forget_node(const CallPtr& call) {
    act(call, core::NodeAction::Forget);
}

}  // namespace muster::rest
