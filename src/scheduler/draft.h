// A what-if over the index: starts and ends that are tried and taken back, nothing copied.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/index.h"

namespace muster::scheduler {

/// Where one node's share of a gang would go: which kind of device, by which alternative.
struct Choice {
    std::uint32_t group = 0;
    std::uint32_t alternative = 0;
    std::string kind;
};

/// One from each base may be under way at a time.
class Draft {
public:
    enum class Base { Now, Empty };
    Draft(PlanIndex::State& state, Base base);

    /// Whether the node, as drafted, can take one more share. `usable` is not looked at.
    bool fits(NodeEntry& node, const Shape& shape, const Choice& choice);
    bool fits(const Load& load, const NodeEntry& node, const Shape& shape,
              const Choice& choice) const;
    void take(NodeEntry& node, const Shape& shape, const Choice& choice);
    static void take(Load& load, const NodeEntry& node, const Shape& shape, const Choice& choice);
    /// The job's capacity comes back.
    void release(const JobStarted& job);
    const Load& load(NodeEntry& node);
    std::int64_t free_devices(NodeEntry& node, const model::DeviceAsk& ask,
                              const std::string& kind);

    std::size_t mark() const { return log_.size(); }
    void undo_to(std::size_t mark);

private:
    struct Before {
        NodeEntry* node;
        Load load;
    };
    Load& touch(NodeEntry& node);

    PlanIndex::State& state_;
    Base base_;
    std::size_t at_;  // Where a node keeps what this draft did to it.
    std::uint64_t number_;
    std::vector<Before> log_;
};

/// Whether the node could take the share if nothing else ran on it.
bool fits_empty(const NodeEntry& node, const Shape& shape, const Choice& choice);
/// Kinds of the cluster that an ask may be met by, in order; {""} if it wants no device.
std::vector<std::string> kinds_for(const PlanIndex::State& state, const model::DeviceAsk& ask);

}  // namespace muster::scheduler
