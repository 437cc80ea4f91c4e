#include "simulator/reference/philly_world.h"

#include <algorithm>
#include <map>

#include "simulator/traces/csv.h"

namespace muster::simulator::reference {

std::int64_t PhillyWorld::nodes() const {
    std::int64_t sum = 0;
    for (const VirtualCluster& cluster : clusters) sum += cluster.nodes;
    return sum;
}

std::int64_t PhillyWorld::offered_ppm() const {
    const std::int64_t span = (trace.last() - trace.first()).ms;
    if (span <= 0 || clusters.empty()) return 0;
    return static_cast<std::int64_t>(static_cast<__int128>(trace.device_ms()) * 1'000'000 / span /
                                     devices());
}

Result<PhillyWorld> read_philly_world(const std::string& folder) {
    PhillyWorld world;
    MUSTER_LET(sizes, traces::CsvFile::open(folder + "/philly_vc.csv", {.strict = true}));
    MUSTER_LET(name, sizes.column("vc"));
    MUSTER_LET(nodes, sizes.column("node num"));
    MUSTER_TRY(sizes.each([&](traces::CsvRow& row) {
        world.clusters.push_back({std::string(row.text(name)), row.integer(nodes, 1, 100'000)});
    }));
    MUSTER_LET(trace, traces::read_trace(folder + "/philly.csv.gz", {.format = "philly"}));
    world.trace = std::move(trace);
    std::erase_if(world.trace.rows, [&](const traces::TraceRow& row) {
        return std::ranges::find(world.clusters, world.trace.texts[row.queue],
                                 &VirtualCluster::name) == world.clusters.end();
    });
    return world;
}

std::string_view to_text(Sharing sharing) {
    switch (sharing) {
        case Sharing::Static: return "static";
        case Sharing::Fifo: return "fifo";
        case Sharing::Muster: return "muster";
    }
    return "";
}

study::Cluster philly_cluster(const PhillyWorld& world, Sharing sharing) {
    study::Cluster cluster;
    std::int64_t number = 0;
    for (const VirtualCluster& part : world.clusters) {
        for (std::int64_t i = 0; i < part.nodes; ++i) {
            std::string name = std::to_string(number);
            name.insert(0, 4 - std::min<std::size_t>(name.size(), 4), '0');
            model::NodeFacts node =
                study::make_node("node" + name, "gpu24", 8, {64'000}, {std::int64_t{512} << 30},
                                 "leaf" + std::to_string(number / 32));
            node.labels.emplace_back("partition", part.name);
            std::ranges::sort(node.labels);
            cluster.nodes.push_back(std::move(node));
            ++number;
        }
        if (sharing == Sharing::Fifo) continue;
        model::Queue queue;
        queue.name = part.name;
        queue.settings.guarantee = {{"gpus", part.nodes * 8 * 1000}};
        if (sharing == Sharing::Static) {
            queue.settings.limit = queue.settings.guarantee;
            queue.settings.policy = model::QueuePolicy::Fifo;
        }
        cluster.queues.push_back(std::move(queue));
    }
    if (sharing != Sharing::Muster) {
        cluster.rules.emplace();
        cluster.rules->defragment = false;
    }
    return cluster;
}

PhillyJobs::PhillyJobs(const PhillyWorld& world, Sharing sharing, std::int64_t compress)
    : source_(world.trace, {.compress = compress}), sharing_(sharing) {}

std::optional<study::TraceJob> PhillyJobs::next() {
    std::optional<study::TraceJob> job = source_.next();
    if (!job) return job;
    if (sharing_ == Sharing::Static)
        job->spec.constraint.push_back(
            {"partition", model::ConstraintTerm::Op::In, {job->spec.queue}});
    if (sharing_ == Sharing::Fifo) job->spec.queue.clear();
    return job;
}

}  // namespace muster::simulator::reference
