// A StartTask as it lies in its task's folder, so that a new agent knows what runs there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ports/runtime.h"

namespace muster::os {

std::string encode(const protocol::StartTask& order);
/// Empty: damaged, or of a version that is not known.
std::optional<protocol::StartTask> decode_order(std::string_view bytes);

/// "7-0-1": job, epoch, rank; the name of the task's folder and of its control groups.
std::string folder_name(const protocol::TaskKey& key);
std::optional<protocol::TaskKey> parse_folder_name(std::string_view name);

}  // namespace muster::os
