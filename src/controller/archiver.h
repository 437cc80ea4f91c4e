// Moves ended jobs to history, in groups, off the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/id.h"
#include "core/state.h"
#include "ports/history.h"

namespace muster::controller {

class Archiver {
public:
    Archiver(ports::History& history, std::function<void(std::vector<JobId>)> archived,
             std::function<void(const std::string&)> log);
    ~Archiver();
    Archiver(const Archiver&) = delete;
    Archiver& operator=(const Archiver&) = delete;

    /// `view` shows each of `jobs` ended.
    void add(std::vector<JobId> jobs, std::shared_ptr<const core::View> view);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller
