// Rows: what a job says of where and on what it runs. Elastic nodes, parts of devices, topology.
#include <gtest/gtest.h>

#include "base/text.h"
#include "spec/parse.h"
#include "spec/render.h"

namespace muster::spec {
namespace {

struct Row {
    const char* text;      // Beside "run: x".
    const char* expected;  // The normal form without name and run; after "!" the problems.
};

std::string answer(std::string_view text) {
    const auto parsed = parse_job("run: x\n" + std::string(text) + "\n", ParseOptions{});
    if (const auto* problems = std::get_if<Problems>(&parsed)) {
        std::string out = "!";
        for (const Problem& problem : *problems)
            out += (out.size() > 1 ? " | " : "") + std::to_string(problem.line) + ":" +
                   std::to_string(problem.column) + ": " + problem.message;
        return out;
    }
    std::string out;
    const std::string form = to_yaml(std::get<model::JobSpec>(parsed));
    for (const std::string_view line : split(form, '\n'))
        if (!line.empty() && line != "name: x" && line != "run: x")
            out += (out.empty() ? "" : "\n") + std::string(line);
    return out;
}

void expect(std::initializer_list<Row> rows) {
    for (const Row& row : rows) EXPECT_EQ(answer(row.text), row.expected) << row.text;
}

TEST(Placement, ElasticNodes) {
    expect({
        {"nodes: 4..16", "nodes: 4..16"},
        {"nodes: \"1..2\"", "nodes: 1..2"},
        {"nodes: 4..4",
         "!2:8: nodes: 4..4: must be MIN..MAX, rising and within 1..1048576 (4..16); a job that is "
         "not elastic has one number"},
        {"nodes: 0..4",
         "!2:8: nodes: 0..4: must be MIN..MAX, rising and within 1..1048576 (4..16); a job that is "
         "not elastic has one number"},
        {"nodes: 4..1048577",
         "!2:8: nodes: 4..1048577: must be MIN..MAX, rising and within 1..1048576 (4..16); a job "
         "that is not elastic has one number"},
        {"nodes: 4..",
         "!2:8: nodes: 4..: must be MIN..MAX, rising and within 1..1048576 (4..16); a job that is "
         "not elastic has one number"},
        {"roles: {a: {nodes: 2..4}, b: {}}",
         "roles:\n  a:\n    nodes: 2..4\n    run: x\n  b:\n    run: x"},
        {"roles: {a: {}, b: {nodes: 2..4}}",
         "!2:27: roles.b.nodes: 2..4: only the first role, a, may be elastic; give one number"},
        {"nodes: 2..4\nroles: {a: {}, b: {}}",
         "!2:8: roles.b.nodes: 2..4: only the first role, a, may be elastic; give one number"},
        {"nodes: 1..1048576\nroles: {a: {}, b: {nodes: 1}}",
         "!3:8: roles: 1048577 nodes in all, over the limit of 1048576"},
        {"nodes: 1..4\nlaunch: per-node", "nodes: 1..4\nlaunch: per-node"},
        {"nodes: 1..4\nlaunch: torchrun", "nodes: 1..4"},
    });
}

TEST(Placement, PartsOfDevices) {
    expect({
        {"gpus: 0.5", "gpus: {fraction: 0.5}"},
        {"gpus: h100:0.125", "gpus: {kind: h100, fraction: 0.125}"},
        {"gpus: [h100:0.5, {kind: a100, fraction: 0.75}]",
         "gpus: [{kind: h100, fraction: 0.5}, {kind: a100, fraction: 0.75}]"},
        {"gpus: {share: 10GB, vendor: NVIDIA}", "gpus: {share: 10GiB, vendor: nvidia}"},
        {"gpus: {kind: a100, profile: 1g.10gb}", "gpus: {kind: a100, profile: \"1g.10gb\"}"},
        {"gpus: {kind: any, count: 2, vendor: any}", "gpus: 2"},
        {"gpus: any:8", "gpus: 8"},
        {"gpus: {memory: \">=40Gi\", count: 2}", "gpus: {count: 2, memory: 40GiB}"},
        {"gpus: {memory: 40GB}", "gpus: {count: 1, memory: 40GiB}"},
        {"gpus: 80GB:1", "gpus: {count: 1, memory: 80GiB}"},
        {"gpus: {fraction: 0.0005}", "!2:18: gpus.fraction: 0.0005: must be in 0.001..0.999"},
        {"gpus: {fraction: 0}", "!2:18: gpus.fraction: 0: must be in 0.001..0.999"},
        {"gpus: {fraction: 1}", "!2:18: gpus.fraction: 1: must be in 0.001..0.999"},
        {"gpus: {fraction: 0.999}", "gpus: {fraction: 0.999}"},
        {"gpus: {fraction: 50%}", "!2:18: gpus.fraction: 50%: must be in 0.001..0.999"},
        {"gpus: {fraction: -0.5}", "!2:18: gpus.fraction: -0.5: must be in 0.001..0.999"},
        {"gpus: 0.0",
         "!2:7: gpus: 0.0: the number of devices per node must be in 1..1024; part of one device "
         "is a number in 0.001..0.999"},
        {"gpus: {fraction: 0.5, count: 2}",
         "!2:7: gpus: count 2 with fraction: part of a device is of one device; take count away"},
        {"gpus: {fraction: 0.5, share: 4GB, profile: 1g.5gb}",
         "!2:7: gpus: fraction and share and profile: each is part of a device; give one of them"},
        {"gpus: {fracton: 0.5}", "!2:8: gpus.fracton: unknown key; did you mean fraction?"},
        {"fraction: 0.5", "!2:1: fraction: unknown key; did you mean gpus?"},
        {"gpus: 0.5\nshare_unenforced: true", "gpus: {fraction: 0.5}\nshare_unenforced: true"},
        {"gpus: [h100:8, a100:8]\nkinds: mixed", "gpus: [h100:8, a100:8]\nkinds: mixed"},
        {"kinds: one", ""},
        {"kinds: many", "!2:8: kinds: many: must be one or mixed"},
        {"preemptible: false", "preemptible: false"},
        {"preemptible: true", ""},
        {"preemptible: no", "!2:14: preemptible: no: must be true or false"},
    });
}

TEST(Placement, Topology) {
    expect({
        {"topology: leaf", "topology: {required: leaf}"},
        {"nodes: 16\ntopology: {required: leaf, preferred: nvlink, slice: {size: 8, required: "
         "nvlink}, spares: 1}",
         "nodes: 16\ntopology: {required: leaf, preferred: nvlink, slice: {size: 8, required: "
         "nvlink}, spares: 1}"},
        {"topology: {required: none, preferred: nvlink}", "topology: {preferred: nvlink}"},
        {"topology: none", ""},
        {"topology: {}",
         "!2:11: topology: empty; name a level, as in {required: leaf}, or leave "
         "it out"},
        {"topology: {requird: leaf}",
         "!2:12: topology.requird: unknown key; did you mean required?"},
        {"topology: a b",
         "!2:11: topology: a b: not the name of a level; at most 64 letters, digits and . _ - / "
         "(leaf)"},
        {"topology: cluster",
         "!2:11: topology: cluster: all nodes are in the cluster; leave it out"},
        {"topology: [leaf]", "!2:11: topology: one value expected, not a list"},
        {"topology: node", "topology: {required: node}"},
        {"nodes: 2\ntopology: node",
         "!3:11: topology: required node: 2 nodes cannot be inside one"},
        {"nodes: 1..2\ntopology: node",
         "!3:11: topology: required node: 2 nodes cannot be inside one"},
        {"nodes: 12\ntopology: {slice: {size: 8, required: nvlink}}",
         "!3:11: topology: slice.size 8 does not divide the job's 12 nodes"},
        {"nodes: 8..12\ntopology: {slice: {size: 8, required: nvlink}}",
         "!3:11: topology: slice.size 8 does not divide the job's 12 nodes"},
        {"topology: {slice: {size: 1}}", "!2:19: topology.slice: required is missing"},
        {"topology: {slice: {required: nvlink}}", "!2:19: topology.slice: size is missing"},
        {"topology: {slice: 8}",
         "!2:19: topology.slice: a map expected, as in {size: 8, required: nvlink}"},
        {"topology: {slice: {size: 0, required: leaf}}",
         "!2:26: topology.slice.size: 0: must be a whole number in 1..1048576"},
        {"topology: {slice: {size: 1, required: none}}",
         "!2:39: topology.slice.required: none: name the level that holds each slice, or take "
         "slice away"},
        {"nodes: 2\ntopology: {slice: {size: 2, required: node}}",
         "!3:11: topology: slice.required node: 2 nodes cannot be inside one"},
        {"nodes: 4\ntopology: {spares: 4}", "nodes: 4\ntopology: {spares: 4}"},
        {"nodes: 4..8\ntopology: {spares: 5}",
         "!3:11: topology: spares 5: more than the job's 4 nodes"},
        {"topology: {spares: -1}",
         "!2:20: topology.spares: -1: must be a whole number in 0..1048576"},
    });
}

TEST(Placement, Flags) {
    const std::vector<FlagText> flags = {{"nodes", "2..4"},
                                         {"topology", "leaf"},
                                         {"kinds", "mixed"},
                                         {"preemptible", "false"},
                                         {"share-unenforced", "true"},
                                         {"gpus", "{kind: h100, share: 8GB}"}};
    const auto parsed = parse_job("run: x\ntopology: {required: zone}", flags, {}, ParseOptions{});
    ASSERT_EQ(parsed.index(), 0u) << render(std::get<Problems>(parsed));
    EXPECT_EQ(to_yaml(std::get<model::JobSpec>(parsed)),
              "name: x\nnodes: 2..4\ngpus: {kind: h100, share: 8GiB}\nkinds: mixed\n"
              "share_unenforced: true\nrun: x\ntopology: {required: leaf}\npreemptible: false\n");
}

}  // namespace
}  // namespace muster::spec
