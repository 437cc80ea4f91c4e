// Rows of files: what is wrong in each, all of it, with its place.
#include "controller/config.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

struct Row {
    const char* name;
    const char* yaml;
    const char* problems;  // Joined by " | ".
};

TEST(Config, problems_are_told_all_at_once_with_their_place) {
    const Row rows[] = {
        {"empty", "", ""},
        {"good",
         "state_dir: /x\nlisten: ''\nlease: {heartbeat: 500ms, suspect: 2s, lost: 4s, fence: 8s}\n",
         ""},
        {"unknown", "state_dri: /x\n", "f:1:1: state_dri: unknown key; did you mean state_dir?"},
        {"two", "agants: a\nbootstrap: maybe\n",
         "f:1:1: agants: unknown key; did you mean agents? | f:2:12: bootstrap: 'maybe' is not "
         "true "
         "or false"},
        {"order", "lease: {lost: 1s}\n",
         "f:1:8: lease: heartbeat < suspect < lost < fence must hold; they are 1s, 5s, 1s, 30s"},
        {"not_a_map", "- a\n", "f:1:1: the file: must be a map"},
        {"twice", "socket: a\nsocket: b\n", "f:2:1: socket: given twice"},
        {"hosts", "hosts: a\n", "f:1:8: hosts: must be a list"},
        {"queues", "queues: {a: {wieght: 2}}\nschedulng: {}\nsocket: [\"x\"]\n",
         "f:2:1: schedulng: unknown key; did you mean scheduling? | f:3:9: socket: must be text | "
         "f:1:14: queues.a.wieght: unknown key; did you mean weight?"},
        {"rules", "scheduling: {bookings: 0}\n",
         "f:1:24: scheduling.bookings: 0: must be a whole number in 1..256"},
        {"topology", "topology: {level: [a]}\n",
         "f:1:11: topology: levels, file or tree is missing, as in {levels: [zone, leaf]} | "
         "f:1:12: topology.level: unknown key; did you mean levels?"},
        {"levels", "topology: {levels: [node]}\n",
         "f:1:20: topology.levels: node: a level of this name is always there; leave it out"},
        {"no_file", "topology: {file: /no/such/file}\n",
         "f:1:18: topology.file: /no/such/file: cannot be read: No such file or directory"},
        {"relative", "topology: {file: topology.conf}\n",
         "f:1:18: topology.file: topology.conf: must be an absolute path"},
        {"format", "topology: {file: /x, format: xml}\n",
         "f:1:30: topology.format: xml: must be auto, yaml, slurm, ib or csv"},
        {"both", "topology: {file: /x, tree: {a: [n1]}}\n",
         "f:1:18: topology: file and tree cannot both be given"},
        {"host_twice", "topology: {tree: {a: [n1], b: [n1]}}\n",
         "f:1:32: host n1 has a place already"},
    };
    for (const Row& row : rows) {
        const auto read = parse_config(row.yaml, "f");
        std::string all;
        for (const auto& problem : read.problems) all += (all.empty() ? "" : " | ") + problem;
        EXPECT_EQ(all, row.problems) << row.name;
    }
}

TEST(Config, numbers_out_of_range_and_broken_yaml_are_refused) {
    EXPECT_EQ(parse_config("events_kept: -1\n", "f").problems.size(), 1u);
    EXPECT_EQ(parse_config("events_kept: 9223372036854775808\n", "f").problems.size(), 1u);
    EXPECT_EQ(parse_config("watermark: -5GB\n", "f").problems.size(), 1u);
    EXPECT_EQ(parse_config("a: [\n", "f").problems.size(), 1u);
    EXPECT_EQ(parse_config("lease: {heartbeat: 1ms}\n", "f").problems.size(), 1u);
}

TEST(Config, queues_rules_and_topology_are_part_of_it) {
    const auto read = parse_config(
        "jobs_max: 5\nqueues: {research: {weight: 2, queues: {nlp: {}}}, batch: {policy: fifo}}\n"
        "scheduling: {half_life: 3d, speeds: {a100: 0.45}}\ntopology: {levels: [zone, leaf]}\n",
        "f");
    ASSERT_TRUE(read.problems.empty()) << read.problems[0];
    const spec::ClusterParts& cluster = read.config.cluster;
    ASSERT_EQ(cluster.queues.size(), 3u);
    EXPECT_EQ(cluster.queues[2].name, "research/nlp");
    ASSERT_TRUE(cluster.rules);
    EXPECT_EQ(cluster.rules->kind_speeds.at(0).second, 450);
    ASSERT_TRUE(cluster.topology);
    EXPECT_EQ(cluster.topology->levels, (std::vector<std::string>{"zone", "leaf"}));
    EXPECT_TRUE(cluster.topology->hosts.empty());

    const auto flat = parse_config("queues: [prod, dev]\n", "f");
    ASSERT_TRUE(flat.problems.empty());
    EXPECT_EQ(flat.config.cluster.queues.at(0).name, "dev");
    EXPECT_FALSE(flat.config.cluster.rules);
    EXPECT_FALSE(flat.config.cluster.topology);

    const auto tree = parse_config("topology: {tree: {s: {l1: [\"n[1-2]\"], l2: [n3]}}}\n", "f");
    ASSERT_TRUE(tree.problems.empty());
    EXPECT_EQ(tree.config.cluster.topology->hosts.at("n2"), (std::vector<std::string>{"s", "l1"}));
}

TEST(Config, a_topology_file_is_read_with_it) {
    const std::string path = std::string(MUSTER_BINARY_DIR) + "/topology_of_config_test.conf";
    std::ofstream(path) << "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\n";
    const auto good = parse_config("topology: {file: " + path + ", levels: [rack]}\n", "f");
    ASSERT_TRUE(good.problems.empty()) << good.problems[0];
    EXPECT_EQ(good.config.cluster.topology->levels, std::vector<std::string>{"rack"});
    EXPECT_EQ(good.config.cluster.topology->hosts.size(), 3u);
    std::ofstream(path) << "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nods=n3\n";
    const auto bad = parse_config("topology: {file: " + path + "}\nwatermark: x\n", "f");
    ASSERT_EQ(bad.problems.size(), 2u);
    EXPECT_EQ(bad.problems[1], path + ":2:1: nods: unknown key; did you mean nodes?");
    std::filesystem::remove(path);
}

TEST(Config, what_is_given_is_taken) {
    const auto read =
        parse_config("jobs_max: 5\nwatermark: 1GiB\nhosts: [a, b]\nlease: {fence: 60s}\n", "f");
    ASSERT_TRUE(read.problems.empty());
    EXPECT_EQ(read.config.settings.jobs_max, 5);
    EXPECT_EQ(read.config.watermark.value, std::int64_t{1} << 30);
    EXPECT_EQ(read.config.hosts, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(read.config.settings.lease.fence, seconds(60));
    EXPECT_EQ(read.config.settings.lease.lost, seconds(15));
}

}  // namespace
}  // namespace muster::controller
