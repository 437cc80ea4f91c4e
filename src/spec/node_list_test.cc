#include "spec/node_list.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace muster::spec {
namespace {

std::string text_of(const NodeList& list) {
    std::string out;
    for (const Problem& problem : list.problems) out += render_line(problem) + "\n";
    if (!list.problems.empty()) return out;
    for (const NodeGroup& group : list.groups) {
        out += std::to_string(group.count) + " " + group.name + " " +
               std::to_string(group.devices) + "x" + group.kind + " cpus " +
               format_cpus(group.cpus) + " memory " + format_bytes(group.memory);
        for (const auto& [key, value] : group.labels) out += " " + key + "=" + value;
        for (const auto& [level, size] : group.blocks)
            out += " " + level + "/" + std::to_string(size);
        out += "\n";
    }
    for (const DrawOfKind& draw : list.draws)
        out += draw.kind + " " + std::to_string(draw.idle_w) + ".." + std::to_string(draw.busy_w) +
               " W\n";
    return out + "node " + std::to_string(list.node_w) + " W, pue " +
           std::to_string(list.pue_thousandths) + "\n";
}

struct Row {
    const char* name;
    const char* yaml;
    const char* want;
    friend void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
};
class NodeLists : public testing::TestWithParam<Row> {};
TEST_P(NodeLists, reads) {
    EXPECT_EQ(text_of(read_node_list(GetParam().yaml, "c.yaml")), GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, NodeLists,
    testing::Values(
        Row{"defaults", "nodes: [{gpus: H100:8}]",
            "1 node 8xh100 cpus 64 memory 512GiB\nnode 300 W, pue 1200\n"},
        Row{"everything",
            "nodes:\n"
            "- {count: 64, name: h, gpus: h100:8, cpus: 96.5, memory: 1TB, labels: {pool: a}, "
            "blocks: {leaf: 16}}\n"
            "- {count: 2, name: c, gpus: 0}\n"
            "power: {h100: {idle: 70, busy: 700}, node: 500, pue: 1.25}\n"
            "queues: {a: {}}\nscheduling: {}\ntopology: {levels: [leaf]}\n",
            "64 h 8xh100 cpus 96.5 memory 1TiB pool=a leaf/16\n"
            "2 c 0x cpus 64 memory 512GiB\n"
            "h100 70..700 W\nnode 500 W, pue 1250\n"},
        Row{"no nodes", "power: {node: 1}",
            "c.yaml:1:1: error: nodes are missing, as in nodes: [{count: 16, gpus: h100:8}]\n"},
        Row{"empty", "",
            "c.yaml:1:1: error: a map expected, as in nodes: [{count: 16, gpus: h100:8}]\n"},
        Row{"a misspelt key", "node: [{}]",
            "c.yaml:1:1: error: node: unknown key; did you mean nodes?\n"
            "c.yaml:1:1: error: nodes are missing, as in nodes: [{count: 16, gpus: h100:8}]\n"},
        Row{"out of bounds", "nodes: [{count: 0, gpus: h100:9999}]",
            "c.yaml:1:17: error: nodes[0].count: 0: must be a whole number in 1..100000\n"
            "c.yaml:1:26: error: nodes[0].gpus: h100:9999: must be KIND:N, N in 1..1024 "
            "(h100:8)\n"},
        Row{"two groups of one name", "nodes: [{count: 1}, {count: 2}]",
            "c.yaml:1:1: error: two groups of nodes are named node; give each a name of its own\n"},
        Row{"power", "nodes: [{}]\npower: {pue: 0.9, h100: {idle: 9, busy: 1}}",
            "c.yaml:2:14: error: power.pue: must be a number in 1..10 with at most three decimals\n"
            "c.yaml:2:25: error: power.h100: busy is below idle, 9 W\n"}));

}  // namespace
}  // namespace muster::spec
