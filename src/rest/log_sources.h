// Where the log of each rank of one attempt of a job is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/state.h"
#include "ports/history.h"

namespace muster::rest {

struct LogRank {
    std::uint32_t rank = 0;
    NodeId node;  // 0: not known any more.
    std::string node_name;
};
struct LogSources {
    JobId job;
    std::uint32_t attempt = 0;
    bool started = false;        // Else there is no log yet.
    bool active = false;         // The attempt is under way.
    std::vector<LogRank> ranks;  // All of them, by rank.
};

/// Of the newest attempt that started, or of `attempt`; NotFound if there was
/// none such.
Result<LogSources> log_sources(const core::View& view, const core::Job& job,
                               std::optional<std::uint32_t> attempt);
Result<LogSources> log_sources(const core::View& view, const ports::EndedJob& job,
                               std::optional<std::uint32_t> attempt);

}  // namespace muster::rest
