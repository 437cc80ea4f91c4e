// One accelerator (or any device class a site names) of one node.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.h"

namespace muster::model {

/// Identified by `id`, which survives reboots and renumbering (a UUID, a serial): never an index
/// (F40).
struct Device {
    std::string id;
    std::string kind;                  // Lower case model: "h100", "ascend910b".
    std::string device_class = "gpu";  // Lower case: gpu, npu, fpga, or a site's own.
    std::string vendor;                // Lower case.
    Bytes memory;
    int numa = -1;                   // -1: unknown.
    std::string link_group;          // Devices of one NVLink (or like) island share it; "" = none.
    std::vector<std::string> files;  // Device nodes that its owner may open.
    bool healthy = true;
    std::string profile;  // Of a partition, by id: never by name (F47). "" = a whole device.
    std::string parent;   // The device that it is a partition of.
    bool share_enforced = false;     // Its parts are kept apart (MPS or like).
    std::vector<std::string> nics;   // Network devices near it, nearest first.
    friend bool operator==(const Device&, const Device&) = default;
};

}  // namespace muster::model
