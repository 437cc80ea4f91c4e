// What a task is told of its devices, its gang and where they stand.
#include "os/environment.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "os/order_file.h"

namespace muster::os {
namespace {

using Strings = std::vector<std::string>;

struct Job {
    protocol::StartTask order;
    model::JobSpec spec;
    std::vector<model::Device> devices;
    std::set<std::string> interfaces;
    std::string cpus;

    Job() {
        spec.roles = {model::Role{.nodes = 2, .nodes_max = 2, .run = "true"}};
        order.key = {.job = JobId{7}, .epoch = 3, .rank = 1};
        order.levels = {"zone", "leaf"};
        order.gang = std::make_shared<const protocol::Gang>(
            protocol::Gang{{.name = "a1", .address = "10.0.0.1", .slots = 2, .path = {"a", "l1"}},
                           {.name = "a2", .address = "10.0.0.2", .slots = 2, .path = {"a", ""}}});
    }
    EnvironmentAsk ask() const {
        return {.order = order,
                .spec = spec,
                .user = {},
                .devices = devices,
                .interface = "eth0",
                .cpus = cpus,
                .interfaces = interfaces,
                .shell = "/bin/sh",
                .socket = {},
                .notice_file = {},
                .topology_file = "/run/topology.json",
                .host_file = {},
                .scratch = {},
                .machine_file = {},
                .launch_file = {},
                .launch_bin = {},
                .checkpoint_dir = {},
                .latest_checkpoint = {}};
    }
    /// With what is known at the barrier's end.
    Strings variables() const {
        Strings all = task_environment(ask());
        const Strings master = master_environment(ask(), "10.0.0.1", 4711);
        all.insert(all.end(), master.begin(), master.end());
        return all;
    }
};

model::Device nvidia(std::string id) {
    return {.id = std::move(id), .kind = "h100", .vendor = "nvidia", .numa = 1};
}

struct Row {
    const char* name;
    void (*change)(Job&);
    Strings want;    // "NAME=VALUE"
    Strings absent;  // "NAME"
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

class Environment : public testing::TestWithParam<Row> {};
TEST_P(Environment, says_what_is_and_nothing_else) {
    Job job;
    GetParam().change(job);
    const Strings all = job.variables();
    std::string text;
    for (const std::string& variable : all) text += variable + "\n";
    for (const std::string& want : GetParam().want)
        EXPECT_NE(std::find(all.begin(), all.end(), want), all.end()) << want << " is not in\n"
                                                                      << text;
    for (const std::string& name : GetParam().absent)
        EXPECT_EQ(("\n" + text).find("\n" + name + "="), std::string::npos) << text;
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Environment,
    testing::Values(
        Row{"a_gang_of_one_size",
            [](Job& job) { job.spec.launch = model::Launch::Torchrun; },
            {"PET_NNODES=2", "PET_NODE_RANK=1", "PET_MASTER_ADDR=10.0.0.1", "MUSTER_NUM_NODES=2",
             "MUSTER_NODE_HOSTS=a1,a2", "MUSTER_TOPOLOGY_FILE=/run/topology.json"},
            {"PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_RDZV_ID", "PET_MAX_RESTARTS"}},
        Row{"an_elastic_one_meets_at_a_rendezvous_of_its_attempt",
            [](Job& job) {
                job.spec.launch = model::Launch::Torchrun;
                job.spec.roles[0].nodes_max = 4;
                job.spec.roles[0].nodes = 1;
            },
            {"PET_NNODES=1:4", "PET_RDZV_BACKEND=c10d", "PET_RDZV_ENDPOINT=10.0.0.1:4711",
             "PET_RDZV_ID=7-3", "PET_MAX_RESTARTS=0", "MUSTER_NUM_NODES=2", "NNODES=2",
             "PET_NPROC_PER_NODE=2"},
            {}},
        Row{"an_elastic_one_without_torchrun_has_none",
            [](Job& job) { job.spec.roles[0].nodes_max = 4; },
            {"NNODES=2"},
            {"PET_NNODES", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT"}},
        Row{"the_jobs_own_variables_win",
            [](Job& job) {
                job.spec.launch = model::Launch::Torchrun;
                job.spec.roles[0].nodes_max = 4;
                job.spec.env = {{"PET_MAX_RESTARTS", "3"}, {"PET_RDZV_ENDPOINT", "x:1"}};
            },
            {"PET_MAX_RESTARTS=3", "PET_RDZV_ENDPOINT=x:1"},
            {}},
        Row{"whole_devices",
            [](Job& job) {
                job.devices = {nvidia("GPU-0"), nvidia("GPU-1")};
            },
            {"CUDA_VISIBLE_DEVICES=GPU-0,GPU-1"},
            {"MUSTER_GPU_FRACTION", "MUSTER_GPU_MEMORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
             "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "NCCL_IB_HCA"}},
        Row{"a_part_of_one_that_nothing_enforces",
            [](Job& job) {
                job.devices = {nvidia("GPU-0")};
                job.order.device_share = 250;
                job.order.device_memory = Bytes{std::int64_t{20} << 30};
            },
            {"CUDA_VISIBLE_DEVICES=GPU-0", "MUSTER_GPU_FRACTION=0.25",
             "MUSTER_GPU_MEMORY=21474836480"},
            {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"}},
        Row{"a_part_of_one_that_mps_keeps_apart",
            [](Job& job) {
                job.devices = {nvidia("GPU-0")};
                job.devices[0].share_enforced = true;
                job.order.device_share = 505;
                job.order.device_memory = Bytes{std::int64_t{20} << 30};
            },
            {"MUSTER_GPU_FRACTION=0.505", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50",
             "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20480M"},
            {}},
        Row{"a_part_of_another_vendors_is_not_of_mps",
            [](Job& job) {
                job.devices = {nvidia("GPU-0")};
                job.devices[0].vendor = "amd";
                job.devices[0].share_enforced = true;
                job.order.device_share = 1000;
            },
            {"MUSTER_GPU_FRACTION=1", "ROCR_VISIBLE_DEVICES=GPU-0"},
            {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"}},
        Row{"a_partition_is_seen_by_its_own_id",
            [](Job& job) {
                job.devices = {nvidia("MIG-1")};
                job.devices[0].profile = "1g.10gb";
                job.devices[0].parent = "GPU-0";
            },
            {"CUDA_VISIBLE_DEVICES=MIG-1", "NVIDIA_VISIBLE_DEVICES=MIG-1"},
            {"MUSTER_GPU_FRACTION"}},
        Row{"nics_near_the_devices_each_once",
            [](Job& job) {
                job.devices = {nvidia("GPU-0"), nvidia("GPU-1")};
                job.devices[0].nics = {"mlx5_1", "mlx5_0"};
                job.devices[1].nics = {"mlx5_0", "eth2"};
                job.interfaces = {"eth2"};
            },
            {"NCCL_IB_HCA==mlx5_1,mlx5_0", "NCCL_SOCKET_IFNAME==eth2", "GLOO_SOCKET_IFNAME=eth0"},
            {}},
        Row{"nics_of_some_devices_only_are_not_told",
            [](Job& job) {
                job.devices = {nvidia("GPU-0"), nvidia("GPU-1")};
                job.devices[0].nics = {"mlx5_0"};
            },
            {"NCCL_SOCKET_IFNAME=eth0"},
            {"NCCL_IB_HCA"}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(TopologyFile, says_where_the_gang_stands_and_what_is_near_what_here) {
    Job job;
    job.spec.topology.slice = 1;
    job.devices = {nvidia("GPU-0")};
    job.devices[0].link_group = "island0";
    job.devices[0].nics = {"mlx5_0"};
    EXPECT_EQ(topology_json(job.ask()),
              R"({"version":1,"node_rank":1,"levels":["zone","leaf"],"slice_size":1,"nodes":[)"
              R"({"rank":0,"name":"a1","address":"10.0.0.1","role":0,"slots":2,)"
              R"("path":["a","l1"],"slice":0},)"
              R"({"rank":1,"name":"a2","address":"10.0.0.2","role":0,"slots":2,)"
              R"("path":["a",""],"slice":1}],"devices":[)"
              R"({"id":"GPU-0","kind":"h100","class":"gpu","numa":1,"link_group":"island0",)"
              R"("nics":["mlx5_0"]}]})"
              "\n");
    job.cpus = "4-7";
    EXPECT_TRUE(topology_json(job.ask()).ends_with("],\"cpus\":\"4-7\"}\n"));
    job.spec.topology.slice = 0;
    EXPECT_EQ(topology_json(job.ask()).find("slice"), std::string::npos);
}

TEST(OrderFile, keeps_the_place_and_the_share_and_reads_what_an_older_agent_wrote) {
    Job job;
    job.order.spec = std::make_shared<const std::string>("spec");
    job.order.device_share = 250;
    job.order.device_memory = Bytes{5};
    const std::string bytes = encode(job.order);
    const auto again = decode_order(bytes);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->levels, job.order.levels);
    EXPECT_EQ(*again->gang, *job.order.gang);
    EXPECT_EQ(again->device_share, 250);
    EXPECT_EQ(again->device_memory, Bytes{5});
    // The same without what came later: share 2 bytes, memory 1, levels 11, paths 6 and 4.
    Reader reader(bytes);
    (void)reader.number();
    std::string_view body = reader.text();
    body.remove_suffix(24);
    Fnv sum;
    sum.add(body);
    Writer older;
    older.number(sum.hash());
    older.text(body);
    const auto old = decode_order(older.bytes());
    ASSERT_TRUE(old);
    EXPECT_EQ(old->key, job.order.key);
    ASSERT_EQ(old->gang->size(), 2U);
    EXPECT_EQ((*old->gang)[1].slots, 2U);
    EXPECT_TRUE(old->levels.empty() && (*old->gang)[0].path.empty());
    EXPECT_EQ(old->device_share, 0);
    EXPECT_FALSE(decode_order(std::string_view(bytes).substr(0, bytes.size() - 1))) << "torn";
}

}  // namespace
}  // namespace muster::os
