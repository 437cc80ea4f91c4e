#include "agent/config.h"

#include <gtest/gtest.h>

#include "agent/kept_lease.h"
#include "base/text.h"

namespace muster::agent {
namespace {

TEST(AgentConfig, reads_a_whole_file) {
    const ConfigResult read = parse_config(R"(
name: gpu-17
state_dir: /srv/muster
controller: ctl:7071
labels: {zone: b, leaf: l3}
memory: 64GB
devices:
  - {id: GPU-b, kind: H100, vendor: nvidia, memory: 80GB, numa: 1, files: [/dev/nvidia1]}
  - {id: GPU-a, kind: H100, vendor: nvidia, memory: 80GB, numa: 0, link_group: n0, files: [/dev/nvidia0]}
)",
                                           "agent.yaml");
    EXPECT_EQ(join(read.problems, "\n"), "");
    EXPECT_EQ(read.config.name, "gpu-17");
    ASSERT_EQ(read.config.devices.size(), 2U);
    EXPECT_EQ(read.config.devices[0].id, "GPU-a");
    EXPECT_EQ(read.config.devices[0].kind, "h100");
    EXPECT_EQ(read.config.devices[1].numa, 1);
    EXPECT_EQ(read.config.labels.front().first, "leaf");
    EXPECT_EQ(read.config.memory.value, std::int64_t{64} << 30);
}

TEST(AgentConfig, tells_every_error_at_once_with_its_place) {
    const ConfigResult read = parse_config(
        "nmae: x\nstate_dir: relative\nmemory: -4GB\npids_max: 1\nname: 'a b'\ndevices:\n  - "
        "{kind: h100, files: "
        "[/etc/passwd]}\n  - {id: a}\n  - {id: a}\npeers: 12\n",
        "a.yaml");
    const std::string all = join(read.problems, "\n");
    for (const char* expected :
         {"a.yaml:1:1: nmae: unknown key; did you mean name?",
          "a.yaml:2:12: state_dir: 'relative' is not an absolute path",
          "a.yaml:3:9: memory: ", "a.yaml:4:11: pids_max: ", "a.yaml:5:7: name: only letters",
          "devices[0].id: is missing", "devices[0].files: '/etc/passwd' is not below /dev",
          "devices[2].id: 'a' is another device's already",
          "a.yaml:10:8: peers: '12' is not HOST:PORT"})
        EXPECT_NE(all.find(expected), std::string::npos) << expected << "\nin\n" << all;
    EXPECT_EQ(read.problems.size(), 9U) << all;
}

TEST(AgentConfig, reads_partitions_shares_nics_and_numa) {
    const ConfigResult read = parse_config(R"(
numa: {1: "16-31,48-63", 0: 0-15}
devices:
  - {id: MIG-1, kind: H100, profile: 1G.10GB, parent: GPU-a, memory: 10GB, numa: 0, nics: [mlx5_0, mlx5_1]}
  - {id: GPU-b, kind: h100, memory: 80GB, share_enforced: true}
)",
                                           "a.yaml");
    EXPECT_EQ(join(read.problems, "\n"), "");
    using Nodes = std::vector<model::NumaNode>;
    EXPECT_EQ(read.config.numa, (Nodes{{0, "0-15"}, {1, "16-31,48-63"}}));
    ASSERT_EQ(read.config.devices.size(), 2U);
    EXPECT_TRUE(read.config.devices[0].share_enforced);
    EXPECT_EQ(read.config.devices[1].profile, "1g.10gb");
    EXPECT_EQ(read.config.devices[1].parent, "GPU-a");
    EXPECT_EQ(read.config.devices[1].nics, (std::vector<std::string>{"mlx5_0", "mlx5_1"}));
}

TEST(AgentConfig, tells_what_partitions_and_numa_lack) {
    struct Row {
        const char* yaml;
        const char* problems;
    };
    const Row rows[] = {
        {"devices: [{id: m, profile: 1g.5gb}]",
         "a:1:11: devices[0].parent: is missing; which device is this partition of?"},
        {"devices: [{id: m, parent: g}]",
         "a:1:11: devices[0].profile: is missing; a partition has the id of one"},
        {"devices: [{id: g}, {id: m, parent: g, profile: 1g.5gb}]",
         "a:1:10: devices: 'm' is a partition of 'g', which is listed as a device itself; list one "
         "or the other"},
        {"devices: [{id: m, parent: g, profile: p, share_enforced: true}]",
         "a:1:11: devices[0].share_enforced: a partition is given whole; take it away"},
        {"devices: [{id: m, share_enforced: maybe, nics: mlx5_0}]",
         "a:1:35: devices[0].share_enforced: 'maybe' is not true or false\n"
         "a:1:48: devices[0].nics: must be a list"},
        {"numa: {0: 0-3, 1: 3-7, x: 1, 2: 5-4, 3: ''}",
         "a:1:19: numa.1: CPU 3 is another node's already\n"
         "a:1:27: numa.x: a NUMA node's number must be in 0..1023\n"
         "a:1:33: numa.2: '5-4' is not a list of CPUs, as in 0-15,32-47, all below 8192\n"
         "a:1:41: numa.3: names no CPU"},
        {"numa: 0-3", "a:1:7: numa.: must be a map"},
    };
    for (const Row& row : rows)
        EXPECT_EQ(join(parse_config(row.yaml, "a").problems, "\n"), row.problems) << row.yaml;
}

TEST(AgentConfig, survives_what_is_no_configuration) {
    for (const char* text :
         {"", "[1, 2]", "a: [", "\x01\x02", "devices: 3", "labels: [a]", "devices: [1]"})
        (void)parse_config(text, "a.yaml");
    const std::string schema = spec::config_schema("agent.yaml", config_fields(), device_fields());
    for (const char* field : {"\"devices\"", "\"link_group\"", "\"pull_timeout\""})
        EXPECT_NE(schema.find(field), std::string::npos) << field;
}

TEST(KeptLease, comes_back_whole_in_the_same_boot_only) {
    const node::KeptLease lease{
        .term = 7, .until = Time{123'456}, .rules = {}, .peers = {{"n2", "10.0.0.2", 7072}}};
    const std::string bytes = encode(lease, "boot-1");
    EXPECT_EQ(decode_kept_lease(bytes, "boot-1"), lease);
    EXPECT_EQ(decode_kept_lease(bytes, "boot-2"), std::nullopt);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
        EXPECT_EQ(decode_kept_lease(bytes.substr(0, cut), "boot-1"), std::nullopt);
}

}  // namespace
}  // namespace muster::agent
