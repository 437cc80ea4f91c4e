#include "os/cpu_list.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

namespace muster::os {
namespace {

TEST(CpuList, ReadsAndWritesLinuxLists) {
    struct Row {
        const char* text;
        const char* expected;  // "!": refused.
    };
    const Row rows[] = {{"0-15,32-47\n", "0-15,32-47"},
                        {"0", "0"},
                        {"", ""},
                        {"3,1,2,7,2-4", "1-4,7"},
                        {"0-8191", "0-8191"},
                        {"0-8192", "!"},
                        {"4-2", "!"},
                        {"a", "!"},
                        {"1,,2", "!"},
                        {"1-", "!"},
                        {"-1", "!"},
                        {"0-3:1/2", "!"}};
    for (const Row& row : rows) {
        const auto cpus = parse_cpu_list(row.text);
        EXPECT_EQ(cpus ? format_cpu_list(*cpus) : "!", row.expected) << row.text;
    }
}

TEST(CpuList, ReadsNumaNodesFromATreeOfSysfs) {
    const std::filesystem::path root =
        std::filesystem::path(MUSTER_BINARY_DIR) / ("numa_" + std::to_string(::getpid()));
    const auto write = [&](const char* name, const char* text) {
        const auto folder = root / "sys/devices/system/node" / name;
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "cpulist") << text;
    };
    EXPECT_TRUE(read_numa(root, {}).empty());
    write("node10", "64-95\n");
    write("node0", "0-3,8-11\n");
    write("node1", "\n");  // Memory alone.
    write("power", "0\n");
    using Nodes = std::vector<model::NumaNode>;
    EXPECT_EQ(read_numa(root, {}), (Nodes{{0, "0-3,8-11"}, {10, "64-95"}}));
    EXPECT_EQ(read_numa(root, {2, 3, 8}), (Nodes{{0, "2-3,8"}}));
    std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace muster::os
