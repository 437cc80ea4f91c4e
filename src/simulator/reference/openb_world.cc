#include "simulator/reference/openb_world.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "simulator/traces/openb.h"

namespace muster::simulator::reference {
namespace {

constexpr std::int64_t kPercent = 130;
constexpr std::size_t kModelsMax = 64;

}  // namespace

Result<OpenbWorld> openb_world(const std::string& folder, const std::string& list) {
    MUSTER_LET(nodes, traces::read_openb_nodes(folder + "/openb_node_list_gpu_node.csv",
                                               {.strict = true}));
    std::string path = folder + "/openb_pod_list_" + list + ".csv";
    if (!std::filesystem::exists(path)) path += ".gz";
    MUSTER_LET(pods, traces::read_openb_pods(path, {.strict = true}));
    OpenbWorld world;
    const auto bit = [&](const std::string& model) {
        const auto at = std::ranges::find(world.models, model) - world.models.begin();
        if (at == std::ssize(world.models)) world.models.push_back(model);
        return Models{1} << at;
    };
    std::ranges::sort(nodes.nodes, {}, &traces::OpenbNode::name);
    for (const traces::OpenbNode& node : nodes.nodes) {
        world.nodes.push_back({node.cpu_milli, node.memory_mib,
                               static_cast<std::int32_t>(node.gpus), bit(node.model)});
        world.capacity += node.gpus * 1000;
    }
    std::ranges::sort(pods.pods, {}, &traces::OpenbPod::name);
    for (const traces::OpenbPod& pod : pods.pods) {
        Models any = 0;
        for (const std::string& model : pod.models) any |= bit(model);
        world.pods.push_back({pod.cpu_milli, pod.memory_mib, static_cast<std::int32_t>(pod.gpus),
                              static_cast<std::int32_t>(pod.gpu_milli), any});
        if (world.models.size() > kModelsMax)
            return Error{.code = Code::Invalid,
                         .message = path + ": more than " + std::to_string(kModelsMax) +
                                    " models of devices",
                         .fix = "give a list with fewer"};
    }
    world.typical = typical_pods(world.pods);
    return world;
}

OpenbStream openb_stream(const OpenbWorld& world, std::uint64_t seed) {
    OpenbStream stream{{}, {}, Prng(seed)};
    stream.order.resize(world.nodes.size());
    std::iota(stream.order.begin(), stream.order.end(), std::size_t{0});
    for (std::size_t i = stream.order.size(); i > 1; --i)
        std::swap(stream.order[i - 1], stream.order[stream.random.below(i)]);
    stream.pods = arrivals(world.pods, world.capacity, kPercent, stream.random);
    return stream;
}

double openb_allocation(const OpenbWorld& world, PackingPolicy policy, std::uint64_t seed) {
    const OpenbStream stream = openb_stream(world, seed);
    std::vector<PackingNode> nodes;
    for (const std::size_t i : stream.order) nodes.push_back(world.nodes[i]);
    PackedCluster packing(nodes, policy, world.typical, stream.random);
    for (const PackingPod& pod : stream.pods) packing.place(pod);
    return 100 * static_cast<double>(packing.allocated()) / static_cast<double>(world.capacity);
}

}  // namespace muster::simulator::reference
