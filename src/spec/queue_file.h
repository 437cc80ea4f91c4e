// Queues and the cluster's scheduling rules as text: the file of `muster queues apply -f`, the same
// parts inside controller.yaml, the words of `muster queues set`, and back to YAML.
// Either all of it is valid, or everything that is wrong is told at once, with its place.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/queue.h"
#include "spec/problem.h"

namespace muster::spec {

constexpr std::size_t kQueueFileMax = std::size_t{4} << 20;
constexpr std::size_t kQueuesMax = 10'000;
constexpr std::size_t kQueueDepthMax = 8;

struct QueueFile {
    /// Parents before their children, children by name. `id` and `parent` are for who keeps them to
    /// give: the parent is what stands before the last '/' of the name.
    std::vector<model::Queue> queues;
    std::optional<model::SchedulingRules> rules;  // Nothing: the file does not speak of them.
    friend bool operator==(const QueueFile&, const QueueFile&) = default;
};

/// "queues: {…}" (or a list of names) and "rules: {…}", either or both. `file` is for messages.
std::variant<QueueFile, Problems> parse_queue_file(std::string_view text, const std::string& file);

/// Changes of one queue as people type them: "weight=2", "limit.gpus=64" (that resource alone),
/// "limit={gpus: 64}" (in place of all). Problems: none of them was made.
Problems set_queue(model::Queue& queue, std::span<const std::string> assignments);
/// The same of the rules: "half_life=3d", "speeds.a100=0.45".
Problems set_rules(model::SchedulingRules& rules, std::span<const std::string> assignments);

/// What contradicts itself in a whole tree, one line each, named after the queue. To be asked of
/// the tree that results whenever a part of it is changed. Parents are found by name.
std::vector<std::string> check_queues(std::span<const model::Queue> queues);

/// Reads back as `file`. Defaults are left out.
std::string to_yaml(const QueueFile& file);

/// A row of the table that drives the parser, for help and the reference.
struct QueueField {
    std::string_view name;
    std::string_view value;     // What a value looks like, in YAML.
    std::string_view fallback;  // The default, for people.
    std::string_view help;
};
std::vector<QueueField> queue_fields();
std::vector<QueueField> rule_fields();
/// docs/queue-reference.md, as it has to be.
std::string queue_reference();

}  // namespace muster::spec
