// Our own tree: {levels: [zone, leaf], tree: {a: {l1: ["n[1-4]"], l2: [n5]}}}.
#include <algorithm>

#include "spec/host_list.h"
#include "spec/topology_builder.h"

namespace muster::spec {
namespace {

constexpr std::size_t kHostsMax = std::size_t{1} << 20;

/// How many levels of domains there are above the deepest list of hosts.
std::size_t depth_of(const Value& tree) {
    if (tree.kind != Value::Kind::Map) return 0;
    std::size_t depth = 0;
    for (const Entry& entry : tree.entries) depth = std::max(depth, depth_of(entry.value));
    return depth + 1;
}

class TreeReader {
public:
    explicit TreeReader(TopologyBuilder& out) : out_(out) {}

    void read(const Value& value, std::size_t depth) {
        const std::size_t levels = out_.reading.topology.levels.size();
        switch (value.kind) {
            case Value::Kind::Null: return;  // A domain without hosts yet.
            case Value::Kind::Scalar: return hosts(value);
            case Value::Kind::List:
                for (const Value& item : value.items) {
                    if (item.kind == Value::Kind::Scalar)
                        hosts(item);
                    else
                        out_.fail(item.at, "a list holds hosts; a domain is a key of a map");
                }
                return;
            case Value::Kind::Map: break;
        }
        if (depth >= levels)
            return out_.fail(value.at, "deeper than the " + std::to_string(levels) +
                                           (levels == 1 ? " level (" : " levels (") +
                                           join(out_.reading.topology.levels, ", ") +
                                           "); hosts are expected here, as in [n1, \"n[2-8]\"]");
        std::vector<std::string_view> seen;
        for (const Entry& entry : value.entries) {
            if (std::find(seen.begin(), seen.end(), entry.key) != seen.end()) {
                out_.fail(entry.at, shorten(entry.key) + ": given twice");
                continue;
            }
            seen.push_back(entry.key);
            if (!entry.key.empty() && !is_domain_name(entry.key)) {
                out_.fail(entry.at,
                          shorten(entry.key) + ": not a domain's name; at most 128 bytes");
                continue;
            }
            path_.push_back(entry.key);
            read(entry.value, depth + 1);
            path_.pop_back();
        }
    }

private:
    void hosts(const Value& value) {
        const auto names = expand_host_list(value.text, kHostsMax);
        if (!names) return out_.fail(value.at, names.error().message);
        std::vector<std::string> path = path_;
        path.resize(out_.reading.topology.levels.size());  // In no domain of the levels below.
        for (const std::string& name : *names) out_.add_host(value.at, name, path);
    }

    TopologyBuilder& out_;
    std::vector<std::string> path_;
};

}  // namespace

void read_topology_tree(TopologyBuilder& out, const Value& tree, std::vector<std::string> levels) {
    if (tree.kind != Value::Kind::Map)
        return out.fail(tree.at, "tree: a map of domains expected, as in {leaf1: [n1, n2]}");
    const std::size_t depth = depth_of(tree);
    if (depth > model::kTopologyLevelsMax)
        return out.fail(tree.at, "tree: deeper than the limit of " +
                                     std::to_string(model::kTopologyLevelsMax) + " levels");
    if (levels.empty()) levels = out.site_levels();
    if (levels.empty()) levels = usual_levels(depth);
    if (levels.size() < depth) {
        // Told where it is too deep, with the place of it.
        out.reading.topology.levels = levels;
    } else if (!out.use_levels(levels, tree.at)) {
        return;
    }
    TreeReader(out).read(tree, 0);
}

void read_topology_yaml(TopologyBuilder& out) {
    const Tree tree = read_yaml(out.text(), 0);
    if (const auto* error = std::get_if<SyntaxError>(&tree))
        return out.fail(error->at, error->message);
    const Value& root = std::get<Value>(tree);
    if (root.kind != Value::Kind::Map)
        return out.fail(root.at,
                        "not a topology; a map expected, as in {levels: [zone, leaf], tree: {a: "
                        "{leaf1: [n1, \"n[2-8]\"]}}}");
    const Value* domains = nullptr;
    std::vector<std::string> levels;
    for (const Entry& entry : root.entries) {
        if (entry.key == "tree") {
            domains = &entry.value;
        } else if (entry.key == "levels") {
            for (const Value& item : entry.value.items) levels.push_back(item.text);
            if (const std::string error = level_names_error(levels); !error.empty())
                return out.fail(entry.value.at, "levels: " + error);
        } else {
            static const std::string kKnown[] = {"levels", "tree"};
            const std::string near = nearest(entry.key, kKnown);
            out.fail(entry.at, shorten(entry.key) + ": unknown key; " +
                                   (near.empty() ? "known here: levels, tree"
                                                 : "did you mean " + near + "?"));
        }
    }
    if (domains != nullptr) return read_topology_tree(out, *domains, std::move(levels));
    out.fail(root.at, "tree is missing: the domains and their hosts");
}

}  // namespace muster::spec
