// The openb stream through the production planner, pod by pod: queued, planned, started.
#include "fgd_production.h"

#include <algorithm>
#include <map>

#include "scheduler/plan.h"

namespace muster::compare {
namespace {

using namespace scheduler;
using simulator::reference::OpenbWorld;
using simulator::reference::PackingNode;
using simulator::reference::PackingPod;

constexpr std::int64_t kWhole = 1000;

/// A cluster as the controller has it, with devices bound by its rule: parts where least is left.
class Cluster {
public:
    Cluster(const OpenbWorld& world, const std::vector<std::size_t>& order) : world_(world) {
        index_.apply(LevelsChanged{{"leaf"}});
        model::Queue queue;
        queue.id = {1};
        queue.name = "pods";
        index_.apply(QueueChanged{queue});
        for (std::size_t i = 0; i < order.size(); ++i) {
            const PackingNode& node = world.nodes[order[i]];
            auto facts = std::make_shared<model::NodeFacts>();
            facts->name = "n" + std::to_string(i);
            facts->cpus = {node.cpu};
            facts->memory = {node.memory << 20};
            facts->labels = {{"model", model_of(node.model)}};
            for (std::int32_t d = 0; d < node.devices; ++d) {
                model::Device device;
                device.id = facts->name + "-" + std::to_string(d);
                device.kind = model_of(node.model);
                device.memory = {std::int64_t{32} << 30};
                device.share_enforced = true;
                facts->devices.push_back(device);
            }
            const NodeId id{i + 1};
            nodes_[id] = {facts, std::vector<std::int64_t>(facts->devices.size(), kWhole)};
            index_.apply(NodeChanged{id, facts, true, {""}, 0});
        }
    }

    /// Whether it started; else it is gone.
    bool place(const PackingPod& pod) {
        const Shape& shape = shape_of(pod);
        now_ = now_ + Duration{1};
        const JobId id{++last_};
        JobQueued queued;
        queued.id = id, queued.shape = shape.id, queued.user = {1};
        queued.submitted = queued.eligible = now_;
        index_.apply(queued);
        const Plan plan = index_.plan(now_);
        index_.apply(JobUnqueued{id});
        if (plan.starts.empty()) return false;
        JobStarted started;
        started.id = id, started.shape = shape.id, started.user = {1};
        started.slots = plan.starts[0].slots;
        started.started = now_;
        started.expected_end = kNever;
        for (Slot& slot : started.slots) bind(slot, pod);
        index_.apply(started);
        return true;
    }

private:
    struct Node {
        std::shared_ptr<const model::NodeFacts> facts;
        std::vector<std::int64_t> left;  // Thousandths, by device.
    };

    std::string model_of(std::uint64_t bit) const {
        return world_.models[static_cast<std::size_t>(std::countr_zero(bit))];
    }

    const Shape& shape_of(const PackingPod& pod) {
        Shape shape;
        shape.queue = {1};
        GroupAsk& group = shape.groups.emplace_back();
        group.cpus = {std::max<std::int64_t>(1, pod.cpu)};
        group.memory = {pod.memory << 20};
        if (pod.devices > 0) {
            model::DeviceAsk& ask = group.devices.emplace_back();
            ask.count = pod.devices;
            ask.kind = std::has_single_bit(pod.models) ? model_of(pod.models) : "any";
            if (pod.share()) ask.fraction = pod.milli;
        }
        if (std::popcount(pod.models) > 1) {  // Any of them, as good as each other.
            model::ConstraintTerm& term = shape.constraint.emplace_back();
            term.key = "model";
            for (std::size_t i = 0; i < world_.models.size(); ++i)
                if ((pod.models >> i & 1) != 0) term.values.push_back(world_.models[i]);
        }
        const auto [at, added] = shapes_.try_emplace(encode(shape), shape);
        if (!added) return at->second;
        at->second.id = {shapes_.size()};
        index_.apply(ShapeAdded{at->second});
        return at->second;
    }

    void bind(Slot& slot, const PackingPod& pod) {
        Node& node = nodes_.at(slot.node);
        slot.cpus = {std::max<std::int64_t>(1, pod.cpu)};
        slot.memory = {pod.memory << 20};
        for (std::int32_t n = 0; n < pod.devices; ++n) {
            std::size_t best = node.left.size();
            for (std::size_t i = 0; i < node.left.size(); ++i)
                if (node.left[i] >= pod.milli &&
                    (best == node.left.size() || node.left[i] < node.left[best]))
                    best = i;
            node.left.at(best) -= pod.milli;
            slot.devices.push_back(node.facts->devices[best].id);
        }
    }

    const OpenbWorld& world_;
    PlanIndex index_;
    std::map<NodeId, Node> nodes_;
    std::map<std::string, Shape> shapes_;
    std::uint64_t last_ = 0;
    Time now_{1'000'000'000};
};

}  // namespace

double production_allocation(const OpenbWorld& world, std::uint64_t seed) {
    const auto stream = simulator::reference::openb_stream(world, seed);
    Cluster cluster(world, stream.order);
    std::int64_t allocated = 0;
    for (const PackingPod& pod : stream.pods) allocated += cluster.place(pod) ? pod.demand() : 0;
    return 100 * static_cast<double>(allocated) / static_cast<double>(world.capacity);
}

}  // namespace muster::compare
