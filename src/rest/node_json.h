// A node as JSON, and the sums over nodes and devices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "core/state.h"

namespace muster::rest {

/// Gets new work: ready, not held back, free of strays.
bool usable(const core::View& view, const core::Node& node);
/// "ready", "suspect", "lost", "unknown"; ready but held: "draining",
/// "drained", "held".
std::string_view node_state(const core::View& view, const core::Node& node);
std::string_view health_text(model::NodeHealth health);
/// "h100:8,a100:2".
std::string gpu_kinds(const model::NodeFacts& facts);

struct DeviceSums {
    std::int64_t total = 0, used = 0,
                 unusable = 0;  // unusable: unhealthy and not used.
};
DeviceSums count_devices(const core::View& view, const core::Node& node);

/// The names a node's `fields` may have. All but "devices" are usual.
std::vector<std::string> node_fields();
Result<std::vector<std::string>> parse_node_fields(std::string_view text, bool whole);
void write_node(JsonWriter& json, const core::View& view, const core::Node& node,
                const std::vector<std::string>& fields);
/// One device with its owner; `with_node` names its node too.
void write_device(JsonWriter& json, const core::View& view, const core::Node& node,
                  const model::Device& device, bool with_node);

}  // namespace muster::rest
