#include "spec/node_list.h"

#include <algorithm>

#include "spec/parse.h"
#include "spec/place.h"
#include "spec/reader.h"
#include "spec/tree.h"

namespace muster::spec {
namespace {

constexpr std::size_t kFileMax = std::size_t{16} << 20;
constexpr std::int64_t kWattsMax = 1'000'000;

const std::vector<std::string> kKeys = {"nodes", "power", "queues", "scheduling", "topology"};
const std::vector<std::string> kGroupKeys = {"count", "name",   "gpus",   "gpu_memory",
                                             "cpus",  "memory", "labels", "blocks"};

bool good_word(std::string_view word) {
    return !word.empty() && word.size() <= 64 &&
           word.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
               "._+-") == std::string_view::npos;
}

class NodeListReader : public Reader {
public:
    NodeListReader(std::span<const Source> sources, NodeList& out) : Reader(sources), out_(out) {}

    void read(const Value& root) {
        if (root.kind != Value::Kind::Map)
            return fail(root, "a map expected, as in nodes: [{count: 16, gpus: h100:8}]");
        bool any = false;
        for (const Entry& entry : root.entries) {
            if (std::ranges::find(kKeys, entry.key) == kKeys.end()) {
                fail_unknown(entry, kKeys);
                continue;
            }
            const Within within(*this, entry.key);
            if (entry.key == "nodes") {
                any = true;
                std::size_t index = 0;
                for (const Value& item : items(entry.value)) {
                    const Within group(*this, index++);
                    read_group(item);
                }
            }
            if (entry.key == "power") read_power(entry.value);
        }
        if (!any)
            fail(root, errors::kJobFieldMissing,
                 "nodes are missing, as in nodes: [{count: 16, gpus: h100:8}]");
        check_whole(root);
    }

private:
    void read_group(const Value& map) {
        NodeGroup group;
        for (const Entry& entry : entries(map, "{count: 16, gpus: h100:8}")) {
            if (std::ranges::find(kGroupKeys, entry.key) == kGroupKeys.end()) {
                fail_unknown(entry, kGroupKeys);
                continue;
            }
            const Within within(*this, entry.key);
            read_part(group, entry.key, entry.value);
        }
        out_.groups.push_back(std::move(group));
    }

    void read_part(NodeGroup& group, const std::string& key, const Value& value) {
        if (key == "count") {
            group.count = integer(value, 1, kPaperNodesMax).value_or(1);
        } else if (key == "name") {
            const auto word = scalar(value);
            if (word && !good_word(*word))
                fail(value, shorten(*word) + ": at most 64 letters, digits and . _ -");
            if (word) group.name = *word;
        } else if (key == "gpus") {
            read_devices(group, value);
        } else if (key == "gpu_memory") {
            group.device_memory = bytes(value, kBytesMax).value_or(Bytes{});
        } else if (key == "cpus") {
            if (const auto text = scalar(value)) {
                const auto cpus = parse_cpus(*text);
                if (!cpus)
                    fail(value, cpus.error());
                else
                    group.cpus = *cpus;
            }
        } else if (key == "memory") {
            group.memory = bytes(value, kBytesMax).value_or(Bytes{});
        } else if (key == "labels") {
            for (const Entry& entry : entries(value, "{pool: a}"))
                if (const auto text = scalar(entry.value))
                    group.labels.emplace_back(entry.key, std::string(*text));
            std::ranges::sort(group.labels);
        } else {
            for (const Entry& entry : entries(value, "{leaf: 16}"))
                if (const auto size = integer(entry.value, 1, kPaperNodesMax))
                    group.blocks.emplace_back(entry.key, *size);
        }
    }

    void read_devices(NodeGroup& group, const Value& value) {
        const auto text = scalar(value);
        if (!text || *text == "0") return;
        const std::size_t colon = text->rfind(':');
        const auto kind = lower(text->substr(0, colon));
        const auto count = colon == std::string_view::npos
                               ? Result<std::int64_t>(Error{})
                               : parse_integer(text->substr(colon + 1), 1, 1024);
        if (!count || !good_word(kind))
            return fail(value, shorten(*text) + ": must be KIND:N, N in 1..1024 (h100:8)");
        group.kind = kind;
        group.devices = *count;
    }

    void read_power(const Value& map) {
        for (const Entry& entry : entries(map, "{h100: {idle: 70, busy: 700}, pue: 1.2}")) {
            const Within within(*this, entry.key);
            if (entry.key == "node") {
                out_.node_w = integer(entry.value, 0, kWattsMax).value_or(0);
            } else if (entry.key == "pue") {
                const auto text = scalar(entry.value);
                const auto pue = text ? parse_cpus(*text) : Result<MilliCpu>(Error{});
                if (!pue || pue->value < 1000 || pue->value > 10'000)
                    fail(entry.value, "must be a number in 1..10 with at most three decimals");
                else
                    out_.pue_thousandths = pue->value;
            } else {
                DrawOfKind draw{.kind = lower(entry.key)};
                for (const Entry& part : entries(entry.value, "{idle: 70, busy: 700}")) {
                    const Within inside(*this, part.key);
                    if (part.key != "idle" && part.key != "busy") {
                        fail_unknown(part, std::vector<std::string>{"idle", "busy"});
                        continue;
                    }
                    const std::int64_t watts = integer(part.value, 0, kWattsMax).value_or(0);
                    (part.key == "idle" ? draw.idle_w : draw.busy_w) = watts;
                }
                if (draw.busy_w < draw.idle_w)
                    fail(entry.value, "busy is below idle, " + std::to_string(draw.idle_w) + " W");
                out_.draws.push_back(std::move(draw));
            }
        }
    }

    void check_whole(const Value& root) {
        std::int64_t nodes = 0;
        for (const NodeGroup& group : out_.groups) nodes += group.count;
        if (nodes > kPaperNodesMax)
            fail(root, std::to_string(nodes) + " nodes, over the limit of " +
                           std::to_string(kPaperNodesMax));
        for (std::size_t i = 0; i < out_.groups.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (out_.groups[i].name == out_.groups[j].name)
                    return fail(root, errors::kJobFieldsConflict,
                                "two groups of nodes are named " + out_.groups[i].name +
                                    "; give each a name of its own");
    }

    NodeList& out_;
};

}  // namespace

NodeList read_node_list(std::string_view yaml, const std::string& file) {
    NodeList out;
    const std::vector<Source> sources = {{file, false, yaml}};
    if (auto bad = check_text(sources[0], kFileMax, "a cluster file")) {
        out.problems.push_back(std::move(*bad));
        return out;
    }
    const Tree tree = read_yaml(yaml, 0);
    if (const auto* error = std::get_if<SyntaxError>(&tree)) {
        out.problems.push_back(
            problem_in(sources[0], error->at, errors::kJobSyntax, error->message));
        return out;
    }
    NodeListReader reader(sources, out);
    reader.read(std::get<Value>(tree));
    out.problems = std::move(reader).problems();
    return out;
}

}  // namespace muster::spec
