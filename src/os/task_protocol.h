// Lines of api/task-protocol.md, as values. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace muster::os {

struct ProgressLine {
    std::int64_t step = 0, total = 0;
    int rank = -1;  // Global; -1: not said.
    std::vector<std::pair<std::string, double>> metrics;
    friend bool operator==(const ProgressLine&, const ProgressLine&) = default;
};
struct CheckpointLine {
    std::int64_t step = 0;
    std::string path;
    friend bool operator==(const CheckpointLine&, const CheckpointLine&) = default;
};
struct SavedLine {
    std::int64_t step = 0;
    friend bool operator==(const SavedLine&, const SavedLine&) = default;
};
struct DoneLine {
    friend bool operator==(const DoneLine&, const DoneLine&) = default;
};
using TaskLine = std::variant<ProgressLine, CheckpointLine, SavedLine, DoneLine>;

constexpr std::size_t kTaskLineMax = 4096;  // With its LF.

/// `line` without its LF, not empty. The error's message is the answer after "error ".
Result<TaskLine> parse_task_line(std::string_view line);

/// So many tokens a second, with bursts.
class TokenBucket {
public:
    TokenBucket(std::int64_t per_second, std::int64_t burst, std::int64_t now_ms)
        : per_second_(per_second), burst_(burst), milli_(burst * 1000), at_ms_(now_ms) {}
    bool take(std::int64_t now_ms);
    /// Until one token is there.
    std::int64_t wait_ms() const;

private:
    std::int64_t per_second_, burst_, milli_, at_ms_;
};

}  // namespace muster::os
