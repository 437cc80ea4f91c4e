// Which checkpoints are complete: the announcement rule and the scan rule of api/task-protocol.md.
//
// These touch the job's storage, which may stand still: never on the loop's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::os {

struct CheckpointFound {
    std::int64_t step = -1;
    std::string path;  // As the task sees it.
    friend bool operator==(const CheckpointFound&, const CheckpointFound&) = default;
};

/// `path`, as the task sees it, names a complete checkpoint below `seen_dir`, which is `dir` on the
/// node. The error's message is the answer that the protocol promises.
Status check_announced(const std::string& dir, std::string_view seen_dir, std::string_view path);
/// The newest complete one by name and marker.
std::optional<CheckpointFound> scan_checkpoints(const std::string& dir, std::string_view seen_dir);
/// The controller's record if it still holds, or the scan's; the larger step.
std::optional<CheckpointFound> newest_checkpoint(const std::string& dir, std::string_view seen_dir,
                                                 const CheckpointFound& recorded);

}  // namespace muster::os
