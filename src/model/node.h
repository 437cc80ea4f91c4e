// A node as its agent describes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/quantity.h"
#include "model/device.h"

namespace muster::model {

/// CPUs of one NUMA node, as Linux lists them: "0-15,32-47".
struct NumaNode {
    int id = 0;
    std::string cpus;
    friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

/// What an agent says of its node. Facts, not state: who uses what is the controller's to know.
struct NodeFacts {
    std::string name;                    // Bound to the agent's certificate.
    std::vector<std::string> addresses;  // The first is the one that other nodes use.
    int peer_port = 0;                   // Where the agent answers its peers; 0: nowhere.
    std::string boot_id;                 // Changes when the node reboots: then its tasks are gone.
    std::string version;                 // Of the agent.
    MilliCpu cpus;
    Bytes memory;
    Bytes disk;
    std::vector<Device> devices;  // In id order.
    std::vector<std::pair<std::string, std::string>>
        labels;                    // Sorted by key. "leaf" names the switch.
    std::vector<NumaNode> numa;  // In id order; empty: unknown.
    std::string runtime;           // "crun 1.8.1", "runc 1.1.5"; "" = no containers.
    bool limits_enforced = false;  // Cgroups could be made.
    bool disk_enforced = false;
    std::string unenforced_why;  // For people: why not.
    friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

/// The value of a label, or "".
std::string_view label(const NodeFacts& facts, std::string_view key);

std::string encode(const NodeFacts& facts);
std::optional<NodeFacts> decode_node_facts(std::string_view bytes);

/// What the controller thinks of the link to a node.
enum class NodeHealth : std::uint8_t {
    Unknown,  // Not heard since this controller started.
    Ready,
    Suspect,  // Silent for `suspect`: gets nothing new.
    Lost,     // Silent for `lost`: its gangs are being replaced after the fence time.
};

/// Who holds a node back from new work. Holds have owners: nobody undoes another's (F48).
struct NodeHold {
    std::string owner;  // "admin:alice", "launch-failures".
    std::string reason;
    Time since;
    Time until;  // kNever: until it is taken off.
    friend bool operator==(const NodeHold&, const NodeHold&) = default;
};

}  // namespace muster::model
